//go:build linux

package fd

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/seed-e1736cc0/ipcbench"
)

// limit ends the whole run, with all goroutines' stacks, when a test is stuck.
func limit(t *testing.T) {
	timer := time.AfterFunc(30*time.Second, func() { panic(t.Name() + " is stuck") })
	t.Cleanup(func() { timer.Stop() })
}

// soon waits for something that another goroutine or the kernel is about to do.
func soon(t *testing.T, what string, done func() bool) {
	t.Helper()
	require.Eventually(t, done, 10*time.Second, time.Millisecond, what)
}

// flavours are the kinds of descriptors, each as two connected ends.
var flavours = []struct {
	name string
	make func(t *testing.T, w ipcbench.Wait) (a, b *Conn)
}{
	{"pipe", func(t *testing.T, w ipcbench.Wait) (a, b *Conn) { return pipes(t, w, Pipe, 0) }},
	{"pipe-packet", func(t *testing.T, w ipcbench.Wait) (a, b *Conn) { return pipes(t, w, PacketPipe, unix.O_DIRECT) }},
	{"stream", func(t *testing.T, w ipcbench.Wait) (a, b *Conn) { return sockets(t, w, Stream, unix.SOCK_STREAM) }},
	{"dgram", func(t *testing.T, w ipcbench.Wait) (a, b *Conn) { return sockets(t, w, Dgram, unix.SOCK_DGRAM) }},
	{"seqpacket", func(t *testing.T, w ipcbench.Wait) (a, b *Conn) {
		return sockets(t, w, SeqPacket, unix.SOCK_SEQPACKET)
	}},
}

func config(k Kind, w ipcbench.Wait) Config {
	return Config{Package: "test", Kind: k, Wait: w, Contract: ipcbench.Contract{
		Mechanism: "test", Boundaries: k.boundaries(), EndOfStream: k != Dgram,
	}}
}

func pipes(t *testing.T, w ipcbench.Wait, k Kind, flags int) (a, b *Conn) {
	var f, g [2]int
	require.NoError(t, unix.Pipe2(f[:], flags|unix.O_CLOEXEC))
	require.NoError(t, unix.Pipe2(g[:], flags|unix.O_CLOEXEC))
	return conn(t, config(k, w), f[0], g[1]), conn(t, config(k, w), g[0], f[1])
}

