package main

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchmath"
	"gonum.org/v1/plot"
)

func compared(t *testing.T, paths ...string) *report {
	res, err := read(paths, "*")
	require.NoError(t, err)
	rep, err := newReport(res)
	require.NoError(t, err)
	return rep
}

// run2 is a run of three rows, each slower by its own factor.
func run2(faster, slower, same float64) string {
	return head +
		tenOf("Latency/mech=pipe/size=1/cpu=same/peer=process/wait=kernel", "%g ns/op", 6000*faster) +
		tenOf("Latency/mech=tcp/size=1/cpu=same/peer=process/wait=kernel", "%g ns/op", 9000*slower) +
		tenOf("Latency/mech=fifo/size=1/cpu=same/peer=process/wait=kernel", "%g ns/op", 7000*same)
}

func requireChanges(t *testing.T, c *comparison) {
	require.Len(t, c.Rows, 3)
	for i, want := range []tableRow{
		{Name: "Latency/mech=pipe/size=1/cpu=same/peer=process/wait=kernel", Old: "6.015 µs", New: "4.21 µs", Change: "−30 %", Verdict: "less, significant", Significant: true},
		{Name: "Latency/mech=fifo/size=1/cpu=same/peer=process/wait=kernel", Old: "7.018 µs", New: "7.018 µs", Change: "0", Verdict: "not significant"},
		{Name: "Latency/mech=tcp/size=1/cpu=same/peer=process/wait=kernel", Old: "9.023 µs", New: "13.53 µs", Change: "+50 %", Verdict: "more, significant", Significant: true},
	} {
		got := c.Rows[i]
		got.Interval, got.Test = "", ""
		require.Equal(t, want, got)
	}
	require.Contains(t, c.Picture.fig.lines[0], "3 rows are in both, 2 changed significantly")
	texts := figureText(t, c.Picture.fig)
	at := func(label string) int { return slices.Index(texts, label+" size=1 same process kernel") }
	require.Less(t, at("Latency pipe"), at("Latency fifo"))
	require.Less(t, at("Latency fifo"), at("Latency tcp"))
	require.Subset(t, texts, []string{"less, significant", "more, significant", "not significant"})
}

func TestTwoFiles(t *testing.T) {
	extra := tenOf("Latency/mech=tcp6/size=1/cpu=same/peer=process/wait=kernel", "%g ns/op", 1)
	old, new := file1(t, "old.txt", run2(1, 1, 1)), file1(t, "new.txt", run2(0.7, 1.5, 1)+extra)
	rep := compared(t, "before="+old, new)
	require.Len(t, rep.Comparisons, 1)
	requireChanges(t, rep.Comparisons[0])
	require.Equal(t, "Not compared: 0 rows are in before only, 1 in "+new+" only.", rep.Comparisons[0].Missing)
	files, _ := drawn(t, old, new)
	require.Equal(t, []string{"changes", "roundtrip-same-new", "roundtrip-same-old"}, pictures(files))
}

func TestKernelsOfOneFile(t *testing.T) {
	both := file1(t, "both.txt", "kernel: 6.1.0\n"+run2(1, 1, 1)+"kernel: 6.18.44\n"+run2(0.7, 1.5, 1))
	rep := compared(t, both)
	require.Len(t, rep.Comparisons, 1)
	requireChanges(t, rep.Comparisons[0])
	require.Equal(t, "Change from 6.1.0 to 6.18.44", rep.Comparisons[0].Picture.fig.title)
	files, _ := drawn(t, both)
	require.Equal(t, []string{"changes", "roundtrip-same-6.1.0", "roundtrip-same-6.18.44"}, pictures(files))
	require.Contains(t, strings.Join(svgText(t, files["roundtrip-same-6.1.0.svg"]), "\n"), "Linux 6.1.0, Some CPU")
}

func TestThreeFiles(t *testing.T) {
	a, b := file1(t, "new.txt", run2(1, 1, 1)), file1(t, "new.txt", run2(0.7, 1.5, 1))
	files, _ := drawn(t, a, b, "c="+b)
	require.Equal(t, []string{"changes", "changes-2", "roundtrip-same-c", "roundtrip-same-new", "roundtrip-same-new-2"}, pictures(files))
}

func TestNothingInCommon(t *testing.T) {
	rep := compared(t, file1(t, "a.txt", whole(1)), file1(t, "b.txt", run2(1, 1, 1)[len(head):]))
	require.Empty(t, rep.Comparisons)
	require.Contains(t, strings.Join(rep.LeftOut, "\n"), "b.txt: no row with ns/op is in both")
}

// Inputs are drawn on the same axes, or a glance at two pictures misleads.
func TestSameAxes(t *testing.T) {
	rep := compared(t, file1(t, "old.txt", whole(1)), file1(t, "new.txt", whole(40)))
	for _, s := range rep.Sections {
		require.Len(t, s.Pictures, 2)
		a, b := s.Pictures[0].fig.plot, s.Pictures[1].fig.plot
		require.Equal(t, []float64{a.X.Min, a.X.Max, a.Y.Min, a.Y.Max}, []float64{b.X.Min, b.X.Max, b.Y.Min, b.Y.Max}, s.Pictures[0].Name)
	}
}

