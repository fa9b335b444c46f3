//go:build linux

package tcploop_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/seed-e1736cc0/ipcbench"
	"github.com/seed-e1736cc0/ipcbench/channeltest"
	"github.com/seed-e1736cc0/ipcbench/tcploop"
)

func BenchmarkLatency(b *testing.B)    { channeltest.Latency(b, mechanisms...) }
func BenchmarkThroughput(b *testing.B) { channeltest.Throughput(b, congested(b)...) }
func BenchmarkSelfLoop(b *testing.B)   { channeltest.SelfLoop(b, mechanisms...) }

// congested are the mechanisms with the system's congestion control, and tcp
// with cubic and reno too: it decides loopback's throughput.
func congested(b *testing.B) (all []channeltest.Mechanism) {
	system, err := tcploop.Default()
	if err != nil {
		b.Fatal(err)
	}
	for _, m := range mechanisms {
		m.Key = "cc=" + system
		all = append(all, m)
	}
	if testing.Short() {
		return all
	}
	available, err := tcploop.Available()
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"cubic", "reno"} {
		if name == system {
			continue
		}
		m := mechanisms[0]
		m.Key, m.Variant = "cc="+name, true
		m.Pair = func(w ipcbench.Wait) (x, y ipcbench.Channel, err error) {
			return tcploop.Pair(tcploop.Config{Wait: w, Congestion: name})
		}
		if !slices.Contains(available, name) {
			fmt.Printf("# %s: left out: cc=%s: this kernel has not loaded it\n", b.Name(), name)
		} else if x, y, err := tcploop.Pair(tcploop.Config{Congestion: name}); err != nil {
			fmt.Printf("# %s: left out: %v\n", b.Name(), err)
		} else {
			x.Close()
			y.Close()
			all = append(all, m)
		}
	}
	return all
}
func BenchmarkBoundaries(b *testing.B) { channeltest.Boundaries(b, mechanisms...) }
func BenchmarkTail(b *testing.B)       { channeltest.Tail(b, mechanisms...) }
func BenchmarkMessages(b *testing.B)   { channeltest.Messages(b, mechanisms...) }
