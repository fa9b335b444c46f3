//go:build linux

package channeltest

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed-e1736cc0/ipcbench"
)

// Conformance tries what a Channel and its Contract promise, in each wait that it
// offers. What it does not try: AtomicWrite between processes, and Files. A case is a subtest, named <wait>/<case>, that ends
// within a minute whatever the channel does. The cases:
//
//	contract        the Contract agrees with itself, with the mechanism's name and with the other end
//	bulk            64 MiB (8 with -short or -race) in both directions at once, in odd sizes: order and content
//	three-writes    the writes of 3, 2 and 4 bytes: three reads, or one stream of 9
//	boundaries      messages of 1 byte, of MaxMessage, and one more
//	short-buffer    what fits and ErrTruncated; the next Read starts at the next message
//	empty           an empty Write is a message, or refused, and never the end
//	back-pressure   a full channel stops its writer; nothing accepted is lost
//	atomic          Writes of several goroutines do not interleave
//	try-read        never waits, in any wait
//	try-write       takes what there is room for
//	allocation      Read, Write, TryRead and TryWrite do not allocate
//	half-close      CloseWrite ends one direction, after what is on its way
//	end             Close is read as the end of the stream
//	no-end          where there is no end, none is read
//	close-read      Close ends Reads under way
//	close-write     Close and CloseWrite end a Write under way
//	closed          every call after Close is os.ErrClosed
//	gone-reader     a Write without a reader is an error, and the process lives
//	read-deadline   before, during and after a Read, and what comes later is all there
//	write-deadline  the same for a Write, which says how much was accepted
//	random          operations in random order at both ends, against a model of the Contract
//	export          duplicates from Files make a channel, and the original goes on
//	killed-peer     a peer that dies by SIGKILL
//	hygiene         no descriptor and no goroutine is left
//
// Cases for an interface that the channel does not have are skipped and say so.
func Conformance(t *testing.T, m Mechanism) {
	for _, w := range ipcbench.Waits() {
		t.Run(w.String(), func(t *testing.T) {
			a, b, err := m.Pair(w)
			if errors.Is(err, errors.ErrUnsupported) {
				t.Skipf("%s has no wait %v: %v", m.Name, w, err)
			}
			if err != nil {
				t.Fatal(err)
			}
			a.Close()
			b.Close()
			for _, c := range cases {
				t.Run(c.name, func(t *testing.T) {
					v := try(c, m, w, caseLimit)
					for _, f := range v.failures {
						t.Error(f)
					}
					if v.skipped != "" {
						t.Skip(v.skipped)
					}
				})
			}
		})
	}
}

// caseLimit is far more than any case needs, on a slow machine too.
const caseLimit = time.Minute

// closeLimit is how long a case waits, after its verdict, for what it has opened to close.
const closeLimit = time.Second

type testCase struct {
	name string
	run  func(*trial)
}

// cases in the order of Conformance's documentation.
var cases = slices.Concat(streamCases, messageCases, flowCases, closeCases, deadlineCases, randomCases, processCases)

// A trial is one case tried on one mechanism with one wait. It runs in a
// goroutine of its own, which a failure ends, so that whoever called try gets an
// answer even if a call never returns.
type trial struct {
	mech Mechanism
	wait ipcbench.Wait

	mu       sync.Mutex
	channels []ipcbench.Channel
	doing    string // for the report of a case that does not end
	verdict  verdict
}

type verdict struct {
	failures []string
	skipped  string
}

// try runs a case for at most limit.
func try(c testCase, m Mechanism, w ipcbench.Wait, limit time.Duration) verdict {
	t := &trial{mech: m, wait: w, doing: "nothing yet"}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.run(t)
	}()
	select {
	case <-done:
	case <-time.After(limit):
		t.mu.Lock()
		t.verdict.failures = append(t.verdict.failures, fmt.Sprintf("no end within %v of: %s", limit, t.doing))
		t.mu.Unlock()
	}
	t.closeAll()
	t.mu.Lock()
	defer t.mu.Unlock()
	return verdict{slices.Clone(t.verdict.failures), t.verdict.skipped}
}

