//go:build linux

package workload

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-e1736cc0/ipcbench"
	"github.com/seed-e1736cc0/ipcbench/internal/meter"
	"github.com/seed-e1736cc0/ipcbench/internal/peer"
	"github.com/seed-e1736cc0/ipcbench/pipe"
)

// Log collection: many writers send short records to one reader. It is checked that the
// reader has what a Write accepted, each record once and in its writer's order.

const (
	perWriter  = 10_000 // records of a writer in one operation
	recordSize = 120    // bytes
)

type logOrder struct {
	Mechanism string
	Path      string // of the reader's socket
	Writers   int
	Records   int // of each writer
	Drop      bool
	Slow      bool // the reader takes slowReader for each record
	Writer    int  // which one
}

type logReport struct {
	Accepted, Dropped, Received int
	P99                         time.Duration // of a writer's call, in slow rows
	Usage                       meter.Usage
}

// BenchmarkLogFanIn has writers and reader in processes of their own, which the scheduler places. One operation is
// 10 000 records of 120 bytes from each writer. With full=drop a writer drops, and counts, what would wait; with
// full=block it waits. lost-% is what was accepted and did not arrive, and has to be 0.
func BenchmarkLogFanIn(b *testing.B) {
	for _, mech := range []string{"unix-dgram", "unix-seqpacket", "unix-stream+u32", "pipe"} {
		for _, full := range []string{"drop", "block"} {
			for _, writers := range []int{1, 4, 10} {
				if testing.Short() && (writers != 4 || full == "drop") {
					continue
				}
				o := logOrder{Mechanism: mech, Writers: writers, Drop: full == "drop"}
				b.Run(fmt.Sprintf("mech=%s/writers=%d/full=%s", mech, writers, full), func(b *testing.B) { collectLogs(b, o) })
			}
		}
		if !testing.Short() {
			o := logOrder{Mechanism: mech, Writers: 4, Slow: true}
			b.Run(fmt.Sprintf("mech=%s/writers=4/full=block/reader=slow", mech), func(b *testing.B) { collectLogs(b, o) })
		}
	}
}

func collectLogs(b *testing.B, o logOrder) {
	o.Records = b.N * perWriter
	c := newLogCrew(b, o)
	b.ResetTimer()
	began := time.Now()
	reports, err := c.run(limitFor(o.Writers * o.Records))
	took := time.Since(began)
	b.StopTimer()
	require.NoError(b, err)
	total := sum(reports)
	require.Equal(b, o.Writers*o.Records, total.Accepted+total.Dropped)
	lost := total.Accepted - total.Received
	require.Zero(b, lost, "records that were accepted and did not arrive")
	b.ReportMetric(float64(took)/float64(b.N), "ns/op")
	b.ReportMetric(float64(total.Received)/took.Seconds(), "records/s")
	b.ReportMetric(100*float64(total.Dropped)/float64(o.Writers*o.Records), "dropped-%")
	b.ReportMetric(100*float64(lost)/float64(total.Accepted), "lost-%")
	if o.Slow {
		b.ReportMetric(float64(total.P99), "p99-ns/op")
	}
	reportUsage(b, b.N, total.Usage)
}

func sum(reports []logReport) (total logReport) {
	for _, r := range reports {
		total.Accepted += r.Accepted
		total.Dropped += r.Dropped
		total.Received += r.Received
		total.P99 = max(total.P99, r.P99)
		total.Usage = total.Usage.Add(r.Usage)
	}
	return total
}

// A logCrew is a reader and its writers, ready to begin.
type logCrew struct {
	reader  *peer.Peer
	writers []*peer.Peer
}

func (c *logCrew) all() []*peer.Peer { return append([]*peer.Peer{c.reader}, c.writers...) }

func newLogCrew(tb testing.TB, o logOrder) *logCrew {
	o.Path = filepath.Join(tb.TempDir(), "log")
	c := &logCrew{}
	tb.Cleanup(func() {
		for _, p := range c.all() {
			p.Kill()
			p.Close()
		}
	})
	given := o.shared(tb)
	c.reader = start(tb, peer.Config{Role: "log-reader", Files: given[0]}, o)
	require.NoError(tb, c.reader.Recv(nil, 10*time.Second))
	for o.Writer = range o.Writers {
		w := start(tb, peer.Config{Role: "log-writer", Files: given[1+o.Writer]}, o)
		c.writers = append(c.writers, w)
		require.NoError(tb, w.Recv(nil, 10*time.Second))
	}
	return c
}

// shared is what the reader and each writer are given: the ends of one pipe, or nothing.
func (o logOrder) shared(tb testing.TB) [][]*os.File {
	given := make([][]*os.File, 1+o.Writers)
	if o.Mechanism != "pipe" {
		return given
	}
	in, out, err := pipe.Pair(pipe.Config{Wait: ipcbench.Block})
	require.NoError(tb, err)
	for i := range given[1:] {
		given[1+i], err = in.Files()
		require.NoError(tb, err)
	}
	require.NoError(tb, in.Close())
	given[0] = export(tb, out)
	return given
}

// run has the writers begin, and returns what all have to report. Whoever fails ends it for all.
func (c *logCrew) run(limit time.Duration) ([]logReport, error) {
	all := c.all()
	reports := make([]logReport, len(all))
	ended := make(chan error, len(all))
	for i, p := range all {
		go func() {
			err := p.Send(struct{}{})
			if err == nil {
				err = p.Recv(&reports[i], limit)
			}
			ended <- err
		}()
	}
	var failed error
	for range all {
		err := <-ended
		if err == nil || failed != nil {
			continue
		}
		failed = err
		for _, p := range all {
			p.Kill()
		}
	}
	return reports, failed
}

// Whoever is killed in the middle, nobody waits for ever.
func TestLogFanInKilled(t *testing.T) {
	for _, mech := range []string{"unix-dgram", "unix-seqpacket", "unix-stream+u32", "pipe"} {
		for _, victim := range []string{"reader", "writer"} {
			t.Run(mech+"/"+victim, func(t *testing.T) {
				c := newLogCrew(t, logOrder{Mechanism: mech, Writers: 3, Records: 1 << 30})
				killed := c.reader
				if victim == "writer" {
					killed = c.writers[1]
				}
				time.AfterFunc(20*time.Millisecond, killed.Kill)
				began := time.Now()
				_, err := c.run(30 * time.Second)
				require.Error(t, err)
				require.False(t, errors.Is(err, os.ErrDeadlineExceeded), "%v after %v", err, time.Since(began))
			})
		}
	}
}

// Nothing that was accepted is lost, however often it is tried.
func TestLogFanInLosesNothing(t *testing.T) {
	for _, mech := range []string{"unix-dgram", "unix-seqpacket", "unix-stream+u32", "pipe"} {
		for _, drop := range []bool{false, true} {
			for range 3 {
				o := logOrder{Mechanism: mech, Writers: 10, Records: 500, Drop: drop}
				reports, err := newLogCrew(t, o).run(20 * time.Second)
				require.NoError(t, err)
				total := sum(reports)
				require.Equal(t, total.Accepted, total.Received)
				require.Equal(t, o.Writers*o.Records, total.Accepted+total.Dropped)
				if !drop {
					require.Zero(t, total.Dropped)
				}
			}
		}
	}
}
