//go:build linux

package channeltest

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/seed-e1736cc0/ipcbench"
)

// What no other case has thought of: operations in random order, at both ends, and a model of the Contract
// that says what each of them may return.

var randomCases = []testCase{{"random", tryRandom}}

const randomSteps = 200

func tryRandom(t *trial) {
	runs := uint64(10)
	if testing.Short() || raceEnabled {
		runs = 3
	}
	for seed := uint64(1); seed <= runs; seed++ {
		t.randomly(seed)
	}
}

// A lane is the model of one direction: what was accepted and has not been read.
type lane struct {
	data  []byte   // on a stream
	msgs  [][]byte // with Boundaries
	ended bool     // by CloseWrite
}

func (l *lane) empty() bool { return len(l.data) == 0 && len(l.msgs) == 0 }

// small: a Write of n bytes more has room in any channel, and need not wait.
func (l *lane) small(n int) bool {
	for _, m := range l.msgs {
		n += len(m)
	}
	return len(l.data)+n <= 2048 && len(l.msgs) < 4
}

// A game is one run against the model; the seed of its report makes it again.
type game struct {
	*trial
	random   *rand.Rand
	seed     uint64
	contract ipcbench.Contract
	ends     [2]ipcbench.Channel
	lanes    [2]lane // lanes[i] is what ends[i] writes
	stream   int64   // how much bulk data has been used
}

func (t *trial) randomly(seed uint64) {
	a, b := t.pair()
	t.nonBlocking(a) // one goroutine plays both ends, and must not wait for itself
	g := &game{trial: t, random: rand.New(rand.NewPCG(seed, 0)), seed: seed, contract: a.Contract(), ends: [2]ipcbench.Channel{a, b}}
	for step := range randomSteps {
		i := g.random.IntN(2)
		switch k := g.random.IntN(20); {
		case k < 8:
			g.write(i)
		case k < 19:
			g.read(i)
		case step > randomSteps/2:
			g.closeWrite(i)
		}
	}
	for i := range g.lanes {
		for !g.lanes[i].empty() {
			g.read(i)
		}
		g.closeWrite(i)
		g.read(i)
	}
	t.close(a)
	t.close(b)
}

func (g *game) fail(format string, args ...any) {
	g.trial.fail("seed %d: "+format, append([]any{g.seed}, args...)...)
}

// size is a length to write: mostly short ones, seldom the longest, or one more.
func (g *game) size() int {
	n := []int{0, 1, 3, g.random.IntN(100), g.random.IntN(5000), g.random.IntN(60_000)}[g.random.IntN(6)]
	switch c := g.contract; {
	case !c.Boundaries:
		return n
	case g.random.IntN(40) == 0 && c.MaxMessage < 1<<21:
		return c.MaxMessage + g.random.IntN(2)
	default:
		return min(n, c.MaxMessage)
	}
}

func (g *game) write(i int) {
	lane, ch := &g.lanes[i], g.ends[i]
	p := make([]byte, g.size())
	for at := 0; at < len(p); {
		at += copy(p[at:], piece(g.stream+int64(at), len(p)-at))
	}
	write, name := ch.Write, "Write"
	tooLong := g.contract.Boundaries && len(p) > g.contract.MaxMessage
	if waits := !lane.ended && !tooLong && !lane.small(len(p)); waits || g.random.IntN(2) == 0 {
		write, name = ch.(ipcbench.NonBlocking).TryWrite, "TryWrite"
	}
	g.step("%s of %d bytes", name, len(p))
	n, err := write(p)
	for limit := time.Now().Add(promptly); lane.empty() && errors.Is(err, ipcbench.ErrWouldBlock) && time.Now().Before(limit); {
		runtime.Gosched() // what was read may make room a moment later
		n, err = write(p)
	}
	g.wrote(lane, name, p, n, err)
}

