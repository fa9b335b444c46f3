//go:build linux

package pipe_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-e1736cc0/ipcbench"
	"github.com/seed-e1736cc0/ipcbench/channeltest"
	"github.com/seed-e1736cc0/ipcbench/pipe"
)

var mechanisms = []channeltest.Mechanism{
	{Name: "pipe", Pair: pairOf(pipe.Config{}), Import: importOf(pipe.Config{})},
	{Name: "pipe-packet", Pair: pairOf(pipe.Config{Packets: true}), Import: importOf(pipe.Config{Packets: true}), Variant: true},
	{Name: "fifo", Pair: namedPair, Import: importOf(pipe.Config{}), Variant: true},
}

func pairOf(cfg pipe.Config) func(ipcbench.Wait) (a, b ipcbench.Channel, err error) {
	return func(w ipcbench.Wait) (a, b ipcbench.Channel, err error) {
		cfg := cfg
		cfg.Wait = w
		return pipe.Pair(cfg)
	}
}

func importOf(cfg pipe.Config) func([]*os.File, ipcbench.Wait) (ipcbench.Channel, error) {
	return func(files []*os.File, w ipcbench.Wait) (ipcbench.Channel, error) {
		cfg := cfg
		cfg.Wait = w
		return pipe.FromFiles(files, cfg)
	}
}

// namedPair plays both parties of Create and Open.
func namedPair(w ipcbench.Wait) (a, b ipcbench.Channel, err error) {
	dir, err := os.MkdirTemp("", "pipe")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(dir)
	path, cfg := filepath.Join(dir, "pair"), pipe.Config{Wait: w, Timeout: 10 * time.Second}
	type opened struct {
		c   *pipe.Channel
		err error
	}
	other := make(chan opened, 1)
	go func() { c, err := pipe.Open(path, cfg); other <- opened{c, err} }()
	c, err := pipe.Create(path, cfg)
	o := <-other
	if err == nil && o.err == nil {
		return c, o.c, nil
	}
	if err == nil {
		c.Close()
		err = o.err
	} else if o.err == nil {
		o.c.Close()
	}
	return nil, nil, err
}

func TestMain(m *testing.M) { os.Exit(channeltest.Main(m, mechanisms...)) }

func TestConformance(t *testing.T) {
	for _, m := range mechanisms {
		t.Run(m.Name, func(t *testing.T) { channeltest.Conformance(t, m) })
	}
}
