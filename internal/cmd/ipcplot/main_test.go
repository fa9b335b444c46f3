package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// spread are ten samples around 1, none the same as another.
var spread = []float64{0.98, 1.03, 1.01, 0.97, 1, 0.99, 1.02, 1.04, 0.96, 1.005}

const head = "goos: linux\ngoarch: amd64\npkg: example.org/ipc\ncpu: Some CPU\n"

// tenOf writes ten results of a benchmark. units has a %g for each value.
func tenOf(name, units string, values ...float64) string {
	var b strings.Builder
	for _, s := range spread {
		var scaled []any
		for _, v := range values {
			scaled = append(scaled, v*s)
		}
		fmt.Fprintf(&b, "Benchmark%s-2 \t 1000\t"+units+"\n", append([]any{name}, scaled...)...)
	}
	return b.String()
}

// whole is a run that has the rows of every picture, times multiplied by factor.
func whole(factor float64) string {
	var b strings.Builder
	b.WriteString(head)
	for i, m := range []string{"pipe", "unix-stream", "tcp"} {
		t := factor * float64(6000+3000*i)
		for _, rest := range []string{"cpu=same/peer=process/wait=kernel", "cpu=same/peer=goroutine/wait=netpoll", "cpu=llc/peer=process/wait=kernel"} {
			b.WriteString(tenOf("Latency/mech="+m+"/size=1/"+rest, "%g ns/op %g user-ns/op %g sys-ns/op", t, t/5, t*4/5))
		}
		for _, size := range []string{"64", "4KiB", "1MiB"} {
			b.WriteString(tenOf("Throughput/mech="+m+"/size="+size+"/cpu=same/peer=process/wait=kernel", "%g ns/op %g MB/s", t, 1e6/t))
		}
		for _, load := range []string{"closed", "half"} {
			b.WriteString(tenOf("Tail/mech="+m+"/size=1/cpu=same/peer=process/wait=kernel/load="+load,
				"%g ns/op %g p50-ns/op %g p99-ns/op %g p99.9-ns/op %g max-ns/op", t, t, 2*t, 9*t, 99*t))
		}
	}
	for _, fds := range []string{"10", "1000"} {
		b.WriteString(tenOf("Wait/mech=epoll-level/fds="+fds+"/ready=1", "%g ns/op", 400*factor))
		b.WriteString(tenOf("Wait/mech=poll/fds="+fds+"/ready=1", "%g ns/op", 9000*factor))
	}
	return b.String()
}

func file1(t *testing.T, name, text string) string {
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// drawn runs the program and returns what it wrote: files by name, and its output.
func drawn(t *testing.T, args ...string) (files map[string][]byte, said string) {
	dir := filepath.Join(t.TempDir(), "new", "report")
	var out, errs bytes.Buffer
	code := run(append([]string{"-o", dir}, args...), &out, &errs)
	require.Zero(t, code, errs.String())
	require.Empty(t, errs.String())
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	files = map[string][]byte{}
	for _, e := range entries {
		files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		require.Contains(t, out.String(), filepath.Join(dir, e.Name()))
	}
	return files, out.String()
}

func pictures(files map[string][]byte) (names []string) {
	for name := range files {
		if base, ok := strings.CutSuffix(name, ".svg"); ok {
			names = append(names, base)
		}
	}
	slices.Sort(names)
	return names
}

func TestPictures(t *testing.T) {
	files, said := drawn(t, file1(t, "new.txt", whole(1)))
	names := pictures(files)
	require.Equal(t, []string{"cost-llc", "cost-same", "percentiles-same", "readiness", "roundtrip-llc", "roundtrip-same", "throughput-same"}, names)
	require.Len(t, files, 2*len(names)+1, "an SVG and a PNG each, and the page")
	require.NotContains(t, said, "left out")
	html := string(files["report.html"])
	require.Equal(t, len(names), strings.Count(html, `src="data:image/svg&#43;xml;base64,`))
	require.NotRegexp(t, `(src|href)="(https?:)?//`, html, "one file, nothing fetched")
	for _, n := range names {
		img, err := png.Decode(bytes.NewReader(files[n+".png"]))
		require.NoError(t, err)
		require.Equal(t, 1520, img.Bounds().Dx())
		text := svgText(t, files[n+".svg"])
		require.Regexp(t, "µs|MB/s|GB/s", strings.Join(text, "|"), "%s: units on an axis", n)
	}
	require.Subset(t, svgText(t, files["readiness.svg"]), []string{"epoll-level", "poll", "descriptors watched", "1000"})
	require.Subset(t, svgText(t, files["percentiles-same.svg"]), []string{"pipe", "load=half", "99.9 %", "longest"})
	require.Subset(t, svgText(t, files["cost-llc.svg"]), []string{"tcp · kernel", "user", "system"})
	require.Subset(t, svgText(t, files["roundtrip-same.svg"]), []string{"0", "kernel", "netpoll (goroutine)", "unix-stream"})
}

// svgText are the texts of an SVG; that it is well-formed on the way.
func svgText(t *testing.T, svg []byte) (texts []string) {
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		tok, err := d.Token()
		if err == io.EOF {
			return texts
		}
		require.NoError(t, err)
		if c, ok := tok.(xml.CharData); ok && strings.TrimSpace(string(c)) != "" {
			texts = append(texts, string(c))
		}
	}
}

