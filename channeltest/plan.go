//go:build linux

package channeltest

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

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
	peer    string
	wait    ipcbench.Wait
	kernel  bool // bare system calls
}

func (r row) name() string {
	parts := []string{"mech=" + r.mech.Name, "size=" + sizeName(r.size)}
	if r.measure != selfLoop {
		parts = append(parts, "cpu="+string(r.seat.Place), "peer="+r.peer)
	}
	parts = append(parts, "wait="+r.waitName())
	if r.measure == throughput && r.mech.Key != "" {
		parts = append(parts, r.mech.Key)
	}
	return strings.Join(parts, "/")
}

func (r row) waitName() string {
	if r.kernel {
		return "kernel"
	}
	return r.wait.String()
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
	kernel bool
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

	everyWay  = []way{processKernel, processBlock, processNetpoll, processSpin, processAdaptive, threadBlock, threadSpin, goroutineNetpoll}
	everySize = map[measure][]int{latency: {1, 64, 4 << 10}, throughput: {64, 4 << 10, 64 << 10, 1 << 20}, selfLoop: {1, 4 << 10}}
	mainSize  = map[measure]int{latency: 1, throughput: 64 << 10, selfLoop: 1}
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
		sizes, ways, err := p.offers(m, mech)
		if err != nil {
			p.leftOut = append(p.leftOut, fmt.Sprintf("mech=%s: %v", mech.Name, err))
			continue
		}
		for _, r := range candidates(m, mech, chosenMatrix(), seats, sizes) {
			if ways[way{r.peer, r.wait, r.kernel}] {
				p.rows = append(p.rows, r)
			}
		}
	}
	return p, nil
}

// candidates are the rows that a matrix asks for, whether or not the mechanism has the way.
func candidates(m measure, mech Mechanism, x matrix, seats []cpu.Seat, sizes []int) (rows []row) {
	same, near := seats[0], seats[0]
	if s, ok := cpu.Nearest(seats); ok {
		near = s
	}
	top := largest(sizes, mainSize[m])
	add := func(seat cpu.Seat, sizes []int, ways ...way) {
		for _, size := range sizes {
			for _, w := range ways {
				rows = append(rows, row{m, mech, size, seat, w.peer, w.wait, w.kernel})
			}
		}
	}
	switch {
	case x == full && m == selfLoop:
		add(same, sizes, selfWays(everyWay)...)
	case x == full:
		for _, seat := range seats {
			add(seat, sizes, placed(everyWay, seat)...)
		}
	case x == short && m == selfLoop && mech.Variant:
	case x == short:
		add(same, []int{top}, processKernel)
		if !mech.Variant && m == latency {
			add(same, []int{top}, processNetpoll)
		}
	case m == selfLoop:
		add(same, []int{top}, processKernel, threadBlock)
		if !mech.Variant {
			add(same, []int{top}, goroutineNetpoll)
		}
	default:
		add(same, []int{top}, processKernel, threadBlock, processNetpoll)
		if m == latency {
			add(same, []int{top}, goroutineNetpoll)
			add(near, []int{top}, processSpin, processAdaptive)
		}
		if mech.Variant {
			return rows
		}
		add(same, others(sizes, top), processKernel)
		if near != same {
			add(near, []int{top}, processKernel, threadBlock, processNetpoll)
		}
	}
	return rows
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

// offers finds out what a mechanism has: the sizes that its messages may have
// and the ways that it can be measured. What it lacks is added to leftOut by name.
func (p *plan) offers(m measure, mech Mechanism) (sizes []int, ways map[way]bool, err error) {
	ways = map[way]bool{}
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
		a.Close()
		b.Close()
	}
	if contract == nil {
		return nil, nil, lacks[ipcbench.Netpoll]
	}
	for _, s := range everySize[m] {
		if contract.MaxMessage == 0 || s <= contract.MaxMessage {
			sizes = append(sizes, s)
		}
	}
	if len(sizes) == 0 {
		return nil, nil, fmt.Errorf("its longest message has %d bytes: %w", contract.MaxMessage, errors.ErrUnsupported)
	}
	_, known := registered[mech.Name]
	outside := exports && known && mech.Import != nil
	if !outside {
		p.leftOut = append(p.leftOut, fmt.Sprintf("mech=%s/peer=process: needs Mechanism.Import, an ipcbench.Exporter, and the mechanism given to Main", mech.Name))
	}
	for _, w := range everyWay {
		ways[w] = lacks[w.wait] == nil && (outside || w.peer != asProcess)
	}
	for _, w := range ipcbench.Waits() {
		if err := lacks[w]; err != nil {
			p.leftOut = append(p.leftOut, fmt.Sprintf("mech=%s/wait=%v: %v", mech.Name, w, err))
		}
	}
	return sizes, ways, nil
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
