//go:build linux

package channeltest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/seed-e1736cc0/ipcbench"
)

// A wire is how a party of a benchmark moves bytes: through a Channel or by bare system calls.
type wire interface {
	// write sends all of p.
	write(p []byte) error
	// read returns what one read brings: 1 to len(p) bytes, and where there are boundaries one whole message.
	read(p []byte) (int, error)
	// messages reports that one write is one read.
	messages() bool
}

// channelWire is a Channel as its users have it.
type channelWire struct {
	ch         ipcbench.Channel
	boundaries bool
}

func throughChannel(ch ipcbench.Channel) wire {
	return &channelWire{ch, ch.Contract().Boundaries}
}

func (w *channelWire) write(p []byte) error {
	_, err := w.ch.Write(p)
	return err
}

func (w *channelWire) read(p []byte) (int, error) { return w.ch.Read(p) }
func (w *channelWire) messages() bool             { return w.boundaries }

// kernelWire is what a program in C does: read(2) and write(2) on blocking
// descriptors, out of the Go scheduler's sight. A thread that blocks here stops the
// whole process at its next stop-the-world: only for a process of its own with the collector off.
type kernelWire struct {
	r, w       uintptr
	boundaries bool
}

func throughKernel(ch ipcbench.Channel) (wire, error) {
	d, ok := ch.(ipcbench.Descriptors)
	if !ok {
		return nil, fmt.Errorf("the channel has no descriptors: %w", errors.ErrUnsupported)
	}
	return &kernelWire{uintptr(d.ReadFD()), uintptr(d.WriteFD()), ch.Contract().Boundaries}, nil
}

func (w *kernelWire) write(p []byte) error {
	for {
		n, _, errno := syscall.RawSyscall(unix.SYS_WRITE, w.w, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
		switch {
		case errno == 0 && int(n) == len(p):
			return nil
		case errno == unix.EINTR:
		case errno != 0:
			return os.NewSyscallError("write", errno)
		default:
			p = p[n:]
		}
	}
}

func (w *kernelWire) read(p []byte) (int, error) {
	for {
		n, _, errno := syscall.RawSyscall(unix.SYS_READ, w.r, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
		switch {
		case errno == 0 && n == 0:
			return 0, io.EOF
		case errno == 0:
			return int(n), nil
		case errno != unix.EINTR:
			return 0, os.NewSyscallError("read", errno)
		}
	}
}

func (w *kernelWire) messages() bool { return w.boundaries }

// ping and echo are round trips with as little around the system calls as a
// loop in C has. After a switch between processes each return is mispredicted and each page a
// miss of the TLB, so there is no function between the loop and the system
// call, and a short message lies on the stack, beside all else that is used.
func (w *kernelWire) ping(p []byte, n int) error {
	var short [64]byte
	q := p
	if len(p) <= len(short) {
		q = short[:len(p)]
	}
	r, wr := w.r, w.w
	for range n {
		if sent := raw(unix.SYS_WRITE, wr, q); sent != len(p) {
			if err := w.write(p[max(sent, 0):]); err != nil {
				return err
			}
		}
		if got := raw(unix.SYS_READ, r, q); got != len(p) {
			if err := w.rest(p, got); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *kernelWire) echo(p []byte, n int) error {
	var short [64]byte
	q := p
	if len(p) <= len(short) {
		q = short[:len(p)]
	}
	r, wr := w.r, w.w
	for range n {
		if got := raw(unix.SYS_READ, r, q); got != len(p) {
			if err := w.rest(p, got); err != nil {
				return err
			}
		}
		if sent := raw(unix.SYS_WRITE, wr, q); sent != len(p) {
			if err := w.write(p[max(sent, 0):]); err != nil {
				return err
			}
		}
	}
	return nil
}

// raw is small enough to be inlined. It returns what was moved; -1 is an error,
// which the call that tries again will meet.
func raw(trap, fd uintptr, p []byte) int {
	n, _, _ := syscall.RawSyscall6(trap, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), 0, 0, 0)
	return int(n)
}

// rest reads what is missing after a read that brought got bytes.
func (w *kernelWire) rest(p []byte, got int) error {
	switch {
	case got == 0:
		return io.EOF
	case got > 0 && w.boundaries:
		return errWrongSize
	}
	return readFull(w, p[max(got, 0):])
}

// readFull reads len(p) bytes: one message, or as many reads as a stream takes.
func readFull(w wire, p []byte) error {
	n, err := w.read(p)
	if n == len(p) && err == nil {
		return nil
	}
	for err == nil && n < len(p) && !w.messages() {
		var m int
		m, err = w.read(p[n:])
		n += m
	}
	if err == nil && n != len(p) {
		err = errWrongSize
	}
	return err
}

var errWrongSize = errors.New("a message arrived with another size than it was sent with")

// pageSize aligns buffers: a copy from and to whole pages costs pipes some 6 % less at 64 KiB.
const pageSize = 4096

// buffer returns size bytes that start on a page and have been written to, so that none of them is the kernel's shared zero page.
func buffer(size int) []byte {
	b := make([]byte, size+pageSize)
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (pageSize - 1)
	b = b[skip : skip+size : skip+size]
	for i := range b {
		b[i] = 'x'
	}
	return b
}
