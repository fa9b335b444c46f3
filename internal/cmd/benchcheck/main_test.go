package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheck(t *testing.T) {
	const rows = "# rows\nBenchmarkLatency/mech=pipe/size=1\nBenchmarkLatency/mech=tcp/size=64KiB\n"
	for _, c := range []struct {
		name, results string
		faults        []string
	}{
		{"whole", "goos: linux\n# note\nBenchmarkLatency/mech=pipe/size=1-2 \t 10\t 5 ns/op\nBenchmarkLatency/mech=tcp/size=64KiB-2 10 5 ns/op\nPASS\n", nil},
		{"one CPU", "BenchmarkLatency/mech=pipe/size=1 10 5 ns/op\nBenchmarkLatency/mech=tcp/size=64KiB 10 5 ns/op\n", nil},
		{"row lacks", "BenchmarkLatency/mech=pipe/size=1-2 10 5 ns/op\n", []string{"no result for Latency/mech=tcp/size=64KiB"}},
		{"stray line", "BenchmarkLatency/mech=pipe/size=1-2 \t# a print\n 10 5 ns/op\nBenchmarkLatency/mech=tcp/size=64KiB-2 10 5 ns/op\n",
			[]string{"parsing iteration count", "no result for Latency/mech=pipe/size=1", "2 lines begin with Benchmark, 1 were parsed"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			r, n := filepath.Join(dir, "rows"), filepath.Join(dir, "new")
			require.NoError(t, os.WriteFile(r, []byte(rows), 0o600))
			require.NoError(t, os.WriteFile(n, []byte(c.results), 0o600))
			faults, err := check(r, []string{n})
			require.NoError(t, err)
			require.Len(t, faults, len(c.faults), "%q", faults)
			for i := range c.faults {
				require.Contains(t, faults[i], c.faults[i])
			}
		})
	}
}

// The run that the README's tables are made from has every row, and no line that benchstat drops.
func TestBaseline(t *testing.T) {
	const root = "../../../testdata/"
	faults, err := check(root+"rows.txt", []string{root + "baseline/linux-6.18.txt"})
	require.NoError(t, err)
	require.Empty(t, faults)
	settings, err := filepath.Glob(root + "baseline/settings-*.txt")
	require.NoError(t, err)
	require.Len(t, settings, 3)
	none := filepath.Join(t.TempDir(), "none")
	require.NoError(t, os.WriteFile(none, []byte("BenchmarkLatency/mech=pipe/size=1/cpu=same/peer=process/wait=kernel\n"), 0o600))
	for _, file := range settings {
		faults, err := check(none, []string{file})
		require.NoError(t, err)
		require.Empty(t, faults, file)
	}
}