// closeAll gives back what a case has opened. A Close that hangs is left to
// itself: the cases that try Close find that, and the others are not to wait for it.
func (t *trial) closeAll() {
	t.mu.Lock()
	open := t.channels
	t.channels = nil
	t.mu.Unlock()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		for _, ch := range open {
			ch.Close()
		}
	}()
	select {
	case <-closed:
	case <-time.After(closeLimit):
	}
}

// close closes an end, which has to end at once.
func (t *trial) close(ch ipcbench.Channel) {
	c := begin(func() (int, error) { return 0, ch.Close() })
	t.end(c, "Close")
	t.check(c.err, "Close")
}

// step names what comes next.
func (t *trial) step(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.doing = fmt.Sprintf(format, args...)
}

// fail ends the case. It may be called only in the case's goroutine.
func (t *trial) fail(format string, args ...any) {
	t.note(format, args...)
	runtime.Goexit()
}

// note adds a failure and goes on; from any goroutine.
func (t *trial) note(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.verdict.failures = append(t.verdict.failures, fmt.Sprintf(format, args...))
}

func (t *trial) skip(format string, args ...any) {
	t.mu.Lock()
	t.verdict.skipped = fmt.Sprintf(format, args...)
	t.mu.Unlock()
	runtime.Goexit()
}

func (t *trial) check(err error, format string, args ...any) {
	if err != nil {
		t.fail("%s: %v", fmt.Sprintf(format, args...), err)
	}
}

// wantIs fails unless err matches all of the wanted errors.
func (t *trial) wantIs(what string, err error, wanted ...error) {
	for _, w := range wanted {
		if !errors.Is(err, w) {
			t.fail("%s: error %v, want one that is: %v", what, err, w)
		}
	}
}

// pair returns a new connection that is closed at the end.
func (t *trial) pair() (a, b ipcbench.Channel) {
	t.step("Pair")
	a, b, err := t.mech.Pair(t.wait)
	t.check(err, "Pair")
	t.own(a, b)
	return a, b
}

func (t *trial) own(channels ...ipcbench.Channel) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.channels = append(t.channels, channels...)
}

// write writes all of p.
func (t *trial) write(ch ipcbench.Channel, p []byte) {
	t.step("Write of %d bytes", len(p))
	n, err := ch.Write(p)
	t.check(err, "Write of %d bytes", len(p))
	if n != len(p) {
		t.fail("Write of %d bytes returned %d", len(p), n)
	}
}

// read reads n bytes, as one message where there are boundaries.
func (t *trial) read(ch ipcbench.Channel, n int) []byte {
	t.step("Read of %d bytes", n)
	p := make([]byte, n)
	for got := 0; ; {
		m, err := ch.Read(p[got:])
		t.check(err, "Read of %d bytes after %d", n, got)
		got += m
		if got == n {
			return p
		}
		if ch.Contract().Boundaries {
			t.fail("Read: a message of %d bytes, want %d", got, n)
		}
	}
}

// A call is one under way in another goroutine.
type call struct {
	n    int
	err  error
	done chan struct{}
}

// begin starts f elsewhere and gives it a moment to get stuck. Nothing depends
// on whether it has by then: either way the outcome has to be the same.
func begin(f func() (int, error)) *call {
	c := &call{done: make(chan struct{})}
	entered := make(chan struct{})
	go func() {
		defer close(c.done)
		close(entered)
		c.n, c.err = f()
	}()
	<-entered
	time.Sleep(2 * time.Millisecond)
	return c
}

// end waits for a call that has to end now.
func (t *trial) end(c *call, what string) {
	t.step("%s", what)
	select {
	case <-c.done:
	case <-time.After(promptly):
		t.fail("%s: no end within %v", what, promptly)
	}
}

// running fails if the call has ended.
func (t *trial) running(c *call, what string) {
	select {
	case <-c.done:
		t.fail("%s: it returned %d, %v at once", what, c.n, c.err)
	default:
	}
}

// promptly is how long a call may take that has to end at once: a Channel
// promises 100 ms, but a busy machine is not its fault. The tests of the suite itself shorten it.
var promptly = 5 * time.Second
