//go:build linux

package channeltest

import (
	"fmt"
	"strings"

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
