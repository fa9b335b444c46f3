//go:build linux

package channeltest

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/seed-e1736cc0/ipcbench"
	"github.com/seed-e1736cc0/ipcbench/internal/cpu"
)

// Where the parties live: peer= in a row's name.
const (
	asProcess   = "process"
	asThread    = "thread"
	asGoroutine = "goroutine"
)

// A row is one line of results: everything that its name says.
type row struct {
	measure measure
	mech    Mechanism
	size    int
	seat    cpu.Seat
	way
	batch  int  // of messages
	framed bool // messages, on a stream
	rate   int  // of Tail, in round trips a second; 0: load=closed
}

func (r row) name() string {
	parts := []string{"mech=" + r.mech.Name}
	if r.framed {
		parts[0] += "+u32"
	}
	if r.measure != boundaries {
		parts = append(parts, "size="+sizeName(r.size))
	}
	if !r.measure.alone() {
		parts = append(parts, "cpu="+string(r.seat.Place), "peer="+r.peer)
	}
	parts = append(parts, "wait="+r.way.waitName())
	switch {
	case r.measure == throughput && r.mech.Key != "":
		parts = append(parts, r.mech.Key)
	case r.measure == messaging:
		parts = append(parts, fmt.Sprintf("batch=%d", r.batch))
	case r.measure == tail && r.rate > 0:
		parts = append(parts, fmt.Sprintf("load=%dk", r.rate/1000))
	case r.measure == tail:
		parts = append(parts, "load=closed")
	}
	return strings.Join(parts, "/")
}

// sizeName writes 64, 4KiB, 1MiB, which benchstat sorts as numbers.
func sizeName(n int) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%dMiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%dKiB", n>>10)
	}
	return fmt.Sprint(n)
}

// cpu is the place of a party.
func (r row) cpu(party int) int {
	if party == 0 {
		return r.seat.First
	}
	return r.seat.Second
}

// environment of a child that is a party. The runtime preempts a thread that it
// sees running for 10 ms; one in bare system calls would look so, and be interrupted for nothing.
func (r row) environment() []string {
	if r.kernel {
		return []string{"GODEBUG=asyncpreemptoff=1"}
	}
	return nil
}

// A way is a peer and a wait.
type way struct {
	peer   string
	wait   ipcbench.Wait
	kernel bool // bare system calls
}

func (w way) waitName() string {
	switch {
	case w == processEpoll:
		return "epoll"
	case w.kernel:
		return "kernel"
	}
	return w.wait.String()
}

var (
	processKernel    = way{asProcess, ipcbench.Block, true}
	processBlock     = way{asProcess, ipcbench.Block, false}
	processNetpoll   = way{asProcess, ipcbench.Netpoll, false}
	processSpin      = way{asProcess, ipcbench.Spin, false}
	processAdaptive  = way{asProcess, ipcbench.Adaptive, false}
	threadBlock      = way{asThread, ipcbench.Block, false}
	threadSpin       = way{asThread, ipcbench.Spin, false}
	goroutineNetpoll = way{asGoroutine, ipcbench.Netpoll, false}
	// For Messages alone: non-blocking descriptors, which Spin leaves out of the runtime's poller.
	processEpoll = way{asProcess, ipcbench.Spin, true}

	everyWay  = []way{processKernel, processBlock, processNetpoll, processSpin, processAdaptive, threadBlock, threadSpin, goroutineNetpoll}
	everySize = map[measure][]int{
		latency:    {1, 64, 4 << 10},
		throughput: {64, 4 << 10, 64 << 10, 1 << 20},
		selfLoop:   {1, 4 << 10},
		boundaries: {threeWrites},
		messaging:  {8, 64, 512},
		tail:       {1},
	}
	mainSize = map[measure]int{latency: 1, throughput: 64 << 10, selfLoop: 1, boundaries: threeWrites, messaging: 8, tail: 1}
)

// A matrix says how much of all possible rows is run.
type matrix int

const (
	standard matrix = iota
	short           // -short
	full            // IPCBENCH_FULL=1
)

func chosenMatrix() matrix {
	switch {
	case os.Getenv("IPCBENCH_FULL") == "1":
		return full
	case testing.Short():
		return short
	}
	return standard
}

// A plan is the rows of one benchmark, and in words what the machine or a mechanism cannot give.
type plan struct {
	rows    []row
	leftOut []string
}

