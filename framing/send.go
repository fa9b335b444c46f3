package framing

import (
	"errors"
	"os"
	"runtime"
	"time"

	"github.com/seed-e1736cc0/ipcbench"
)

// The writing half of a Channel.

// restWait is how long CloseWrite and Close wait for the rest of a message.
const restWait = 50 * time.Millisecond

// copied is the longest message, in bytes, that is copied behind its header. A longer one is written from where it lies.
const copied = 8 << 10

// Write implements ipcbench.Channel. A message that the format refuses is
// ErrFrameTooLarge (which is ipcbench.ErrMessageTooLong) or ErrFrameInvalid, and nothing is sent.
func (c *Channel) Write(p []byte) (int, error) {
	if err := c.refused(p); err != nil {
		return 0, err
	}
	c.writers.Add(1)
	defer c.writers.Add(-1)
	c.writing.Lock()
	defer c.leaveRest()
	if err := c.refused(p); err != nil {
		return 0, err
	}
	if err := c.send(c.ch.Write); err != nil {
		return 0, c.writeError(err) // the rest of the message before
	}
	if len(p) > copied && c.vectored != nil && c.in.sized != nil {
		return c.gather(p)
	}
	if err := c.frame(p); err != nil {
		return 0, err
	}
	err := c.send(c.ch.Write)
	switch {
	case err == nil:
	case len(c.unsent) == len(c.out):
		c.unsent = nil
		return 0, c.writeError(err)
	case !c.stopped(err):
		return 0, c.writeError(err)
	}
	return len(p), nil
}

// stopped reports whether an error leaves the channel able to send the rest of a message later.
func (c *Channel) stopped(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) && !c.closed.Load()
}

// gather writes header and message without copying the message.
func (c *Channel) gather(p []byte) (int, error) {
	head, err := c.in.sized.appendHeader(c.out[:0], len(p))
	if err != nil {
		return 0, err
	}
	c.out = head
	n, err := c.vectored.WriteGather(head, p)
	switch {
	case n == 0 || err != nil && !c.stopped(err):
		return 0, c.writeError(err)
	case err != nil: // what was not taken is kept, since p is the caller's
		c.out = append(c.out, p...)
		c.unsent = c.out[n:]
	}
	return len(p), nil
}

// TryWrite implements ipcbench.NonBlocking: it takes a message whole or not at all.
func (c *Channel) TryWrite(p []byte) (int, error) {
	if c.nb == nil {
		return 0, &opError{"write", errors.ErrUnsupported}
	}
	if err := c.refused(p); err != nil {
		return 0, err
	}
	if !c.writing.TryLock() {
		return 0, errWouldWrite
	}
	defer c.leaveRest()
	if err := c.send(c.nb.TryWrite); err != nil {
		return 0, c.writeError(err) // the rest of the message before
	}
	if err := c.frame(p); err != nil {
		return 0, err
	}
	if err := c.send(c.nb.TryWrite); err != nil && len(c.unsent) == len(c.out) {
		c.unsent = nil
		return 0, c.writeError(err)
	}
	return len(p), nil
}

// frame makes the frame of p in out. The caller holds writing, and has sent what was there.
func (c *Channel) frame(p []byte) (err error) {
	c.out, err = c.f.Append(c.out[:0], p)
	c.unsent = c.out
	return err
}

// send writes what is unsent, as far as f takes it.
func (c *Channel) send(f func([]byte) (int, error)) error {
	for len(c.unsent) > 0 {
		n, err := f(c.unsent)
		c.unsent = c.unsent[n:]
		if err != nil {
			return err
		}
	}
	return nil
}

// restPause is how long the rest of a message waits between two tries.
const restPause = time.Millisecond

// leaveRest has what is unsent sent by somebody else, and gives writing back, which the caller
// holds. No deadline is for the rest, since its message was accepted. Nor may it hold writing
// while it waits: a Write with a deadline may come.
func (c *Channel) leaveRest() {
	defer c.writing.Unlock()
	if len(c.unsent) == 0 || c.nb == nil || !c.resting.CompareAndSwap(false, true) {
		return
	}
	go func() {
		for c.tryRest() {
			time.Sleep(restPause)
		}
	}()
}

// tryRest reports whether something is left that may still go.
func (c *Channel) tryRest() bool {
	c.writing.Lock()
	defer c.writing.Unlock()
	err := c.send(c.nb.TryWrite)
	if err != nil && errors.Is(err, ipcbench.ErrWouldBlock) && !c.closed.Load() {
		return true
	}
	c.resting.Store(false)
	if c.ended.Load() && !c.closed.Load() {
		c.end() // nobody is left to hear of an error
	}
	return false
}

// awaitRest gives a rest under way some time.
func (c *Channel) awaitRest() {
	for limit := time.Now().Add(restWait); c.resting.Load() && time.Now().Before(limit); {
		runtime.Gosched()
		time.Sleep(100 * time.Microsecond)
	}
}

// refused says why p cannot be written at all, before there is any waiting.
func (c *Channel) refused(p []byte) error {
	switch {
	case c.closed.Load(), c.ended.Load():
		return errWriteClosed
	case c.unusable != nil:
		return &opError{"write", c.unusable}
	}
	if f, ok := c.f.(bounded); ok && len(p) > f.MaxMessage() {
		return tooLong(len(p), uint64(f.MaxMessage()))
	}
	return nil
}

func (c *Channel) writeError(err error) error {
	switch {
	case c.closed.Load():
		return errWriteClosed
	case errors.Is(err, ipcbench.ErrWouldBlock):
		return errWouldWrite
	}
	return &opError{"write", err}
}

// CloseWrite implements ipcbench.Channel. What is left of a message that was accepted goes first, however long that
// takes, unless a Write is under way, which CloseWrite ends.
func (c *Channel) CloseWrite() error {
	switch {
	case c.closed.Load():
		return &opError{"close write", os.ErrClosed}
	case !c.ch.Contract().EndOfStream:
		return c.closeWriteError(c.ch.CloseWrite())
	}
	c.ended.Store(true)
	if c.writers.Load() == 0 && c.resting.Load() {
		return nil // who sends the rest ends it then
	}
	return c.end()
}

// end ends the outgoing direction of the channel below, once.
func (c *Channel) end() error {
	if !c.endedBelow.CompareAndSwap(false, true) {
		return nil
	}
	return c.closeWriteError(c.ch.CloseWrite())
}

func (c *Channel) closeWriteError(err error) error {
	if err != nil {
		return &opError{"close write", err}
	}
	return nil
}

// Close implements ipcbench.Channel.
func (c *Channel) Close() error {
	if !c.closed.Load() {
		c.awaitRest()
	}
	if c.closed.Swap(true) {
		return &opError{"close", os.ErrClosed}
	}
	if err := c.ch.Close(); err != nil {
		return &opError{"close", err}
	}
	return nil
}
