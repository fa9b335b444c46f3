//go:build linux

package unixsock

import (
	"bufio"
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
)

// BenchmarkPassFile measures round trips in which files go one way over a
// stream: a party passes them with a byte; the other one receives them, closes them and answers with a byte.
// As threads the parties share one table of descriptors, as processes they do not.
func BenchmarkPassFile(b *testing.B) {
	for _, files := range []int{1, 16} {
		for _, row := range []struct {
			peer string
			wait ipcbench.Wait
			run  func(*testing.B, passing) (time.Duration, int)
		}{
			{"thread", ipcbench.Block, passAmongThreads},
			{"process", ipcbench.Block, passAmongProcesses},
			{"process", ipcbench.Netpoll, passAmongProcesses},
		} {
			b.Run(fmt.Sprintf("files=%d/cpu=same/peer=%s/wait=%v", files, row.peer, row.wait), func(b *testing.B) {
				p := passing{trips: b.N, files: files, wait: row.wait}
				took, closed := row.run(b, p)
				require.Equal(b, (p.warmUp()+p.trips)*files, closed, "files that arrived")
				b.ReportMetric(float64(took)/float64(b.N), "ns/op")
			})
		}
	}
}

// A passing is a number of round trips, each with a number of files.
type passing struct {
	trips, files int
	wait         ipcbench.Wait
}

// warmUp is how many round trips come before those that are timed.
func (p passing) warmUp() int { return p.trips/10 + 1 }

func (p passing) give(c *Channel) (took time.Duration, err error) {
	var files []*os.File
	for range p.files {
		f, err := os.Open(os.DevNull)
		if err != nil {
			return 0, err
		}
		defer f.Close()
		files = append(files, f)
	}
	message := []byte("x")
	start := time.Now()
	for i := -p.warmUp(); i < p.trips; i++ {
		if i == 0 {
			start = time.Now()
		}
		if err := c.SendFiles(message, files...); err != nil {
			return 0, err
		}
		if _, err := c.Read(message); err != nil {
			return 0, err
		}
	}
	return time.Since(start), nil
}

func (p passing) take(c *Channel) (closed int, err error) {
	message := make([]byte, 1)
	for range p.warmUp() + p.trips {
		_, files, err := c.RecvFiles(message, p.files)
		if err != nil {
			return closed, err
		}
		for _, f := range files {
			if err := f.Close(); err != nil {
				return closed, err
			}
			closed++
		}
		if _, err := c.Write(message); err != nil {
			return closed, err
		}
	}
	return closed, nil
}

// within ends what hangs: by far more time than the round trips can take.
func (p passing) within(end func()) (done func() bool) {
	return time.AfterFunc(10*time.Second+time.Duration(p.trips)*time.Millisecond, end).Stop
}

// passAmongThreads has two locked threads of this process on one CPU do the
// round trips. The runtime's monitor, awake every 20 µs while they block, is to run elsewhere.
func passAmongThreads(b *testing.B, p passing) (took time.Duration, closed int) {
	allowed, err := cpu.Allowed()
	require.NoError(b, err)
	defer apart(b, allowed[0])()
	procs := runtime.GOMAXPROCS(4) // or the monitor would have parties wait for its return
	defer runtime.GOMAXPROCS(procs)
	x, y, err := Pair(Stream, Config{Wait: p.wait})
	require.NoError(b, err)
	defer p.within(func() { x.Close(); y.Close() })()
	ended := make(chan error, 2)
	go onThread(allowed[0], y, ended, func() (err error) { closed, err = p.take(y); return err })
	go onThread(allowed[0], x, ended, func() (err error) { took, err = p.give(x); return err })
	require.NoError(b, errors.Join(<-ended, <-ended))
	return took, closed
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
func passAmongProcesses(b *testing.B, p passing) (took time.Duration, closed int) {
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
	_, err = fmt.Sscan(giver.says(b), (*int64)(&took))
	require.NoError(b, err)
	_, err = fmt.Sscan(taker.says(b), &closed)
	require.NoError(b, err)
	return took, closed
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

func giveFiles(t *testing.T, lines *bufio.Scanner) {
	p, c := party(t, lines)
	took, err := p.give(c)
	require.NoError(t, errors.Join(err, c.Close()))
	say(took.Nanoseconds())
}

func takeFiles(t *testing.T, lines *bufio.Scanner) {
	p, c := party(t, lines)
	closed, err := p.take(c)
	require.NoError(t, errors.Join(err, c.Close()))
	say(closed)
}
