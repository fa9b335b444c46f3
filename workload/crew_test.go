//go:build linux

package workload

import (
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-e1736cc0/ipcbench"
	"github.com/seed-e1736cc0/ipcbench/internal/cpu"
	"github.com/seed-e1736cc0/ipcbench/internal/meter"
	"github.com/seed-e1736cc0/ipcbench/internal/peer"
	"github.com/seed-e1736cc0/ipcbench/pipe"
	"github.com/seed-e1736cc0/ipcbench/tcploop"
	"github.com/seed-e1736cc0/ipcbench/unixsock"
)

// start starts a process, which has the files from then on, and nobody else.
func start(tb testing.TB, cfg peer.Config, order any) *peer.Peer {
	p, err := peer.Start(cfg)
	for _, f := range cfg.Files {
		require.NoError(tb, f.Close())
	}
	require.NoError(tb, err)
	require.NoError(tb, p.Send(order))
	return p
}

// hire is start of a process that is dismissed, and has done its part well, at the end of tb.
func hire(tb testing.TB, cfg peer.Config, order any) *peer.Peer {
	p := start(tb, cfg, order)
	tb.Cleanup(func() {
		if !tb.Failed() {
			require.NoError(tb, p.Close())
			return
		}
		p.Kill()
		p.Close()
	})
	return p
}

// limitFor is by far more time than n operations take.
func limitFor(n int) time.Duration { return 10*time.Second + time.Duration(n)*time.Millisecond }

// firstCPU is where the parties of a cpu=same row run.
func firstCPU(tb testing.TB) []int {
	allowed, err := cpu.Allowed()
	require.NoError(tb, err)
	return allowed[:1]
}

// used runs f and returns what it has used.
func used(f func() error) (meter.Usage, error) {
	before, err := meter.Process()
	if err != nil {
		return before, err
	}
	if err := f(); err != nil {
		return before, err
	}
	after, err := meter.Process()
	return after.Sub(before), err
}

// reportUsage adds what n operations have cost all parties together.
func reportUsage(b *testing.B, n int, u meter.Usage) {
	per := func(x float64) float64 { return x / float64(n) }
	b.ReportMetric(per(float64(u.User)), "user-ns/op")
	b.ReportMetric(per(float64(u.Sys)), "sys-ns/op")
	b.ReportMetric(per(float64(u.Voluntary)), "vcsw/op")
	b.ReportMetric(per(float64(u.Involuntary)), "ivcsw/op")
}

// A kind is a mechanism as the workloads use it: a connected pair, and an end in another process.
type kind struct {
	pair func(ipcbench.Wait) (a, b ipcbench.Channel, err error)
	from func([]*os.File, ipcbench.Wait) (ipcbench.Channel, error)
}

var kinds = map[string]kind{
	"pipe": {
		func(w ipcbench.Wait) (a, b ipcbench.Channel, err error) { return ends(pipe.Pair(pipe.Config{Wait: w})) },
		func(f []*os.File, w ipcbench.Wait) (ipcbench.Channel, error) {
			return pipe.FromFiles(f, pipe.Config{Wait: w})
		},
	},
	"unix-stream":    unixKind(unixsock.Stream),
	"unix-dgram":     unixKind(unixsock.Dgram),
	"unix-seqpacket": unixKind(unixsock.SeqPacket),
	"tcp": {
		func(w ipcbench.Wait) (a, b ipcbench.Channel, err error) {
			return ends(tcploop.Pair(tcploop.Config{Wait: w}))
		},
		func(f []*os.File, w ipcbench.Wait) (ipcbench.Channel, error) {
			return tcploop.FromFiles(f, tcploop.Config{Wait: w})
		},
	},
}

func unixKind(k unixsock.Kind) kind {
	return kind{
		func(w ipcbench.Wait) (a, b ipcbench.Channel, err error) {
			return ends(unixsock.Pair(k, unixsock.Config{Wait: w}))
		},
		func(f []*os.File, w ipcbench.Wait) (ipcbench.Channel, error) {
			return unixsock.FromFiles(f, unixsock.Config{Wait: w})
		},
	}
}

func ends[C ipcbench.Channel](a, b C, err error) (x, y ipcbench.Channel, _ error) {
	if err != nil {
		return nil, nil, err
	}
	return a, b, nil
}

// export makes a channel files for start.
func export(tb testing.TB, ch ipcbench.Channel) []*os.File {
	files, err := ch.(ipcbench.Exporter).Files()
	require.NoError(tb, errors.Join(err, ch.Close()))
	return files
}

// readMessage reads len(p) bytes: one message, or as many reads as a stream takes.
func readMessage(ch ipcbench.Channel, p []byte) error {
	if !ch.Contract().Boundaries {
		_, err := io.ReadFull(ch, p)
		return err
	}
	n, err := ch.Read(p)
	if err == nil && n != len(p) {
		err = fmt.Errorf("a message of %d bytes, want %d", n, len(p))
	}
	return err
}
