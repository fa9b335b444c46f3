//go:build linux

package channeltest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-e1736cc0/ipcbench/internal/meter"
)

// A slowWire answers after as long as its delay says for each round trip, counted from 0.
type slowWire struct {
	trips int
	delay func(trip int) time.Duration
}

func (w *slowWire) write([]byte) error { return nil }
func (w *slowWire) messages() bool     { return false }

func (w *slowWire) read(p []byte) (int, error) {
	for began := time.Now(); time.Since(began) < w.delay(w.trips); {
	}
	w.trips++
	return len(p), nil
}

// tailOf runs n round trips over the wire.
func tailOf(t *testing.T, rate, n int, delay func(trip int) time.Duration) meter.Tail {
	p := &party{wire: &slowWire{delay: delay}, buf: make([]byte, 1), rate: rate, stamps: newStamps(n)}
	began := time.Now()
	require.NoError(t, p.stamped(n))
	got, err := p.stamps.tail(time.Since(began))
	require.NoError(t, err)
	return got
}

func TestTailOfKnownDelays(t *testing.T) {
	const short, long = 50 * time.Microsecond, 5 * time.Millisecond
	got := tailOf(t, 0, 1000, func(trip int) time.Duration {
		if trip%50 == 7 { // two per cent
			return long
		}
		return short
	})
	require.GreaterOrEqual(t, got.P50, short-short/100) // two clocks
	require.Less(t, got.P50, long)
	require.GreaterOrEqual(t, got.P99, long-long/100)
	require.GreaterOrEqual(t, got.P999, got.P99)
	require.GreaterOrEqual(t, got.Max, got.P999)
}

// A stall delays all that is due meanwhile. A closed loop sees it once, an open one as often as it hurt.
func TestStallShowsInOpenLoopOnly(t *testing.T) {
	const stall, n = 100 * time.Millisecond, 2000 // at 10k a second it delays half of them
	once := func(trip int) time.Duration {
		if trip == n/4 {
			return stall
		}
		return 0
	}
	closed, open := tailOf(t, 0, n, once), tailOf(t, 10_000, n, once)
	almost := stall - stall/100 // two clocks
	require.GreaterOrEqual(t, closed.Max, almost)
	require.GreaterOrEqual(t, open.Max, almost)
	require.Less(t, closed.P99, stall/4)
	require.Greater(t, open.P99, stall/4)
	require.Greater(t, open.P50, time.Duration(0))
}

func TestMoreSamplesThanAreKept(t *testing.T) {
	s := newStamps(4)
	s.perSecond, s.ticks = 1e9, 1e9
	for i := range int64(10) {
		s.add(100 - i)
	}
	got, err := s.tail(time.Second)
	require.NoError(t, err)
	require.Equal(t, meter.Tail{P50: 92, P99: 94, P999: 94, Max: 100}, got, "percentiles of the last four, the maximum of all")
	_, err = s.tail(2 * time.Second)
	require.ErrorContains(t, err, "ticks a second", "a counter that does not keep time")
}
