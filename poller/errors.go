//go:build linux

package poller

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// The errors below are found by errors.Is in what the methods return.
var (
	// ErrDescriptorRange: the descriptor is 1024 or more and Select cannot
	// represent it. In C, FD_SET writes outside the set there (select(2),
	// BUGS). It is EINVAL too.
	ErrDescriptorRange error = &sentinel{"descriptor outside the set of select", unix.EINVAL}
	// ErrNotPollable: the file knows no readiness: a regular file, a directory,
	// /dev/null. Reading and writing them never waits for anybody. It is EPERM
	// too, which is what epoll_ctl(2) says; select and poll would call them
	// always ready.
	ErrNotPollable error = &sentinel{"file knows no readiness", unix.EPERM}
	// ErrBusy: another Wait is under way. It is EBUSY too.
	ErrBusy error = &sentinel{"another wait is under way", unix.EBUSY}
)

var (
	errEpollOnly  = fmt.Errorf("edge-triggered and one-shot events are epoll's alone: %w", errors.ErrUnsupported)
	errNoInterest = fmt.Errorf("select cannot wait for nothing but errors: %w", errors.ErrUnsupported)
)

// A sentinel is an error of ours that is an errno too.
type sentinel struct {
	text string
	is   unix.Errno
}

func (e *sentinel) Error() string { return e.text }
func (e *sentinel) Unwrap() error { return e.is }

// An Error says what failed, on which descriptor, and why.
type Error struct {
	Op  string // "new", "add", "modify", "remove", "wait", "wake", "close" or "drain"
	FD  int    // the descriptor that it is about; less than 0: none
	Err error  // what errors.Is finds: a sentinel, an errno, or both
}

func (e *Error) Error() string {
	if e.FD < 0 {
		return fmt.Sprintf("poller: %s: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("poller: %s %d: %v", e.Op, e.FD, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

func failed(op string, fd int, err error) error { return &Error{Op: op, FD: fd, Err: err} }

// waitError is the error of a Wait; a signal is none.
func waitError(errno unix.Errno) error {
	if errno == unix.EINTR {
		return nil
	}
	return failed("wait", -1, errno)
}
