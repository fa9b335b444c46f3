//go:build linux

package fd

import (
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Backlog is as long a queue as there may be: listen(2) cuts it to net.core.somaxconn.
const Backlog = 1<<16 - 1

// How long Accept waits before it tries again when the process or the system is
// out of descriptors or memory.
const (
	shortestPause = 5 * time.Millisecond
	longestPause  = time.Second
)

// A Listener accepts connections of a listening socket, in the runtime's poller.
type Listener struct {
	pkg     string
	cleanup func()
	file    *os.File
	raw     syscall.RawConn

	mu       sync.Mutex
	closed   bool
	deadline time.Time
	changed  chan struct{} // closed, and made anew, when closed or deadline changes
}

// NewListener takes over s, which listens, on error too. cleanup, unless it is
// nil, is called once before the number is given back.
func NewListener(pkg string, s int, cleanup func()) (*Listener, error) {
	if cleanup == nil {
		cleanup = func() {}
	}
	l := &Listener{pkg: pkg, cleanup: cleanup, changed: make(chan struct{})}
	err := os.NewSyscallError("fcntl", unix.SetNonblock(s, true))
	l.file = os.NewFile(uintptr(s), pkg)
	if err == nil {
		err = l.file.SetDeadline(time.Time{}) // refused if the poller does not have it
	}
	if err == nil {
		l.raw, err = l.file.SyscallConn()
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// Accept returns a new connection, which the caller owns, and its peer's
// address. Its error does not name the package yet.
func (l *Listener) Accept() (s int, peer unix.Sockaddr, err error) {
	for pause := shortestPause; ; pause = min(2*pause, longestPause) {
		s, peer, err = l.accept()
		switch err {
		case nil:
			return s, peer, nil
		case unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM:
			// The connection stays in the queue and the socket readable:
			// trying again at once would spin.
			l.rest(pause)
		default:
			return -1, nil, err
		}
	}
}

// accept waits for a connection.
func (l *Listener) accept() (s int, peer unix.Sockaddr, err error) {
	wait := l.raw.Read(func(n uintptr) bool {
		for {
			s, peer, err = unix.Accept4(int(n), unix.SOCK_CLOEXEC)
			// ECONNABORTED: that one connection has gone again (accept(2)).
			if err != unix.EINTR && err != unix.ECONNABORTED {
				return err != unix.EAGAIN
			}
		}
	})
	switch {
	case wait != nil && l.ended():
		return -1, nil, os.ErrClosed
	case wait != nil:
		return -1, nil, wait
	}
	return s, peer, err
}

// rest waits for d, or until the deadline, or until the deadline changes or the listener is closed.
func (l *Listener) rest(d time.Duration) {
	l.mu.Lock()
	changed := l.changed
	if !l.deadline.IsZero() {
		d = min(d, time.Until(l.deadline))
	}
	l.mu.Unlock()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-changed:
	}
}

func (l *Listener) ended() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// change tells a resting Accept to look again. The caller holds mu.
func (l *Listener) change() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// SetDeadline sets the time after which Accept, pending or to come, returns an
// error that is os.ErrDeadlineExceeded. The zero time: none.
func (l *Listener) SetDeadline(t time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return Wrap(l.pkg, "set deadline", os.ErrClosed)
	}
	l.deadline = t
	l.change()
	return Wrap(l.pkg, "set deadline", l.file.SetDeadline(t))
}

// Close ends the listener and a pending Accept, which returns os.ErrClosed.
// Connections nobody has accepted are reset.
func (l *Listener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return Wrap(l.pkg, "close", os.ErrClosed)
	}
	l.closed = true
	l.change()
	l.cleanup()
	return Wrap(l.pkg, "close", l.file.Close())
}