func TestManyChanges(t *testing.T) {
	var old, new strings.Builder
	for i := range 60 {
		name := "Latency/mech=pipe/size=1/cpu=same/peer=process/wait=kernel/n=" + strings.Repeat("x", i)
		old.WriteString(tenOf(name, "%g ns/op", 1000))
		new.WriteString(tenOf(name, "%g ns/op", 1000*(1+float64(i)/60)))
	}
	rep := compared(t, file1(t, "old.txt", old.String()), file1(t, "new.txt", new.String()))
	require.Len(t, rep.Comparisons[0].Rows, 60, "the page has all")
	fig := rep.Comparisons[0].Picture.fig
	require.Contains(t, strings.Join(fig.lines, "\n"), "Shown: the 40 of the largest change")
	require.Equal(t, -39.5, fig.plot.Y.Min, "the picture has 40 rows")
}

// For six samples each, the tables of the U test give 5 as the largest value that is rejected at 0.05: the
// interval reaches from the sixth smallest of the 36 ratios to the sixth largest.
func TestInterval(t *testing.T) {
	old, new := []float64{100, 103, 107, 111, 118, 125}, []float64{131, 137, 141, 149, 150, 163}
	var ratios []float64
	for _, o := range old {
		for _, n := range new {
			ratios = append(ratios, n/o)
		}
	}
	slices.Sort(ratios)
	lo, hi := interval(old, new)
	require.Equal(t, ratios[5], lo)
	require.Equal(t, ratios[30], hi)
	lo, hi = interval(old[:3], new[:3])
	require.Equal(t, "0 +Inf", fmtBounds(lo, hi), "three samples are too few for any verdict")
}

// A picture whose bar contradicts its mark would be worse than none.
func TestIntervalAgreesWithTest(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	significant := 0
	for range 500 {
		n, shift := 4+rnd.IntN(8), 1+rnd.Float64()/10
		old, new := make([]float64, n), make([]float64, n)
		for i := range old {
			old[i], new[i] = 100+10*rnd.NormFloat64(), shift*(100+10*rnd.NormFloat64())
		}
		s := func(v []float64) *benchmath.Sample {
			return benchmath.NewSample(slices.Clone(v), &benchmath.DefaultThresholds)
		}
		c := benchmath.AssumeNothing.Compare(s(old), s(new))
		lo, hi := interval(old, new)
		require.Less(t, lo, hi)
		require.Equal(t, c.P <= c.Alpha, lo > 1 || hi < 1, "p=%v [%v, %v] of %v, %v", c.P, lo, hi, old, new)
		if c.P <= c.Alpha {
			significant++
		}
	}
	require.Greater(t, significant, 20, "or the test says nothing")
}

// Counted instructions are exact: three runs without any spread are enough.
func TestExactUnit(t *testing.T) {
	counted := func(n string) string {
		return "Unit guest-instructions/op assume=exact\n" + head + strings.Repeat("BenchmarkLatency/mech=pipe/size=1 1 "+n+" guest-instructions/op\n", 3)
	}
	rep := compared(t, file1(t, "old.txt", counted("13458")), file1(t, "new.txt", counted("14110")))
	r := rep.Comparisons[0].Rows[0]
	require.Equal(t, []string{"13458", "14110", "+4.84 %", "+4.84 % … +4.84 %", "more, significant"}, []string{r.Old, r.New, r.Change, r.Interval, r.Verdict})
	require.Equal(t, "change of guest instructions per operation (left: less)", rep.Comparisons[0].Picture.fig.plot.X.Label.Text)
}

// One input alone would have a linear axis, the other a logarithmic one: they share the latter.
func TestSameScale(t *testing.T) {
	const pipe, tcp = "Latency/mech=pipe/size=1/cpu=same/peer=process/wait=kernel", "Latency/mech=tcp/size=1/cpu=same/peer=process/wait=kernel"
	rep := compared(t,
		file1(t, "old.txt", tenOf(pipe, "%g ns/op", 1000)+tenOf(tcp, "%g ns/op", 2000)),
		file1(t, "new.txt", tenOf(pipe, "%g ns/op", 1000)+tenOf(tcp, "%g ns/op", 90_000)))
	for _, p := range rep.Sections[0].Pictures {
		require.IsType(t, plot.LogScale{}, p.fig.plot.X.Scale)
		require.Contains(t, strings.Join(figureText(t, p.fig), "|"), "(logarithmic)")
	}
}

// The same name in two packages is two rows, and told apart.
func TestTwoPackages(t *testing.T) {
	row := tenOf("Wait/mech=poll/fds=10/ready=1", "%g ns/op", 300)
	rep := compared(t, file1(t, "new.txt", "pkg: example.org/a\n"+row+"pkg: example.org/b\n"+row))
	texts := figureText(t, rep.pictures()[0].fig)
	require.Subset(t, texts, []string{"poll a", "poll b"})
	require.Contains(t, strings.Join(texts, "\n"), "Medians of 10 samples")
}
