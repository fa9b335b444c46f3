//go:build linux

package fd

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/seed-e1736cc0/ipcbench"
)

// An Error names the package and the call in which a cause arose.
type Error struct {
	Package string
	Op      string
	Cause   error // what errors.Is finds: a sentinel, an errno, or both
}

func (e *Error) Error() string { return e.Package + ": " + e.Op + ": " + e.Cause.Error() }
func (e *Error) Unwrap() error { return e.Cause }

// Timeout makes os.IsTimeout and net.Error users see a deadline as one.
func (e *Error) Timeout() bool { return errors.Is(e.Cause, os.ErrDeadlineExceeded) }

// Temporary completes net.Error, which those callers look for.
func (e *Error) Temporary() bool { return e.Timeout() }

// Wrap returns err with the package and call that it came from; nil stays nil.
func Wrap(pkg, op string, err error) error {
	if err == nil {
		return nil
	}
	switch err {
	case unix.EAGAIN:
		err = ipcbench.ErrWouldBlock
	case unix.EMSGSIZE:
		err = ipcbench.ErrMessageTooLong
	}
	return &Error{pkg, op, err}
}
