//go:build linux

package unixsock

import (
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/seed-e1736cc0/ipcbench"
)

func terminated(t *testing.T, ch *Channel) *TerminatedChannel {
	c, err := Terminated(ch)
	require.NoError(t, err)
	return closing(t, c)
}

// fillUp writes until nothing more is taken, and says how many messages were.
func fillUp(t *testing.T, c ipcbench.NonBlocking) (n int) {
	for ; ; n++ {
		if _, err := c.TryWrite([]byte("x")); err != nil {
			require.ErrorIs(t, err, ipcbench.ErrWouldBlock)
			return n
		}
	}
}

// drain reads n messages and the end.
func drain(t *testing.T, c ipcbench.Channel, n int) {
	t.Helper()
	p := make([]byte, 10)
	for range n {
		m, err := c.Read(p)
		require.NoError(t, err)
		require.Equal(t, "x", string(p[:m]))
	}
	for range 2 {
		_, err := c.Read(p)
		require.Equal(t, io.EOF, err)
	}
}

// Without an agreed end a Read waits for ever for a peer that has gone. Only its
// own side can end it, here by a deadline.
func TestEndlessRead(t *testing.T) {
	everyWait(t, func(t *testing.T, w ipcbench.Wait) {
		for what, end := range map[string]func(*Channel) error{
			"close": (*Channel).Close,
			"shutdown": func(c *Channel) error {
				return c.Control("", func(s, _ int) error { return unix.Shutdown(s, unix.SHUT_RDWR) })
			},
		} {
			a, b := pair(t, Dgram, Config{Wait: w})
			write(t, a, "last")
			require.NoError(t, end(a))
			require.Equal(t, "last", read(t, b))
			require.NoError(t, b.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
			_, err := b.Read(make([]byte, 10))
			require.ErrorIs(t, err, os.ErrDeadlineExceeded, what)
		}
	})
}

// The end comes after everything that was accepted, also when there is no room
// for it at first, and by Close as by CloseWrite.
func TestEndWaitsForRoom(t *testing.T) {
	for what, connect := range map[string]func(*testing.T, Config) (*Channel, *Channel){
		"pair":  func(t *testing.T, cfg Config) (*Channel, *Channel) { return pair(t, Dgram, cfg) },
		"bound": func(t *testing.T, cfg Config) (*Channel, *Channel) { return meet(t, Dgram, newAbstract(), cfg) },
	} {
		t.Run(what, func(t *testing.T) {
			everyWait(t, func(t *testing.T, w ipcbench.Wait) {
				for _, end := range []func(*TerminatedChannel) error{(*TerminatedChannel).CloseWrite, (*TerminatedChannel).Close} {
					before := openDescriptors(t)
					x, y := connect(t, Config{Wait: w})
					a, b := terminated(t, x), terminated(t, y)
					n := fillUp(t, a)
					pending := make(chan error, 1)
					go func() { _, err := a.Write([]byte("too late")); pending <- err }()
					require.NoError(t, end(a))
					require.ErrorIs(t, <-pending, os.ErrClosed)
					_, err := a.TryWrite([]byte("x"))
					require.ErrorIs(t, err, os.ErrClosed)
					drain(t, b, n)
					a.Close()
					b.Close()
					requireSettled(t, before)
				}
			})
		})
	}
}

// requireSettled waits until no more descriptors are open than before: what sends the end later closes its own.
func requireSettled(t *testing.T, before int) {
	for openDescriptors(t) > before {
		time.Sleep(time.Millisecond)
	}
}

// A peer that writes and does not read is not held up by an end that waits for room.
func TestCloseWhileBothAreFull(t *testing.T) {
	everyWait(t, func(t *testing.T, w ipcbench.Wait) {
		for _, half := range []bool{false, true} {
			x, y := pair(t, Dgram, Config{Wait: w})
			a, b := terminated(t, x), terminated(t, y)
			n := fillUp(t, a)
			fillUp(t, b)
			pending := make(chan error, 1)
			go func() { _, err := b.Write([]byte("x")); pending <- err }()
			if half {
				require.NoError(t, a.CloseWrite())
			}
			require.NoError(t, a.Close())
			var err error
			select { // it may have gone through just before
			case err = <-pending:
			case <-time.After(10 * time.Second):
				t.Fatal("a Write is held up")
			}
			if err == nil {
				_, err = b.Write([]byte("x"))
			}
			require.ErrorIs(t, err, unix.EPIPE)
			drain(t, b, n)
		}
	})
}

// All Reads that wait see the end, of which only one message tells.
func TestEndOfManyReads(t *testing.T) {
	everyWait(t, func(t *testing.T, w ipcbench.Wait) {
		x, y := pair(t, Dgram, Config{Wait: w})
		a, b := terminated(t, x), terminated(t, y)
		const readers = 3
		ends := make(chan error, readers)
		for range readers {
			go func() { _, err := b.Read(make([]byte, 10)); ends <- err }()
		}
		require.NoError(t, a.CloseWrite())
		for range readers {
			require.Equal(t, io.EOF, <-ends)
		}
		n, err := b.Write([]byte("back"))
		require.NoError(t, err)
		require.Equal(t, 4, n)
		n, err = a.Read(make([]byte, 10))
		require.NoError(t, err)
		require.Equal(t, 4, n, "the other direction goes on")
	})
}

func TestTerminatedRefuses(t *testing.T) {
	limit(t)
	for _, k := range []Kind{Stream, SeqPacket} {
		a, _ := pair(t, k, Config{})
		_, err := Terminated(a)
		require.ErrorIs(t, err, unix.EINVAL)
		require.ErrorContains(t, err, "unixsock: terminated: "+k.String())
	}
	a, b := pair(t, Dgram, Config{})
	require.NoError(t, a.Close())
	_, err := Terminated(a)
	require.ErrorIs(t, err, os.ErrClosed)
	c := terminated(t, b)
	_, err = c.Write(nil)
	require.ErrorIs(t, err, ipcbench.ErrEmptyMessage)
	_, err = c.TryWrite(nil)
	require.ErrorIs(t, err, ipcbench.ErrEmptyMessage)
	require.NoError(t, c.CloseWrite(), "nobody is left to be told")
	require.ErrorIs(t, c.CloseWrite(), os.ErrClosed)
	require.False(t, c.Contract().Files)
	require.NoError(t, errors.Join(c.SetWriteDeadline(time.Unix(1, 0)), c.Close()))
}
