package channeltest_test

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/seed-e1736cc0/ipcbench"
	"github.com/seed-e1736cc0/ipcbench/channeltest"
)

// This file brings a Channel of its own: two io.Pipes, one each way, within one
// process. What it takes to have it tested and measured stands at the end.

// ownChannel is one end.
type ownChannel struct {
	r      *io.PipeReader
	w      *io.PipeWriter
	closed atomic.Bool
}

func ownPair(w ipcbench.Wait) (a, b ipcbench.Channel, err error) {
	if w != ipcbench.Netpoll {
		return nil, nil, errors.ErrUnsupported // goroutines wait for each other: there is no other way
	}
	ar, bw := io.Pipe()
	br, aw := io.Pipe()
	return &ownChannel{r: ar, w: aw}, &ownChannel{r: br, w: bw}, nil
}

func (c *ownChannel) Read(p []byte) (int, error)  { return c.move(c.r.Read, p) }
func (c *ownChannel) Write(p []byte) (int, error) { return c.move(c.w.Write, p) }

// move makes of io.Pipe's rules those of a Channel: it hands an empty Write to a
// Read, and has a name of its own for an end that is closed.
func (c *ownChannel) move(call func([]byte) (int, error), p []byte) (n int, err error) {
	if len(p) > 0 {
		n, err = call(p)
	}
	if c.closed.Load() || err == io.ErrClosedPipe {
		err = os.ErrClosed
	}
	return n, err
}

func (c *ownChannel) CloseWrite() error {
	if c.closed.Load() {
		return os.ErrClosed
	}
	return c.w.Close() // the peer reads io.EOF
}

func (c *ownChannel) Close() error {
	if c.closed.Swap(true) {
		return os.ErrClosed
	}
	c.w.Close()
	return c.r.CloseWithError(syscall.EPIPE) // for the peer's Write
}

func (c *ownChannel) Contract() ipcbench.Contract {
	return ipcbench.Contract{Mechanism: "io.Pipe", EndOfStream: true}
}

// The mechanism, and a line each for all tests and all benchmarks. A mechanism with peers
// in other processes has an Import too and goes to channeltest.Main in TestMain.
var ioPipe = channeltest.Mechanism{Name: "io.Pipe", Pair: ownPair}

func TestConformance(t *testing.T) { channeltest.Conformance(t, ioPipe) }
func BenchmarkOwn(b *testing.B)    { channeltest.Latency(b, ioPipe) }
