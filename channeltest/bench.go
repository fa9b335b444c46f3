//go:build linux

package channeltest

import (
	"testing"
	"time"

	"github.com/seed-e1736cc0/ipcbench/internal/meter"
)

// Latency measures round trips: the first party writes size bytes and reads as
// many, the second echoes them. One operation is a whole round trip.
func Latency(b *testing.B, mechs ...Mechanism) { runRows(b, latency, mechs) }

// Throughput measures one direction: the first party writes size bytes at a
// time, the second reads and counts them with a buffer of that size. One
// operation is one write; the clock stops when the second party's word that all
// of it has arrived is there.
func Throughput(b *testing.B, mechs ...Mechanism) { runRows(b, throughput, mechs) }

// SelfLoop measures a write and the read of what was written by one and the
// same thread, so that nobody sleeps and nobody is woken. What a round trip with cpu=same
// costs beyond two of these is the price of its two wake-ups.
func SelfLoop(b *testing.B, mechs ...Mechanism) { runRows(b, selfLoop, mechs) }

// Boundaries measures three writes of 3, 2 and 4 bytes and the reads that bring
// them, by one thread: reads/op is 3 where the mechanism keeps boundaries and 1 where it merges what is there.
func Boundaries(b *testing.B, mechs ...Mechanism) { runRows(b, boundaries, mechs) }

func runRows(b *testing.B, m measure, mechs []Mechanism) {
	plan, err := newPlan(m, mechs)
	if err != nil {
		b.Fatal(err)
	}
	plan.explain(b)
	if len(plan.rows) == 0 {
		b.Skip("nothing here that can be measured") // or testing would time this function
	}
	for _, r := range plan.rows {
		r.bench(b)
	}
}

// bench runs one row. testing calls the function with growing b.N, starting at
// 1 for each -count: each count gets parties of its own, so that what is
// peculiar to two processes (their memory's layout) is not taken for a property of the kernel.
func (r row) bench(b *testing.B) {
	var s session
	var took time.Duration // of one operation, at most, as far as is known
	stop := func() error {
		if s == nil {
			return nil
		}
		old := s
		s = nil
		return old.close()
	}
	b.Run(r.name(), func(b *testing.B) {
		if b.N == 1 || s == nil {
			if err := stop(); err != nil {
				b.Fatal(err)
			}
			var err error
			if s, err = r.open(); err != nil {
				b.Fatal(err)
			}
			took = firstLimit
		}
		b.ResetTimer()
		reports, err := s.run(b.N, runLimit(b.N, took))
		b.StopTimer()
		if err != nil {
			stop()
			b.Fatal(err)
		}
		took = max(reports[0].Elapsed/time.Duration(b.N), time.Microsecond)
		r.publish(b, reports)
	})
	if err := stop(); err != nil {
		b.Error(err)
	}
}

const firstLimit = 10 * time.Second

// runLimit is when a run is given up: many times what the run before took an operation.
func runLimit(n int, took time.Duration) time.Duration {
	const most = time.Hour
	if took > most/time.Duration(n)/20 {
		return max(most, took)
	}
	return firstLimit + 20*time.Duration(n)*took
}

// publish reports the parties' own figures in place of those of the test process, which only looked on.
func (r row) publish(b *testing.B, reports []report) {
	n := float64(b.N)
	var usage meter.Usage
	var mallocs, bytes uint64
	for _, p := range reports {
		usage = usage.Add(p.Usage)
		mallocs, bytes = mallocs+p.Mallocs, bytes+p.Bytes
	}
	elapsed := reports[0].Elapsed
	if r.measure == throughput || r.measure == messaging {
		got := reports[len(reports)-1]
		if want := int64(b.N) * int64(r.size); got.Received != want {
			b.Fatalf("%d bytes arrived, %d were sent", got.Received, want)
		}
	}
	switch r.measure {
	case throughput:
		b.SetBytes(int64(r.size))
		b.ReportMetric(n*float64(r.size)/1e6/elapsed.Seconds(), "MB/s")
	case messaging:
		b.ReportMetric(float64(reports[0].Usage.CPU().Nanoseconds())/n, "prod-cpu-ns/op")
		b.ReportMetric(float64(reports[1].Usage.CPU().Nanoseconds())/n, "cons-cpu-ns/op")
	case boundaries:
		b.ReportMetric(float64(reports[0].Messages)/n, "reads/op")
	case tail:
		t := reports[0].Tail
		b.ReportMetric(float64(t.P50), "p50-ns/op")
		b.ReportMetric(float64(t.P99), "p99-ns/op")
		b.ReportMetric(float64(t.P999), "p99.9-ns/op")
		b.ReportMetric(float64(t.Max), "max-ns/op")
	}
	b.ReportAllocs()
	b.ReportMetric(float64(mallocs)/n, "allocs/op")
	b.ReportMetric(float64(bytes)/n, "B/op")
	b.ReportMetric(float64(elapsed.Nanoseconds())/n, "ns/op")
	b.ReportMetric(float64(usage.User.Nanoseconds())/n, "user-ns/op")
	b.ReportMetric(float64(usage.Sys.Nanoseconds())/n, "sys-ns/op")
	b.ReportMetric(float64(usage.Voluntary)/n, "vcsw/op")
	b.ReportMetric(float64(usage.Involuntary)/n, "ivcsw/op")
	publishCounts(b, reports)
}

// publishCounts reports what the CPU has counted for all parties together.
func publishCounts(b *testing.B, reports []report) {
	var counts meter.Counts
	for _, p := range reports {
		if p.Counts == nil {
			return
		}
		counts = counts.Add(*p.Counts)
	}
	part := ""
	if counts.User {
		part = "user-"
	}
	b.ReportMetric(counts.Instructions/float64(b.N), part+"instructions/op")
	b.ReportMetric(counts.Cycles/float64(b.N), part+"cycles/op")
}

// explainCounters is a comment line if there are no counters.
func explainCounters() []string {
	c, err := meter.OfThread.Counters()
	if err != nil {
		return []string{"# instructions/op and cycles/op left out: " + err.Error()}
	}
	c.Close()
	return nil
}