func figureText(t *testing.T, f *figure) []string {
	var b bytes.Buffer
	require.NoError(t, f.writeSVG(&b))
	return svgText(t, b.Bytes())
}

func TestLeftOut(t *testing.T) {
	files, said := drawn(t, file1(t, "new.txt", head+tenOf("Wait/mech=poll/fds=10/ready=1", "%g ns/op", 300)))
	require.Equal(t, []string{"readiness"}, pictures(files))
	for _, what := range []string{"throughput", "round trips", "percentiles", "cost split"} {
		require.Contains(t, said, "left out: "+what)
		require.Contains(t, string(files["report.html"]), "<li>"+what)
	}
}

func TestFilter(t *testing.T) {
	files, _ := drawn(t, "-filter", "/cpu:llc", file1(t, "new.txt", whole(1)))
	require.Equal(t, []string{"cost-llc", "roundtrip-llc"}, pictures(files))
}

func TestSamplesAreTold(t *testing.T) {
	line := "BenchmarkWait/mech=poll/fds=10/ready=1 1 296 ns/op\n"
	for _, c := range []struct {
		n    int
		want string
	}{{1, "One sample each, so there is no interval."}, {5, "no interval where there are fewer than 6"}, {6, "Medians of 6 samples, bars are 95 % confidence intervals."}} {
		rep := compared(t, file1(t, "new.txt", strings.Repeat(line, c.n)))
		require.Contains(t, strings.Join(figureText(t, rep.pictures()[0].fig), "\n"), c.want)
	}
}

