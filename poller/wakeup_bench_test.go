//go:build linux

package poller

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/seed-e1736cc0/ipcbench/internal/cpu"
	"github.com/seed-e1736cc0/ipcbench/internal/meter"
	"github.com/seed-e1736cc0/ipcbench/internal/peer"
)

// BenchmarkWakeUp measures round trips between two processes, of which one
// sleeps in a Wait on fds pipes: it writes a byte, the other reads it and
// writes one back, Wait returns, and the byte is read. So both wake-ups are in it, and
// on a set that the kernel does not keep the way into and out of all its queues.
func BenchmarkWakeUp(b *testing.B) {
	seats, notes, err := cpu.Here()
	if err != nil {
		b.Fatal(err)
	}
	for _, note := range notes {
		fmt.Println("#", note)
	}
	for _, m := range append(mechanisms[:len(mechanisms):len(mechanisms)], mechanism{name: runtimeName}) {
		for _, fds := range []int{10, 900} {
			for _, seat := range seats {
				name := fmt.Sprintf("mech=%s/fds=%d/cpu=%s/peer=process", m.name, fds, seat.Place)
				if fits(name, m.kind, fds) {
					benchmarkWakeUp(b, name, assignment{m.name, fds}, seat)
				}
			}
		}
	}
}

const (
	runtimeName = "runtime"
	waiterRole  = "poller waiter"
	echoRole    = "poller echo"
)

// An assignment is what the waiting party is told first.
type assignment struct {
	Mechanism string
	FDs       int
}

type report struct {
	Elapsed time.Duration
	Usage   meter.Usage
}

// benchmarkWakeUp runs one row. testing calls the function with growing b.N;
// the two parties stay the same over it.
func benchmarkWakeUp(b *testing.B, name string, a assignment, seat cpu.Seat) {
	var s *session
	var limit time.Duration
	stop := func() {
		if s != nil {
			if err := s.close(); err != nil {
				b.Error(err)
			}
			s = nil
		}
	}
	b.Run(name, func(b *testing.B) {
		if b.N == 1 {
			stop()
			limit = 10 * time.Second
			var err error
			if s, err = openSession(a, seat); err != nil {
				b.Fatal(err)
			}
		}
		got, err := s.run(b.N, limit)
		if err != nil {
			b.Fatal(err)
		}
		limit = 10*time.Second + 200*got.Elapsed // the next run is at most 100 times as long
		b.ReportMetric(float64(got.Elapsed.Nanoseconds())/float64(b.N), "ns/op")
		reportUsage(b, got.Usage)
	})
	stop()
}

// A session is two child processes: the one that waits, and the one that echoes.
type session struct{ waiter, echo *peer.Peer }

