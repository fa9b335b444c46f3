//go:build linux

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const bootOutput = `# kernelrun: k: Linux 9.9, round 1 of 2, instructions counted
goos: linux
pkg: example/pipe
BenchmarkLatency/mech=pipe/cpu=same 	1000	10000 ns/op	2.000 vcsw/op	5000 user-ns/op	0 B/op
BenchmarkLatency/mech=tcp/cpu=same 	1000	20000 ns/op	2.000 vcsw/op
BenchmarkLatency/mech=tcp/cpu=llc 	1000	30000 ns/op
BenchmarkSelfLoop/mech=pipe 	1000	4000 ns/op	250 MB/s
PASS
`

const otherBoot = `pkg: example/pipe
BenchmarkLatency/mech=pipe/cpu=same 	1000	10040 ns/op	2.000 vcsw/op	5000 user-ns/op	0 B/op
BenchmarkLatency/mech=tcp/cpu=same 	1000	20200 ns/op	2.000 vcsw/op
BenchmarkSelfLoop/mech=pipe 	1000	4000 ns/op	250 MB/s
`

func TestCountedReport(t *testing.T) {
	report, err := countedReport("k", [][]byte{[]byte(bootOutput), []byte(otherBoot)})
	require.NoError(t, err)
	require.Equal(t, `# kernelrun: k: Linux 9.9, round 1 of 2, instructions counted
# kernelrun: k: instructions of 2 boots, not times
# kernelrun: k: 1 rows left out, which are neither cpu=same nor of SelfLoop
# kernelrun: k: varies from boot to boot: example/pipe Latency/mech=tcp/cpu=same: 20000 to 20200
Unit guest-instructions/op better=lower
Unit varying-guest-instructions/op better=lower
goos: linux
pkg: example/pipe

BenchmarkLatency/mech=pipe/cpu=same 1000 10000 guest-instructions/op 2 vcsw/op 0 B/op
BenchmarkLatency/mech=tcp/cpu=same 1000 20000 varying-guest-instructions/op 2 vcsw/op
BenchmarkSelfLoop/mech=pipe 1000 4000 guest-instructions/op

goos:

BenchmarkLatency/mech=pipe/cpu=same 1000 10040 guest-instructions/op 2 vcsw/op 0 B/op
BenchmarkLatency/mech=tcp/cpu=same 1000 20200 varying-guest-instructions/op 2 vcsw/op
BenchmarkSelfLoop/mech=pipe 1000 4000 guest-instructions/op
`, string(report))
}

func TestCountedReportOfBrokenOutput(t *testing.T) {
	_, err := countedReport("k", [][]byte{[]byte("BenchmarkX/cpu=same 1000 a print in between\n")})
	require.ErrorContains(t, err, "boot 1:1")
}
