//go:build linux

package channeltest

import (
	"os"
	"testing"

	"github.com/seed-e1736cc0/ipcbench"
	"github.com/seed-e1736cc0/ipcbench/pipe"
	"github.com/seed-e1736cc0/ipcbench/unixsock"
)

// Mechanisms that the harness is tried with, and faulty ones made of them.
var (
	pipes = Mechanism{
		Name: "pipe",
		Pair: func(w ipcbench.Wait) (a, b ipcbench.Channel, err error) { return pipe.Pair(pipe.Config{Wait: w}) },
		Import: func(files []*os.File, w ipcbench.Wait) (ipcbench.Channel, error) {
			return pipe.FromFiles(files, pipe.Config{Wait: w})
		},
	}
	dgrams = Mechanism{
		Name: "unix-dgram",
		Pair: func(w ipcbench.Wait) (a, b ipcbench.Channel, err error) {
			return unixsock.Pair(unixsock.Dgram, unixsock.Config{Wait: w})
		},
		Import: func(files []*os.File, w ipcbench.Wait) (ipcbench.Channel, error) {
			return unixsock.FromFiles(files, unixsock.Config{Wait: w})
		},
	}
	// doomed is a pipe whose imported end kills its process after some reads.
	doomed = imported("doomed", pipes, func(ch ipcbench.Channel) ipcbench.Channel { return &doomedChannel{Channel: ch, reads: 50} })
	// lossy is a datagram socket whose imported end hides each 100th message.
	lossy = imported("lossy", dgrams, func(ch ipcbench.Channel) ipcbench.Channel { return &lossyChannel{Channel: ch} })
)

// imported wraps the channels that a mechanism's child processes get.
func imported(name string, m Mechanism, wrap func(ipcbench.Channel) ipcbench.Channel) Mechanism {
	inner := m.Import
	m.Name = name
	m.Import = func(files []*os.File, w ipcbench.Wait) (ipcbench.Channel, error) {
		ch, err := inner(files, w)
		if err != nil {
			return nil, err
		}
		return wrap(ch), nil
	}
	return m
}

type doomedChannel struct {
	ipcbench.Channel
	reads int
}

func (c *doomedChannel) Read(p []byte) (int, error) {
	if c.reads--; c.reads == 0 {
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			self.Kill()
		}
	}
	return c.Channel.Read(p)
}

type lossyChannel struct {
	ipcbench.Channel
	reads int
}

func (c *lossyChannel) Read(p []byte) (int, error) {
	if c.reads++; c.reads%100 == 0 {
		if n, err := c.Channel.Read(p); err != nil {
			return n, err
		}
	}
	return c.Channel.Read(p)
}

func TestMain(m *testing.M) {
	os.Exit(Main(m, pipes, dgrams, doomed, lossy))
}