func sockets(t *testing.T, w ipcbench.Wait, k Kind, typ int) (a, b *Conn) {
	s, err := unix.Socketpair(unix.AF_UNIX, typ|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	return conn(t, config(k, w), s[0], s[0]), conn(t, config(k, w), s[1], s[1])
}

func conn(t *testing.T, cfg Config, r, w int) *Conn {
	c, err := New(cfg, r, w)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// every runs f for each flavour and wait.
func every(t *testing.T, f func(t *testing.T, a, b *Conn, w ipcbench.Wait)) {
	for _, flavour := range flavours {
		for _, w := range ipcbench.Waits() {
			t.Run(fmt.Sprintf("%s/%v", flavour.name, w), func(t *testing.T) {
				limit(t)
				a, b := flavour.make(t, w)
				f(t, a, b, w)
			})
		}
	}
}

// fill writes until the channel takes no more.
func fill(t *testing.T, c *Conn) {
	for message := make([]byte, 512); ; {
		if _, err := c.TryWrite(message); err != nil {
			require.ErrorIs(t, err, ipcbench.ErrWouldBlock)
			return
		}
	}
}

// pending starts f and returns once it is under way, so that the side's lock is held.
func pending(t *testing.T, s *side, f func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	soon(t, "the call is under way", func() bool {
		if s.mu.TryLock() {
			s.mu.Unlock()
			return false
		}
		return true
	})
	return done
}

func TestCloseEndsPendingRead(t *testing.T) {
	every(t, func(t *testing.T, a, _ *Conn, _ ipcbench.Wait) {
		done := pending(t, &a.r, func() error { _, err := a.Read(make([]byte, 10)); return err })
		require.NoError(t, a.Close())
		require.ErrorIs(t, <-done, os.ErrClosed)
		require.ErrorIs(t, a.Close(), os.ErrClosed)
	})
}

func TestCloseEndsPendingWrite(t *testing.T) {
	every(t, func(t *testing.T, a, _ *Conn, _ ipcbench.Wait) {
		fill(t, a)
		done := pending(t, &a.w, func() error { _, err := a.Write(make([]byte, 512)); return err })
		require.NoError(t, a.Close())
		require.ErrorIs(t, <-done, os.ErrClosed)
	})
}

func TestCloseWriteEndsPendingWrite(t *testing.T) {
	every(t, func(t *testing.T, a, b *Conn, _ ipcbench.Wait) {
		if a.cfg.Kind == Dgram {
			require.ErrorIs(t, a.CloseWrite(), ipcbench.ErrNoEndOfStream)
			return
		}
		fill(t, a)
		done := pending(t, &a.w, func() error { _, err := a.Write(make([]byte, 512)); return err })
		require.NoError(t, a.CloseWrite())
		require.ErrorIs(t, <-done, os.ErrClosed)
		if _, err := b.TryWrite([]byte("back")); err != nil {
			t.Fatal("the other direction has ended too:", err)
		}
		p := make([]byte, 4)
		n, err := a.Read(p)
		require.NoError(t, err)
		require.Equal(t, "back", string(p[:n]))
	})
}

// A write that close interrupts says how much of it was accepted, and the peer reads just that.
func TestInterruptedWriteCounts(t *testing.T) {
	for _, flavour := range flavours {
		if flavour.name != "pipe" && flavour.name != "stream" {
			continue
		}
		for _, w := range ipcbench.Waits() {
			t.Run(fmt.Sprintf("%s/%v", flavour.name, w), func(t *testing.T) {
				limit(t)
				a, b := flavour.make(t, w)
				var n int
				done := pending(t, &a.w, func() (err error) { n, err = a.Write(make([]byte, 8<<20)); return err })
				first := make([]byte, 1<<20)
				m, err := b.Read(first)
				require.NoError(t, err)
				require.NoError(t, a.Close())
				require.ErrorIs(t, <-done, os.ErrClosed)
				for got := m; ; got += m {
					if m, err = b.Read(first); err != nil {
						require.Equal(t, n, got)
						return
					}
				}
			})
		}
	}
}

// Interrupting sets O_NONBLOCK on a description that another process may
// share; it has to be as before afterwards, and the channel as usable.
func TestInterruptPutsFlagBack(t *testing.T) {
	every(t, func(t *testing.T, a, b *Conn, w ipcbench.Wait) {
		if w != ipcbench.Block {
			return
		}
		files, err := a.Files()
		require.NoError(t, err)
		defer func() {
			for _, f := range files {
				f.Close()
			}
		}()
		done := pending(t, &a.r, func() error { _, err := a.Read(make([]byte, 10)); return err })
		require.NoError(t, a.SetReadDeadline(time.Now().Add(time.Hour)))
		require.NoError(t, a.SetReadDeadline(time.Unix(1, 0)))
		require.ErrorIs(t, <-done, os.ErrDeadlineExceeded)
		require.True(t, blocking(t, files[0]), "after a deadline")
		require.NoError(t, a.SetReadDeadline(time.Time{}))
		done = pending(t, &a.r, func() error { _, err := a.Read(make([]byte, 10)); return err })
		_, err = b.Write([]byte("x"))
		require.NoError(t, err)
		require.NoError(t, <-done)
		done = pending(t, &a.r, func() error { _, err := a.Read(make([]byte, 10)); return err })
		require.NoError(t, a.Close())
		require.ErrorIs(t, <-done, os.ErrClosed)
		for _, f := range files {
			require.True(t, blocking(t, f), "after Close")
		}
	})
}

func blocking(t *testing.T, f *os.File) bool {
	raw, err := f.SyscallConn()
	require.NoError(t, err)
	var flags int
	require.NoError(t, raw.Control(func(n uintptr) { flags, err = unix.FcntlInt(n, unix.F_GETFL, 0) }))
	require.NoError(t, err)
	return flags&unix.O_NONBLOCK == 0
}

func TestOneOfManyClosersWins(t *testing.T) {
	every(t, func(t *testing.T, a, _ *Conn, _ ipcbench.Wait) {
		reading := pending(t, &a.r, func() error { _, err := a.Read(make([]byte, 10)); return err })
		var won atomic.Int32
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				switch err := a.Close(); {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, os.ErrClosed):
					t.Error(err)
				}
			})
		}
		all.Wait()
		require.EqualValues(t, 1, won.Load())
		require.ErrorIs(t, <-reading, os.ErrClosed)
		require.Equal(t, -1, a.ReadFD())
		require.Equal(t, -1, a.WriteFD())
	})
}

