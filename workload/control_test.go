//go:build linux

package workload

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-e1736cc0/ipcbench"
	"github.com/seed-e1736cc0/ipcbench/internal/meter"
	"github.com/seed-e1736cc0/ipcbench/internal/peer"
)

// Control commands: the client sends the time of day in 8 bytes, and the server
// sends them back. How old they are then is how long the command took.

func init() {
	peer.Register("control-server", serveControl)
	peer.Register("control-client", sendControl)
}

type controlOrder struct {
	Mechanism string
	Wait      ipcbench.Wait
	Warm, N   int
}

func (o controlOrder) channel(c *peer.Conn) (ipcbench.Channel, error) {
	return kinds[o.Mechanism].from(c.Files(), o.Wait)
}

type controlReport struct {
	Took     time.Duration
	Usage    meter.Usage
	P50, P99 time.Duration
	Answers  int
}

// BenchmarkControl has client and server in two processes on one CPU.
func BenchmarkControl(b *testing.B) {
	for _, mech := range []string{"pipe", "unix-stream", "unix-seqpacket", "unix-dgram", "tcp"} {
		for _, w := range []ipcbench.Wait{ipcbench.Block, ipcbench.Netpoll} {
			if testing.Short() && (w != ipcbench.Block || mech == "unix-seqpacket" || mech == "unix-dgram") {
				continue
			}
			b.Run(fmt.Sprintf("mech=%s/cpu=same/peer=process/wait=%v", mech, w), func(b *testing.B) {
				control(b, controlOrder{mech, w, min(b.N/10, 10_000) + 1, b.N})
			})
		}
	}
}

func control(b *testing.B, o controlOrder) {
	x, y, err := kinds[o.Mechanism].pair(o.Wait)
	require.NoError(b, err)
	place := firstCPU(b)
	server := hire(b, peer.Config{Role: "control-server", Files: export(b, y), CPUs: place}, o)
	client := hire(b, peer.Config{Role: "control-client", Files: export(b, x), CPUs: place}, o)
	b.ResetTimer()
	var c, s controlReport
	require.NoError(b, client.Recv(&c, limitFor(o.N)))
	require.NoError(b, server.Recv(&s, limitFor(0)))
	require.Equal(b, o.Warm+o.N, s.Answers)
	b.ReportMetric(float64(c.Took)/float64(o.N), "ns/op")
	b.ReportMetric(float64(c.P50), "p50-ns/op")
	b.ReportMetric(float64(c.P99), "p99-ns/op")
	reportUsage(b, o.N, c.Usage.Add(s.Usage))
}

func sendControl(c *peer.Conn) error {
	var o controlOrder
	if err := c.Recv(&o); err != nil {
		return err
	}
	ch, err := o.channel(c)
	if err != nil {
		return err
	}
	for range o.Warm {
		if _, err := command(ch, time.Now()); err != nil {
			return err
		}
	}
	var r controlReport
	ages := make([]int64, o.N)
	r.Usage, err = used(func() error {
		began := time.Now()
		at := began
		for i := range ages {
			answered, err := command(ch, at)
			if err != nil {
				return fmt.Errorf("command %d: %w", i, err)
			}
			ages[i] = int64(answered.Sub(at))
			at = answered
		}
		r.Took = at.Sub(began)
		return nil
	})
	if err != nil {
		return err
	}
	tail := meter.NewTail(ages)
	r.P50, r.P99 = tail.P50, tail.P99
	return errors.Join(c.Send(r), ch.Close())
}

// command sends a time stamp and waits for it to come back.
func command(ch ipcbench.Channel, at time.Time) (answered time.Time, err error) {
	var sent, got [8]byte
	binary.BigEndian.PutUint64(sent[:], uint64(at.UnixNano()))
	if _, err := ch.Write(sent[:]); err != nil {
		return at, err
	}
	if err := readMessage(ch, got[:]); err != nil {
		return at, err
	}
	if !bytes.Equal(sent[:], got[:]) {
		return at, fmt.Errorf("sent %x, and %x came back", sent, got)
	}
	return time.Now(), nil
}

func serveControl(c *peer.Conn) error {
	var o controlOrder
	if err := c.Recv(&o); err != nil {
		return err
	}
	ch, err := o.channel(c)
	if err != nil {
		return err
	}
	var r controlReport
	p := make([]byte, 8)
	answer := func(n int) error {
		for range n {
			if err := readMessage(ch, p); err != nil {
				return err
			}
			if _, err := ch.Write(p); err != nil {
				return err
			}
			r.Answers++
		}
		return nil
	}
	if err := answer(o.Warm); err != nil {
		return err
	}
	if r.Usage, err = used(func() error { return answer(o.N) }); err != nil {
		return err
	}
	return errors.Join(c.Send(r), ch.Close())
}

// A server that dies in the middle ends the client within seconds.
func TestControlServerKilled(t *testing.T) {
	for mech := range kinds {
		if mech == "unix-dgram" {
			continue // nothing tells a client that waits; the supervisor does
		}
		t.Run(mech, func(t *testing.T) {
			o := controlOrder{mech, ipcbench.Netpoll, 1, 1 << 24}
			x, y, err := kinds[mech].pair(o.Wait)
			require.NoError(t, err)
			server := start(t, peer.Config{Role: "control-server", Files: export(t, y)}, o)
			client := start(t, peer.Config{Role: "control-client", Files: export(t, x)}, o)
			server.Kill()
			require.NoError(t, server.Close())
			err = client.Recv(nil, 10*time.Second)
			var failed *peer.HandlerError
			require.ErrorAs(t, err, &failed)
			var exit *peer.ExitError
			require.ErrorAs(t, client.Close(), &exit)
			require.Equal(t, "exit status 1", exit.Status())
		})
	}
}
