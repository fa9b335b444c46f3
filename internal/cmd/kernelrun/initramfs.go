//go:build linux

package main

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cavaliergopher/cpio"
	"golang.org/x/sys/unix"
)

// initramfs makes the guest's first file system in memory: of a run that is
// killed nothing stays behind (Documentation/driver-api/early-userspace/buffer-format.rst).
func initramfs(binary string, args []string) (*os.File, error) {
	fd, err := unix.MemfdCreate("initramfs", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), "initramfs")
	if err := writeInitramfs(f, binary, args); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func writeInitramfs(w io.Writer, binary string, args []string) error {
	a := archive{cpio.NewWriter(w)}
	o := newOrder(binary, args)
	var orderData bytes.Buffer
	if err := gob.NewEncoder(&orderData).Encode(o); err != nil {
		return err
	}
	steps := []func() error{
		func() error { return a.file(initPath, "/proc/self/exe", 0o755) },
		func() error { return a.data(orderPath, orderData.Bytes()) },
		func() error { return a.dir("/etc") },
		func() error { return a.data("/etc/hosts", []byte("127.0.0.1 localhost\n::1 localhost\n")) },
		func() error { return a.dir(testDir) },
		func() error { return a.file(o.Path, binary, 0o755) },
		func() error { return a.tree(testDir+"/testdata", "testdata") },
		a.w.Close,
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// An archive takes the guest's absolute paths; cpio has them without the slash.
type archive struct{ w *cpio.Writer }

func (a archive) dir(name string) error {
	return a.w.WriteHeader(&cpio.Header{Name: strings.TrimPrefix(name, "/"), Mode: cpio.TypeDir | 0o755, Links: 2})
}

func (a archive) data(name string, data []byte) error {
	return a.copy(name, 0o644, int64(len(data)), bytes.NewReader(data))
}

// file adds a file of the host.
func (a archive) file(name, path string, mode fs.FileMode) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return a.copy(name, mode, info.Size(), f)
}

func (a archive) copy(name string, mode fs.FileMode, size int64, from io.Reader) error {
	if size > 1<<32-1 {
		return fmt.Errorf("%s: %d bytes do not fit an initramfs", name, size)
	}
	err := a.w.WriteHeader(&cpio.Header{Name: strings.TrimPrefix(name, "/"), Mode: cpio.TypeReg | cpio.FileMode(mode.Perm()), Size: size})
	if err != nil {
		return err
	}
	if _, err := io.CopyN(a.w, from, size); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// tree adds a folder of the host, if there is one, with its files and folders.
func (a archive) tree(name, root string) error {
	if _, err := os.Stat(root); os.IsNotExist(err) {
		return nil
	}
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		target := filepath.Join(name, inside)
		if d.IsDir() {
			return a.dir(target)
		}
		info, err := os.Stat(path) // a link's target is what the guest gets
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s: neither a file nor a folder", path)
		}
		return a.file(target, path, info.Mode())
	})
}

func keyOf(entry string) string {
	key, _, _ := strings.Cut(entry, "=")
	return key
}
