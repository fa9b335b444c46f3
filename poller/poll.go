//go:build linux

package poller

import "golang.org/x/sys/unix"

// A pollSet is poll(2): each call hands the whole set to the kernel, which asks every descriptor in it.
type pollSet struct {
	table *table
	fds   []unix.PollFd // the set; the first is the poller's own, for Wake
	asked []unix.PollFd // a copy, which the kernel reads and fills in without the lock
	stale bool          // asked is not a copy of fds any more

	timeout unix.Timespec
	found   int // of asked, by enter
	start   int // where collect begins, so that nobody is always served last
}

func newPollSet(t *table, wake int) *pollSet {
	return &pollSet{
		table: t,
		fds:   []unix.PollFd{{Fd: int32(wake), Events: unix.POLLIN}},
		stale: true,
		start: 1,
	}
}

func (*pollSet) supports(in Interest) error { return levelOnly(in) }
func (*pollSet) kept() bool                 { return false }
func (*pollSet) close()                     {}

func (s *pollSet) add(fd int, in Interest) error {
	file, err := inspect(fd)
	if err != nil {
		return err
	}
	r := s.table.find(fd)
	if r != nil && r.file == file && !r.muted {
		return unix.EEXIST
	}
	place := len(s.fds)
	if r != nil {
		place = r.place
	} else {
		s.fds = append(s.fds, unix.PollFd{})
	}
	s.fds[place] = unix.PollFd{Fd: int32(fd), Events: pollEvents(in)}
	s.stale = true
	s.table.put(fd, registration{generation: s.table.next(), in: in, file: file, place: place})
	return nil
}

func (s *pollSet) modify(fd int, r *registration, in Interest) error {
	if r.muted {
		return closedError(fd)
	}
	r.in = in
	s.fds[r.place].Events = pollEvents(in)
	s.stale = true
	return nil
}

func (s *pollSet) remove(_ int, r *registration) {
	end := len(s.fds) - 1
	last := s.fds[end]
	if last.Fd < 0 {
		last.Fd = ^last.Fd
	}
	s.table.rows[last.Fd].place = r.place
	s.fds[r.place] = s.fds[end]
	s.fds = s.fds[:end]
	s.stale = true
}

func (s *pollSet) look(events []Event) (int, error) {
	s.prepare(len(events))
	return s.collect(events, s.enter(0), false)
}

func (s *pollSet) prepare(int) {
	if s.stale {
		s.asked = append(s.asked[:0], s.fds...)
		s.stale = false
	}
}

func (s *pollSet) enter(ms int) (errno unix.Errno) {
	s.found, errno = ppoll(s.asked, limit(&s.timeout, ms))
	return errno
}

// collect begins after the descriptor that it ended with when events were too few.
func (s *pollSet) collect(events []Event, errno unix.Errno, changed bool) (int, error) {
	if changed {
		return 0, nil // what was found may be about former registrations, and will be found again
	}
	if errno != 0 {
		return 0, waitError(errno)
	}
	left := s.found
	if own := s.asked[0].Revents; own&unix.POLLNVAL != 0 {
		return 0, failed("wait", -1, unix.EBADF) // closed by a stranger
	} else if own != 0 {
		left--
	}
	if s.start >= len(s.asked) {
		s.start = 1
	}
	n := 0
	for i, begin := s.start, s.start; n < len(events) && n < left; {
		if s.asked[i].Revents != 0 {
			events[n] = s.event(i)
			n++
			s.start = i + 1
		}
		if i++; i == len(s.asked) {
			i = 1
		}
		if i == begin {
			break
		}
	}
	return n, nil
}

// event reports asked[i]. A descriptor found closed is muted: the kernel ignores
// a number less than 0 (poll(2)), or each Wait would return at once for it.
func (s *pollSet) event(i int) Event {
	fd := int(s.asked[i].Fd)
	r := &s.table.rows[fd]
	if s.asked[i].Revents&unix.POLLNVAL != 0 {
		r.muted = true
		s.fds[i].Fd = ^s.fds[i].Fd
		s.stale = true
	}
	return Event{FD: fd, Ready: pollReady(s.asked[i].Revents), generation: r.generation}
}

func pollEvents(in Interest) int16 {
	var e int16
	if in&Readable != 0 {
		e |= unix.POLLIN | unix.POLLRDHUP
	}
	if in&Writable != 0 {
		e |= unix.POLLOUT
	}
	return e
}

func pollReady(e int16) (r Ready) {
	if e&unix.POLLIN != 0 {
		r |= CanRead
	}
	if e&unix.POLLOUT != 0 {
		r |= CanWrite
	}
	if e&(unix.POLLHUP|unix.POLLRDHUP) != 0 {
		r |= HangUp
	}
	if e&(unix.POLLERR|unix.POLLNVAL) != 0 {
		r |= Failed
	}
	return r
}
