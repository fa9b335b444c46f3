//go:build linux

package soak

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"time"

	"github.com/seed-e1736cc0/ipcbench"
	"github.com/seed-e1736cc0/ipcbench/framing"
	"github.com/seed-e1736cc0/ipcbench/pipe"
	"github.com/seed-e1736cc0/ipcbench/tcploop"
	"github.com/seed-e1736cc0/ipcbench/unixsock"
)

// A mechanism is what a round is played on.
type mechanism struct {
	pair func(w ipcbench.Wait) (a, b ipcbench.Channel, err error)
	from func(f []*os.File, w ipcbench.Wait) (ipcbench.Channel, error)
}

var mechanisms = map[string]mechanism{
	"pipe":           pipes(false),
	"pipe-packet":    pipes(true),
	"fifo":           {fifo, pipes(false).from},
	"unix-stream":    unix(unixsock.Stream),
	"unix-dgram":     unix(unixsock.Dgram),
	"unix-seqpacket": unix(unixsock.SeqPacket),
	"tcp":            tcp(false),
	"tcp6":           tcp(true),
	"pipe+u32":       framed(pipes(false), u32),
	"unix-stream+lf": framed(unix(unixsock.Stream), framing.Delimiter([]byte{0xff, 0xfe, 0xfd}, longest)),
	"tcp+varint":     framed(tcp(false), framing.Varint(longest)),
}

// longest is the longest message of a framed channel, in bytes.
const longest = 100_000

var u32 = framing.LengthPrefix(4, binary.BigEndian, longest)

func pipes(packets bool) mechanism {
	return mechanism{
		func(w ipcbench.Wait) (a, b ipcbench.Channel, err error) {
			return ends(pipe.Pair(pipe.Config{Wait: w, Packets: packets}))
		},
		func(f []*os.File, w ipcbench.Wait) (ipcbench.Channel, error) {
			return pipe.FromFiles(f, pipe.Config{Wait: w, Packets: packets})
		},
	}
}

func unix(k unixsock.Kind) mechanism {
	return mechanism{
		func(w ipcbench.Wait) (a, b ipcbench.Channel, err error) {
			return ends(unixsock.Pair(k, unixsock.Config{Wait: w}))
		},
		func(f []*os.File, w ipcbench.Wait) (ipcbench.Channel, error) {
			return unixsock.FromFiles(f, unixsock.Config{Wait: w})
		},
	}
}

func tcp(v6 bool) mechanism {
	return mechanism{
		func(w ipcbench.Wait) (a, b ipcbench.Channel, err error) {
			return ends(tcploop.Pair(tcploop.Config{Wait: w, IPv6: v6}))
		},
		func(f []*os.File, w ipcbench.Wait) (ipcbench.Channel, error) {
			return tcploop.FromFiles(f, tcploop.Config{Wait: w})
		},
	}
}

func framed(m mechanism, f framing.Format) mechanism {
	return mechanism{
		func(w ipcbench.Wait) (a, b ipcbench.Channel, err error) {
			if a, b, err = m.pair(w); err != nil {
				return nil, nil, err
			}
			return framing.New(a, f), framing.New(b, f), nil
		},
		func(files []*os.File, w ipcbench.Wait) (ipcbench.Channel, error) {
			ch, err := m.from(files, w)
			if err != nil {
				return nil, err
			}
			return framing.New(ch, f), nil
		},
	}
}

func fifo(w ipcbench.Wait) (a, b ipcbench.Channel, err error) {
	dir, err := os.MkdirTemp("", "soak")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	path := filepath.Join(dir, "fifo")
	type end struct {
		ch  *pipe.Channel
		err error
	}
	created := make(chan end, 1)
	go func() {
		ch, err := pipe.CreateContext(ctx, path, pipe.Config{Wait: w})
		created <- end{ch, err}
	}()
	opened, err := pipe.OpenContext(ctx, path, pipe.Config{Wait: w})
	c := <-created
	if err != nil || c.err != nil {
		return nil, nil, err
	}
	return opened, c.ch, nil
}

func ends[C ipcbench.Channel](a, b C, err error) (x, y ipcbench.Channel, _ error) {
	if err != nil {
		return nil, nil, err
	}
	return a, b, nil
}
