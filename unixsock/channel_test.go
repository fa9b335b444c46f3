//go:build linux

package unixsock

import (
	"errors"
	"io"
	"math"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/seed-e1736cc0/ipcbench"
)

// The promises of the contract hold over connections made by path and by
// abstract name as over a Pair, which Conformance tries at length.
func TestByName(t *testing.T) {
	for what, place := range meetings {
		t.Run(what, func(t *testing.T) {
			everyKind(t, func(t *testing.T, k Kind, w ipcbench.Wait) {
				a, b := meet(t, k, place(t), Config{Wait: w})
				requireCloseOnExec(t, a, b)
				requireBoundaries(t, a, b)
				requireDeadlines(t, b)
				if k != Dgram {
					requireBoundaries(t, b, a)
				}
				requireEnd(t, a, b)
			})
		})
	}
}

func requireCloseOnExec(t *testing.T, channels ...*Channel) {
	for _, c := range channels {
		flags, err := unix.FcntlInt(uintptr(c.ReadFD()), unix.F_GETFD, 0)
		require.NoError(t, err)
		require.NotZero(t, flags&unix.FD_CLOEXEC)
	}
}

// requireBoundaries writes 3, 2 and 4 bytes and reads them as the contract says.
func requireBoundaries(t *testing.T, a, b *Channel) {
	t.Helper()
	for _, m := range []string{"abc", "de", "fghi"} {
		write(t, a, m)
	}
	if !a.Contract().Boundaries {
		require.Equal(t, "abcdefghi", read(t, b))
		return
	}
	require.Equal(t, "abc", read(t, b))
	require.Equal(t, "de", read(t, b))
	p := make([]byte, 2)
	n, err := b.Read(p)
	require.ErrorIs(t, err, ipcbench.ErrTruncated)
	require.Equal(t, "fg", string(p[:n]))
	_, err = b.TryRead(p)
	require.ErrorIs(t, err, ipcbench.ErrWouldBlock, "the rest is lost")
}

func requireDeadlines(t *testing.T, c *Channel) {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(2*time.Millisecond)))
	_, err := c.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, c.SetReadDeadline(time.Time{}))
}

func requireEnd(t *testing.T, a, b *Channel) {
	t.Helper()
	if !a.Contract().EndOfStream {
		require.ErrorIs(t, a.CloseWrite(), ipcbench.ErrNoEndOfStream)
		require.NoError(t, a.Close())
		_, err := b.TryRead(make([]byte, 1))
		require.ErrorIs(t, err, ipcbench.ErrWouldBlock)
		return
	}
	write(t, a, "last")
	require.NoError(t, a.CloseWrite())
	require.Equal(t, "last", read(t, b))
	_, err := b.Read(make([]byte, 1))
	require.Equal(t, io.EOF, err)
	require.NoError(t, b.Close())
	_, err = a.Read(make([]byte, 1))
	require.Equal(t, io.EOF, err)
}

// A datagram receiver has any number of writers, loses nothing, and writes to none of them.
func TestManyWriters(t *testing.T) {
	everyWait(t, func(t *testing.T, w ipcbench.Wait) {
		path := newPath(t)
		r := bound(t, path, Config{Wait: w})
		require.Equal(t, path, r.Addr())
		_, err := r.Write([]byte("to whom?"))
		require.ErrorIs(t, err, unix.ENOTCONN)
		const writers, messages = 4, 100
		var all sync.WaitGroup
		for range writers {
			c := dialled(t, Dgram, path, Config{Wait: w})
			all.Go(func() {
				for range messages {
					if _, err := c.Write([]byte("hello")); err != nil {
						t.Error(err)
					}
				}
			})
		}
		for range writers * messages {
			require.Equal(t, "hello", read(t, r))
		}
		all.Wait()
		_, err = r.TryRead(make([]byte, 1))
		require.ErrorIs(t, err, ipcbench.ErrWouldBlock)
	})
}

