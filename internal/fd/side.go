//go:build linux

package fd

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-e1736cc0/ipcbench"
)

// A strategy is an ipcbench.Wait with what follows from it for a descriptor.
type strategy ipcbench.Wait

func (w strategy) blocks() bool { return ipcbench.Wait(w) == ipcbench.Block }

// parks: in the runtime's poller, so that the description has to be non-blocking and registered.
func (w strategy) parks() bool {
	return ipcbench.Wait(w) == ipcbench.Netpoll || ipcbench.Wait(w) == ipcbench.Adaptive
}

// A side is one direction of a Conn.
type side struct {
	fd    int // valid while mu is held; -1 once given back
	kind  Kind
	write bool
	wait  strategy

	mu       sync.Mutex   // held while fd is in use
	closed   atomic.Bool  // set before mu is taken to end the side
	deadline atomic.Int64 // nanoseconds on the clock of now; 0: none

	// How a call that is blocked in the kernel is told to look again: see interrupt.go.
	asked, seen atomic.Uint32

	file *os.File        // owns the number
	raw  syscall.RawConn // file's, where the wait parks

	// Arguments and results of system calls and of attempt, kept here so that no call allocates.
	attempt   func(uintptr) bool
	buf       []byte
	n         int
	errno     unix.Errno
	pollfd    [1]unix.PollFd
	timeout   unix.Timespec
	iov       [2]unix.Iovec
	spareByte [1]byte
	noNoWait  bool // the kernel has no RWF_NOWAIT for pipes
	carrying  bool // the message under way has ancillary data
	ancillary *ancillary
	head      []byte // goes before what is read or written, see vector.go
	msg       unix.Msghdr
	oneCPU    bool // GOMAXPROCS is 1: the other party may be a goroutine that needs ours
}

func (s *side) init(fd int, write bool, cfg Config, file *os.File) error {
	s.fd, s.write, s.kind, s.wait, s.file = fd, write, cfg.Kind, strategy(cfg.Wait), file
	s.oneCPU = runtime.GOMAXPROCS(0) == 1
	if !s.wait.parks() {
		return nil
	}
	var err error
	s.raw, err = file.SyscallConn()
	s.attempt = func(uintptr) bool {
		s.n, s.errno = s.retry(s.buf)
		return s.errno != unix.EAGAIN
	}
	return err
}

// await moves bytes once, waiting as the strategy says. The caller holds mu.
func (s *side) await(p []byte) (int, error) {
	switch ipcbench.Wait(s.wait) {
	case ipcbench.Block:
		return s.block(p)
	case ipcbench.Spin:
		return s.spin(p, forever)
	case ipcbench.Adaptive:
		if n, err := s.spin(p, spinFor); err != errStillBusy {
			return n, err
		}
	}
	return s.park(p)
}

// park waits in the runtime's poller.
func (s *side) park(p []byte) (n int, err error) {
	s.buf = p
	if s.write {
		err = s.raw.Write(s.attempt)
	} else {
		err = s.raw.Read(s.attempt)
	}
	s.buf = nil
	switch {
	case err != nil && s.closed.Load():
		return 0, os.ErrClosed
	case err != nil:
		return 0, err
	case s.errno != 0:
		return 0, s.errno
	}
	return s.n, nil
}

// block waits in the kernel: in the call itself, or in ppoll when there is a
// deadline, or when something has set O_NONBLOCK.
func (s *side) block(p []byte) (int, error) {
	for {
		asked := s.asked.Load()
		if s.closed.Load() {
			return 0, os.ErrClosed
		}
		m, left := mayBlock, int64(-1)
		if limit := s.deadline.Load(); limit != 0 {
			if left = limit - now(); left <= 0 {
				return 0, os.ErrDeadlineExceeded
			}
			m = dontWait
		}
		n, errno := s.transfer(p, m)
		switch errno {
		case 0:
			return n, nil
		case unix.EAGAIN:
			s.seen.Store(asked)
			if errno := s.poll(left); errno != 0 {
				return 0, errno
			}
		case unix.EINTR:
		default:
			return 0, errno
		}
	}
}

// try moves what can be moved at once. The caller holds mu.
func (s *side) try(p []byte) (int, error) {
	n, errno := s.retry(p)
	if errno != 0 {
		return 0, errno
	}
	return n, nil
}

func (s *side) retry(p []byte) (int, unix.Errno) {
	for {
		n, errno := s.transfer(p, dontWait)
		if errno != unix.EINTR {
			return n, errno
		}
	}
}

var start = time.Now()

// now is the monotonic clock of deadlines, in nanoseconds.
func now() int64 { return int64(time.Since(start)) }

// instant puts a time on the clock of now; 0 is no deadline, so that a past one is at least 1.
func instant(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return max(int64(t.Sub(start)), 1)
}
