//go:build linux

package channeltest

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-e1736cc0/ipcbench"
	"github.com/seed-e1736cc0/ipcbench/internal/cpu"
)

func names(rows []row) (names []string) {
	for _, r := range rows {
		names = append(names, r.name())
	}
	return names
}

var twoSeats = []cpu.Seat{{Place: cpu.Same}, {Place: cpu.LLC, Second: 1}}

func TestNames(t *testing.T) {
	r := row{measure: throughput, mech: Mechanism{Name: "tcp", Key: "cc=cubic"}, size: 64 << 10, seat: twoSeats[1], way: processKernel}
	require.Equal(t, "mech=tcp/size=64KiB/cpu=llc/peer=process/wait=kernel/cc=cubic", r.name())
	r.measure = latency
	require.Equal(t, "mech=tcp/size=64KiB/cpu=llc/peer=process/wait=kernel", r.name(), "the key belongs to Throughput")
	r.measure, r.kernel, r.wait = selfLoop, false, ipcbench.Netpoll
	require.Equal(t, "mech=tcp/size=64KiB/wait=netpoll", r.name())

	for size, name := range map[int]string{1: "1", 64: "64", 1000: "1000", 4096: "4KiB", 65536: "64KiB", 1 << 20: "1MiB", 1<<20 + 1024: "1025KiB"} {
		require.Equal(t, name, sizeName(size))
	}
}

func TestMatrix(t *testing.T) {
	stream, variant := Mechanism{Name: "m"}, Mechanism{Name: "m", Variant: true}
	// What every mechanism has by default, whatever the machine.
	for _, m := range []measure{latency, throughput} {
		for _, mech := range []Mechanism{stream, variant} {
			got := names(candidates(m, mech, standard, twoSeats, everySize[m]))
			size := sizeName(mainSize[m])
			for _, want := range []string{"peer=process/wait=kernel", "peer=thread/wait=block", "peer=process/wait=netpoll"} {
				require.Contains(t, got, "mech=m/size="+size+"/cpu=same/"+want)
				if !mech.Variant {
					require.Contains(t, got, "mech=m/size="+size+"/cpu=llc/"+want)
				}
			}
		}
	}
	require.Contains(t, names(candidates(latency, variant, standard, twoSeats, everySize[latency])), "mech=m/size=1/cpu=llc/peer=process/wait=spin")
	// One CPU: the same without the other one.
	got := names(candidates(latency, variant, standard, twoSeats[:1], everySize[latency]))
	require.Contains(t, got, "mech=m/size=1/cpu=same/peer=process/wait=spin")
	require.Contains(t, got, "mech=m/size=1/cpu=same/peer=process/wait=adaptive")
	// A short message channel is measured at the largest size that it has.
	require.Contains(t, names(candidates(throughput, variant, standard, twoSeats, []int{64, 4096})), "mech=m/size=4KiB/cpu=same/peer=process/wait=kernel")
}

func TestMatrixHasNoDoubles(t *testing.T) {
	digits := regexp.MustCompile(`-\d+$`) // benchstat would take it for GOMAXPROCS
	for _, x := range []matrix{standard, short, full} {
		for m := range everySize {
			for _, seats := range [][]cpu.Seat{twoSeats, twoSeats[:1]} {
				seen := map[string]bool{}
				for _, name := range names(candidates(m, Mechanism{Name: "m"}, x, seats, everySize[m])) {
					require.False(t, seen[name], "%s twice", name)
					require.NotRegexp(t, digits, name)
					seen[name] = true
				}
			}
		}
	}
}

// Whoever runs the short or the standard matrix finds its rows in the larger ones too.
func TestMatricesNest(t *testing.T) {
	for m := range everySize {
		rows := func(x matrix) []string {
			return names(candidates(m, Mechanism{Name: "m"}, x, twoSeats, everySize[m]))
		}
		require.Subset(t, rows(standard), rows(short))
		require.Subset(t, rows(full), rows(standard))
	}
}