func TestBrokenInput(t *testing.T) {
	const ok = "BenchmarkWait/mech=poll/fds=10/ready=1-2 1 296 ns/op\n"
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "new.txt: no benchmark results"},
		{"no results", "goos: linux\nPASS\nok  \texample.org/ipc\t0.1s\n", "new.txt: no benchmark results"},
		{"stray print", head + ok + "BenchmarkWait/mech=poll/fds=100/ready=1-2 \t# a print\n", "new.txt:6: parsing iteration count: invalid syntax"},
		{"cut off", ok + "BenchmarkWait/mech=poll/fds=100/ready=1-2 \t", "new.txt:2: missing iteration count"},
		{"no unit", ok + "BenchmarkWait/mech=poll/fds=100/ready=1-2 10 5\n", "new.txt:2: missing units"},
		{"two faults", "BenchmarkA 1 x ns/op\n" + ok + "BenchmarkB 1 y ns/op\n", "new.txt:3: parsing measurement"},
		{"many faults", strings.Repeat("BenchmarkA 1\n", 15), "new.txt:10: missing measurements\nand 5 faults more"},
		{"long line", ok + strings.Repeat("x", 100_000), "new.txt:1: bufio.Scanner: token too long"},
		{"not a number", ok + "BenchmarkWait/mech=poll/fds=10/ready=1-2 1 NaN ns/op\n", "new.txt:2: BenchmarkWait/mech=poll/fds=10/ready=1: NaN ns/op is no measurement"},
		{"no time", ok + "BenchmarkWait/mech=poll/fds=10/ready=1-2 1 0 ns/op\n", "new.txt:2: BenchmarkWait/mech=poll/fds=10/ready=1: 0 ns/op is no measurement"},
		{"negative", "BenchmarkX 1 5 ns/op -1 user-ns/op\n", "new.txt:1: BenchmarkX: -1 user-ns/op is no measurement"},
		{"no size", head + "BenchmarkThroughput/mech=tcp/size=big 1 5 ns/op 7 MB/s\n", "new.txt:5: BenchmarkThroughput/mech=tcp/size=big: size=big is no number"},
		{"no rate", "BenchmarkThroughput/mech=tcp/size=1 1 5 ns/op 0 MB/s\n", "new.txt:1: BenchmarkThroughput/mech=tcp/size=1: 0 B/s cannot be drawn on a logarithmic axis"},
		{"two machines", head + ok + "cpu: Other CPU\n" + ok, "new.txt:7: BenchmarkWait/mech=poll/fds=10/ready=1 differs from"},
		{"two numbers of CPUs", head + ok + strings.Replace(ok, "-2 ", "-4 ", 1), "in /gomaxprocs (2, 4): choose one with -filter"},
		{"nothing to draw", "BenchmarkOther 1 5 ns/op\n", "no picture can be drawn of these results:\nreadiness"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "report")
			var out, errs bytes.Buffer
			require.Equal(t, 1, run([]string{"-o", dir, file1(t, "new.txt", c.text)}, &out, &errs))
			require.Contains(t, errs.String(), c.want)
			require.NoDirExists(t, dir, "nothing is written of broken input")
		})
	}
}

// A zero counts as a sample: user time is 0 in many a run.
func TestZeros(t *testing.T) {
	line := "BenchmarkLatency/mech=pipe/size=1 1 5000 ns/op %s user-ns/op 3000 sys-ns/op\n"
	in, err := read([]string{file1(t, "new.txt", strings.Repeat(fmt.Sprintf(line, "0"), 5)+fmt.Sprintf(line, "900"))}, "*")
	require.NoError(t, err)
	require.Len(t, in.inputs[0].Rows[0].values["user-sec/op"], 6)
	require.Zero(t, in.inputs[0].Rows[0].summary("user-sec/op").Center)
}

// A fitted slope may be negative.
func TestNegativeSlope(t *testing.T) {
	compared(t, file1(t, "new.txt", "BenchmarkGrowth/mech=epoll-level 1 5 ns/op -0.03 ns/fd\nBenchmarkWait/mech=poll/fds=10/ready=1 1 296 ns/op\n"))
}

func TestCommandLine(t *testing.T) {
	good := file1(t, "new.txt", whole(1))
	taken := file1(t, "report", "a file")
	for _, c := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"no file", nil, 2, "no results given"},
		{"unknown flag", []string{"-ylog", good}, 2, "flag provided but not defined: -ylog"},
		{"flag without value", []string{"-o"}, 2, "flag needs an argument: -o"},
		{"flag after file", []string{good, "-o", "x"}, 2, "-o: options come before files"},
		{"filter's syntax", []string{"-filter", "/cpu:", good}, 2, "-filter: "},
		{"filter matches nothing", []string{"-o", taken, "-filter", "/mech:carrier-pigeon", good}, 1, `no result matches -filter "/mech:carrier-pigeon"`},
		{"no such file", []string{"-o", taken, good + "x"}, 1, "new.txtx: no such file"},
		{"second is empty", []string{"-o", taken, good, "b=" + taken}, 1, taken + ": no benchmark results"},
		{"a file in the way", []string{"-o", taken, good}, 1, taken + ": not a directory"},
		{"help", []string{"-h"}, 0, "-filter query"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			require.Equal(t, c.code, run(c.args, &out, &errs), errs.String())
			require.Contains(t, errs.String(), c.want)
			if c.code == 2 {
				require.Contains(t, errs.String(), "usage: ipcplot")
			}
			require.Empty(t, out.String())
		})
	}
}
