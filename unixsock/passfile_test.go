//go:build linux

package unixsock

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-e1736cc0/ipcbench"
	"github.com/seed-e1736cc0/ipcbench/internal/cpu"
	"github.com/seed-e1736cc0/ipcbench/internal/meter"
)

// BenchmarkPassFile measures round trips in which files go one way over a
// stream: a party passes them with a byte; the other one receives them, closes them and answers with a byte.
// As threads the parties share one table of descriptors, as processes they do not.
func BenchmarkPassFile(b *testing.B) {
	for _, files := range []int{1, 16} {
		for _, row := range []struct {
			peer string
			wait ipcbench.Wait
			run  func(*testing.B, passing) (gave, took passed)
		}{
			{"thread", ipcbench.Block, passAmongThreads},
			{"process", ipcbench.Block, passAmongProcesses},
			{"process", ipcbench.Netpoll, passAmongProcesses},
		} {
			b.Run(fmt.Sprintf("files=%d/cpu=same/peer=%s/wait=%v", files, row.peer, row.wait), func(b *testing.B) {
				p := passing{trips: b.N, files: files, wait: row.wait}
				gave, took := row.run(b, p)
				require.Equal(b, (p.warmUp()+p.trips)*files, took.Closed, "files that arrived")
				n, u := float64(b.N), gave.Usage.Add(took.Usage)
				b.ReportMetric(float64(gave.Took)/n, "ns/op")
				b.ReportMetric(float64(u.User)/n, "user-ns/op")
				b.ReportMetric(float64(u.Sys)/n, "sys-ns/op")
				b.ReportMetric(float64(u.Voluntary)/n, "vcsw/op")
				b.ReportMetric(float64(u.Involuntary)/n, "ivcsw/op")
			})
		}
	}
}

// A passing is a number of round trips, each with a number of files.
type passing struct {
	trips, files int
	wait         ipcbench.Wait
}

// A passed is what a party has to report.
type passed struct {
	Took   time.Duration
	Closed int // files, those of the warm-up included
	Usage  meter.Usage
}

// warmUp is how many round trips come before those that are timed.
func (p passing) warmUp() int { return p.trips/10 + 1 }

func (p passing) give(c *Channel, scope meter.Scope) (r passed, err error) {
	var files []*os.File
	for range p.files {
		f, err := os.Open(os.DevNull)
		if err != nil {
			return r, err
		}
		defer f.Close()
		files = append(files, f)
	}
	message := []byte("x")
	return p.repeat(scope, func(*passed) error {
		if err := c.SendFiles(message, files...); err != nil {
			return err
		}
		_, err := c.Read(message)
		return err
	})
}

func (p passing) take(c *Channel, scope meter.Scope) (passed, error) {
	message := make([]byte, 1)
	return p.repeat(scope, func(r *passed) error {
		_, files, err := c.RecvFiles(message, p.files)
		if err != nil {
			return err
		}
		for _, f := range files {
			if err := f.Close(); err != nil {
				return err
			}
			r.Closed++
		}
		_, err = c.Write(message)
		return err
	})
}

// repeat does a party's part of all round trips, and meters those behind the warm-up.
func (p passing) repeat(scope meter.Scope, trip func(*passed) error) (r passed, err error) {
	var start time.Time
	var before meter.Usage
	for i := -p.warmUp(); i < p.trips; i++ {
		if i == 0 {
			if before, err = scope.Usage(); err != nil {
				return r, err
			}
			start = time.Now()
		}
		if err := trip(&r); err != nil {
			return r, err
		}
	}
	r.Took = time.Since(start)
	after, err := scope.Usage()
	r.Usage = after.Sub(before)
	return r, err
}

// within ends what hangs: by far more time than the round trips can take.
func (p passing) within(end func()) (done func() bool) {
	return time.AfterFunc(10*time.Second+time.Duration(p.trips)*time.Millisecond, end).Stop
}

