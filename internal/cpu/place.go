//go:build linux

package cpu

import (
	"fmt"
	"slices"
	"strings"
)

// A Place is where the second party runs as seen from the first. It stands
// behind cpu= in a benchmark's name.
type Place string

// The places, nearest first.
const (
	Same   Place = "same"   // the same CPU
	SMT    Place = "smt"    // the other hardware thread of the core
	LLC    Place = "llc"    // another core that shares the last level cache
	Node   Place = "node"   // the same NUMA node, another last level cache
	Remote Place = "remote" // another NUMA node
)

// elsewhere are the places that need a second CPU.
var elsewhere = []Place{SMT, LLC, Node, Remote}

// A Seat is a Place with the CPUs that stand for it.
type Seat struct {
	Place  Place
	First  int // CPU of the first party
	Second int // CPU of the second
}

// Here returns the seats of this machine within the CPUs that the process may
// use, as Places does.
func Here() (seats []Seat, notes []string, err error) {
	allowed, err := Allowed()
	if err != nil {
		return nil, nil, err
	}
	seats, notes = Places(Root, allowed)
	return seats, notes, nil
}

// Places returns the seats that the topology below root (Root, but for tests)
// offers within allowed, nearest first, at most one for each place, all with
// the same First: the CPU that offers most places, the lowest if there are
// several. Each Second is the lowest that serves. Same is always there, unless
// allowed is empty.
//
// Notes say, a line each, which places are missing and why.
func Places(root string, allowed []int) (seats []Seat, notes []string) {
	if len(allowed) == 0 {
		return nil, []string{"cpu=*: no CPU may be used"}
	}
	allowed = slices.Sorted(slices.Values(allowed))
	alone := []Seat{{Same, allowed[0], allowed[0]}}
	if len(allowed) == 1 {
		return alone, []string{left(elsewhere, fmt.Sprintf("only CPU %d may be used", allowed[0]))}
	}
	var cores []core
	for _, cpu := range allowed {
		if c, ok := readCore(root, cpu); ok {
			cores = append(cores, c)
		}
	}
	if len(cores) < 2 {
		return alone, []string{left(elsewhere, "no topology in "+root)}
	}
	for _, first := range cores {
		if s := seatsFrom(first, cores); len(s) > len(seats) {
			seats = s
		}
	}
	return seats, missing(seats, cores)
}

// seatsFrom returns what first sees: cores are in ascending order.
func seatsFrom(first core, cores []core) []Seat {
	seats := []Seat{{Same, first.cpu, first.cpu}}
	for _, place := range elsewhere {
		for _, second := range cores {
			if second.cpu != first.cpu && first.sees(second) == place {
				seats = append(seats, Seat{place, first.cpu, second.cpu})
				break
			}
		}
	}
	return seats
}

func missing(seats []Seat, cores []core) []string {
	var absent []Place
	for _, place := range elsewhere {
		if !slices.ContainsFunc(seats, func(s Seat) bool { return s.Place == place }) {
			absent = append(absent, place)
		}
	}
	var notes []string
	if len(absent) > 0 {
		notes = append(notes, left(absent, fmt.Sprintf("none seen from CPU %d among those that may be used", seats[0].First)))
	}
	if slices.ContainsFunc(cores, func(c core) bool { return c.guessed }) {
		notes = append(notes, "cpu=llc: no cache in the topology, the package taken for it")
	}
	return notes
}

func left(places []Place, why string) string {
	names := make([]string, len(places))
	for i, p := range places {
		names[i] = string(p)
	}
	return "cpu=" + strings.Join(names, "|") + " left out: " + why
}

// Nearest returns the nearest seat whose two CPUs differ; !ok if there is none.
func Nearest(seats []Seat) (seat Seat, ok bool) {
	for _, place := range elsewhere {
		for _, s := range seats {
			if s.Place == place {
				return s, true
			}
		}
	}
	return Seat{}, false
}