// wrote compares what a Write has returned with the model, and adds what it has accepted.
func (g *game) wrote(l *lane, name string, p []byte, n int, err error) {
	full := name == "TryWrite" && errors.Is(err, ipcbench.ErrWouldBlock)
	bounded := g.contract.Boundaries
	switch {
	case err != nil && n != 0:
		g.fail("%s of %d bytes returned %d and %v", name, len(p), n, err)
	case l.ended && err == nil && len(p) > 0:
		g.fail("%s after CloseWrite returned %d and no error", name, n)
	case l.ended:
	case bounded && len(p) > g.contract.MaxMessage:
		g.wantIs(name+" above MaxMessage", err, ipcbench.ErrMessageTooLong)
	case bounded && len(p) == 0 && errors.Is(err, ipcbench.ErrEmptyMessage):
	case full && !l.empty():
	case err != nil:
		g.fail("%s of %d bytes: %v", name, len(p), err)
	case bounded && n == len(p):
		l.msgs = append(l.msgs, p)
	case !bounded && (n == len(p) || name == "TryWrite" && n > 0 && n < len(p)):
		l.data = append(l.data, p[:n]...)
		g.stream += int64(n)
	default:
		g.fail("%s of %d bytes returned %d", name, len(p), n)
	}
}

// read reads at the other end of lane i.
func (g *game) read(i int) {
	lane, ch := &g.lanes[i], g.ends[1-i]
	p := make([]byte, []int{1, 3, 100, 10_000, 70_000}[g.random.IntN(5)])
	comes := !lane.empty() || lane.ended
	if comes && g.random.IntN(2) == 0 {
		g.step("Read of %d bytes", len(p))
		n, err := ch.Read(p)
		g.got(lane, "Read", p, n, err)
		return
	}
	g.step("TryRead of %d bytes", len(p))
	try := ch.(ipcbench.NonBlocking).TryRead
	n, err := try(p)
	for limit := time.Now().Add(promptly); comes && errors.Is(err, ipcbench.ErrWouldBlock) && time.Now().Before(limit); {
		runtime.Gosched() // it may still be on its way
		n, err = try(p)
	}
	g.got(lane, "TryRead", p, n, err)
}

// got compares what a Read has returned with the model, and takes it away there.
func (g *game) got(l *lane, name string, p []byte, n int, err error) {
	switch {
	case len(l.msgs) > 0:
		m := l.msgs[0]
		l.msgs = l.msgs[1:]
		fits := min(len(m), len(p))
		if n != fits || !bytes.Equal(m[:fits], p[:n]) {
			g.fail("%s with room for %d returned %d bytes of a message of %d, or others", name, len(p), n, len(m))
		}
		if (fits < len(m)) != errors.Is(err, ipcbench.ErrTruncated) || fits == len(m) && err != nil {
			g.fail("%s of %d bytes of a message of %d: error %v", name, n, len(m), err)
		}
	case len(l.data) > 0:
		if err != nil || n < 1 || n > min(len(p), len(l.data)) || !bytes.Equal(l.data[:n], p[:n]) {
			g.fail("%s with room for %d of %d bytes that are there returned %d, or others, and %v", name, len(p), len(l.data), n, err)
		}
		l.data = l.data[n:]
	case l.ended:
		if n != 0 || err != io.EOF {
			g.fail("%s at the end returned %d and %v", name, n, err)
		}
	case n != 0 || !errors.Is(err, ipcbench.ErrWouldBlock):
		g.fail("%s where nothing is returned %d and %v", name, n, err)
	}
}

func (g *game) closeWrite(i int) {
	if g.lanes[i].ended {
		return
	}
	g.step("CloseWrite")
	err := g.ends[i].CloseWrite()
	if !g.contract.EndOfStream {
		g.wantIs("CloseWrite without an end", err, ipcbench.ErrNoEndOfStream)
		return
	}
	g.check(err, "CloseWrite")
	g.lanes[i].ended = true
}
