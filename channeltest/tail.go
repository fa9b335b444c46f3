//go:build linux

package channeltest

import (
	"fmt"
	"math"
	"math/bits"
	"testing"
	"time"

	"github.com/seed-e1736cc0/ipcbench/internal/meter"
)

// Tail measures how round trips of one byte are distributed: p50-ns/op,
// p99-ns/op, p99.9-ns/op and max-ns/op, exact, from a sample of every round trip (of the last
// 16 million where there are more; the maximum is of all).
//
// With load=closed a round trip begins when the one before has ended, as in Latency: what a
// stall delays is not counted, because it is not sent. With load=1k, 10k or 50k a round trip is due that many times a second, and is
// timed from the moment at which it was due: a stall counts against every round trip that it delayed.
// The first party spins until the next one is due, so that its own waking up is not in the figure.
func Tail(b *testing.B, mechs ...Mechanism) { runRows(b, tail, mechs) }

// maxSamples is how many are kept, 8 bytes each.
const maxSamples = 1 << 24

// stamps are the samples of one run, in ticks.
type stamps struct {
	ring      []int64 // its length is a power of two
	n         int
	max       int64
	perSecond float64 // ticks, as calibrated before the run
	ticks     int64   // that the run took
}

// newStamps has room for n samples, and has touched it: no page fault is to come between two stamps.
func newStamps(n int) *stamps {
	s := &stamps{ring: make([]int64, 1<<bits.Len(uint(min(n, maxSamples)-1)))}
	for i := range s.ring {
		s.ring[i] = -1
	}
	s.calibrate()
	return s
}

// calibrate compares the counter with the clock for long enough that the error of reading both is in the millionths.
func (s *stamps) calibrate() {
	const enough = 20 * time.Millisecond
	began, from := time.Now(), ticks()
	took := time.Duration(0)
	for took < enough {
		took = time.Since(began)
	}
	s.perSecond = float64(ticks()-from) / took.Seconds()
}

func (s *stamps) add(d int64) {
	s.ring[s.n&(len(s.ring)-1)] = d
	s.max = max(s.max, d)
	s.n++
}

// tail is in nanoseconds, by the speed that the counter had in the run itself.
func (s *stamps) tail(elapsed time.Duration) (meter.Tail, error) {
	speed := float64(s.ticks) / elapsed.Seconds()
	if math.Abs(speed/s.perSecond-1) > 0.01 && elapsed > 10*time.Millisecond {
		return meter.Tail{}, fmt.Errorf("the CPU's counter ran at %.0f and then at %.0f ticks a second", s.perSecond, speed)
	}
	kept := s.ring[:min(s.n, len(s.ring))]
	for i, t := range kept {
		kept[i] = s.nanoseconds(t)
	}
	t := meter.NewTail(kept)
	t.Max = time.Duration(s.nanoseconds(s.max))
	return t, nil
}

func (s *stamps) nanoseconds(ticks int64) int64 {
	return int64(math.Round(float64(ticks) / s.perSecond * 1e9))
}

// stamped is n round trips, each with a look at the counter at its end.
func (p *party) stamped(n int) error {
	s := p.stamps
	s.n, s.max = 0, 0
	k, bare := p.wire.(*kernelWire)
	began := ticks()
	var err error
	switch {
	case p.rate > 0:
		err = p.stampedAt(s.perSecond/float64(p.rate), n)
	case bare:
		err = s.bare(k, p.buf, n)
	default:
		for last := began; n > 0 && err == nil; n-- {
			err = p.ping(1)
			at := ticks()
			s.add(at - last)
			last = at
		}
	}
	s.ticks = ticks() - began
	return err
}

// bare has the loop of machine code keep the stamps, and turns them into differences afterwards.
func (s *stamps) bare(k *kernelWire, p []byte, n int) error {
	for n > 0 {
		kept := s.ring[:min(n, len(s.ring))]
		last := ticks()
		if err := k.ping(p, len(kept), kept); err != nil {
			return err
		}
		for _, at := range kept {
			s.add(at - last) // over the stamp itself, or one before
			last = at
		}
		n -= len(kept)
	}
	return nil
}

// stampedAt starts a round trip each interval, in ticks, or as soon after that as the one before has ended.
func (p *party) stampedAt(interval float64, n int) error {
	began := ticks()
	now := began
	for i := range n {
		due := began + int64(float64(i+1)*interval)
		for now < due {
			now = ticks()
		}
		if err := p.ping(1); err != nil {
			return err
		}
		now = ticks()
		p.stamps.add(now - due)
	}
	return nil
}
