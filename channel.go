package ipcbench

import (
	"fmt"
	"os"
	"time"
)

// A Channel is one end of a two-way connection between two parties on one machine.
//
// All methods may be called from several goroutines at once. What Read and
// Write do beyond moving bytes, and how the conversation ends, differs by
// mechanism: Contract says it.
type Channel interface {
	// Read reads what the other end wrote. On a stream it returns 1 to len(p)
	// bytes, as soon as there are any. On a channel with Boundaries it returns
	// one whole message; if p is too short it returns what fits and
	// ErrTruncated, the rest of that message is lost, and the next Read starts
	// at the next message. It returns 0, io.EOF at the end of the stream, only
	// where Contract().EndOfStream; the error is io.EOF itself, never wrapped.
	//
	// A Read of a stream into an empty p returns 0, nil at once.
	Read(p []byte) (n int, err error)

	// Write sends all of p, or fails and says how many bytes were accepted;
	// with Boundaries as exactly one message. Writes of several goroutines on
	// one end never interleave. A message longer than Contract().MaxMessage is
	// ErrMessageTooLong, and an empty one that the mechanism cannot carry is
	// ErrEmptyMessage; neither sends anything. An empty Write to a stream returns 0, nil.
	// Once its reader is gone, a Write sooner or later (over TCP not the first) fails with EPIPE, ECONNRESET,
	// ECONNREFUSED or ENOTCONN.
	Write(p []byte) (n int, err error)

	// CloseWrite ends the outgoing direction: the peer reads what is on its
	// way, then io.EOF. Writes that are under way or come later return
	// os.ErrClosed. Where the mechanism cannot tell the peer, it returns an
	// error that is ErrNoEndOfStream (and errors.ErrUnsupported) and changes
	// nothing.
	CloseWrite() error

	// Close releases the end. Calls blocked in it return os.ErrClosed within
	// 100 ms, and so do all calls that come later, Close itself included.
	Close() error

	// Contract says what this end promises. It works after Close too.
	Contract() Contract
}

// A Contract says what one signature hides: what a Read returns and how a conversation ends.
type Contract struct {
	// Mechanism is the name that stands behind mech= in a benchmark's name:
	// "pipe", "pipe-packet", "fifo", "unix-stream", "unix-dgram",
	// "unix-seqpacket", "tcp", "tcp6", or the name of one's own.
	Mechanism string
	// Boundaries: one Write is one Read. Without, the channel is a stream of bytes.
	Boundaries bool
	// EndOfStream: the peer's CloseWrite or Close, or its death, is read as
	// io.EOF; on a socket ECONNRESET comes first or instead where the peer left data unread.
	// Without, a Read waits for ever for a peer that has gone.
	EndOfStream bool
	// Files: the mechanism can carry open files (SCM_RIGHTS, unix(7)).
	Files bool
	// MaxMessage is the longest message in bytes, as the kernel has it now; 0 on a stream.
	MaxMessage int
	// AtomicWrite is the length in bytes of the longest Write that writers in
	// other processes which share this end cannot split; 0 where there is none.
	AtomicWrite int
}

// Wait says how a Read or Write waits while it cannot proceed.
type Wait int

const (
	// Netpoll parks the goroutine in the runtime's poller: what Go programs see.
	Netpoll Wait = iota
	// Block blocks the thread in the kernel: what C programs see.
	Block
	// Spin tries again until it works: no sleep, no wake-up, a whole CPU.
	Spin
	// Adaptive spins for a short, bounded while, then parks as Netpoll does:
	// low latency under load, idle when idle.
	Adaptive
)

// Waits returns all wait strategies.
func Waits() []Wait { return []Wait{Netpoll, Block, Spin, Adaptive} }

// String returns the name that stands behind wait= in a benchmark's name.
func (w Wait) String() string {
	switch w {
	case Netpoll:
		return "netpoll"
	case Block:
		return "block"
	case Spin:
		return "spin"
	case Adaptive:
		return "adaptive"
	}
	return fmt.Sprintf("Wait(%d)", int(w))
}

// The interfaces below are optional and found by type assertion. Every Channel
// of this module has them.

// A Deadliner has deadlines, as net.Conn has them: absolute times after which
// a call, pending or to come, returns an error that is os.ErrDeadlineExceeded.
// The zero time means no deadline. A deadline that has passed wins over data that is there.
// TryRead and TryWrite have none.
type Deadliner interface {
	SetDeadline(t time.Time) error
	SetReadDeadline(t time.Time) error
	SetWriteDeadline(t time.Time) error
}

// NonBlocking has a Read and a Write that never wait.
type NonBlocking interface {
	// TryRead is Read, but where Read would wait it returns 0 and an error
	// that is ErrWouldBlock.
	TryRead(p []byte) (n int, err error)
	// TryWrite takes what the channel has room for. It returns n ≥ 1 and nil if
	// anything was taken (on a stream n may be less than len(p); with
	// Boundaries it is len(p), or 0 for an empty message), else 0 and an error
	// that is ErrWouldBlock. An empty p on a stream is 0, nil.
	TryWrite(p []byte) (n int, err error)
}

// Vectored moves two buffers by one system call on a stream, as for a header and a body that is not to be copied
// behind it. With Boundaries both are errors.ErrUnsupported.
type Vectored interface {
	// ReadScatter is Read into head and, behind it, body.
	ReadScatter(head, body []byte) (n int, err error)
	// WriteGather is Write of head and, behind it, body.
	WriteGather(head, body []byte) (n int, err error)
}

// Descriptors gives the numbers of a channel's descriptors, to hand to a
// poller. They are owned by the channel and valid until its Close; -1 after. The one
// that CloseWrite gives back, of a pipe, is -1 from then on.
type Descriptors interface {
	ReadFD() int
	WriteFD() int
}

// An Exporter duplicates its descriptors for a child process, in the order
// that the FromFiles function of its package takes them. The caller closes them. After
// Close, and on a pipe after CloseWrite, it is os.ErrClosed.
type Exporter interface {
	Files() ([]*os.File, error)
}
