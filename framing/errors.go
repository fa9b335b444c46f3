package framing

import (
	"errors"
	"fmt"
	"os"

	"github.com/seed-e1736cc0/ipcbench"
)

// The errors below are found by errors.Is in what a Format, a Reader, a Writer and a Channel return.
var (
	// ErrFrameTooLarge: a message, or the length that a header claims, is above
	// the format's limit. It is ipcbench.ErrMessageTooLong (and EMSGSIZE) too.
	ErrFrameTooLarge error = &tooLarge{}
	// ErrFrameInvalid: the bytes are no frame of the format, or the message
	// cannot be carried by it (it contains its delimiter), or the format itself makes no sense.
	ErrFrameInvalid = errors.New("invalid frame")
)

type tooLarge struct{}

func (*tooLarge) Error() string { return "frame too large" }
func (*tooLarge) Unwrap() error { return ipcbench.ErrMessageTooLong }

// An opError names the package and the call in which a cause arose.
type opError struct {
	op    string
	cause error
}

func (e *opError) Error() string { return "framing: " + e.op + ": " + e.cause.Error() }
func (e *opError) Unwrap() error { return e.cause }

// Timeout and Temporary make a net.Error of it, whose users look for deadlines.
func (e *opError) Timeout() bool   { return errors.Is(e.cause, os.ErrDeadlineExceeded) }
func (e *opError) Temporary() bool { return e.Timeout() }

func failed(op, format string, args ...any) error {
	return &opError{op, fmt.Errorf(format, args...)}
}

// Made beforehand: calls that never wait do not allocate.
var (
	errWouldRead   error = &opError{"read", ipcbench.ErrWouldBlock}
	errWouldWrite  error = &opError{"write", ipcbench.ErrWouldBlock}
	errReadClosed  error = &opError{"read", os.ErrClosed}
	errWriteClosed error = &opError{"write", os.ErrClosed}
	errReadLate    error = &opError{"read", os.ErrDeadlineExceeded}
	errTruncated   error = &opError{"read", ipcbench.ErrTruncated}
)
