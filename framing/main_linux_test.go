package framing_test

import (
	"encoding/binary"
	"os"
	"testing"

	"github.com/seed-e1736cc0/ipcbench"
	"github.com/seed-e1736cc0/ipcbench/channeltest"
	"github.com/seed-e1736cc0/ipcbench/framing"
	"github.com/seed-e1736cc0/ipcbench/pipe"
	"github.com/seed-e1736cc0/ipcbench/tcploop"
	"github.com/seed-e1736cc0/ipcbench/unixsock"
)

const maxMessage = 1 << 20

var (
	u32    = framing.LengthPrefix(4, binary.BigEndian, maxMessage)
	varint = framing.Varint(maxMessage)

	streams = []stream{
		{"pipe", func(w ipcbench.Wait) (a, b ipcbench.Channel, err error) { return ends(pipe.Pair(pipe.Config{Wait: w})) },
			func(f []*os.File, w ipcbench.Wait) (ipcbench.Channel, error) {
				return end(pipe.FromFiles(f, pipe.Config{Wait: w}))
			}},
		{"unix-stream", func(w ipcbench.Wait) (a, b ipcbench.Channel, err error) {
			return ends(unixsock.Pair(unixsock.Stream, unixsock.Config{Wait: w}))
		}, func(f []*os.File, w ipcbench.Wait) (ipcbench.Channel, error) {
			return end(unixsock.FromFiles(f, unixsock.Config{Wait: w}))
		}},
		{"tcp", func(w ipcbench.Wait) (a, b ipcbench.Channel, err error) {
			return ends(tcploop.Pair(tcploop.Config{Wait: w}))
		},
			func(f []*os.File, w ipcbench.Wait) (ipcbench.Channel, error) {
				return end(tcploop.FromFiles(f, tcploop.Config{Wait: w}))
			}},
	}
	mechanisms = []channeltest.Mechanism{
		streams[0].framed("u32", u32), streams[1].framed("u32", u32), streams[2].framed("u32", u32), streams[0].framed("varint", varint),
	}
)

// A stream is a mechanism to put frames on.
type stream struct {
	name   string
	pair   func(ipcbench.Wait) (a, b ipcbench.Channel, err error)
	source func([]*os.File, ipcbench.Wait) (ipcbench.Channel, error)
}

func ends[C ipcbench.Channel](a, b C, err error) (x, y ipcbench.Channel, _ error) {
	if err != nil {
		return nil, nil, err
	}
	return a, b, nil
}

func end[C ipcbench.Channel](c C, err error) (ipcbench.Channel, error) {
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (s stream) framed(format string, f framing.Format) channeltest.Mechanism {
	return channeltest.Mechanism{
		Name: s.name + "+" + format,
		Pair: func(w ipcbench.Wait) (a, b ipcbench.Channel, err error) {
			if a, b, err = s.pair(w); err != nil {
				return nil, nil, err
			}
			return framing.New(a, f), framing.New(b, f), nil
		},
		Import: func(files []*os.File, w ipcbench.Wait) (ipcbench.Channel, error) {
			ch, err := s.source(files, w)
			if err != nil {
				return nil, err
			}
			return framing.New(ch, f), nil
		},
		Variant: true,
	}
}

func TestMain(m *testing.M) { os.Exit(channeltest.Main(m, mechanisms...)) }

func TestConformance(t *testing.T) {
	for _, m := range mechanisms {
		t.Run(m.Name, func(t *testing.T) { channeltest.Conformance(t, m) })
	}
}

func BenchmarkBoundaries(b *testing.B) { channeltest.Boundaries(b, mechanisms...) }
func BenchmarkLatency(b *testing.B)    { channeltest.Latency(b, mechanisms...) }
func BenchmarkThroughput(b *testing.B) { channeltest.Throughput(b, mechanisms...) }
