//go:build linux

package unixsock_test

import (
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

func TestMain(m *testing.M) { os.Exit(channeltest.Main(m, mechanisms...)) }

func TestConformance(t *testing.T) {
	for _, m := range mechanisms {
		t.Run(m.Name, func(t *testing.T) { channeltest.Conformance(t, m) })
	}
}
