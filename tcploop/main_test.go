//go:build linux

package tcploop_test

import (
	"os"
	"testing"

	"github.com/seed-e1736cc0/ipcbench"
	"github.com/seed-e1736cc0/ipcbench/channeltest"
	"github.com/seed-e1736cc0/ipcbench/tcploop"
)

var mechanisms = []channeltest.Mechanism{
	mechanism("tcp", tcploop.Config{}),
	mechanism("tcp6", tcploop.Config{IPv6: true}),
}

func mechanism(name string, cfg tcploop.Config) channeltest.Mechanism {
	return channeltest.Mechanism{
		Name:    name,
		Variant: cfg.IPv6,
		Pair: func(w ipcbench.Wait) (a, b ipcbench.Channel, err error) {
			cfg := cfg
			cfg.Wait = w
			return tcploop.Pair(cfg)
		},
		Import: func(files []*os.File, w ipcbench.Wait) (ipcbench.Channel, error) {
			cfg := cfg
			cfg.Wait = w
			return tcploop.FromFiles(files, cfg)
		},
	}
}

func TestMain(m *testing.M) { os.Exit(channeltest.Main(m, mechanisms...)) }

func TestConformance(t *testing.T) {
	for _, m := range mechanisms {
		t.Run(m.Name, func(t *testing.T) { channeltest.Conformance(t, m) })
	}
}
