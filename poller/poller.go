//go:build linux

package poller

import (
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A Poller waits until some of many descriptors are ready.
//
// All methods may be called from several goroutines at once; a Wait under way
// takes up what Add, Modify and Remove change. Errors are of type [*Error].
type Poller interface {
	// Add registers the descriptor fd. What is ready already is reported too.
	//
	// It fails with EEXIST if fd is registered, EBADF if it is not open,
	// ErrNotPollable if its file knows no readiness, ErrDescriptorRange if
	// Select cannot represent it, errors.ErrUnsupported if the kind lacks
	// the interest, EINVAL for an interest that does not exist, EMFILE or ENFILE if no
	// descriptor is left to look at the file with, and os.ErrClosed after Close. A registration left behind by a descriptor that was closed
	// without Remove is replaced.
	Add(fd int, in Interest) error

	// Modify replaces the interest of fd, makes a spent OneShot count again,
	// and as Add does reports what is ready already. It fails with ENOENT if fd
	// is not registered, EBADF if it has been closed, os.ErrClosed after Close, and as Add does for
	// an interest that the kind lacks or that does not exist.
	Modify(fd int, in Interest) error

	// Remove ends the registration of fd: no later Wait reports it, and events
	// already returned are not Current any more. Call it before closing the
	// descriptor. It fails with ENOENT if fd is not registered and
	// os.ErrClosed after Close; a descriptor that has been closed is removed all the same.
	Remove(fd int) error

	// Wait blocks until a registered descriptor is ready, stores at most
	// len(events) events, one a descriptor, and returns their number. If more
	// are ready, the next calls report them before the same ones again.
	//
	// It returns 0, nil when timeout has passed or after Wake. A timeout is
	// rounded up to a millisecond, the resolution of epoll_wait(2); zero only
	// looks, and a negative one is no limit. Signals neither end a Wait nor
	// prolong it: it never fails with EINTR.
	//
	// It fails with os.ErrClosed after Close, with ErrBusy while another Wait is
	// under way, with EINVAL if events is empty, and on Select and SelectWide
	// with EBADF, once, for a registered descriptor that has been closed, which
	// the Error names. Epoll makes its set anew if it must, which can fail with EMFILE
	// or ENFILE. It does not allocate, but for a buffer that grows with
	// the longest events ever given.
	Wait(events []Event, timeout time.Duration) (n int, err error)

	// Current reports whether the registration that an event is about still
	// stands. It is false once the descriptor was removed, or its number taken
	// by another, which one event of a batch may do to the next.
	Current(Event) bool

	// Wake makes the Wait under way, or else the next, return 0, nil, and events
	// that are ready at that moment are kept for later or come first. Several
	// calls before that Wait returns are one.
	Wake() error

	// Close releases the poller, not the descriptors in it. A Wait under way
	// returns os.ErrClosed, and so do all calls that come later.
	Close() error
}

// Kind is one of the kernel's tools.
type Kind int

const (
	// Select is select(2) as libc offers it: descriptors below 1024 only.
	Select Kind = iota
	// Poll is poll(2).
	Poll
	// Epoll is epoll(7).
	Epoll
	// SelectWide is the kernel's select with a bitmap as long as needed: the
	// 1024 is a constant of libc, not of the kernel.
	SelectWide
)

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{Select, Poll, Epoll, SelectWide} }

// String returns the name that stands behind mech= in a benchmark's name.
func (k Kind) String() string {
	switch k {
	case Select:
		return "select"
	case Poll:
		return "poll"
	case Epoll:
		return "epoll"
	case SelectWide:
		return "select-wide"
	}
	return fmt.Sprintf("Kind(%d)", int(k))
}

// Interest says what to wait for. Errors and, but for Select and SelectWide,
// hang-ups are reported unasked; so an interest of 0 makes sense, which those two refuse.
type Interest uint8

const (
	// Readable waits for CanRead, and for the peer's end of its direction.
	Readable Interest = 1 << iota
	// Writable waits for CanWrite.
	Writable
	// Edge reports a descriptor when something new happens to it, instead of
	// whenever it is ready: whoever gets the event must read, or write, until
	// EAGAIN, or wait for ever beside data that has arrived. [Drain] does that.
	// Epoll only: EPOLLET in epoll(7).
	Edge
	// OneShot reports a descriptor once, then nothing until Modify, so that
	// several goroutines never work on one descriptor. Epoll only: EPOLLONESHOT
	// in epoll_ctl(2).
	OneShot
)

// String returns the names of the set bits: "read|edge".
func (in Interest) String() string { return names(uint8(in), "read", "write", "edge", "oneshot") }

// Ready says what a descriptor is ready for.
type Ready uint8

const (
	// CanRead: a read will not block. At the end of a socket's stream it stays
	// set, as reading the end does not block; on a pipe it does not.
	CanRead Ready = 1 << iota
	// CanWrite: a write of some length will not block.
	CanWrite
	// HangUp: the peer has closed, or has shut down its sending side
	// (POLLHUP or POLLRDHUP). What it had sent may still be unread: as long as
	// CanRead is set too, read first.
	HangUp
	// Failed: an error is pending, or the reader of a pipe has gone (POLLERR);
	// on Poll also that the descriptor was closed without Remove (POLLNVAL),
	// which is reported once.
	Failed
)

// String returns the names of the set bits: "read|hangup".
func (r Ready) String() string { return names(uint8(r), "read", "write", "hangup", "failed") }

// An Event says that a descriptor is ready.
type Event struct {
	FD    int
	Ready Ready

	generation uint32 // of the registration: see Current
}

// New returns a Poller of the kind. The caller must Close it. Each takes one
// descriptor for Wake, Epoll another for its set.
func New(kind Kind) (Poller, error) {
	p := &poller{wake: -1}
	var err error
	if p.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, failed("new", -1, err)
	}
	switch kind {
	case Select:
		p.set = newSelectSet(&p.table, p.wake, fdSetSize)
	case SelectWide:
		p.set = newSelectSet(&p.table, p.wake, noLimit)
	case Poll:
		p.set = newPollSet(&p.table, p.wake)
	case Epoll:
		p.set, err = newEpollSet(&p.table, p.wake)
	default:
		err = unix.EINVAL
	}
	if err != nil {
		unix.Close(p.wake)
		return nil, failed("new", -1, err)
	}
	return p, nil
}

func names(bits uint8, of ...string) string {
	var set []string
	for i, name := range of {
		if bits&(1<<i) != 0 {
			set = append(set, name)
			bits &^= 1 << i
		}
	}
	if bits != 0 {
		set = append(set, fmt.Sprintf("%#x", bits))
	}
	if len(set) == 0 {
		return "none"
	}
	return strings.Join(set, "|")
}
