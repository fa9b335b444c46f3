//go:build linux

package unixsock_test

import (
	"errors"
	"os"
	"testing"

	"github.com/seed-e1736cc0/ipcbench"
	"github.com/seed-e1736cc0/ipcbench/channeltest"
	"github.com/seed-e1736cc0/ipcbench/unixsock"
)

var mechanisms = []channeltest.Mechanism{
	mechanism(unixsock.Stream), mechanism(unixsock.Dgram), mechanism(unixsock.SeqPacket),
}

func mechanism(k unixsock.Kind) channeltest.Mechanism {
	return channeltest.Mechanism{
		Name:    k.String(),
		Variant: k != unixsock.Stream,
		Pair: func(w ipcbench.Wait) (a, b ipcbench.Channel, err error) {
			return unixsock.Pair(k, unixsock.Config{Wait: w})
		},
		Import: func(files []*os.File, w ipcbench.Wait) (ipcbench.Channel, error) {
			return unixsock.FromFiles(files, unixsock.Config{Wait: w})
		},
	}
}

// terminated is a variant of unix-dgram that costs the same: it is tried, and not measured. An end must not be in two hands, so
// there is no Import.
var terminated = channeltest.Mechanism{
	Name: "unix-dgram-terminated",
	Pair: func(w ipcbench.Wait) (ipcbench.Channel, ipcbench.Channel, error) {
		a, b, err := unixsock.Pair(unixsock.Dgram, unixsock.Config{Wait: w})
		if err != nil {
			return nil, nil, err
		}
		x, errX := unixsock.Terminated(a)
		y, errY := unixsock.Terminated(b)
		return x, y, errors.Join(errX, errY)
	},
}

func TestMain(m *testing.M) { os.Exit(channeltest.Main(m, mechanisms...)) }

func TestConformance(t *testing.T) {
	for _, m := range append(mechanisms, terminated) {
		t.Run(m.Name, func(t *testing.T) { channeltest.Conformance(t, m) })
	}
}
