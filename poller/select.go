//go:build linux

package poller

import (
	"math"
	"math/bits"

	"golang.org/x/sys/unix"
)

const (
	fdSetSize = unix.FD_SETSIZE // the 1024 bits of libc's fd_set
	noLimit   = math.MaxInt
)

// A selectSet is pselect(2) with a bitmap of its own, as long as the highest
// descriptor needs. Select differs from SelectWide in what it accepts, by limit:
// the kernel copies as many bits as it is told and knows no 1024.
//
// select says that a read or write will not block, and not why: data, the end
// or an error. So poll is asked about the descriptors it found.
type selectSet struct {
	table       *table
	wake        int // the poller's own, in the set whatever its number
	limit       int
	read, write bitmap // the set; of one length

	asked struct { // a copy, which the kernel reads and fills in without the lock
		read, write bitmap
		writing     bool // some bit of write is set
		nfds        int  // one more than the highest descriptor
		timeout     unix.Timespec
	}
	ready []unix.PollFd // the descriptors that select found, for poll
	start int           // the descriptor that collect begins with, so that nobody is always served last
}

func newSelectSet(t *table, wake, limit int) *selectSet {
	s := &selectSet{table: t, wake: wake, limit: limit}
	s.mark(wake, Readable)
	return s
}

func (*selectSet) supports(in Interest) error {
	if err := levelOnly(in); err != nil {
		return err
	}
	if in == 0 {
		return errNoInterest
	}
	return nil
}

func (*selectSet) kept() bool { return false }
func (*selectSet) close()     {}

func (s *selectSet) add(fd int, in Interest) error {
	if fd >= s.limit {
		return ErrDescriptorRange
	}
	file, err := inspect(fd)
	if err != nil {
		return err
	}
	if r := s.table.find(fd); r != nil && r.file == file && !r.muted {
		return unix.EEXIST
	}
	s.mark(fd, in)
	s.table.put(fd, registration{generation: s.table.next(), in: in, file: file})
	return nil
}

func (s *selectSet) modify(fd int, r *registration, in Interest) error {
	if r.muted {
		return closedError(fd)
	}
	r.in = in
	s.mark(fd, in)
	return nil
}

func (s *selectSet) remove(fd int, _ *registration) { s.mark(fd, 0) }

// mark sets the bits of fd as in says.
func (s *selectSet) mark(fd int, in Interest) {
	for fd/wordBits >= len(s.read) {
		s.read, s.write = append(s.read, 0), append(s.write, 0)
	}
	s.read.put(fd, in&Readable != 0)
	s.write.put(fd, in&Writable != 0)
}

func (s *selectSet) look(events []Event) (int, error) {
	s.prepare(len(events))
	return s.collect(events, s.enter(0), false)
}

func (s *selectSet) prepare(room int) {
	a := &s.asked
	a.read = append(a.read[:0], s.read...)
	a.write = append(a.write[:0], s.write...)
	a.nfds = max(s.read.end(), s.write.end())
	a.writing = s.write.end() > 0
	if room = min(room, a.nfds); room > cap(s.ready) {
		s.ready = make([]unix.PollFd, 0, room)
	}
}

func (s *selectSet) enter(ms int) (errno unix.Errno) {
	a := &s.asked
	write := a.write
	if !a.writing {
		write = nil // the kernel need not look at an empty set
	}
	_, errno = pselect(a.nfds, a.read, write, limit(&a.timeout, ms))
	return errno
}

func (s *selectSet) collect(events []Event, errno unix.Errno, changed bool) (int, error) {
	switch {
	case changed:
		return 0, nil // what was found may be about former registrations, and will be found again
	case errno == unix.EBADF:
		return 0, s.closed()
	case errno != 0:
		return 0, waitError(errno)
	}
	s.asked.read.put(s.wake, false)
	s.ready = s.ready[:0]
	begin := min(s.start, s.asked.nfds)
	s.pick(begin, s.asked.nfds, len(events))
	s.pick(0, begin, len(events))
	if len(s.ready) == 0 {
		return 0, nil
	}
	if _, errno := ppoll(s.ready, limit(&s.asked.timeout, 0)); errno != 0 {
		return 0, waitError(errno)
	}
	n := 0
	for _, p := range s.ready {
		if p.Revents == 0 {
			continue // another has read it meanwhile
		}
		events[n] = Event{FD: int(p.Fd), Ready: pollReady(p.Revents), generation: s.table.rows[p.Fd].generation}
		n++
	}
	return n, nil
}

// pick appends to ready the descriptors from, … to-1 that select found, until there are room.
func (s *selectSet) pick(from, to, room int) {
	for w := from / wordBits; w*wordBits < to; w++ {
		word := s.asked.read[w] | s.asked.write[w]
		if w == from/wordBits {
			word &= ^uint(0) << (from % wordBits)
		}
		for ; word != 0; word &= word - 1 {
			fd := w*wordBits + bits.TrailingZeros(word)
			if fd >= to || len(s.ready) == room {
				return
			}
			s.ready = append(s.ready, unix.PollFd{Fd: int32(fd), Events: pollEvents(s.table.rows[fd].in)})
			s.start = fd + 1
		}
	}
}

// closed finds the descriptor for which select(2) said EBADF, without a word
// which, and mutes it, or no other would ever be reported again.
func (s *selectSet) closed() error {
	for fd := range len(s.read) * wordBits {
		r := s.table.find(fd)
		if r == nil || r.muted {
			continue
		}
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil {
			r.muted = true
			s.mark(fd, 0)
			return failed("wait", fd, err)
		}
	}
	// Its number has been taken by another meanwhile; or it is the poller's own,
	// closed by a stranger, and would be so for ever.
	if _, err := unix.FcntlInt(uintptr(s.wake), unix.F_GETFD, 0); err != nil {
		return failed("wait", -1, err)
	}
	return nil
}

const wordBits = bits.UintSize

// A bitmap is an array of the kernel's long, as select wants it.
type bitmap []uint

func (b bitmap) put(bit int, on bool) {
	mask := uint(1) << (bit % wordBits)
	if on {
		b[bit/wordBits] |= mask
	} else {
		b[bit/wordBits] &^= mask
	}
}

// end returns one more than the highest bit that is set, 0 if none is.
func (b bitmap) end() int {
	for w := len(b) - 1; w >= 0; w-- {
		if b[w] != 0 {
			return w*wordBits + bits.Len(b[w])
		}
	}
	return 0
}
