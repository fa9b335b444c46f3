//go:build linux

package main

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// qemuName is the program that is the machine.
const qemuName = "qemu-system-x86_64"

// check refuses what cannot work before anything is started.
func (p *plan) check() error {
	if _, err := exec.LookPath(qemuName); err != nil {
		return fmt.Errorf("%s is not installed (Debian: qemu-system-x86): %w", qemuName, err)
	}
	for _, m := range p.machines {
		if err := checkKernel(m.kernel); err != nil {
			return fmt.Errorf("kernel: %w", err)
		}
	}
	if err := checkBinary(p.binary); err != nil {
		return fmt.Errorf("test binary: %w", err)
	}
	if err := checkBinary("/proc/self/exe"); err != nil {
		return fmt.Errorf("kernelrun itself is the guest's first process: %w", err)
	}
	if p.outDir != "" {
		return os.MkdirAll(p.outDir, 0o777)
	}
	return nil
}

// checkKernel looks for the header of an image for x86 (Documentation/arch/x86/boot.rst).
func checkKernel(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	const offset, magic = 0x202, "HdrS"
	var header [len(magic)]byte
	if _, err := f.ReadAt(header[:], offset); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if !bytes.Equal(header[:], []byte(magic)) {
		return fmt.Errorf("%s is not a Linux kernel image for x86 (bzImage)", path)
	}
	return nil
}

// checkBinary wants a program that needs nothing but the kernel: the guest has no libraries.
func checkBinary(path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("%s is no program that can be read: %w", path, err)
	}
	defer f.Close()
	if f.Machine != elf.EM_X86_64 {
		return fmt.Errorf("%s is for %v, the guest is x86-64", path, f.Machine)
	}
	for _, segment := range f.Progs {
		if segment.Type == elf.PT_INTERP {
			return fmt.Errorf("%s is dynamically linked, and the guest has no libraries: build it with CGO_ENABLED=0", path)
		}
	}
	return nil
}