// A receiver that does not read takes what its queue holds and refuses the rest; nothing is lost.
func TestFullReceiver(t *testing.T) {
	everyWait(t, func(t *testing.T, w ipcbench.Wait) {
		addr := newAbstract()
		r := bound(t, addr, Config{Wait: w})
		c := dialled(t, Dgram, addr, Config{Wait: w})
		sent := 0
		for {
			n, err := c.TryWrite([]byte("x"))
			if err != nil {
				require.ErrorIs(t, err, ipcbench.ErrWouldBlock)
				require.ErrorIs(t, err, unix.EAGAIN)
				break
			}
			require.Equal(t, 1, n)
			sent++
		}
		// The queue is full when it is longer than max_dgram_qlen (unix_recvq_full in af_unix.c).
		require.Equal(t, setting(t, "unix/max_dgram_qlen")+1, sent)
		require.NoError(t, c.SetWriteDeadline(time.Now().Add(2*time.Millisecond)))
		n, err := c.Write([]byte("x"))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Zero(t, n)
		for range sent {
			require.Equal(t, "x", read(t, r))
		}
		_, err = r.TryRead(make([]byte, 1))
		require.ErrorIs(t, err, ipcbench.ErrWouldBlock)
	})
}

// A receiver that is replaced has to be dialled again: the writer is told, and
// never talks to the new one unawares.
func TestReceiverIsReplaced(t *testing.T) {
	everyWait(t, func(t *testing.T, w ipcbench.Wait) {
		path := newPath(t)
		r := bound(t, path, Config{Wait: w})
		c := dialled(t, Dgram, path, Config{Wait: w})
		write(t, c, "to the first")
		require.NoError(t, r.Close())
		r = bound(t, path, Config{Wait: w})
		_, err := c.Write([]byte("x"))
		require.ErrorIs(t, err, unix.ECONNREFUSED)
		for range 2 {
			_, err = c.Write([]byte("x"))
			require.ErrorIs(t, err, unix.ENOTCONN)
		}
		write(t, dialled(t, Dgram, path, Config{Wait: w}), "to the second")
		require.Equal(t, "to the second", read(t, r))
	})
}

// The longest message goes, one byte more does not, and the channel stays usable.
func TestLongestMessage(t *testing.T) {
	for _, k := range []Kind{Dgram, SeqPacket} {
		t.Run(k.String(), func(t *testing.T) {
			everyWait(t, func(t *testing.T, w ipcbench.Wait) {
				a, b := pair(t, k, Config{Wait: w})
				longest := a.Contract().MaxMessage
				require.Equal(t, setting(t, "core/wmem_default")-32, longest)
				require.Equal(t, longest, a.Contract().AtomicWrite)
				requireLongest(t, a, b, longest)
				// More after a larger SO_SNDBUF, and the contract follows.
				require.NoError(t, a.Control("", func(s, _ int) error {
					return unix.SetsockoptInt(s, unix.SOL_SOCKET, unix.SO_SNDBUF, 300_000)
				}))
				send, _, err := a.Buffers()
				require.NoError(t, err)
				require.Equal(t, send-32, a.Contract().MaxMessage)
				require.Equal(t, 2*min(300_000, setting(t, "core/wmem_max")), send)
				requireLongest(t, a, b, a.Contract().MaxMessage)
			})
		})
	}
}

func requireLongest(t *testing.T, a, b *Channel, longest int) {
	t.Helper()
	message := make([]byte, longest+100_000)
	for _, n := range []int{longest + 1, longest + 100_000} {
		for _, send := range []func([]byte) (int, error){a.Write, a.TryWrite} {
			n, err := send(message[:n])
			require.ErrorIs(t, err, ipcbench.ErrMessageTooLong)
			require.ErrorIs(t, err, unix.EMSGSIZE)
			require.Zero(t, n)
		}
	}
	done := make(chan error, 1)
	go func() { _, err := a.Write(message[:longest]); done <- err }()
	n, err := b.Read(message)
	require.NoError(t, err)
	require.Equal(t, longest, n)
	require.NoError(t, <-done)
}

func TestBuffers(t *testing.T) {
	limit(t)
	l := listening(t, Stream, newAbstract(), Config{SendBuffer: 50_000, RecvBuffer: 60_000})
	a := dialled(t, Stream, l.Addr(), Config{SendBuffer: 70_000})
	b, err := l.Accept()
	require.NoError(t, err)
	closing(t, b)
	send, recv, err := b.Buffers()
	require.NoError(t, err)
	require.Equal(t, []int{2 * 50_000, 2 * 60_000}, []int{send, recv}, "the kernel doubles them (socket(7))")
	send, recv, err = a.Buffers()
	require.NoError(t, err)
	require.Equal(t, []int{2 * 70_000, setting(t, "core/rmem_default")}, []int{send, recv})
	c, _ := pair(t, Dgram, Config{SendBuffer: 1})
	require.Positive(t, c.Contract().MaxMessage, "there is a least size")
	c, _ = pair(t, Dgram, Config{SendBuffer: math.MaxInt})
	send, _, err = c.Buffers()
	require.NoError(t, err)
	require.Equal(t, 2*setting(t, "core/wmem_max"), send, "and a largest")
	require.NoError(t, c.Close())
	_, _, err = c.Buffers()
	require.ErrorIs(t, err, os.ErrClosed)
}