// passAmongThreads has two locked threads of this process on one CPU do the
// round trips. The runtime's monitor, awake every 20 µs while they block, is to run elsewhere.
func passAmongThreads(b *testing.B, p passing) (gave, took passed) {
	allowed, err := cpu.Allowed()
	require.NoError(b, err)
	defer apart(b, allowed[0])()
	procs := runtime.GOMAXPROCS(4) // or the monitor would have parties wait for its return
	defer runtime.GOMAXPROCS(procs)
	x, y, err := Pair(Stream, Config{Wait: p.wait})
	require.NoError(b, err)
	defer p.within(func() { x.Close(); y.Close() })()
	ended := make(chan error, 2)
	go onThread(allowed[0], y, ended, func() (err error) { took, err = p.take(y, meter.OfThread); return err })
	go onThread(allowed[0], x, ended, func() (err error) { gave, err = p.give(x, meter.OfThread); return err })
	require.NoError(b, errors.Join(<-ended, <-ended))
	return gave, took
}

// apart keeps this process, with the runtime's monitor, off the CPU that a party is going to have for itself.
func apart(t testing.TB, place int) (together func()) {
	allowed, err := cpu.Allowed()
	require.NoError(t, err)
	others := slices.DeleteFunc(allowed, func(c int) bool { return c == place })
	if len(others) == 0 {
		return func() {}
	}
	restore, err := cpu.PinProcess(others)
	require.NoError(t, err)
	return func() { require.NoError(t, restore()) }
}

// onThread runs f on a thread that is pinned meanwhile, and closes c, which ends the other party too.
func onThread(place int, c *Channel, ended chan<- error, f func() error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := cpu.PinThread(place)
	if err == nil {
		err = f()
	}
	ended <- errors.Join(err, c.Close(), cpu.UnpinThread())
}

// passAmongProcesses has two children do the round trips; this process only looks on.
func passAmongProcesses(b *testing.B, p passing) (gave, took passed) {
	allowed, err := cpu.Allowed()
	require.NoError(b, err)
	x, y, err := Pair(Stream, Config{})
	require.NoError(b, err)
	begin := func(role string, c *Channel) *child {
		files, err := c.Files()
		require.NoError(b, err)
		party := start(b, role, files...)
		require.NoError(b, errors.Join(files[0].Close(), c.Close()))
		party.tell(b, fmt.Sprint(p.trips, p.files, int(p.wait), allowed[0]))
		return party
	}
	taker, giver := begin("file-taker", y), begin("file-giver", x)
	defer p.within(func() { taker.Process.Kill(); giver.Process.Kill() })()
	require.NoError(b, json.Unmarshal([]byte(giver.says(b)), &gave))
	require.NoError(b, json.Unmarshal([]byte(taker.says(b)), &took))
	return gave, took
}

// party is a child's part: its orders and its end.
func party(t *testing.T, lines *bufio.Scanner) (p passing, c *Channel) {
	require.True(t, lines.Scan())
	var place int
	_, err := fmt.Sscan(lines.Text(), &p.trips, &p.files, (*int)(&p.wait), &place)
	require.NoError(t, err)
	c, err = FromFiles([]*os.File{os.NewFile(firstFile, "")}, Config{Wait: p.wait})
	require.NoError(t, err)
	if p.wait == ipcbench.Block {
		runtime.LockOSThread() // until the process ends
		t.Cleanup(apart(t, place))
		require.NoError(t, cpu.PinThread(place))
		t.Cleanup(func() { require.NoError(t, cpu.UnpinThread()) })
		return p, c
	}
	restore, err := cpu.PinProcess([]int{place})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, restore()) })
	return p, c
}

func giveFiles(t *testing.T, lines *bufio.Scanner) { play(t, lines, passing.give) }
func takeFiles(t *testing.T, lines *bufio.Scanner) { play(t, lines, passing.take) }

func play(t *testing.T, lines *bufio.Scanner, part func(passing, *Channel, meter.Scope) (passed, error)) {
	p, c := party(t, lines)
	r, err := part(p, c, meter.OfProcess)
	require.NoError(t, errors.Join(err, c.Close()))
	report, err := json.Marshal(r)
	require.NoError(t, err)
	say(string(report))
}
