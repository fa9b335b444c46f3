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

// ping and echo are n round trips; stamps, if not nil, gets the ticks at the end of each.
func (w *kernelWire) ping(p []byte, n int, stamps []int64) error {
	return w.alternate(true, p, n, stamps)
}

func (w *kernelWire) echo(p []byte, n int) error { return w.alternate(false, p, n, nil) }

// alternate writes p and reads it n times, or reads it and writes it. A short
// message lies on the stack, beside all else that is used.
func (w *kernelWire) alternate(writing bool, p []byte, n int, stamps []int64) error {
	var short [64]byte
	q := p
	if len(p) <= len(short) {
		q = short[:len(p)]
	}
	trap1, fd1, trap2, fd2 := uintptr(unix.SYS_WRITE), w.w, uintptr(unix.SYS_READ), w.r
	if !writing {
		trap1, fd1, trap2, fd2 = trap2, fd2, trap1, fd1
	}
	for i := 0; i < n; i++ {
		var stamp *int64
		if stamps != nil {
			stamp = &stamps[i]
		}
		calls, last := exchange(trap1, fd1, trap2, fd2, unsafe.SliceData(q), len(q), 2*(n-i), stamp)
		if i += calls / 2; i == n {
			break
		}
		if calls%2 == 0 {
			if err := w.finish(writing, q, last); err != nil {
				return err
			}
			last = notYet
		}
		if err := w.finish(!writing, q, last); err != nil {
			return err
		}
		if stamps != nil {
			stamps[i] = ticks()
		}
	}
	return nil
}

const notYet = -1 // in place of a call's result

// finish does the rest of a call that moved fewer bytes than p has, or failed. What failed, or was not made yet, it tries.
func (w *kernelWire) finish(writing bool, p []byte, moved int) error {
	switch {
	case moved == 0 && !writing:
		return io.EOF
	case writing:
		return w.write(p[max(moved, 0):])
	case moved > 0 && w.boundaries:
		return errWrongSize
	}
	return readFull(w, p[max(moved, 0):])
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
