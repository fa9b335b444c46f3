package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot"
)

func fmtBounds(lo, hi float64) string { return fmt.Sprint(lo, " ", hi) }

// Lengths stand for values where an axis is linear, so it starts at zero; else it says that it is logarithmic or shows decades.
func TestAxesStartHonestly(t *testing.T) {
	rep := compared(t, file1(t, "new.txt", whole(1)))
	for _, p := range rep.pictures() {
		x, y := p.fig.plot.X, p.fig.plot.Y
		switch p.Name {
		case "roundtrip-same", "roundtrip-llc", "cost-same", "cost-llc":
			require.Zero(t, x.Min, p.Name)
			require.IsType(t, plot.LinearScale{}, x.Scale, p.Name)
		case "percentiles-same":
			require.IsType(t, plot.LogScale{}, x.Scale, p.Name)
			require.Contains(t, x.Label.Text, "logarithmic")
		default:
			require.IsType(t, plot.LogScale{}, x.Scale, p.Name)
			require.IsType(t, plot.LogScale{}, y.Scale, p.Name)
		}
	}
}

func TestWideSpreadIsLogarithmic(t *testing.T) {
	const rest = "/size=1/cpu=llc/peer=process/wait="
	rep := compared(t, file1(t, "new.txt", tenOf("Latency/mech=pipe"+rest+"spin", "%g ns/op", 1000)+tenOf("Latency/mech=pipe"+rest+"kernel", "%g ns/op", 80_000)))
	x := rep.pictures()[0].fig.plot.X
	require.Equal(t, "time of a round trip (logarithmic)", x.Label.Text)
	require.Equal(t, "5e-07 0.0001", fmtBounds(x.Min, x.Max))
}

func labels(ticks []plot.Tick) (all []string) {
	for _, t := range ticks {
		if t.Label != "" {
			all = append(all, t.Label)
		}
	}
	return all
}

func TestTicks(t *testing.T) {
	require.Equal(t, []string{"200 ns", "500 ns", "1 µs", "2 µs"}, labels(logTicks(2e-7, 2e-6, "s")))
	require.Equal(t, []string{"1 kB/s", "10 kB/s", "100 kB/s", "1 MB/s", "10 MB/s", "100 MB/s", "1 GB/s"}, labels(logTicks(1e3, 1e9, "B/s")))
	a := plot.New().X
	a.Max = 28e-6
	fromZero(&a, "s")
	require.Equal(t, []string{"0", "5 µs", "10 µs", "15 µs", "20 µs", "25 µs"}, labels(a.Tick.Marker.Ticks(a.Min, a.Max)))
	require.Equal(t, []string{"−50 %", "−30 %", "0", "+50 %", "+100 %"}, labels(ratioTicks(0.45, 2.2)))
	require.Equal(t, []string{"−20 %", "0", "+25 %", "+50 %", "+100 %"}, labels(ratioTicks(0.77, 2.3)))
	require.Equal(t, []string{"−99 %", "−90 %", "0", "×10", "×100"}, labels(ratioTicks(0.005, 200)))
	require.Equal(t, []string{"−4 %", "−2 %", "0", "+2 %", "+4 %"}, labels(ratioTicks(0.95, 1.05)))
}

func TestRounding(t *testing.T) {
	for _, c := range []struct{ v, down, up float64 }{{1, 1, 1}, {1.1, 1, 2}, {2, 2, 2}, {3, 2, 5}, {5.5, 5, 10}, {8000, 5000, 10000}, {30, 20, 50}} {
		require.Equal(t, []float64{c.down, c.up}, []float64{roundDown(c.v), roundUp(c.v)}, "%v", c.v)
	}
}

func TestSizeOf(t *testing.T) {
	for text, want := range map[string]float64{"1": 1, "64": 64, "4KiB": 4096, "64KiB": 65536, "1MiB": 1 << 20} {
		got, ok := sizeOf(text)
		require.True(t, ok, text)
		require.Equal(t, want, got)
	}
	for _, text := range []string{"", "0", "-1", "4kB", "1e3", "KiB", "1.5MiB"} {
		_, ok := sizeOf(text)
		require.False(t, ok, text)
	}
}

// Lines are told apart without colour: no two of one picture have the same marker.
func TestStylesDiffer(t *testing.T) {
	for _, names := range append(known, []string{"mine", "pipe", "yours", "tcp"}, []string{"tcp bbr", "tcp cubic", "tcp reno"}) {
		marks := map[any]string{}
		for l, s := range styles(names) {
			mark := fmt.Sprintf("%T %v", s.shape, s.shape)
			require.Empty(t, marks[mark], "%s has the marker of another", l)
			marks[mark] = l
		}
		require.Len(t, marks, len(names))
	}
	require.Equal(t, styles([]string{"pipe", "tcp"})["tcp"], styles([]string{"tcp", "fifo"})["tcp"], "the same in every picture")
}