func openSession(a assignment, seat cpu.Seat) (s *session, err error) {
	files, err := crossedPipes()
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	s = &session{}
	if s.echo, err = peer.Start(peer.Config{Role: echoRole, Files: files[2:], CPUs: []int{seat.Second}}); err != nil {
		return nil, err
	}
	if s.waiter, err = peer.Start(peer.Config{Role: waiterRole, Files: files[:2], CPUs: []int{seat.First}}); err == nil {
		err = s.waiter.Send(a)
	}
	if err == nil {
		err = s.waiter.Recv(nil, 10*time.Second) // it is ready
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// crossedPipes returns the two ends that each party gets: to read and to write.
func crossedPipes() (files []*os.File, err error) {
	var p, q [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return nil, os.NewSyscallError("pipe2", err)
	}
	if err := unix.Pipe2(q[:], unix.O_CLOEXEC); err != nil {
		unix.Close(p[0])
		unix.Close(p[1])
		return nil, os.NewSyscallError("pipe2", err)
	}
	for _, fd := range []int{p[0], q[1], q[0], p[1]} {
		files = append(files, os.NewFile(uintptr(fd), "pipe"))
	}
	return files, nil
}

// run has the parties make n round trips. When one dies the other reads the end
// of its pipe, so that both have something to say.
func (s *session) run(n int, limit time.Duration) (total report, err error) {
	parties := []*peer.Peer{s.echo, s.waiter}
	for _, p := range parties {
		if err := p.Send(n); err != nil {
			return total, err
		}
	}
	for _, p := range parties {
		var r report
		err = errors.Join(err, p.Recv(&r, limit))
		total.Elapsed = r.Elapsed // the waiter's, at last
		total.Usage = total.Usage.Add(r.Usage)
	}
	return total, err
}

func (s *session) close() error {
	var errs []error
	for _, p := range []*peer.Peer{s.waiter, s.echo} {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	return errors.Join(errs...)
}

func playEcho(c *peer.Conn) error {
	files := c.Files()
	r, w, p := int(files[0].Fd()), int(files[1].Fd()), make([]byte, 1)
	return perform(c, func() error {
		if err := readOne(r, p); err != nil {
			return err
		}
		_, err := unix.Write(w, p)
		return err
	})
}

// readOne reads a byte. The end of the pipe means that the other party has died.
func readOne(r int, p []byte) error {
	n, err := unix.Read(r, p)
	if n == 0 {
		return io.ErrUnexpectedEOF
	}
	return err
}

func playWaiter(c *peer.Conn) error {
	var a assignment
	if err := c.Recv(&a); err != nil {
		return err
	}
	raiseLimit()
	files := c.Files()
	r, w, p := int(files[0].Fd()), int(files[1].Fd()), make([]byte, 1)
	await, err := a.wait(r)
	if err != nil {
		return err
	}
	if err := c.Send("ready"); err != nil {
		return err
	}
	return perform(c, func() error {
		if _, err := unix.Write(w, p); err != nil {
			return err
		}
		return await(p)
	})
}

// perform does as many operations as it is told, again and again, and reports what they took.
func perform(c *peer.Conn, operation func() error) error {
	debug.SetGCPercent(-1)
	for {
		var n int
		if err := c.Recv(&n); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		before, err := meter.Process()
		if err != nil {
			return err
		}
		start := time.Now()
		for range n {
			if err := operation(); err != nil {
				return err
			}
		}
		r := report{Elapsed: time.Since(start)}
		after, err := meter.Process()
		if err != nil {
			return err
		}
		r.Usage = after.Sub(before)
		if err := c.Send(r); err != nil {
			return err
		}
	}
}

// wait returns what waits for the descriptor r among a.FDs and then reads it.
func (a assignment) wait(r int) (func(p []byte) error, error) {
	var idle []int
	for range a.FDs - 1 {
		r, _, err := newPipe(a.FDs) // the write end stays open as long as the process
		if err != nil {
			return nil, err
		}
		idle = append(idle, r)
	}
	if a.Mechanism == runtimeName {
		return parked(idle, r)
	}
	for _, m := range mechanisms {
		if m.name == a.Mechanism {
			runtime.LockOSThread()
			return polled(m, idle, r)
		}
	}
	return nil, fmt.Errorf("no mechanism %q", a.Mechanism)
}

func polled(m mechanism, idle []int, r int) (func([]byte) error, error) {
	p, err := New(m.kind)
	if err != nil {
		return nil, err
	}
	for _, fd := range append(idle, r) {
		if err := p.Add(fd, m.in); err != nil {
			return nil, err
		}
	}
	events := make([]Event, 64)
	return func(buf []byte) error {
		n, err := p.Wait(events, -1)
		if err != nil {
			return err
		}
		if n != 1 || events[0].FD != r {
			return fmt.Errorf("%d events, the first of %d", n, events[0].FD)
		}
		if err := readOne(r, buf); err != nil {
			return err
		}
		if m.in&OneShot != 0 {
			return p.Modify(r, m.in)
		}
		return nil
	}, nil
}

// parked has a goroutine for each descriptor, as Go programs do.
func parked(idle []int, r int) (func([]byte) error, error) {
	if err := unix.SetNonblock(r, true); err != nil {
		return nil, err
	}
	for _, fd := range idle {
		go os.NewFile(uintptr(fd), "pipe").Read(make([]byte, 1))
	}
	fd, err := unix.FcntlInt(uintptr(r), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "pipe")
	return func(p []byte) error {
		_, err := f.Read(p)
		return err
	}, nil
}

// The death of a party fails the row within seconds, with its exit status.
func TestWakeUpPartyDies(t *testing.T) {
	limited(t)
	seats, _, err := cpu.Here()
	require.NoError(t, err)
	for _, victim := range []func(*session) *peer.Peer{
		func(s *session) *peer.Peer { return s.waiter },
		func(s *session) *peer.Peer { return s.echo },
	} {
		s, err := openSession(assignment{"epoll-level", 10}, seats[0])
		require.NoError(t, err)
		_, err = s.run(10, 10*time.Second)
		require.NoError(t, err)
		go victim(s).Kill()
		_, err = s.run(math.MaxInt, 10*time.Second)
		require.ErrorContains(t, err, "signal: killed")
		s.close()
	}
}
