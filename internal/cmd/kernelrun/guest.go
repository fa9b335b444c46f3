//go:build linux

package main

import (
	"encoding/gob"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// Where the initramfs has things.
const (
	initPath  = "/init"
	orderPath = "/order"
	testDir   = "/test"
)

// An order is what the guest has to run.
type order struct {
	Path string
	Args []string // without the program's name
	Env  []string
}

// isGuest: the kernel starts /init as process 1; a container's first process has another name.
func isGuest() bool { return os.Getpid() == 1 && os.Args[0] == initPath }

// beGuest is the guest's first process. It never returns: the end of process 1 would be a panic.
func beGuest() {
	defer unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	port, err := setUp()
	if err != nil {
		fmt.Fprintln(os.Stderr, "kernelrun: guest:", err)
		if port == nil {
			return
		}
	}
	w := newWire(port)
	end := message{Kind: exited}
	if err == nil {
		end.Status, err = runOrder(w)
	}
	if err != nil {
		end = message{Kind: failed, Data: []byte(err.Error())}
	}
	if err := w.send(end); err != nil {
		fmt.Fprintln(os.Stderr, "kernelrun: guest:", err)
	}
	unix.IoctlSetInt(int(port.Fd()), unix.TCSBRK, 1) // tcdrain(3)
}

// setUp makes the guest a place like any other. The port is there even on an error if it could be opened.
func setUp() (port *os.File, err error) {
	if err := mount("devtmpfs", "/dev"); err != nil {
		return nil, err
	}
	if port, err = openPort("/dev/ttyS1"); err != nil {
		return nil, err
	}
	for _, m := range [][2]string{
		{"proc", "/proc"}, {"sysfs", "/sys"}, {"tmpfs", "/tmp"}, {"tmpfs", "/run"}, {"tmpfs", "/dev/shm"}, {"devpts", "/dev/pts"},
	} {
		if err := mount(m[0], m[1]); err != nil {
			return port, err
		}
	}
	for name, target := range map[string]string{
		"/dev/fd": "/proc/self/fd", "/dev/stdin": "/proc/self/fd/0", "/dev/stdout": "/proc/self/fd/1", "/dev/stderr": "/proc/self/fd/2",
	} {
		if err := os.Symlink(target, name); err != nil {
			return port, err
		}
	}
	if err := unix.Sethostname([]byte("kernelrun")); err != nil {
		return port, os.NewSyscallError("sethostname", err)
	}
	// The kernel gives process 1 a hard limit of 4096; this is systemd's.
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 1024, Max: 512 << 10}); err != nil {
		return port, os.NewSyscallError("setrlimit", err)
	}
	return port, loopbackUp()
}

func mount(kind, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	options := ""
	if dir == "/tmp" || dir == "/dev/shm" {
		options = "mode=1777"
	}
	if err := unix.Mount(kind, dir, kind, unix.MS_NOSUID, options); err != nil {
		return &os.PathError{Op: "mount", Path: dir, Err: err}
	}
	return nil
}

// openPort opens a serial port that changes no byte: "\n" would become "\r\n".
func openPort(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	port := os.NewFile(uintptr(fd), path)
	mode, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err == nil {
		mode.Oflag &^= unix.OPOST
		mode.Lflag &^= unix.ECHO | unix.ICANON | unix.ISIG
		mode.Cflag |= unix.CLOCAL // no carrier to wait for
		err = unix.IoctlSetTermios(fd, unix.TCSETS, mode)
	}
	if err != nil {
		port.Close()
		return nil, &os.PathError{Op: "set", Path: path, Err: err}
	}
	return port, nil
}

// loopbackUp brings up lo; the kernel gives it 127.0.0.1 and ::1 by itself.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP)
	return os.NewSyscallError("SIOCSIFFLAGS", unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request))
}

// runOrder runs the test binary and returns its exit status.
func runOrder(w *wire) (status int, err error) {
	o, err := readOrder()
	if err != nil {
		return 0, err
	}
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return 0, os.NewSyscallError("uname", err)
	}
	if err := w.send(message{Kind: ready, Data: []byte(unix.ByteSliceToString(name.Release[:]))}); err != nil {
		return 0, err
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	var copying sync.WaitGroup
	files := []*os.File{null}
	for _, kind := range []kind{stdout, stderr} {
		r, write, err := os.Pipe()
		if err != nil {
			return 0, err
		}
		files = append(files, write)
		copying.Go(func() { io.Copy(stream{w, kind}, r); r.Close() })
	}
	child, err := os.StartProcess(o.Path, append([]string{o.Path}, o.Args...), &os.ProcAttr{Dir: testDir, Env: o.Env, Files: files})
	files[1].Close()
	files[2].Close()
	if err != nil {
		return 0, err
	}
	status, err = reap(child.Pid)
	unix.Kill(-1, unix.SIGKILL) // what the binary left behind holds the pipes open
	copying.Wait()
	return status, err
}

// reap collects every process that ends, as process 1 has to, until pid does.
func reap(pid int) (status int, err error) {
	for {
		var ws unix.WaitStatus
		ended, err := unix.Wait4(-1, &ws, 0, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return 0, os.NewSyscallError("wait4", err)
		case ended == pid && ws.Signaled():
			return 0, fmt.Errorf("the test binary was ended by a signal: %v", ws.Signal())
		case ended == pid:
			return ws.ExitStatus(), nil
		}
	}
}

func readOrder() (o order, err error) {
	f, err := os.Open(orderPath)
	if err != nil {
		return o, err
	}
	defer f.Close()
	err = gob.NewDecoder(f).Decode(&o)
	return o, err
}

// newOrder is the host's part: the program under its name in the guest, arguments and environment as they are here.
func newOrder(binary string, args []string) order {
	o := order{Path: filepath.Join(testDir, filepath.Base(binary)), Args: args}
	for _, entry := range os.Environ() {
		if key := keyOf(entry); key != "TMPDIR" && key != "PWD" && key != "HOME" { // these name folders of the host
			o.Env = append(o.Env, entry)
		}
	}
	o.Env = append(o.Env, "PWD="+testDir, "HOME=/tmp")
	return o
}
