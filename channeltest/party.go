//go:build linux

package channeltest

import (
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-e1736cc0/ipcbench/internal/meter"
)

// A measure is what the two parties of a benchmark do. The first one times.
type measure string

const (
	latency    measure = "Latency"
	throughput measure = "Throughput"
	selfLoop   measure = "SelfLoop"
	boundaries measure = "Boundaries"
	messaging  measure = "Messages"
	tail       measure = "Tail"
)

// alone: one party does all.
func (m measure) alone() bool { return m == selfLoop || m == boundaries }

// A report is what a party has seen between the first timed operation and the last.
type report struct {
	Elapsed  time.Duration // of the first party; 0 of the second
	Usage    meter.Usage
	Counts   *meter.Counts // nil: the machine has no counters for us
	Mallocs  uint64        // allocations, whole process
	Bytes    uint64        // allocated
	Received int64         // bytes that arrived
	Messages int64         // and, where there are boundaries, in how many messages
	Tail     meter.Tail
}

// A party runs its half of a measure over a wire.
type party struct {
	wire, back wire   // back: the other end, in a self-loop
	buf        []byte // pages of its own, as in C: 64 KiB of the Go heap cost 1-4 % more to copy
	ack        []byte
	rate       int // of Tail, in round trips a second; 0: one after the other
	stamps     *stamps
	scope      meter.Scope
	counters   *meter.Counters // nil: see above
	began      meter.Usage
	counted    meter.Counts
	heap       runtime.MemStats
	report     report
}

func newParty(w, back wire, size int, scope meter.Scope) (*party, error) {
	buf, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	for i := range buf {
		buf[i] = 'x' // none of its pages is the kernel's shared zero page any more
	}
	p := &party{wire: w, back: back, buf: buf, ack: make([]byte, 1), scope: scope}
	runtime.AddCleanup(p, func(b []byte) { unix.Munmap(b) }, buf)
	return p, nil
}

// warmUp is how many operations come before the clock starts.
func warmUp(n int) int { return min(n/10, 10_000) + 1 }

// run plays one half for n operations. Both parties take their snapshots
// before the last operation of the warm-up: it ends only when both have. After the clock has
// stopped the second party waits for one more, so that nothing it does to
// report falls into the first party's time.
func (p *party) run(m measure, first bool, n int) (report, error) {
	p.report = report{}
	var err error
	if m == tail && first {
		p.stamps = newStamps(n)
	}
	if c, err := p.scope.Counters(); err == nil { // Main has said if there are none
		p.counters = c
		defer c.Close()
	}
	runtime.ReadMemStats(&p.heap)
	mallocs, bytes := p.heap.Mallocs, p.heap.TotalAlloc
	switch {
	case m == selfLoop:
		err = p.runSelf(n, p.loop)
	case m == boundaries:
		err = p.runSelf(n, p.loopThree)
	case m == latency && first:
		err = p.runFirst(n, p.ping)
	case m == tail && first:
		err = p.runFirst(n, p.stamped)
	case m == latency || m == tail:
		err = p.runSecond(n, p.echo)
	case m == messaging && first:
		err = p.runFirst(n, p.produce)
	case m == messaging:
		err = p.runSecond(n, p.consume)
	case first:
		err = p.runFirst(n, p.source)
	default:
		err = p.runSecond(n, p.sink)
	}
	runtime.ReadMemStats(&p.heap)
	p.report.Mallocs, p.report.Bytes = p.heap.Mallocs-mallocs, p.heap.TotalAlloc-bytes
	if m == tail && first && err == nil {
		p.report.Tail, err = p.stamps.tail(p.report.Elapsed)
	}
	return p.report, err
}

// prepare warms up, and takes the snapshot before the last operation of it.
func (p *party) prepare(n int, do func(int) error) error {
	if err := do(warmUp(n)); err != nil {
		return err
	}
	if err := p.begin(); err != nil {
		return err
	}
	return do(1)
}

func (p *party) runFirst(n int, do func(int) error) error {
	if err := p.prepare(n, do); err != nil {
		return err
	}
	start := time.Now()
	err := do(n)
	p.report.Elapsed = time.Since(start)
	if err != nil {
		return err
	}
	if err := p.end(); err != nil {
		return err
	}
	return p.wire.write(p.ack)
}

