//go:build linux

package poller

import "golang.org/x/sys/unix"

// An epollSet is epoll(7): the kernel keeps the set and knows what is ready.
//
// It files a registration under the open file and the number, not under the
// number alone. When a number is closed while a duplicate keeps its file open,
// the registration lives on, reports events, and cannot be named in a call any more
// (epoll(7), "Will closing a file descriptor …"). So each event carries a tag
// that says which Add or Modify it comes from.
type epollSet struct {
	table *table
	wake  int
	fd    int
	raw   []unix.EpollEvent // what enter fills in
	room  int               // of it, in this wait
	found int               // of it, by enter
}

func newEpollSet(t *table, wake int) (*epollSet, error) {
	s := &epollSet{table: t, wake: wake}
	var err error
	s.fd, err = s.create()
	return s, err
}

func (s *epollSet) create() (int, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return -1, err
	}
	if err := control(fd, unix.EPOLL_CTL_ADD, s.wake, Readable, 0); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func (*epollSet) supports(Interest) error { return nil }
func (*epollSet) kept() bool              { return true }
func (s *epollSet) close()                { unix.Close(s.fd) }

func (s *epollSet) add(fd int, in Interest) error {
	tag := s.table.next()
	err := control(s.fd, unix.EPOLL_CTL_ADD, fd, in, tag)
	if err == unix.EEXIST && s.table.find(fd) == nil {
		// Removed while the number was closed, and since then the number was
		// made to name the same file again (dup2): it is ours to use.
		err = control(s.fd, unix.EPOLL_CTL_MOD, fd, in, tag)
	}
	if err == unix.EPERM {
		return ErrNotPollable
	}
	if err != nil {
		return err
	}
	// A registration may be there although the kernel had none: its descriptor
	// was closed without Remove, and this number names another file now.
	s.table.put(fd, registration{generation: tag, tag: tag, in: in})
	return nil
}

func (s *epollSet) modify(fd int, r *registration, in Interest) error {
	tag := s.table.next()
	if err := control(s.fd, unix.EPOLL_CTL_MOD, fd, in, tag); err != nil {
		return err
	}
	r.tag, r.in, r.spent = tag, in, false
	return nil
}

// remove ignores EBADF and ENOENT: the descriptor was closed, or its number names
// another file. If the kernel goes on to report it, collect finds out.
func (s *epollSet) remove(fd int, _ *registration) {
	control(s.fd, unix.EPOLL_CTL_DEL, fd, 0, 0)
}

func (s *epollSet) look(events []Event) (int, error) {
	s.prepare(len(events))
	var errno unix.Errno
	s.found, errno = epollNow(s.fd, s.raw[:s.room])
	return s.collect(events, errno, false)
}

func (s *epollSet) prepare(room int) {
	if room > len(s.raw) {
		s.raw = make([]unix.EpollEvent, max(room, 64))
	}
	s.room = room
}

func (s *epollSet) enter(ms int) (errno unix.Errno) {
	s.found, errno = epollWait(s.fd, s.raw[:s.room], ms)
	return errno
}

func (s *epollSet) collect(events []Event, errno unix.Errno, changed bool) (int, error) {
	if errno != 0 {
		return 0, waitError(errno)
	}
	n, orphans := 0, 0
	for i := range s.raw[:s.found] {
		raw := &s.raw[i]
		if int(raw.Fd) == s.wake {
			continue
		}
		r := s.table.find(int(raw.Fd))
		if r == nil || r.tag != uint32(raw.Pad) {
			orphans++
			continue
		}
		if r.in&OneShot != 0 {
			if r.spent {
				continue // see rebuild
			}
			r.spent = true
		}
		events[n] = Event{FD: int(raw.Fd), Ready: epollReady(raw.Events), generation: r.generation}
		n++
	}
	// After a change an event may just have been overtaken by it. Otherwise it
	// comes from a file whose number is gone, and would come again at once for ever.
	if orphans > 0 && !changed {
		if err := s.rebuild(); err != nil && n == 0 {
			return 0, failed("wait", -1, err)
		}
	}
	return n, nil
}

// rebuild moves all registrations to a new set, the only way to be rid of those
// whose number is gone. What is ready there is reported once more for it, also with Edge.
func (s *epollSet) rebuild() error {
	fd, err := s.create()
	if err != nil {
		return err
	}
	for i := range s.table.rows {
		r := &s.table.rows[i]
		if r.generation == 0 {
			continue
		}
		// Where the old set does not know the number's present file, the descriptor
		// was closed without Remove: nothing comes of it, before and after.
		if control(s.fd, unix.EPOLL_CTL_MOD, i, r.in, r.tag) != nil {
			continue
		}
		// A spent OneShot is armed by that, and may come once more: collect passes over it.
		if err := control(fd, unix.EPOLL_CTL_ADD, i, r.in, r.tag); err != nil {
			unix.Close(fd)
			return err
		}
	}
	unix.Close(s.fd)
	s.fd = fd
	return nil
}

// control is epoll_ctl(2). The 64 bits that come back with each event are the number and the tag.
func control(epfd, op, fd int, in Interest, tag uint32) error {
	return unix.EpollCtl(epfd, op, fd, &unix.EpollEvent{Events: epollEvents(in), Fd: int32(fd), Pad: int32(tag)})
}

func epollEvents(in Interest) uint32 {
	var e uint32
	if in&Readable != 0 {
		e |= unix.EPOLLIN | unix.EPOLLRDHUP
	}
	if in&Writable != 0 {
		e |= unix.EPOLLOUT
	}
	if in&Edge != 0 {
		e |= unix.EPOLLET
	}
	if in&OneShot != 0 {
		e |= unix.EPOLLONESHOT
	}
	return e
}

func epollReady(e uint32) (r Ready) {
	if e&unix.EPOLLIN != 0 {
		r |= CanRead
	}
	if e&unix.EPOLLOUT != 0 {
		r |= CanWrite
	}
	if e&(unix.EPOLLHUP|unix.EPOLLRDHUP) != 0 {
		r |= HangUp
	}
	if e&unix.EPOLLERR != 0 {
		r |= Failed
	}
	return r
}
