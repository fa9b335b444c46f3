package framing

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-e1736cc0/ipcbench"
)

// A Channel is a stream that keeps boundaries: one Write is one frame is one Read. It implements
// ipcbench.Channel, ipcbench.Deadliner, ipcbench.NonBlocking, ipcbench.Descriptors and
// ipcbench.Exporter, as far as the channel below does; what that lacks is errors.ErrUnsupported.
//
// It reads ahead. Whoever polls its descriptors calls TryRead until that is
// ErrWouldBlock, since frames that are here already do not make a descriptor ready.
//
// A message of which the stream has taken a part is on its way: Write and TryWrite
// then say that all of it was accepted, also where a deadline has fallen into it, and the rest
// follows on its own within a millisecond or two of there being room. The end that CloseWrite makes comes behind that
// rest; Close waits for it, for 50 ms at most, and the peer then reads io.ErrUnexpectedEOF.
type Channel struct {
	ch       ipcbench.Channel
	nb       ipcbench.NonBlocking // ch, if it is
	vectored ipcbench.Vectored    // ch, if it is
	f        Format
	unusable error
	closed   atomic.Bool

	reading      sync.Mutex // held while a Read waits
	in           inbox
	header       [16]byte     // of the message that is being read past the inbox
	last         int          // the length of the message before
	readDeadline atomic.Int64 // nanoseconds on the clock of instant; 0: none
	writing      sync.Mutex   // held while a Write or the rest of a message waits
	out          []byte       // a frame, of which unsent has not been taken yet
	unsent       []byte
	resting      atomic.Bool // somebody sends a rest
	writers      atomic.Int32
	ended        atomic.Bool // by CloseWrite
	endedBelow   atomic.Bool
}

// New returns ch with boundaries by frames of f. It takes ch over. A channel that has
// boundaries already is none that frames could be put on: all calls are errors.ErrUnsupported then.
func New(ch ipcbench.Channel, f Format) *Channel {
	c := &Channel{ch: ch, f: f, in: newInbox(f)}
	c.nb, _ = ch.(ipcbench.NonBlocking)
	c.vectored, _ = ch.(ipcbench.Vectored)
	if k := ch.Contract(); k.Boundaries {
		c.unusable = fmt.Errorf("%s has boundaries of its own: %w", k.Mechanism, errors.ErrUnsupported)
	}
	return c
}

// Contract implements ipcbench.Channel: that of the channel below with Boundaries, the Mechanism
// "pipe+u32" and the like, and MaxMessage and AtomicWrite by the format.
func (c *Channel) Contract() ipcbench.Contract {
	k := c.ch.Contract()
	k.Boundaries, k.Files = true, false
	name := "frames"
	if s, ok := c.f.(fmt.Stringer); ok {
		name = s.String()
	}
	k.Mechanism += "+" + name
	k.MaxMessage = 0
	if m, ok := c.f.(interface{ MaxMessage() int }); ok {
		k.MaxMessage = m.MaxMessage()
	}
	if b, ok := c.f.(bounded); ok {
		k.AtomicWrite = min(max(0, k.AtomicWrite-b.overhead(k.AtomicWrite)), k.MaxMessage)
	}
	return k
}

// Read implements ipcbench.Channel. The end of the stream within a frame is
// io.ErrUnexpectedEOF, with what there is of the message. That, ErrFrameTooLarge and ErrFrameInvalid are final.
func (c *Channel) Read(p []byte) (int, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	if c.late() {
		return 0, errReadLate
	}
	if c.last > firstBuffer && c.last <= len(p) && c.vectored != nil && c.in.sized != nil && c.in.idle() {
		return c.readExpected(p)
	}
	return c.read(p, c.ch.Read)
}

// TryRead implements ipcbench.NonBlocking.
func (c *Channel) TryRead(p []byte) (int, error) {
	if c.nb == nil {
		return 0, &opError{"read", errors.ErrUnsupported}
	}
	if !c.reading.TryLock() {
		return 0, errWouldRead // another Read is waiting for the same message
	}
	defer c.reading.Unlock()
	n, err := c.read(p, c.nb.TryRead)
	if err != nil && errors.Is(err, ipcbench.ErrWouldBlock) {
		return 0, errWouldRead
	}
	return n, err
}

// read reads by f until there is a whole message. The caller holds reading.
func (c *Channel) read(p []byte, f func([]byte) (int, error)) (int, error) {
	switch {
	case c.closed.Load():
		return 0, errReadClosed
	case c.unusable != nil:
		return 0, &opError{"read", c.unusable}
	}
	for {
		if msg, ok := c.in.next(); ok {
			c.last = len(msg)
			return deliver(p, msg)
		}
		if c.in.err != nil {
			return 0, c.readError(c.in.err)
		}
		if head, body := c.in.coming(); body > firstBuffer && body <= len(p) {
			return c.readBody(p[:body], head, f)
		}
		limit := firstBuffer
		if c.last > firstBuffer {
			limit = 64 // most of the next message goes straight to its reader
		}
		if err := c.in.fill(f, limit); err != nil {
			return c.broken(p, err)
		}
	}
}

