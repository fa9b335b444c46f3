//go:build linux

package host

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A Watch is what the machine has had to do with others since it began.
type Watch struct {
	tree          tree
	stolen, total uint64 // clock ticks of all CPUs, proc_stat(5)
	load          float64
	cpus          int
}

// StartWatch begins one.
func StartWatch() *Watch { return startWatch(tree("/"), allowed()) }

func startWatch(t tree, cpus int) *Watch {
	w := &Watch{tree: t, load: t.load1(), cpus: cpus}
	w.stolen, w.total = t.ticks()
	return w
}

const (
	muchStolen = 0.01 // of the CPUs' time
	notice     = "# noise: "
)

// Lines says in comment lines how noisy the time since the start was, and ends with
// a warning if more than 1 % of the CPUs' time was stolen or the load was
// above the number of CPUs that the process may use.
func (w *Watch) Lines() []string {
	stolen, total := w.tree.ticks()
	load := max(w.load, w.tree.load1())
	share := 0.0
	if total > w.total && stolen >= w.stolen {
		share = float64(stolen-w.stolen) / float64(total-w.total)
	}
	out := []string{fmt.Sprintf("%sstolen by the hypervisor %.2f %%, load %.2f, %d CPUs", notice, 100*share, load, w.cpus)}
	if share > muchStolen {
		out = append(out, notice+"more than 1 % of the time was stolen: repeat this run before you believe it")
	}
	if load > float64(w.cpus) {
		out = append(out, notice+"the load was above the number of CPUs: was something else running?")
	}
	return out
}

// ticks returns the stolen ones, and all: steal is the eighth number of the line of all CPUs. Guests' ticks are in user's already.
func (t tree) ticks() (stolen, total uint64) {
	line, _, _ := strings.Cut(t.text("proc/stat"), "\n")
	words := strings.Fields(line)
	for i := 1; i < len(words) && i <= 8; i++ {
		n, err := strconv.ParseUint(words[i], 10, 64)
		if err != nil {
			return 0, 0
		}
		total += n
		if i == 8 {
			stolen = n
		}
	}
	return stolen, total
}

// load1 is the load of the last minute, 0 if it is not known.
func (t tree) load1() float64 {
	first, _, _ := strings.Cut(t.load(), " ")
	n, _ := strconv.ParseFloat(first, 64)
	return n
}

func allowed() int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return 1
	}
	return set.Count()
}
