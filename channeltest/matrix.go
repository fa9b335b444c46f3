//go:build linux

package channeltest

import (
	"os"
	"testing"

	"github.com/seed-e1736cc0/ipcbench/internal/cpu"
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

// add returns the rows that it adds.
func (c *choice) add(seat cpu.Seat, sizes []int, ways ...way) []row {
	from := len(c.rows)
	for _, size := range sizes {
		for _, w := range ways {
			c.rows = append(c.rows, row{measure: c.measure, mech: c.mech, size: size, seat: seat, way: w, batch: 1})
		}
	}
	return c.rows[from:]
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
		gathered := c.add(seat, sizes, processEpoll)
		for i := range gathered {
			gathered[i].batch = maxBatch
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
				added := c.add(seat, size, placed(everyWay, seat)...)
				for i := range added {
					added[i].rate = rate
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
		c.add(c.same, size, processNetpoll)
		c.add(c.same, size, processKernel)[0].rate = 10_000
		if c.near != c.same {
			c.add(c.near, size, processKernel)
		}
	}
}