// Close against Read, Write and deadlines, while others keep opening
// descriptors, which get the numbers that have just become free. A call on a number
// that is not the channel's any more would take the others' bytes or give them ours.
func TestReusedNumberIsNeverTouched(t *testing.T) {
	limit(t)
	var stop atomic.Bool
	var others, rounds sync.WaitGroup
	for id := range 4 {
		others.Go(func() {
			for !stop.Load() {
				if err := bystander(byte(id + 1)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	count := 25
	if testing.Short() {
		count = 8
	}
	for _, flavour := range flavours {
		for _, w := range ipcbench.Waits() {
			rounds.Go(func() {
				for range count {
					a, b := flavour.make(t, w)
					hammer(t, a)
					b.Close()
				}
			})
		}
	}
	rounds.Wait()
	stop.Store(true)
	others.Wait()
}

// bystander moves bytes over descriptors of its own and fails if any is missing or foreign.
func bystander(id byte) error {
	s, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer CloseAll(s[:]...)
	for i := range 2 {
		want := bytes.Repeat([]byte{id}, 8)
		if _, err := unix.Write(s[i], want); err != nil {
			return err
		}
		runtime.Gosched()
		got := make([]byte, 100)
		if n, err := unix.Read(s[1-i], got); err != nil || !bytes.Equal(got[:n], want) {
			return fmt.Errorf("bystander %d got % x, %w", id, got[:max(n, 0)], err)
		}
	}
	return nil
}

// hammer calls everything on c from several goroutines until Close ends them.
func hammer(t *testing.T, c *Conn) {
	var all sync.WaitGroup
	use := func(f func() error) {
		all.Go(func() {
			for {
				if err := f(); errors.Is(err, os.ErrClosed) {
					return
				}
			}
		})
	}
	use(func() error {
		n, err := c.Read(make([]byte, 64))
		if n > 0 {
			t.Errorf("read %d bytes that nobody wrote to it", n)
		}
		return err
	})
	use(func() error { _, err := c.TryRead(make([]byte, 64)); runtime.Gosched(); return err })
	use(func() error { _, err := c.Write(make([]byte, 64)); return err })
	use(func() error { runtime.Gosched(); return c.SetDeadline(time.Now().Add(time.Second)) })
	for range 5 {
		runtime.Gosched()
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	all.Wait()
}

func TestTakeClosesOnError(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	_, err = Take([]*os.File{r, nil}, 2)
	require.ErrorIs(t, err, unix.EINVAL)
	require.ErrorIs(t, r.Close(), os.ErrClosed)
	_, err = Take([]*os.File{w}, 2)
	require.ErrorIs(t, err, unix.EINVAL)
	require.ErrorIs(t, w.Close(), os.ErrClosed)
}

func TestUnknownWaitIsRefused(t *testing.T) {
	s, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(s[1])
	_, err = New(config(Stream, 17), s[0], s[0])
	require.ErrorIs(t, err, unix.EINVAL)
	_, err = unix.FcntlInt(uintptr(s[0]), unix.F_GETFD, 0)
	require.ErrorIs(t, err, unix.EBADF, "taken over on error too")
}

// A century has more seconds than 32 bits.
func TestFarDeadline(t *testing.T) {
	every(t, func(t *testing.T, a, b *Conn, _ ipcbench.Wait) {
		require.NoError(t, b.SetReadDeadline(time.Now().Add(100*365*24*time.Hour)))
		read := make(chan error, 1)
		go func() { _, err := b.Read(make([]byte, 1)); read <- err }()
		select {
		case err := <-read:
			require.NoError(t, err, "before anything was written")
		case <-time.After(5 * time.Millisecond):
		}
		_, err := a.Write([]byte("x"))
		require.NoError(t, err)
		require.NoError(t, <-read)
	})
}
