//go:build linux

package unixsock

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-e1736cc0/ipcbench"
	"github.com/seed-e1736cc0/ipcbench/internal/fd"
)

// A TerminatedChannel is a Dgram with an end that both parties have agreed on. It implements
// ipcbench.Channel, ipcbench.Deadliner, ipcbench.NonBlocking and ipcbench.Descriptors.
type TerminatedChannel struct {
	ch *Channel

	ctl     sync.Mutex // taken before writing; held by what ends the channel or a direction, or moves a deadline
	reading sync.Mutex // held while a Read waits, so that the next one sees its end
	writing sync.Mutex // held while a Write waits, so that nothing follows the end

	ended  atomic.Bool // the peer's end was read
	silent atomic.Bool // CloseWrite or Close was called
	closed atomic.Bool

	late *Channel // a duplicate of ch in which the end waits for room, or waited

	errWouldRead, errWouldWrite error // made beforehand: TryRead and TryWrite do not allocate
}

var _ interface {
	ipcbench.Channel
	ipcbench.Deadliner
	ipcbench.NonBlocking
	ipcbench.Descriptors
} = (*TerminatedChannel)(nil)

// endWait is how long CloseWrite and Close wait for room.
const endWait = 50 * time.Millisecond

// Terminated takes ch over, a connected Dgram, and gives it an end: an empty datagram, which
// CloseWrite and Close send, is read as io.EOF, once for all. The other party has to do the same. It
// is ch's Contract with EndOfStream; its Mechanism is "unix-dgram-terminated". Deadlines
// of ch are taken away. Anything but a Dgram is EINVAL.
//
// The end is a message like others. It waits for room: CloseWrite and
// Close do for 50 ms at most, and after them a goroutine does until the peer
// has read something or has gone; if the process ends before that, the end is lost. A process that dies sends
// none. So a Read that must not wait for ever still needs a deadline.
//
// An empty Write is ipcbench.ErrEmptyMessage. A receiver that Bind made has one end for all its writers: the first that ends,
// ends them all. An end must not be in two hands, so there is no Files: hand over ch before.
func Terminated(ch *Channel) (*TerminatedChannel, error) {
	if c := ch.Contract(); c.EndOfStream || !c.Boundaries {
		return nil, fd.Wrap("unixsock", "terminated", fmt.Errorf("%s is no unix-dgram: %w", c.Mechanism, unix.EINVAL))
	}
	if err := ch.SetDeadline(time.Time{}); err != nil {
		return nil, fd.Wrap("unixsock", "terminated", err)
	}
	return &TerminatedChannel{
		ch:            ch,
		errWouldRead:  fd.Wrap("unixsock", "read", ipcbench.ErrWouldBlock),
		errWouldWrite: fd.Wrap("unixsock", "write", ipcbench.ErrWouldBlock),
	}, nil
}

// Read implements ipcbench.Channel.
func (c *TerminatedChannel) Read(p []byte) (int, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	return c.read(p, c.ch.Read)
}

// TryRead implements ipcbench.NonBlocking.
func (c *TerminatedChannel) TryRead(p []byte) (int, error) {
	switch {
	case c.closed.Load():
		return 0, fd.Wrap("unixsock", "read", os.ErrClosed)
	case !c.reading.TryLock():
		return 0, c.errWouldRead // another Read is waiting for the same message
	}
	defer c.reading.Unlock()
	return c.read(p, c.ch.TryRead)
}

// read reads once by f. The caller holds reading.
func (c *TerminatedChannel) read(p []byte, f func([]byte) (int, error)) (int, error) {
	switch {
	case c.closed.Load():
		return 0, fd.Wrap("unixsock", "read", os.ErrClosed)
	case c.ended.Load():
		return 0, io.EOF
	}
	n, err := f(p)
	if n == 0 && err == nil {
		c.ended.Store(true)
		return 0, io.EOF
	}
	return n, err
}

// Write implements ipcbench.Channel.
func (c *TerminatedChannel) Write(p []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	return c.write(p, c.ch.Write)
}

// TryWrite implements ipcbench.NonBlocking.
func (c *TerminatedChannel) TryWrite(p []byte) (int, error) {
	switch {
	case c.silent.Load():
		return 0, fd.Wrap("unixsock", "write", os.ErrClosed)
	case !c.writing.TryLock():
		return 0, c.errWouldWrite // another Write is waiting for room
	}
	defer c.writing.Unlock()
	return c.write(p, c.ch.TryWrite)
}