// An empty datagram is a message like any other and no end.
func TestEmptyDatagram(t *testing.T) {
	everyWait(t, func(t *testing.T, w ipcbench.Wait) {
		a, b := pair(t, Dgram, Config{Wait: w})
		for _, m := range []string{"abc", "", "de"} {
			write(t, a, m)
		}
		for _, m := range []string{"abc", "", "de"} {
			require.Equal(t, m, read(t, b))
		}
		n, err := a.TryWrite(nil)
		require.NoError(t, err)
		require.Zero(t, n)
		n, err = b.TryRead(nil)
		require.NoError(t, err)
		require.Zero(t, n)
	})
}

// An empty seqpacket of a foreign peer is a message, though it reads as the end does.
func TestEmptySeqPacket(t *testing.T) {
	everyWait(t, func(t *testing.T, w ipcbench.Wait) {
		a, b := pair(t, SeqPacket, Config{Wait: w})
		_, err := a.Write(nil)
		require.ErrorIs(t, err, ipcbench.ErrEmptyMessage)
		require.NoError(t, unix.Send(a.WriteFD(), nil, unix.MSG_NOSIGNAL))
		require.Empty(t, read(t, b))
		require.NoError(t, unix.Send(a.WriteFD(), nil, unix.MSG_NOSIGNAL))
		write(t, a, "after")
		require.NoError(t, a.Close())
		require.Empty(t, read(t, b))
		require.Equal(t, "after", read(t, b))
		_, err = b.Read(make([]byte, 1))
		require.Equal(t, io.EOF, err)
	})
}

// Whoever writes to a peer that has gone gets an error, and no signal.
func TestPeerHasGone(t *testing.T) {
	everyKind(t, func(t *testing.T, k Kind, w ipcbench.Wait) {
		a, b := pair(t, k, Config{Wait: w})
		require.NoError(t, b.Close())
		_, err := a.Write([]byte("anybody?"))
		if k == Dgram {
			require.ErrorIs(t, err, unix.ECONNREFUSED)
		} else {
			require.ErrorIs(t, err, unix.EPIPE)
		}
	})
}

// Descriptors that come with a message nobody has asked for are closed: they are
// not left in this process, and the other end of theirs sees it.
func TestReadClosesDescriptors(t *testing.T) {
	everyKind(t, func(t *testing.T, k Kind, w ipcbench.Wait) {
		a, b := pair(t, k, Config{Wait: w})
		p := make([]byte, 100)
		for what, receive := range map[string]func([]byte) (int, error){"Read": b.Read, "TryRead": b.TryRead} {
			before := openDescriptors(t)
			var f [2]int
			require.NoError(t, unix.Pipe2(f[:], unix.O_CLOEXEC|unix.O_NONBLOCK))
			require.NoError(t, unix.Sendmsg(a.WriteFD(), []byte("gift"), unix.UnixRights(f[1], f[1]), nil, 0))
			require.NoError(t, unix.Close(f[1]))
			_, err := unix.Read(f[0], p)
			require.Equal(t, unix.EAGAIN, err, "the writing end is on its way")
			n, err := receive(p)
			require.NoError(t, err, what)
			require.Equal(t, "gift", string(p[:n]))
			n, err = unix.Read(f[0], p)
			require.NoError(t, err, what)
			require.Zero(t, n, "the writing end is closed")
			require.NoError(t, unix.Close(f[0]))
			require.Equal(t, before, openDescriptors(t))
		}
	})
}

func TestFromFiles(t *testing.T) {
	everyKind(t, func(t *testing.T, k Kind, w ipcbench.Wait) {
		a, b := pair(t, k, Config{Wait: w})
		files, err := a.Files()
		require.NoError(t, err)
		require.Len(t, files, 1)
		c, err := FromFiles(files, Config{Wait: w})
		require.NoError(t, err)
		closing(t, c)
		requireCloseOnExec(t, c)
		require.Equal(t, a.Contract(), c.Contract())
		require.ErrorIs(t, files[0].Close(), os.ErrClosed, "taken over")
		require.NoError(t, a.Close())
		requireBoundaries(t, c, b)
		requireEnd(t, c, b)
	})
}

