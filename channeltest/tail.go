//go:build linux

package channeltest

import (
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

// stamps are the samples of one run, in nanoseconds.
type stamps struct {
	ring []int64 // its length is a power of two
	n    int
	max  int64
}

// newStamps has room for n samples, and has touched it: no page fault is to come between two stamps.
func newStamps(n int) *stamps {
	s := &stamps{ring: make([]int64, 1<<bits.Len(uint(min(n, maxSamples)-1)))}
	for i := range s.ring {
		s.ring[i] = -1
	}
	return s
}

func (s *stamps) add(d int64) {
	s.ring[s.n&(len(s.ring)-1)] = d
	s.max = max(s.max, d)
	s.n++
}

func (s *stamps) tail() meter.Tail {
	t := meter.NewTail(s.ring[:min(s.n, len(s.ring))])
	t.Max = time.Duration(s.max)
	return t
}

// stamped is n round trips with one look at the clock each, and those that it takes to wait for the next.
func (p *party) stamped(n int) error {
	s := p.stamps
	s.n, s.max = 0, 0
	began := time.Now()
	var last int64
	for i := range n {
		due := last
		if p.rate > 0 {
			due = int64(i+1) * int64(time.Second) / int64(p.rate)
			for last < due {
				last = int64(time.Since(began))
			}
		}
		if err := p.ping(1); err != nil {
			return err
		}
		last = int64(time.Since(began))
		s.add(last - due)
	}
	return nil
}
