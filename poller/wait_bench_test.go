//go:build linux

package poller

import (
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A mechanism is one way to ask which of many descriptors are ready.
type mechanism struct {
	name string
	kind Kind
	in   Interest
}

var (
	mechanisms = []mechanism{
		{"select", Select, Readable},
		{"select-wide", SelectWide, Readable},
		{"poll", Poll, Readable},
		{"epoll-level", Epoll, Readable},
		{"epoll-edge", Epoll, Readable | Edge},
		{"epoll-oneshot", Epoll, Readable | OneShot},
	}
	levels   = mechanisms[:4] // one of each kind
	allSizes = []int{10, 100, 500, 900, 1000, 4000, 8000}
)

// shares of the descriptors that are ready.
var shares = []struct {
	name  string
	of    func(fds int) int
	sizes []int
}{
	{"1", func(int) int { return 1 }, allSizes},
	{"tenth", func(fds int) int { return fds / 10 }, []int{100, 900}},
	{"all", func(fds int) int { return fds }, []int{100, 900}},
}

// BenchmarkWait asks the question of the article: fds pipes, some of them
// readable, one Wait. An operation is the Wait; for epoll-edge, which is silent
// about what it has reported, a write, the Wait and a read for each that is
// ready; for epoll-oneshot a Modify for each, and the Wait. runtime is a
// goroutine parked in a Read for each pipe, as Go programs wait: an operation
// is a write for each that is ready, until its goroutine has read it.
func BenchmarkWait(b *testing.B) {
	for _, m := range mechanisms {
		for _, share := range shares {
			for _, fds := range share.sizes {
				name := fmt.Sprintf("mech=%s/fds=%d/ready=%s", m.name, fds, share.name)
				if fits(name, m.kind, fds) {
					b.Run(name, func(b *testing.B) { benchmarkWait(b, m, fds, share.of(fds)) })
				}
			}
		}
	}
	for _, share := range shares {
		for _, fds := range share.sizes {
			name := fmt.Sprintf("mech=runtime/fds=%d/ready=%s", fds, share.name)
			if fits(name, Epoll, fds) {
				b.Run(name, func(b *testing.B) { benchmarkRuntime(b, fds, share.of(fds)) })
			}
		}
	}
}

func benchmarkWait(b *testing.B, m mechanism, fds, ready int) {
	s := newScene(b, m, fds)
	withCosts(b)
	switch {
	case m.in&Edge != 0:
		for b.Loop() {
			s.write(ready)
			s.wait(ready)
			s.read(ready)
		}
	case m.in&OneShot != 0:
		s.write(ready)
		for b.Loop() {
			for _, r := range s.readers[fds-ready:] {
				if err := s.p.Modify(r, m.in); err != nil {
					b.Fatal(err)
				}
			}
			s.wait(ready)
		}
	default:
		s.write(ready)
		for b.Loop() {
			s.wait(ready)
		}
	}
}

func benchmarkRuntime(b *testing.B, fds, ready int) {
	s := newScene(b, mechanism{kind: Epoll, in: Readable}, fds)
	if err := s.p.Close(); err != nil {
		b.Fatal(err)
	}
	seen := make(chan error, fds)
	for _, r := range s.takeReaders() {
		f := os.NewFile(uintptr(r), "pipe") // non-blocking: it joins the runtime's poller
		go func() {
			defer f.Close()
			var err error
			for p := make([]byte, 1); err == nil; {
				_, err = f.Read(p)
				seen <- err
			}
		}()
	}
	b.Cleanup(func() {
		s.closeWriters() // the end of each pipe, which ends its goroutine
		for range fds {
			<-seen
		}
	})
	withCosts(b)
	for b.Loop() {
		s.write(ready)
		for range ready {
			if err := <-seen; err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkGrowth reports what a descriptor more costs each Wait, in ns/fd: the
// difference between 900 and 10 of them, of which one is ready.
func BenchmarkGrowth(b *testing.B) {
	const few, many = 10, 900
	if !fits("BenchmarkGrowth", Poll, many+few) {
		b.Skip()
	}
	for _, m := range levels {
		b.Run("mech="+m.name, func(b *testing.B) {
			small, large := newScene(b, m, few), newScene(b, m, many)
			small.write(1)
			large.write(1)
			var took time.Duration
			n := 0
			for b.Loop() {
				start := time.Now()
				small.wait(1)
				between := time.Now()
				large.wait(1)
				took += time.Since(between) - between.Sub(start)
				n++
			}
			b.ReportMetric(float64(took.Nanoseconds())/float64(n)/(many-few), "ns/fd")
			b.ReportMetric(0, "ns/op") // of both together it means nothing
		})
	}
}

// fits says whether the machine can hold a row, and if not leaves it out with a comment.
func fits(row string, kind Kind, fds int) bool {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		panic(err)
	}
	need := 2*fds + spare
	if crowded(fds) {
		need = max(need, fdSetSize+fds+spare)
	}
	switch {
	case kind == Select && fds+spare > fdSetSize:
		return false // by design, not for lack of room
	case limit.Cur < uint64(need):
		fmt.Printf("# %s left out: it needs %d descriptors, the limit (ulimit -Hn) is %d\n", row, need, limit.Cur)
		return false
	}
	return true
}

// spare descriptors are left for everything but the pipes of a row.
const spare = 64

// crowded says that not all ends of fds pipes fit below 1024.
func crowded(fds int) bool { return 2*fds+spare > fdSetSize }

// newPipe returns one of fds pipes, non-blocking. If they are many, its write
// end is moved to 1024 or above, as in the article, so that 900 read ends fit select.
func newPipe(fds int) (r, w int, err error) {
	var pair [2]int
	if err := unix.Pipe2(pair[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return -1, -1, err
	}
	if !crowded(fds) {
		return pair[0], pair[1], nil
	}
	defer unix.Close(pair[1])
	w, err = unix.FcntlInt(uintptr(pair[1]), unix.F_DUPFD_CLOEXEC, fdSetSize)
	if err != nil {
		unix.Close(pair[0])
		return -1, -1, err
	}
	return pair[0], w, nil
}

// A scene is a poller with pipes.
type scene struct {
	b                testing.TB
	p                Poller
	readers, writers []int
	events           []Event
	one              []byte
}

// newScene makes fds pipes and adds their read ends.
func newScene(b testing.TB, m mechanism, fds int) *scene {
	b.Helper()
	p, err := New(m.kind)
	if err != nil {
		b.Fatal(err)
	}
	s := &scene{b: b, p: p, events: make([]Event, fds), one: []byte{'x'}}
	b.Cleanup(s.close)
	for range fds {
		r, w, err := newPipe(fds)
		if err != nil {
			b.Fatal(err)
		}
		s.readers, s.writers = append(s.readers, r), append(s.writers, w)
		if err := p.Add(r, m.in); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := p.Wait(s.events, 0); err != nil { // its buffers grow once
		b.Fatal(err)
	}
	return s
}

func (s *scene) close() {
	s.p.Close()
	s.closeWriters()
	for _, fd := range s.readers {
		unix.Close(fd)
	}
}

func (s *scene) closeWriters() {
	for _, fd := range s.writers {
		unix.Close(fd)
	}
	s.writers = nil
}

// takeReaders hands the read ends over to the caller, who closes them.
func (s *scene) takeReaders() []int {
	readers := s.readers
	s.readers = nil
	return readers
}

// wait waits once, and the last ready descriptors must be what is found.
func (s *scene) wait(ready int) {
	n, err := s.p.Wait(s.events, -1)
	if n != ready || err != nil {
		s.b.Fatalf("%d events, %v", n, err)
	}
}

// write makes the last ready pipes readable, as the article does.
func (s *scene) write(ready int) {
	for _, fd := range s.writers[len(s.writers)-ready:] {
		if _, err := unix.Write(fd, s.one); err != nil {
			s.b.Fatal(err)
		}
	}
}

func (s *scene) read(ready int) {
	for _, fd := range s.readers[len(s.readers)-ready:] {
		if _, err := unix.Read(fd, s.one); err != nil {
			s.b.Fatal(err)
		}
	}
}
