//go:build linux

package fd

import (
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// A thread that is blocked in read or write returns only when there is something
// to transfer. To make it look at its side's state again, O_NONBLOCK is set on the
// description and every thread of the process gets SIGURG, the signal that the
// Go runtime preempts with and whose handler restarts system calls: the
// restarted call meets O_NONBLOCK and returns EAGAIN without having touched
// any data, or returns what it had written so far. The flag is taken back
// afterwards, since another process may share the description.

// interrupt repeats that until done reports true. The caller holds Conn.ctl.
func (s *side) interrupt(done func() bool) {
	if done() {
		return
	}
	unix.SetNonblock(s.fd, true)
	defer unix.SetNonblock(s.fd, false)
	for pause := 20 * time.Microsecond; ; pause = min(2*pause, time.Millisecond) {
		signalThreads()
		// A thread may be on its way into the kernel, past its look at the
		// state: then only a later signal reaches it.
		time.Sleep(pause)
		if done() {
			return
		}
	}
}

// signalThreads makes every thread of the process restart its system call.
func signalThreads() {
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return // without /proc a blocked call ends with its next byte or deadline
	}
	for _, e := range entries {
		if tid, err := strconv.Atoi(e.Name()); err == nil {
			unix.Tgkill(unix.Getpid(), tid, unix.SIGURG)
		}
	}
}

// end makes the side refuse calls and waits for the one under way to leave. It
// returns with mu held. The caller holds Conn.ctl and has set closed.
func (s *side) end() {
	switch {
	case s.wait.parks():
		s.wake()
	case s.wait.blocks():
		s.interrupt(s.mu.TryLock)
		return
	}
	s.mu.Lock()
}

// wake ends a call that is parked in the runtime's poller, by a deadline that has passed.
func (s *side) wake() {
	past := time.Unix(1, 0)
	if s.write {
		s.file.SetWriteDeadline(past)
	} else {
		s.file.SetReadDeadline(past)
	}
}

// setDeadline sets the deadline for the call under way and all later ones. The caller holds Conn.ctl.
func (s *side) setDeadline(t time.Time) error {
	s.deadline.Store(instant(t))
	switch {
	case s.wait.parks() && s.write:
		return s.file.SetWriteDeadline(t)
	case s.wait.parks():
		return s.file.SetReadDeadline(t)
	case s.wait.blocks():
		asked := s.asked.Add(1)
		s.interrupt(func() bool { return s.seen.Load() == asked || s.idle() })
	}
	return nil
}

// idle reports that no call is under way on the side; one that begins later sees the state as it is now.
func (s *side) idle() bool {
	if !s.mu.TryLock() {
		return false
	}
	s.mu.Unlock()
	return true
}