func newPlan(m measure, mechs []Mechanism) (*plan, error) {
	seats, lacking, err := cpu.Here()
	if err != nil {
		return nil, err
	}
	p := &plan{}
	explainPlaces.Do(func() { p.leftOut = lacking })
	for _, mech := range mechs {
		o, err := p.offers(m, mech)
		if err != nil {
			p.leftOut = append(p.leftOut, fmt.Sprintf("mech=%s: %v", mech.Name, err))
			continue
		}
		for _, r := range candidates(m, mech, chosenMatrix(), seats, o.sizes) {
			r.framed = m == messaging && !o.boundaries
			if o.ways[r.way] && r.batch <= o.batch {
				p.rows = append(p.rows, r)
			}
		}
	}
	return p, nil
}

// candidates are the rows that a matrix asks for, whether or not the mechanism has the way.
func candidates(m measure, mech Mechanism, x matrix, seats []cpu.Seat, sizes []int) []row {
	c := choice{measure: m, mech: mech, sizes: sizes, top: largest(sizes, mainSize[m]), same: seats[0], near: seats[0]}
	if s, ok := cpu.Nearest(seats); ok {
		c.near = s
	}
	switch {
	case m == boundaries:
		c.chooseBoundaries(x)
	case m == messaging:
		c.chooseMessages(x, seats)
	case m == tail:
		c.chooseTail(x, seats)
	case m == selfLoop:
		c.chooseSelfLoop(x)
	default:
		c.chooseMoved(x, seats)
	}
	return c.rows
}

// A choice collects rows of one measure and mechanism.
type choice struct {
	measure    measure
	mech       Mechanism
	sizes      []int
	top        int // the main size
	same, near cpu.Seat
	rows       []row
}

func (c *choice) add(seat cpu.Seat, sizes []int, ways ...way) {
	for _, size := range sizes {
		for _, w := range ways {
			c.rows = append(c.rows, row{measure: c.measure, mech: c.mech, size: size, seat: seat, way: w, batch: 1})
		}
	}
}

// chooseMoved is for Latency and Throughput.
func (c *choice) chooseMoved(x matrix, seats []cpu.Seat) {
	top := []int{c.top}
	switch {
	case x == full:
		for _, seat := range seats {
			c.add(seat, c.sizes, placed(everyWay, seat)...)
		}
		return
	case x == short:
		c.add(c.same, top, processKernel)
		if !c.mech.Variant && c.measure == latency {
			c.add(c.same, top, processNetpoll)
		}
		return
	}
	c.add(c.same, top, processKernel, threadBlock, processNetpoll)
	if c.measure == latency {
		c.add(c.same, top, goroutineNetpoll)
		c.add(c.near, top, processSpin, processAdaptive)
	}
	if c.mech.Variant {
		return
	}
	c.add(c.same, others(c.sizes, c.top), processKernel)
	if c.near != c.same {
		c.add(c.near, top, processKernel, threadBlock, processNetpoll)
	}
}

func (c *choice) chooseSelfLoop(x matrix) {
	top := []int{c.top}
	switch {
	case x == full:
		c.add(c.same, c.sizes, selfWays(everyWay)...)
	case x == short && c.mech.Variant:
	case x == short:
		c.add(c.same, top, processKernel)
	default:
		c.add(c.same, top, processKernel, threadBlock)
		if !c.mech.Variant {
			c.add(c.same, top, goroutineNetpoll)
		}
	}
}

func (c *choice) chooseBoundaries(x matrix) {
	c.add(c.same, []int{c.top}, threadBlock)
	if x == full {
		c.add(c.same, []int{c.top}, threadSpin, goroutineNetpoll)
	}
}

func (c *choice) chooseMessages(x matrix, seats []cpu.Seat) {
	both := func(seat cpu.Seat, sizes []int) {
		c.add(seat, sizes, processEpoll)
		for _, size := range sizes {
			c.add(seat, []int{size}, processEpoll)
			c.rows[len(c.rows)-1].batch = maxBatch
		}
	}
	switch {
	case x == full:
		for _, seat := range seats {
			both(seat, c.sizes)
		}
	case x == short:
		c.add(c.same, []int{c.top}, processEpoll)
	default:
		both(c.same, []int{c.top})
		if c.mech.Variant {
			return
		}
		c.add(c.same, others(c.sizes, c.top), processEpoll)
		if c.near != c.same {
			both(c.near, []int{c.top})
		}
	}
}

// selfWays: a loop has one party, so that of each wait one way will do.
func selfWays(ways []way) (self []way) {
	for _, w := range ways {
		if w.kernel || w.peer == asThread || w == goroutineNetpoll {
			self = append(self, w)
		}
	}
	return self
}

