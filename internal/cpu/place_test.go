//go:build linux

package cpu

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A machine is a synthetic topology: for each CPU the lists the kernel would show.
type machine []struct{ threads, cache, node string }

func (m machine) tree(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for cpu, c := range m {
		dir := fmt.Sprintf("cpu%d/", cpu)
		write(t, root, dir+"topology/core_cpus_list", c.threads)
		write(t, root, dir+"topology/package_cpus_list", "0-63")
		if c.cache != "" {
			write(t, root, dir+"cache/index0/level", "1")
			write(t, root, dir+"cache/index0/type", "Data")
			write(t, root, dir+"cache/index0/shared_cpu_list", c.threads)
			write(t, root, dir+"cache/index3/level", "3")
			write(t, root, dir+"cache/index3/type", "Unified")
			write(t, root, dir+"cache/index3/shared_cpu_list", c.cache)
			write(t, root, dir+"cache/index4/level", "9") // never a party's data
			write(t, root, dir+"cache/index4/type", "Instruction")
			write(t, root, dir+"cache/index4/shared_cpu_list", "0-63")
		}
		if c.node != "" {
			write(t, root, dir+"node"+c.node+"/cpulist", "")
		}
	}
	return root
}

func write(t *testing.T, root, name, text string) {
	t.Helper()
	path := filepath.Join(root, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text+"\n"), 0o644))
}

var (
	// Two nodes; on the first two caches; all cores with two threads.
	server = machine{
		{"0,6", "0-1,6-7", "0"}, {"1,7", "0-1,6-7", "0"}, {"2,8", "2,8", "0"},
		{"3,9", "3-4,9-10", "1"}, {"4,10", "3-4,9-10", "1"}, {"5,11", "5,11", "1"},
		{"0,6", "0-1,6-7", "0"}, {"1,7", "0-1,6-7", "0"}, {"2,8", "2,8", "0"},
		{"3,9", "3-4,9-10", "1"}, {"4,10", "3-4,9-10", "1"}, {"5,11", "5,11", "1"},
	}
	laptop = machine{{"0-1", "0-3", ""}, {"0-1", "0-3", ""}, {"2-3", "0-3", ""}, {"2-3", "0-3", ""}}
	plain  = machine{{"0", "0-1", "0"}, {"1", "0-1", "0"}}
	bare   = machine{{"0", "", ""}, {"1", "", ""}}
	halves = machine{{"0", "0-1", "0"}, {"1", "0-1", "1"}} // one cache for two nodes
)

func upTo(n int) (cpus []int) {
	for cpu := range n {
		cpus = append(cpus, cpu)
	}
	return cpus
}

func TestPlaces(t *testing.T) {
	none := "none seen from CPU %d among those that may be used"
	for _, c := range []struct {
		name    string
		machine machine
		allowed []int
		seats   []Seat
		notes   []string
	}{
		{"server", server, upTo(12), []Seat{{Same, 0, 0}, {SMT, 0, 6}, {LLC, 0, 1}, {Node, 0, 2}, {Remote, 0, 3}}, nil},
		{"most places win", server, []int{2, 3, 4, 9}, []Seat{{Same, 3, 3}, {SMT, 3, 9}, {LLC, 3, 4}, {Remote, 3, 2}},
			[]string{"cpu=node left out: " + fmt.Sprintf(none, 3)}},
		{"any order", server, []int{9, 4, 3, 2}, []Seat{{Same, 3, 3}, {SMT, 3, 9}, {LLC, 3, 4}, {Remote, 3, 2}},
			[]string{"cpu=node left out: " + fmt.Sprintf(none, 3)}},
		{"laptop", laptop, upTo(4), []Seat{{Same, 0, 0}, {SMT, 0, 1}, {LLC, 0, 2}}, []string{"cpu=node|remote left out: " + fmt.Sprintf(none, 0)}},
		{"no smt", plain, upTo(2), []Seat{{Same, 0, 0}, {LLC, 0, 1}}, []string{"cpu=smt|node|remote left out: " + fmt.Sprintf(none, 0)}},
		{"no cache", bare, upTo(2), []Seat{{Same, 0, 0}, {LLC, 0, 1}},
			[]string{"cpu=smt|node|remote left out: " + fmt.Sprintf(none, 0), "cpu=llc: no cache in the topology, the package taken for it"}},
		{"cache over nodes", halves, upTo(2), []Seat{{Same, 0, 0}, {Remote, 0, 1}}, []string{"cpu=smt|llc|node left out: " + fmt.Sprintf(none, 0)}},
		{"one", server, []int{5}, []Seat{{Same, 5, 5}}, []string{"cpu=smt|llc|node|remote left out: only CPU 5 may be used"}},
		{"partly described", plain, []int{1, 7}, []Seat{{Same, 1, 1}}, []string{"cpu=smt|llc|node|remote left out: no topology in ROOT"}},
		{"none", plain, nil, nil, []string{"cpu=*: no CPU may be used"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := c.machine.tree(t)
			for i := range c.notes {
				c.notes[i] = strings.ReplaceAll(c.notes[i], "ROOT", root)
			}
			seats, notes := Places(root, c.allowed)
			require.Equal(t, c.seats, seats)
			require.Equal(t, c.notes, notes)
		})
	}
}

func TestPlacesWithoutSys(t *testing.T) {
	seats, notes := Places("/nonexistent", []int{3, 4})
	require.Equal(t, []Seat{{Same, 3, 3}}, seats)
	require.Equal(t, []string{"cpu=smt|llc|node|remote left out: no topology in /nonexistent"}, notes)
}

// Kernels before 5.8 have other names.
func TestPlacesOldNames(t *testing.T) {
	root := t.TempDir()
	for _, cpu := range []string{"cpu0", "cpu1", "cpu2"} {
		write(t, root, cpu+"/topology/thread_siblings_list", map[string]string{"cpu0": "0", "cpu1": "1-2", "cpu2": "1-2"}[cpu])
		write(t, root, cpu+"/topology/core_siblings_list", "0-2")
	}
	seats, _ := Places(root, upTo(3))
	require.Equal(t, []Seat{{Same, 1, 1}, {SMT, 1, 2}, {LLC, 1, 0}}, seats)
}

func TestHere(t *testing.T) {
	seats, notes, err := Here()
	require.NoError(t, err)
	require.Equal(t, Same, seats[0].Place)
	for _, s := range seats {
		require.Contains(t, allowed(t), s.First)
		require.Contains(t, allowed(t), s.Second)
	}
	if len(seats) < 5 {
		require.NotEmpty(t, notes)
	}
	again, _, err := Here()
	require.NoError(t, err)
	require.Equal(t, seats, again)
}

func TestNearest(t *testing.T) {
	seat, ok := Nearest([]Seat{{Remote, 0, 9}, {Same, 0, 0}, {Node, 0, 4}})
	require.True(t, ok)
	require.Equal(t, Seat{Node, 0, 4}, seat)
	_, ok = Nearest([]Seat{{Same, 0, 0}})
	require.False(t, ok)
}

func TestParseList(t *testing.T) {
	cpus, ok := parseList("0-2,7,10-11")
	require.True(t, ok)
	require.Equal(t, []int{0, 1, 2, 7, 10, 11}, cpus)
	for _, bad := range []string{"", "x", "3-1", "-1", "0-", "0,,1", "0-99999999"} {
		_, ok := parseList(bad)
		require.False(t, ok, bad)
	}
}