func (p *party) runSecond(n int, do func(int) error) error {
	if err := p.prepare(n, do); err != nil {
		return err
	}
	p.report.Received, p.report.Messages = 0, 0
	if err := do(n); err != nil {
		return err
	}
	if err := readFull(p.wire, p.ack); err != nil {
		return err
	}
	return p.end()
}

func (p *party) runSelf(n int, do func(int) error) error {
	if err := p.prepare(n, do); err != nil {
		return err
	}
	p.report.Messages = 0
	start := time.Now()
	err := do(n)
	p.report.Elapsed = time.Since(start)
	if err != nil {
		return err
	}
	return p.end()
}

func (p *party) begin() (err error) {
	if p.counters != nil {
		if p.counted, err = p.counters.Read(); err != nil {
			return err
		}
	}
	p.began, err = p.scope.Usage()
	return err
}

func (p *party) end() error {
	ended, err := p.scope.Usage()
	p.report.Usage = ended.Sub(p.began)
	if err != nil || p.counters == nil {
		return err
	}
	counted, err := p.counters.Read()
	counted = counted.Sub(p.counted)
	p.report.Counts = &counted
	return err
}

// ping and echo are n round trips.
func (p *party) ping(n int) error {
	if k, ok := p.wire.(*kernelWire); ok {
		return k.ping(p.buf, n, nil)
	}
	for range n {
		if err := p.wire.write(p.buf); err != nil {
			return err
		}
		if err := readFull(p.wire, p.buf); err != nil {
			return err
		}
	}
	return nil
}

func (p *party) echo(n int) error {
	p.report.Received += int64(n) * int64(len(p.buf))
	if k, ok := p.wire.(*kernelWire); ok {
		return k.echo(p.buf, n)
	}
	for range n {
		if err := readFull(p.wire, p.buf); err != nil {
			return err
		}
		if err := p.wire.write(p.buf); err != nil {
			return err
		}
	}
	return nil
}

// source writes n times and waits for the word that all of it has arrived.
func (p *party) source(n int) error {
	for range n {
		if err := p.wire.write(p.buf); err != nil {
			return err
		}
	}
	return readFull(p.wire, p.ack)
}

// sink counts what arrives, and says so once all of it has.
func (p *party) sink(n int) error {
	want := int64(n) * int64(len(p.buf))
	got, reads := int64(0), int64(0)
	for got < want {
		m, err := p.wire.read(p.buf)
		if err != nil {
			return err
		}
		got += int64(m)
		reads++
	}
	p.report.Received += got
	p.report.Messages += reads
	if got > want || p.wire.messages() && reads != int64(n) {
		return fmt.Errorf("%d bytes arrived in %d messages, %d were sent in %d", got, reads, want, n)
	}
	return p.wire.write(p.ack)
}

// loop writes and reads what it wrote, so that nobody has to wake.
func (p *party) loop(n int) error {
	for range n {
		if err := p.wire.write(p.buf); err != nil {
			return err
		}
		if err := readFull(p.back, p.buf); err != nil {
			return err
		}
	}
	return nil
}

// threeWrites is the longest of the writes of loopThree, in bytes.
const threeWrites = 4

// loopThree writes 3, 2 and 4 bytes, and counts the reads that bring them.
func (p *party) loopThree(n int) error {
	lengths := [...]int{3, 2, threeWrites}
	var in [16]byte
	got := in[:]
	for range n {
		sum := 0
		for _, k := range lengths {
			if err := p.wire.write(p.buf[:k]); err != nil {
				return err
			}
			sum += k
		}
		for i := 0; sum > 0; i++ {
			k, err := p.back.read(got)
			if err != nil {
				return err
			}
			if p.back.messages() && k != lengths[i%len(lengths)] {
				return errWrongSize
			}
			sum -= k
			p.report.Messages++
		}
	}
	return nil
}

func (p *party) produce(n int) error {
	if err := p.wire.(*courier).produce(n); err != nil {
		return err
	}
	return readFull(p.wire, p.ack)
}

func (p *party) consume(n int) error {
	c := p.wire.(*courier)
	if err := c.consume(n); err != nil {
		return err
	}
	p.report.Messages += int64(n)
	p.report.Received += int64(n) * int64(c.size)
	return p.wire.write(p.ack)
}