// placed leaves out goroutines on two CPUs, which are nowhere: one thread would run both.
func placed(ways []way, seat cpu.Seat) (fit []way) {
	for _, w := range ways {
		if w.peer != asGoroutine || seat.Place == cpu.Same {
			fit = append(fit, w)
		}
	}
	return fit
}

// largest is the greatest of the sizes that is at most limit.
func largest(sizes []int, limit int) int {
	best := sizes[0]
	for _, s := range sizes {
		if s <= limit {
			best = s
		}
	}
	return best
}

func others(sizes []int, but int) (rest []int) {
	for _, s := range sizes {
		if s != but {
			rest = append(rest, s)
		}
	}
	return rest
}

func (c *choice) chooseTail(x matrix, seats []cpu.Seat) {
	size := []int{c.top}
	switch {
	case x == full:
		for _, seat := range seats {
			for _, rate := range []int{0, 1000, 10_000, 50_000} {
				from := len(c.rows)
				c.add(seat, size, placed(everyWay, seat)...)
				for i := range c.rows[from:] {
					c.rows[from+i].rate = rate
				}
			}
		}
	case x == short && c.mech.Variant:
	case x == short:
		c.add(c.same, size, processKernel)
	default:
		c.add(c.same, size, processKernel)
		if c.mech.Variant {
			return
		}
		c.add(c.same, size, processNetpoll, processKernel)
		c.rows[len(c.rows)-1].rate = 10_000
		if c.near != c.same {
			c.add(c.near, size, processKernel)
		}
	}
}

// An offer is what a mechanism has: the sizes that its messages may have, the
// ways in which it can be measured, and how many messages can be gathered.
type offer struct {
	sizes      []int
	ways       map[way]bool
	boundaries bool
	batch      int
}

// offers finds out what a mechanism has. What it lacks is added to leftOut by name.
func (p *plan) offers(m measure, mech Mechanism) (*offer, error) {
	o := &offer{ways: map[way]bool{}, batch: maxBatch}
	var contract *ipcbench.Contract
	exports := false
	lacks := map[ipcbench.Wait]error{}
	for _, w := range ipcbench.Waits() {
		a, b, err := mech.Pair(w)
		if err != nil {
			lacks[w] = err
			continue
		}
		c := a.Contract()
		contract = &c
		_, exports = a.(ipcbench.Exporter)
		if c.Boundaries && !isSocket(a) {
			o.batch = 1 // no sendmmsg
		}
		a.Close()
		b.Close()
	}
	if contract == nil {
		return nil, lacks[ipcbench.Netpoll]
	}
	o.boundaries = contract.Boundaries
	for _, s := range everySize[m] {
		if contract.MaxMessage == 0 || s <= contract.MaxMessage {
			o.sizes = append(o.sizes, s)
		}
	}
	if len(o.sizes) == 0 {
		return nil, fmt.Errorf("its longest message has %d bytes: %w", contract.MaxMessage, errors.ErrUnsupported)
	}
	_, known := registered[mech.Name]
	outside := exports && known && mech.Import != nil
	if !outside && m != boundaries {
		p.leftOut = append(p.leftOut, fmt.Sprintf("mech=%s/peer=process: needs Mechanism.Import, an ipcbench.Exporter, and the mechanism given to Main", mech.Name))
	}
	for _, w := range append(everyWay, processEpoll) {
		o.ways[w] = lacks[w.wait] == nil && (outside || w.peer != asProcess)
	}
	for _, w := range ipcbench.Waits() {
		if err := lacks[w]; err != nil {
			p.leftOut = append(p.leftOut, fmt.Sprintf("mech=%s/wait=%v: %v", mech.Name, w, err))
		}
	}
	if m == messaging && o.batch == 1 {
		p.leftOut = append(p.leftOut, fmt.Sprintf("mech=%s/batch=%d: sendmmsg(2) is for sockets", mech.Name, maxBatch))
	}
	return o, nil
}

func isSocket(ch ipcbench.Channel) bool {
	d, ok := ch.(ipcbench.Descriptors)
	if !ok {
		return false
	}
	_, err := unix.GetsockoptInt(d.WriteFD(), unix.SOL_SOCKET, unix.SO_TYPE)
	return err == nil
}

// explainPlaces: what the machine lacks is the same in all benchmarks, and is said once.
var explainPlaces sync.Once

// explain prints what is left out, as lines that benchstat skips. Only a benchmark that has
// sub-benchmarks may print, between them: in one that is measured it would tear the result's line apart.
func (p *plan) explain(b *testing.B) {
	for _, text := range p.leftOut {
		fmt.Printf("# %s: %s\n", b.Name(), text)
	}
}
