//go:build linux

package channeltest

import (
	"net"
	"os"
	"os/exec"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-e1736cc0/ipcbench"
	"github.com/seed-e1736cc0/ipcbench/internal/cpu"
)

var here = cpu.Seat{Place: cpu.Same}

// inTime fails the test if f does not return within the limit.
func inTime(t *testing.T, limit time.Duration, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(limit):
		require.FailNow(t, "no end", "within %v", limit)
	}
}

func seat(t *testing.T) cpu.Seat {
	seats, _, err := cpu.Here()
	require.NoError(t, err)
	return seats[0]
}

func open(t *testing.T, r row) session {
	r.seat = seat(t)
	s, err := r.open()
	require.NoError(t, err)
	t.Cleanup(func() { s.close() })
	return s
}

func TestEveryWayMoves(t *testing.T) {
	for _, mech := range []Mechanism{pipes, dgrams} {
		for m, size := range map[measure]int{latency: 1, throughput: 4096, selfLoop: 64} {
			ways := everyWay
			if m == selfLoop {
				ways = selfWays(everyWay)
			}
			for _, w := range ways {
				r := row{measure: m, mech: mech, size: size, seat: here, way: w}
				t.Run(string(m)+"/"+r.name(), func(t *testing.T) {
					s := open(t, r)
					inTime(t, 20*time.Second, func() {
						for _, n := range []int{1, 500} {
							reports, err := s.run(n, 10*time.Second)
							require.NoError(t, err)
							require.Positive(t, reports[0].Elapsed)
							if m == throughput {
								require.Equal(t, int64(n*size), reports[1].Received)
							}
						}
					})
					require.NoError(t, s.close())
				})
			}
		}
	}
}

func TestKilledPartyEndsTheRun(t *testing.T) {
	for _, mech := range []Mechanism{pipes, dgrams} { // a datagram's peer is not told of the death
		for victim := range 2 {
			t.Run(mech.Name+"/party "+string(rune('1'+victim)), func(t *testing.T) {
				s := open(t, row{measure: latency, mech: mech, size: 1, seat: here, way: way{asProcess, ipcbench.Block, true}}).(*processes)
				_, err := s.run(100, 10*time.Second)
				require.NoError(t, err)
				inTime(t, 5*time.Second, func() {
					failed := make(chan error, 1)
					go func() {
						_, err := s.run(1<<30, time.Hour)
						failed <- err
					}()
					s.peers[victim].Kill()
					require.ErrorContains(t, <-failed, "signal: killed")
				})
			})
		}
	}
}

func TestLimitEndsTheRun(t *testing.T) {
	t.Run("processes", func(t *testing.T) {
		s := open(t, row{measure: latency, mech: pipes, size: 1, seat: here, way: way{asProcess, ipcbench.Block, false}})
		inTime(t, 5*time.Second, func() {
			_, err := s.run(1<<30, 100*time.Millisecond)
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		})
	})
	t.Run("threads", func(t *testing.T) {
		s := open(t, row{measure: latency, mech: pipes, size: 1, seat: here, way: way{asThread, ipcbench.Block, false}})
		inTime(t, 5*time.Second, func() {
			_, err := s.run(1<<30, 100*time.Millisecond)
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		})
	})
	t.Run("a loop that cannot hold its own byte", func(t *testing.T) {
		unbuffered := Mechanism{Name: "net.Pipe", Pair: func(ipcbench.Wait) (a, b ipcbench.Channel, err error) {
			x, y := net.Pipe()
			return netChannel{x}, netChannel{y}, nil
		}}
		s := open(t, row{measure: selfLoop, mech: unbuffered, size: 1, seat: here, way: way{asThread, ipcbench.Block, false}})
		inTime(t, 5*time.Second, func() {
			_, err := s.run(10, 100*time.Millisecond)
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		})
	})
}

// netChannel is the least that makes a net.Conn a Channel.
type netChannel struct{ net.Conn }

func (netChannel) CloseWrite() error { return ipcbench.ErrNoEndOfStream }
func (netChannel) Contract() ipcbench.Contract {
	return ipcbench.Contract{Mechanism: "net.Pipe", EndOfStream: true}
}

func TestLossFails(t *testing.T) {
	s := open(t, row{measure: throughput, mech: lossy, size: 64, seat: here, way: way{asProcess, ipcbench.Block, false}})
	inTime(t, 10*time.Second, func() {
		_, err := s.run(1000, time.Second) // the receiver waits for what it has hidden
		require.Error(t, err)
	})
}

// A party that is killed fails its benchmark with its exit status, and the run
// goes on. What testing prints is looked at from outside, in a process of its own.
func TestBenchmarkGoesOn(t *testing.T) {
	if os.Getenv("IPCBENCH_TEST_INSIDE") != "" {
		testing.RunBenchmarks(regexp.MatchString, []testing.InternalBenchmark{{
			Name: "BenchmarkDoomed",
			F:    func(b *testing.B) { Latency(b, doomed, pipes) },
		}})
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestBenchmarkGoesOn$", "-test.bench=^BenchmarkDoomed$", "-test.short", "-test.benchtime=2000x")
	cmd.Env = append(os.Environ(), "IPCBENCH_TEST_INSIDE=1")
	var out []byte
	inTime(t, 30*time.Second, func() { out, _ = cmd.CombinedOutput() })
	text := string(out)
	require.Contains(t, text, "--- FAIL: BenchmarkDoomed/mech=doomed/size=1/cpu=same/peer=process/wait=netpoll")
	require.Contains(t, text, "signal: killed")
	require.Regexp(t, `(?m)^BenchmarkDoomed/mech=pipe/size=1/cpu=same/peer=process/wait=kernel\S*\s+\d+\s+[\d.]+ ns/op`, text)
	require.NotContains(t, text, "leaked")
	require.NotContains(t, text, "panic")
}

// A spendthrift allocates as many times as it says, in each Write.
type spendthrift struct {
	ipcbench.Channel
	times  int
	wasted []byte
}

func (w *spendthrift) Write(p []byte) (int, error) {
	for range w.times {
		w.wasted = make([]byte, 1)
	}
	return w.Channel.Write(p)
}

// What both parties allocate is counted once.
func TestAllocationsAreCounted(t *testing.T) {
	mech := pipes
	mech.Pair = func(w ipcbench.Wait) (a, b ipcbench.Channel, err error) {
		a, b, err = pipes.Pair(w)
		return &spendthrift{Channel: a, times: 3}, &spendthrift{Channel: b, times: 2}, err
	}
	for _, w := range []way{threadBlock, goroutineNetpoll} {
		s := open(t, row{measure: latency, mech: mech, size: 1, seat: here, way: w})
		const n = 2000
		reports, err := s.run(n, 10*time.Second)
		require.NoError(t, err)
		perOp := float64(reports[0].Mallocs+reports[1].Mallocs) / n
		require.InDelta(t, 5, perOp, 1, "and a tenth for the warm-up")
		require.NoError(t, s.close())
	}
}
