// Package channeltest says what a Channel promises and what it costs, for any
// implementation of ipcbench.Channel: tests that try every promise of its
// Contract, and benchmarks whose results benchstat compares between mechanisms and between kernels.
//
// # A Channel of one's own
//
// A [Mechanism] needs a name and a function that returns two connected ends; a
// test file needs a line for each test and benchmark:
//
//	var mine = channeltest.Mechanism{Name: "mine", Pair: newPair, Import: fromFiles}
//
//	func TestMain(m *testing.M) { os.Exit(channeltest.Main(m, mine)) }
//
//	func TestConformance(t *testing.T)     { channeltest.Conformance(t, mine) }
//	func BenchmarkLatency(b *testing.B)    { channeltest.Latency(b, mine) }
//	func BenchmarkThroughput(b *testing.B) { channeltest.Throughput(b, mine) }
//	func BenchmarkSelfLoop(b *testing.B)   { channeltest.SelfLoop(b, mine) }
//	func BenchmarkBoundaries(b *testing.B) { channeltest.Boundaries(b, mine) }
//	func BenchmarkMessages(b *testing.B)   { channeltest.Messages(b, mine) }
//	func BenchmarkTail(b *testing.B)       { channeltest.Tail(b, mine) }
//
// TestMain and Import are for peers in other processes: they are the test binary
// run again, and get the descriptors that the channel's Files returned (see
// ipcbench.Exporter). Without them only threads and goroutines are measured. The file
// example_own_test.go of this package is a whole example.
//
// # What is measured
//
// The name of a row says everything: mechanism, size, place, peer, wait.
//
//   - cpu= is the place of the second party as seen from the first: same (one
//     CPU), smt, llc, node or remote. Places are picked from the topology in /sys within the
//     CPUs that the process may use.
//   - peer=process: both parties are child processes. peer=thread: two locked threads of the test process.
//     peer=goroutine: two goroutines of the test process, all of whose threads are
//     put on one CPU: one thread runs both, nobody is woken, and vcsw/op shows it.
//   - wait=kernel is a loop of bare read and write calls on blocking descriptors in
//     two processes, out of sight of the Go scheduler: what a program in C
//     measures. The others are the Channel itself in each of its waits (ipcbench.Wait), so that the
//     difference is what Go adds. wait=epoll, in Messages, is bare calls on non-blocking descriptors.
//   - batch= in Messages is how many of them are sent at once.
//
// While threads are measured, GOMAXPROCS is raised to 4 if it was not chosen, and the
// process's other threads keep off the parties' CPUs where there are others: on two CPUs the
// runtime's monitor would else take a P away from a party that blocks, and the party would wait for it.
//
// A throughput is over when the far end's word that it has read every byte is
// there; a wrong count fails the benchmark. Each -count gets processes of its own. The clock runs
// in the first party, without a print, an allocation or a fork beside it. Every row has
//
//   - ns/op: time; a round trip is a whole one. MB/s for throughput.
//   - user-ns/op, sys-ns/op: CPU time of both parties together (getrusage(2)).
//     The kernel splits it by ticks, so that the sum is good to a microsecond and the parts are good in the mean.
//   - vcsw/op, ivcsw/op: voluntary context switches of both parties (somebody
//     slept) and involuntary ones (somebody was pushed off a CPU).
//   - instructions/op, cycles/op: what the CPU has counted in both parties, kernel included
//     (perf_event_open(2)), where it has counters and gives them away: a line says if not. With
//     user- before them they are without the kernel's part, which kernel.perf_event_paranoid withheld.
//   - allocs/op, B/op: allocations of both parties, their warm-up included.
//
// Tail has p50-ns/op, p99-ns/op, p99.9-ns/op and max-ns/op; load= is closed, or
// how many round trips are due a second. Messages has prod-cpu-ns/op and cons-cpu-ns/op, Boundaries reads/op.
//
// A party that dies or says nothing for too long fails its row within seconds,
// with its exit status; the run goes on.
//
// After the benchmarks a line says how much of the CPUs' time the hypervisor has
// stolen and what the load was, and warns above 1 % and above one a CPU.
//
// # How much is run
//
// A row takes half a second unless -benchtime says otherwise. The default is the whole story in a few minutes: each mechanism at its main
// size in each peer and wait on one CPU, spinning and the wake-up of another CPU,
// and further sizes for the mechanisms that are not variants of another. With
// -short it is a core of that. The environment says more:
//
//	IPCBENCH_FULL=1     every size, place, peer and wait; choose from them by -bench
//	IPCBENCH_CONFIG=1   the machine's facts as "key: value" lines, for benchstat -col kernel
//	                    over one file with runs of several kernels; by default they are comments
//
// What a machine or a mechanism lacks is left out, and a line that begins with # says so.
package channeltest
