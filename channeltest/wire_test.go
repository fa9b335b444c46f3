//go:build linux

package channeltest

import (
	"bytes"
	"io"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/seed-e1736cc0/ipcbench"
	"github.com/seed-e1736cc0/ipcbench/unixsock"
)

// openKernelWire returns one end as bare system calls, the other as a Channel.
func openKernelWire(t *testing.T) (*kernelWire, ipcbench.Channel) {
	a, b, err := unixsock.Pair(unixsock.Stream, unixsock.Config{Wait: ipcbench.Block})
	require.NoError(t, err)
	t.Cleanup(func() { a.Close(); b.Close() })
	require.NoError(t, b.SetDeadline(time.Now().Add(10*time.Second)))
	w, err := throughKernel(a)
	require.NoError(t, err)
	return w.(*kernelWire), b
}

// allowBareCalls lets a thread block out of the scheduler's sight while the rest of the process goes on.
func allowBareCalls(t *testing.T) {
	percent, procs := debug.SetGCPercent(-1), runtime.GOMAXPROCS(4)
	t.Cleanup(func() {
		runtime.GOMAXPROCS(procs)
		debug.SetGCPercent(percent)
	})
}

func TestKernelWireEchoesWhatComesInPieces(t *testing.T) {
	allowBareCalls(t)
	const size, n = 4096, 100
	w, far := openKernelWire(t)
	ended := make(chan error, 1)
	go func() { ended <- w.echo(make([]byte, size), n) }()
	message, answer := bytes.Repeat([]byte("0123456789abcdef"), size/16), make([]byte, size)
	for i := range n {
		for _, piece := range [][]byte{message[:i+1], message[i+1:]} {
			_, err := far.Write(piece)
			require.NoError(t, err)
		}
		_, err := io.ReadFull(far, answer)
		require.NoError(t, err)
		require.Equal(t, message, answer)
	}
	require.NoError(t, <-ended)
}

func TestKernelWirePings(t *testing.T) {
	allowBareCalls(t)
	const size, n = 4096, 100
	stamps := make([]int64, n)
	began := ticks()
	w, far := openKernelWire(t)
	ended := make(chan error, 1)
	go func() { ended <- w.ping(make([]byte, size), n, stamps) }()
	message := make([]byte, size)
	for i := range n {
		_, err := io.ReadFull(far, message)
		require.NoError(t, err)
		for _, piece := range [][]byte{message[:i+1], message[i+1:]} {
			_, err := far.Write(piece)
			require.NoError(t, err)
		}
	}
	require.NoError(t, <-ended)
	for i, at := range stamps { // each of them, in order
		require.Greater(t, at, began, i)
		began = at
	}
	require.GreaterOrEqual(t, ticks(), began)
}

func TestKernelWireMeetsTheEnd(t *testing.T) {
	w, far := openKernelWire(t)
	require.NoError(t, far.CloseWrite())
	assert.ErrorIs(t, w.echo(make([]byte, 1), 10), io.EOF)
	require.NoError(t, far.Close())
	assert.ErrorIs(t, w.ping(make([]byte, 1), 10, nil), unix.EPIPE)
}
