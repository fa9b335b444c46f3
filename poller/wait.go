//go:build linux

package poller

import (
	"math"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A set is the descriptors to wait for as one of the kernel's tools wants them.
// The poller's lock is held in all methods but enter.
type set interface {
	// supports returns an error that is errors.ErrUnsupported for an interest that the tool lacks.
	supports(in Interest) error
	add(fd int, in Interest) error
	modify(fd int, r *registration, in Interest) error
	remove(fd int, r *registration)

	// look collects what is ready without waiting, which each Wait tries first: a
	// call that cannot block needs no word to the scheduler. Nor does the kernel
	// enter the caller in the queues of all descriptors of a set that it does
	// not keep, which is most of what a select or poll costs.
	look(events []Event) (int, error)
	// prepare gets ready to enter the kernel and collect up to room events.
	prepare(room int)
	// enter asks the kernel what is ready. Meanwhile it uses nothing that the other methods write.
	enter(ms int) unix.Errno
	// collect turns what the kernel found into events. changed says that
	// the set was changed meanwhile, so that it may be about former registrations.
	collect(events []Event, errno unix.Errno, changed bool) (int, error)

	// kept says that the kernel keeps the set, and takes up changes during a wait by itself.
	kept() bool
	close()
}

// A poller is what all kinds share: who may wait, for how long, and what ends it.
type poller struct {
	mu    sync.Mutex
	set   set
	table table

	// wake is an eventfd(2) in every set. It is written to only while a Wait is
	// under way, so that a Wait that finds something at once never has to read it.
	wake    int
	waiting bool // a Wait is in the kernel without the lock
	kicked  bool // wake is readable
	changed bool // the set has changed since that Wait entered the kernel
	woken   bool // Wake was called and no Wait has returned for it yet
	closed  bool
}

func (p *poller) Add(fd int, in Interest) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.check(in)
	if err == nil {
		// The kernel takes an int: it would cut off the upper half of a longer number.
		if fd < 0 || int64(fd) > math.MaxInt32 {
			err = unix.EBADF
		} else {
			err = p.set.add(fd, in)
		}
	}
	if err != nil {
		return failed("add", fd, err)
	}
	p.restart()
	return nil
}

func (p *poller) Modify(fd int, in Interest) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.check(in)
	if err == nil {
		if r := p.table.find(fd); r == nil {
			err = unix.ENOENT
		} else {
			err = p.set.modify(fd, r, in)
		}
	}
	if err != nil {
		return failed("modify", fd, err)
	}
	p.restart()
	return nil
}

func (p *poller) check(in Interest) error {
	if p.closed {
		return os.ErrClosed
	}
	if in&^(Readable|Writable|Edge|OneShot) != 0 {
		return unix.EINVAL
	}
	return p.set.supports(in)
}

func (p *poller) Remove(fd int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return failed("remove", fd, os.ErrClosed)
	}
	r := p.table.find(fd)
	if r == nil {
		return failed("remove", fd, unix.ENOENT)
	}
	p.set.remove(fd, r)
	p.table.drop(fd)
	p.restart()
	return nil
}

func (p *poller) Current(e Event) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.table.find(e.FD)
	return r != nil && r.generation == e.generation
}

func (p *poller) Wake() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return failed("wake", -1, os.ErrClosed)
	}
	p.woken = true
	p.kick()
	return nil
}

func (p *poller) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return failed("close", -1, os.ErrClosed)
	}
	p.closed = true
	p.table = table{}
	if p.waiting {
		// Closing a descriptor does not wake those who wait on it (close(2)):
		// the Wait under way releases everything as it leaves.
		p.kick()
		return nil
	}
	p.release()
	return nil
}

func (p *poller) release() {
	p.set.close()
	unix.Close(p.wake)
}

// restart makes a Wait under way take up a change of the set.
func (p *poller) restart() {
	p.changed = true
	if !p.set.kept() {
		p.kick()
	}
}

// kick makes a Wait under way leave the kernel.
func (p *poller) kick() {
	if p.waiting && !p.kicked {
		p.kicked = true
		unix.Write(p.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // adds a number that is not 0, in either byte order
	}
}

func (p *poller) unkick() {
	if p.kicked {
		p.kicked = false
		var count [8]byte
		unix.Read(p.wake, count[:])
	}
}

func (p *poller) Wait(events []Event, timeout time.Duration) (n int, err error) {
	p.mu.Lock() // and no defer, which one can see beside an epoll_wait
	if p.closed || p.waiting || p.woken || len(events) == 0 {
		err = p.refuse()
	} else if n, err = p.set.look(events); n == 0 && err == nil && timeout != 0 {
		n, err = p.block(events, timeout)
	}
	p.mu.Unlock()
	return n, err
}

// refuse says why a Wait does not begin; for Wake that is no error.
func (p *poller) refuse() error {
	switch {
	case p.closed:
		return failed("wait", -1, os.ErrClosed)
	case p.waiting:
		return failed("wait", -1, ErrBusy)
	case p.woken:
		p.woken = false
		return nil
	}
	return failed("wait", -1, unix.EINVAL)
}

// block waits. It is entered, and left, with the lock held.
func (p *poller) block(events []Event, timeout time.Duration) (int, error) {
	var start time.Time
	if timeout > 0 {
		start = time.Now()
	}
	for left := timeout; ; {
		n, err := p.sleep(events, left)
		switch {
		case p.closed:
			p.release()
			return 0, failed("wait", -1, os.ErrClosed)
		case n > 0 || err != nil:
			return n, err
		case p.woken:
			p.woken = false
			return 0, nil
		}
		// Not every return is the end: a signal, a change of the set, events of
		// registrations that are gone, or a timeout longer than the kernel takes.
		if timeout > 0 {
			if left = timeout - time.Since(start); left <= 0 {
				return 0, nil
			}
		}
	}
}

// sleep enters the kernel once, without the lock.
func (p *poller) sleep(events []Event, left time.Duration) (int, error) {
	p.set.prepare(len(events))
	p.waiting, p.changed = true, false
	p.mu.Unlock()
	errno := p.set.enter(milliseconds(left))
	p.mu.Lock()
	p.waiting = false
	p.unkick()
	if p.closed {
		return 0, nil
	}
	return p.set.collect(events, errno, p.changed)
}

// milliseconds rounds up, so that what is left of a timeout is never 0, which
// would not wait; -1 is no limit. epoll_wait(2) takes an int of 32 bits: a longer
// timeout comes in pieces of 24 days.
func milliseconds(d time.Duration) int {
	if d < 0 {
		return -1
	}
	ms := d / time.Millisecond
	if d%time.Millisecond != 0 {
		ms++
	}
	return int(min(ms, math.MaxInt32))
}
