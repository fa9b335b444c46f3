package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// results has ten samples of two benchmarks around the given means.
func results(stable, other float64) []byte {
	var b strings.Builder
	for i := range 10 {
		fmt.Fprintf(&b, "BenchmarkStable/size=1-2 1000 %.1f ns/op\n", stable+float64(2*i))
		fmt.Fprintf(&b, "BenchmarkOther/size=1-2 1000 %.1f ns/op 5 p50-ns/op\n", other+float64(2*i))
	}
	return []byte(b.String())
}

func TestCompare(t *testing.T) {
	rows, err := compare(results(1000, 2000), results(1001, 2100))
	require.NoError(t, err)
	require.Len(t, rows, 2)
	require.Equal(t, "Other/size=1-2", rows[0].name)
	require.True(t, rows[0].differs)
	require.InDelta(t, 0.05, rows[0].change(), 0.001)
	require.False(t, rows[1].differs)

	var out bytes.Buffer
	report(&out, rows)
	require.Equal(t, "Other/size=1-2  2009 ns  2109 ns  +4.98%  p=0.000\n"+
		"1 of 2 rows (50.0 %) do not differ; the largest difference of their medians is 0.10 %\n", out.String())
}

func TestCompareRefuses(t *testing.T) {
	for name, halves := range map[string][2]string{
		"in one half only":    {"BenchmarkA 1 2 ns/op\n", "BenchmarkB 1 2 ns/op\n"},
		"no result has ns/op": {"PASS\n", "PASS\n"},
		"output:1":            {"BenchmarkA 1 x ns/op\n", ""},
	} {
		_, err := compare([]byte(halves[0]), []byte(halves[1]))
		require.ErrorContains(t, err, name)
	}
}

func TestRunOfAPackageThatFails(t *testing.T) {
	err := run(options{n: 1, packages: []string{"./nowhere"}}, "", &bytes.Buffer{})
	require.ErrorContains(t, err, "nowhere")
}
