package ipcbench

import "errors"

// The errors below are found by errors.Is in what a Channel's methods return.
// There they stand inside an error that names the package and the call too.
var (
	// ErrTruncated: the buffer of a Read was shorter than the message; the rest of it is lost.
	ErrTruncated error = &sentinel{text: "message truncated: buffer too short"}
	// ErrNoEndOfStream: the mechanism has no way to tell the peer that a
	// direction has ended. It is errors.ErrUnsupported too.
	ErrNoEndOfStream error = &sentinel{text: "mechanism has no end of stream", is: errors.ErrUnsupported}
	// ErrWouldBlock: TryRead found nothing, or TryWrite no room. It is EAGAIN too.
	ErrWouldBlock error = &sentinel{text: "operation would block", is: errWouldBlock}
	// ErrMessageTooLong: the message is longer than Contract.MaxMessage; nothing was sent. It is EMSGSIZE too.
	ErrMessageTooLong error = &sentinel{text: "message too long", is: errMessageTooLong}
	// ErrEmptyMessage: the mechanism cannot carry an empty message: the peer would take
	// it for the end of the stream (unix-seqpacket) or never see it (pipe-packet).
	ErrEmptyMessage error = &sentinel{text: "mechanism cannot carry an empty message"}
)

// A sentinel is an error of ours that also matches a more general one.
type sentinel struct {
	text string
	is   error // nil, or what errors.Is finds beside the sentinel itself
}

func (e *sentinel) Error() string { return e.text }
func (e *sentinel) Unwrap() error { return e.is }