// readExpected takes for granted that the next message is as long as the last one, which was long: then one read
// puts its header here and the message where its reader wants it. What turns out otherwise goes to the inbox.
func (c *Channel) readExpected(p []byte) (int, error) {
	if c.closed.Load() {
		return 0, errReadClosed
	}
	head := c.header[:c.f.(bounded).overhead(c.last)]
	n, err := c.vectored.ReadScatter(head, p[:c.last])
	if n == 0 && err != nil {
		return c.broken(p, err)
	}
	got := max(n-len(head), 0)
	switch size, body, wrong := c.in.sized.header(head[:n-got]); {
	case err != nil, wrong != nil, size != len(head), body > len(p):
		c.in.keep(head[:n-got])
		c.in.keep(p[:got])
		c.in.late = err
		return c.read(p, c.ch.Read)
	case got < body:
		return c.readRest(p[:body], head, got, c.ch.Read)
	default:
		c.in.keep(p[body:got])
		c.last = body
		return body, nil
	}
}

func deliver(p, msg []byte) (int, error) {
	if n := copy(p, msg); n < len(msg) {
		return n, errTruncated
	}
	return len(msg), nil
}

// readBody reads on with a message that has begun in the inbox, where its reader wants it.
func (c *Channel) readBody(p []byte, size int, f func([]byte) (int, error)) (int, error) {
	head := c.header[:copy(c.header[:], c.in.unread()[:size])]
	n := copy(p, c.in.unread()[size:])
	c.in.start, c.in.end, c.in.seen = 0, 0, 0
	return c.readRest(p, head, n, f)
}

// readRest reads all but the first n bytes of the message p. What has come before an error goes back to the inbox.
func (c *Channel) readRest(p, head []byte, n int, f func([]byte) (int, error)) (int, error) {
	c.last = len(p)
	for n < len(p) {
		m, err := f(p[n:])
		n += m
		if err != nil && n < len(p) {
			c.in.keep(head)
			c.in.keep(p[:n])
			return c.broken(p, c.in.ended(err))
		}
	}
	return n, nil
}

// broken ends a Read that cannot go on.
func (c *Channel) broken(p []byte, err error) (int, error) {
	if c.in.err == io.ErrUnexpectedEOF {
		return copy(p, c.in.remains()), c.readError(err)
	}
	return 0, c.readError(err)
}

func (c *Channel) readError(err error) error {
	switch {
	case err == io.EOF, err == errReadClosed:
		return err
	case c.closed.Load():
		return errReadClosed
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errReadLate
	case errors.Is(err, ipcbench.ErrWouldBlock):
		return errWouldRead
	}
	return &opError{"read", err}
}

// ReadFD implements ipcbench.Descriptors.
func (c *Channel) ReadFD() int {
	if d, ok := c.ch.(ipcbench.Descriptors); ok {
		return d.ReadFD()
	}
	return -1
}

// WriteFD implements ipcbench.Descriptors.
func (c *Channel) WriteFD() int {
	if d, ok := c.ch.(ipcbench.Descriptors); ok {
		return d.WriteFD()
	}
	return -1
}

// Files implements ipcbench.Exporter. Bytes that were read ahead would be missing in the other
// process: while there are any, it is ErrFrameInvalid.
func (c *Channel) Files() ([]*os.File, error) {
	e, ok := c.ch.(ipcbench.Exporter)
	if !ok {
		return nil, &opError{"files", errors.ErrUnsupported}
	}
	if !c.reading.TryLock() {
		return e.Files() // who reads is waiting, so nothing is here
	}
	defer c.reading.Unlock()
	if !c.in.empty() && !c.closed.Load() {
		return nil, failed("files", "bytes have been read ahead: %w", ErrFrameInvalid)
	}
	return e.Files()
}

// SetDeadline implements ipcbench.Deadliner.
func (c *Channel) SetDeadline(t time.Time) error {
	return c.setDeadline(t, true, func(d ipcbench.Deadliner) error { return d.SetDeadline(t) })
}

// SetReadDeadline implements ipcbench.Deadliner. A frame in which it falls is read on by the next Read.
func (c *Channel) SetReadDeadline(t time.Time) error {
	return c.setDeadline(t, true, func(d ipcbench.Deadliner) error { return d.SetReadDeadline(t) })
}

// SetWriteDeadline implements ipcbench.Deadliner.
func (c *Channel) SetWriteDeadline(t time.Time) error {
	return c.setDeadline(t, false, func(d ipcbench.Deadliner) error { return d.SetWriteDeadline(t) })
}

func (c *Channel) setDeadline(t time.Time, read bool, set func(ipcbench.Deadliner) error) error {
	d, ok := c.ch.(ipcbench.Deadliner)
	if !ok {
		return &opError{"set deadline", errors.ErrUnsupported}
	}
	if read {
		c.readDeadline.Store(instant(t))
	}
	if err := set(d); err != nil {
		return &opError{"set deadline", err}
	}
	return nil
}

// late: a deadline that has passed wins over data that is here.
func (c *Channel) late() bool {
	d := c.readDeadline.Load()
	return d != 0 && int64(time.Since(start)) >= d
}

var start = time.Now()

// instant puts a time on the clock of late; 0 is no deadline, so that a past one is at least 1.
func instant(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return max(int64(t.Sub(start)), 1)
}
