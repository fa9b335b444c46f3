//go:build linux

package poller

// A registration is what a poller knows of a descriptor.
type registration struct {
	generation uint32 // unique to this Add; 0: not registered
	in         Interest

	tag   uint32 // Epoll: unique to the last Add or Modify; the kernel's events carry it
	spent bool   // Epoll: a OneShot that has been reported

	file  identity // Select, Poll: what the descriptor was at Add
	muted bool     // Select, Poll: found closed and reported so, no longer waited for
	place int      // Poll: its index in the set
}

// A table holds the registrations by descriptor. The kernel gives out the
// lowest free number, so that a slice stays as short as the process needs.
type table struct {
	rows []registration
	last uint32 // the last number that next gave out
}

// find returns the registration of fd, nil if there is none.
func (t *table) find(fd int) *registration {
	if uint(fd) >= uint(len(t.rows)) || t.rows[fd].generation == 0 {
		return nil
	}
	return &t.rows[fd]
}

// next returns a number that was not in use for the last 2³² changes.
func (t *table) next() uint32 {
	t.last++
	if t.last == 0 {
		t.last = 1
	}
	return t.last
}

// put registers fd, in place of a former registration if there is one. The
// kernel has confirmed that fd is open, or a wrong number would make the table grow without bound.
func (t *table) put(fd int, r registration) {
	if fd >= len(t.rows) {
		t.rows = append(t.rows, make([]registration, fd+1-len(t.rows))...)
		t.rows = t.rows[:cap(t.rows)]
	}
	t.rows[fd] = r
}

func (t *table) drop(fd int) { t.rows[fd] = registration{} }
