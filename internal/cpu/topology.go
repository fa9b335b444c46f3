//go:build linux

package cpu

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Root is where the kernel describes its CPUs
// (Documentation/ABI/stable/sysfs-devices-system-cpu).
const Root = "/sys/devices/system/cpu"

// A core is one CPU as the topology describes it.
type core struct {
	cpu     int
	threads []int // CPUs of the same core, itself included
	cache   []int // CPUs that share its last level cache
	node    int   // NUMA node; 0 on a kernel without
	guessed bool  // cache is really the package: no cache is described, as in some virtual machines
}

// sees returns the place of another CPU. The node comes before the cache: where
// nodes are parts of a socket one cache may serve several.
func (c core) sees(other core) Place {
	switch {
	case slices.Contains(c.threads, other.cpu):
		return SMT
	case c.node != other.node:
		return Remote
	case slices.Contains(c.cache, other.cpu):
		return LLC
	}
	return Node
}

func readCore(root string, cpu int) (c core, ok bool) {
	dir := filepath.Join(root, "cpu"+strconv.Itoa(cpu))
	// The newer name of each comes first (cputopology.rst).
	threads, ok := readList(dir, "topology/core_cpus_list", "topology/thread_siblings_list")
	if !ok {
		return c, false
	}
	c = core{cpu: cpu, threads: threads, node: readNode(dir)}
	if c.cache, ok = readCache(dir); !ok {
		c.guessed = true
		c.cache, _ = readList(dir, "topology/package_cpus_list", "topology/core_siblings_list")
	}
	return c, true
}

// readCache returns the CPUs that share the highest level of cache.
func readCache(dir string) (cpus []int, ok bool) {
	indexes, _ := filepath.Glob(filepath.Join(dir, "cache/index*"))
	highest := 0
	for _, index := range indexes {
		level, err := strconv.Atoi(readText(filepath.Join(index, "level")))
		if err != nil || level <= highest || readText(filepath.Join(index, "type")) == "Instruction" {
			continue
		}
		if shared, found := readList(index, "shared_cpu_list"); found {
			cpus, highest = shared, level
		}
	}
	return cpus, highest > 0
}

// readNode looks for the link cpuN/nodeM.
func readNode(dir string) int {
	links, _ := filepath.Glob(filepath.Join(dir, "node[0-9]*"))
	for _, link := range links {
		if n, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(link), "node")); err == nil {
			return n
		}
	}
	return 0
}

// readList reads the first of the files that holds a list of CPUs.
func readList(dir string, names ...string) (cpus []int, ok bool) {
	for _, name := range names {
		if cpus, ok = parseList(readText(filepath.Join(dir, name))); ok {
			return cpus, true
		}
	}
	return nil, false
}

// parseList understands the kernel's lists: "0-3,8,10-11".
func parseList(text string) (cpus []int, ok bool) {
	for _, part := range strings.Split(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		low, lowErr := strconv.Atoi(from)
		high, highErr := strconv.Atoi(to)
		if lowErr != nil || highErr != nil || low < 0 || low > high || high >= maxCPUs {
			return nil, false
		}
		for cpu := low; cpu <= high; cpu++ {
			cpus = append(cpus, cpu)
		}
	}
	return cpus, true
}

func readText(path string) string {
	data, _ := os.ReadFile(path)
	return strings.TrimSpace(string(data))
}