// write writes once by f. The caller holds writing.
func (c *TerminatedChannel) write(p []byte, f func([]byte) (int, error)) (int, error) {
	switch {
	case c.silent.Load():
		return 0, fd.Wrap("unixsock", "write", os.ErrClosed)
	case len(p) == 0:
		return 0, fd.Wrap("unixsock", "write", ipcbench.ErrEmptyMessage)
	}
	n, err := f(p)
	if c.silent.Load() && errors.Is(err, os.ErrDeadlineExceeded) { // the deadline was end's
		err = fd.Wrap("unixsock", "write", os.ErrClosed)
	}
	return n, err
}

// CloseWrite implements ipcbench.Channel: it sends the end.
func (c *TerminatedChannel) CloseWrite() error {
	c.ctl.Lock()
	defer c.ctl.Unlock()
	if c.silent.Load() {
		return fd.Wrap("unixsock", "close write", os.ErrClosed)
	}
	return fd.Wrap("unixsock", "close write", c.end())
}

// Close implements ipcbench.Channel: it sends the end, unless CloseWrite has.
func (c *TerminatedChannel) Close() error {
	c.ctl.Lock()
	defer c.ctl.Unlock()
	if c.closed.Load() {
		return fd.Wrap("unixsock", "close", os.ErrClosed)
	}
	c.closed.Store(true)
	var err error
	if !c.silent.Load() {
		err = c.end()
	}
	err = errors.Join(err, c.ch.Close())
	if c.late != nil {
		refuse(c.late)
	}
	return fd.Wrap("unixsock", "close", err)
}

// end stops Writes and sends the end after what they have sent. The caller holds ctl.
func (c *TerminatedChannel) end() error {
	c.silent.Store(true)
	if err := c.ch.SetWriteDeadline(time.Unix(1, 0)); err != nil { // for a Write that waits
		return err
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := c.ch.SetWriteDeadline(time.Now().Add(endWait)); err != nil {
		return err
	}
	switch _, err := c.ch.Write(nil); {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return c.endLater()
	case isGone(err):
		return nil // nobody is left to be told
	default:
		return err
	}
}

func isGone(err error) bool {
	for _, gone := range []error{unix.ECONNREFUSED, unix.ENOTCONN, unix.ECONNRESET, unix.EPIPE} {
		if errors.Is(err, gone) {
			return true
		}
	}
	return false
}

// endLater has a goroutine send the end when there is room. It ends at the latest with the peer.
func (c *TerminatedChannel) endLater() error {
	files, err := c.ch.Files()
	if err != nil {
		return err
	}
	late, err := FromFiles(files, Config{})
	if err != nil {
		return err
	}
	c.late = late
	go func() {
		late.Write(nil)
		late.Close()
	}()
	return nil
}

// refuse makes a socket that is still open to its peer's Writes as if it were not:
// those to come are EPIPE, and one that waits for room is woken to see it.
func refuse(c *Channel) {
	c.Control("shutdown", func(s, _ int) error { return unix.Shutdown(s, unix.SHUT_RD) })
	for {
		if _, err := c.TryRead(nil); err != nil && !errors.Is(err, ipcbench.ErrTruncated) {
			return
		}
	}
}

// Contract implements ipcbench.Channel.
func (c *TerminatedChannel) Contract() ipcbench.Contract {
	contract := c.ch.Contract()
	contract.Mechanism += "-terminated"
	contract.EndOfStream, contract.Files = true, false
	return contract
}

// SetDeadline implements ipcbench.Deadliner.
func (c *TerminatedChannel) SetDeadline(t time.Time) error { return c.setDeadline(t, true, true) }

// SetReadDeadline implements ipcbench.Deadliner.
func (c *TerminatedChannel) SetReadDeadline(t time.Time) error { return c.setDeadline(t, true, false) }

// SetWriteDeadline implements ipcbench.Deadliner.
func (c *TerminatedChannel) SetWriteDeadline(t time.Time) error { return c.setDeadline(t, false, true) }

func (c *TerminatedChannel) setDeadline(t time.Time, read, write bool) error {
	c.ctl.Lock()
	defer c.ctl.Unlock()
	var err error
	switch {
	case c.closed.Load():
		return fd.Wrap("unixsock", "set deadline", os.ErrClosed)
	case read && write && !c.silent.Load():
		err = c.ch.SetDeadline(t)
	case read:
		err = c.ch.SetReadDeadline(t)
	case write && !c.silent.Load(): // afterwards nothing of the caller's is left that could wait
		err = c.ch.SetWriteDeadline(t)
	}
	return err
}

// ReadFD implements ipcbench.Descriptors.
func (c *TerminatedChannel) ReadFD() int { return c.ch.ReadFD() }

// WriteFD implements ipcbench.Descriptors.
func (c *TerminatedChannel) WriteFD() int { return c.ch.WriteFD() }