func TestFromFilesOfReceiver(t *testing.T) {
	limit(t)
	path := newPath(t)
	r := bound(t, path, Config{})
	files, err := r.Files()
	require.NoError(t, err)
	c, err := FromFiles(files, Config{})
	require.NoError(t, err)
	write(t, dialled(t, Dgram, path, Config{}), "hello")
	require.Equal(t, "hello", read(t, c))
	require.NoError(t, c.Close())
	require.FileExists(t, path, "the file is that of the channel that made it")
}

// connected is one end of a pair whose other end is closed.
func connected(t *testing.T) *os.File {
	s, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	require.NoError(t, unix.Close(s[1]))
	return os.NewFile(uintptr(s[0]), "")
}

func TestFromFilesRefuses(t *testing.T) {
	limit(t)
	before := openDescriptors(t)
	socket := func(family, typ int) *os.File {
		s, err := unix.Socket(family, typ|unix.SOCK_CLOEXEC, 0)
		require.NoError(t, err)
		return os.NewFile(uintptr(s), "")
	}
	listens := socket(unix.AF_UNIX, unix.SOCK_SEQPACKET)
	require.NoError(t, unix.Bind(int(listens.Fd()), &unix.SockaddrUnix{}))
	require.NoError(t, unix.Listen(int(listens.Fd()), 1))
	file, err := os.Open(os.Args[0])
	require.NoError(t, err)
	for _, test := range []struct {
		what  string
		files []*os.File
		cfg   Config
		want  error
		text  string
	}{
		{"none", nil, Config{}, unix.EINVAL, "0 files, want 1"},
		{"nil", []*os.File{nil}, Config{}, unix.EINVAL, "nil"},
		{"two", []*os.File{socket(unix.AF_UNIX, unix.SOCK_DGRAM), socket(unix.AF_UNIX, unix.SOCK_DGRAM)}, Config{}, unix.EINVAL, "2 files"},
		{"a file", []*os.File{file}, Config{}, unix.ENOTSOCK, "socket operation on non-socket"},
		{"another family", []*os.File{socket(unix.AF_INET, unix.SOCK_STREAM)}, Config{}, unix.EINVAL, "not a unix socket"},
		{"listening", []*os.File{listens}, Config{}, unix.EINVAL, "listening"},
		{"not connected", []*os.File{socket(unix.AF_UNIX, unix.SOCK_STREAM)}, Config{}, unix.ENOTCONN, "getpeername"},
		{"nobody's datagrams", []*os.File{socket(unix.AF_UNIX, unix.SOCK_DGRAM)}, Config{}, unix.ENOTCONN, "getpeername"},
		{"wait", []*os.File{connected(t)}, Config{Wait: 17}, unix.EINVAL, "17"},
		{"buffer", []*os.File{connected(t)}, Config{SendBuffer: -1}, unix.EINVAL, "-1 bytes"},
	} {
		_, err := FromFiles(test.files, test.cfg)
		require.ErrorIs(t, err, test.want, test.what)
		require.ErrorContains(t, err, "unixsock: from files: ", test.what)
		require.ErrorContains(t, err, test.text, test.what)
		for _, f := range test.files {
			if f != nil {
				require.ErrorIs(t, f.Close(), os.ErrClosed, test.what)
			}
		}
	}
	require.Equal(t, before, openDescriptors(t))
}

// No call allocates, whether the descriptor is ready or not.
func TestNoAllocation(t *testing.T) {
	everyKind(t, func(t *testing.T, k Kind, w ipcbench.Wait) {
		a, b := pair(t, k, Config{Wait: w})
		p := []byte(strings.Repeat("x", 100))
		var failed error
		note := func(_ int, err error) {
			if err != nil && !errors.Is(err, ipcbench.ErrWouldBlock) {
				failed = err
			}
		}
		allocs := testing.AllocsPerRun(100, func() {
			note(a.Write(p))
			note(b.Read(p))
			note(a.TryWrite(p))
			note(b.TryRead(p))
			note(b.TryRead(p))
		})
		require.NoError(t, failed)
		require.Zero(t, allocs)
	})
}
