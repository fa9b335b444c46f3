//go:build linux

package unixsock

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/seed-e1736cc0/ipcbench"
)

// pipes returns the ends of n new pipes.
func pipes(t *testing.T, n int) (readers, writers []*os.File) {
	for range n {
		r, w, err := os.Pipe()
		require.NoError(t, err)
		readers, writers = append(readers, closing(t, r)), append(writers, closing(t, w))
	}
	return readers, writers
}

func closeFiles(t *testing.T, files []*os.File) {
	for _, f := range files {
		require.NoError(t, f.Close())
	}
}

// requireSame fails unless both are the same open pipes in the same order, and got is close-on-exec.
func requireSame(t *testing.T, want, got []*os.File) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := range want {
		var a, b unix.Stat_t
		require.NoError(t, unix.Fstat(int(want[i].Fd()), &a))
		require.NoError(t, unix.Fstat(int(got[i].Fd()), &b))
		require.Equal(t, a.Ino, b.Ino)
		require.NotEqual(t, want[i].Fd(), got[i].Fd())
		flags, err := unix.FcntlInt(got[i].Fd(), unix.F_GETFD, 0)
		require.NoError(t, err)
		require.NotZero(t, flags&unix.FD_CLOEXEC)
	}
}

func recvFiles(t *testing.T, c *Channel, room, most int) (string, []*os.File) {
	t.Helper()
	p := make([]byte, room)
	n, files, err := c.RecvFiles(p, most)
	require.NoError(t, err)
	return string(p[:n]), files
}

// One file and many arrive, with data and without, and the numbers are given back.
func TestFiles(t *testing.T) {
	everyKind(t, func(t *testing.T, k Kind, w ipcbench.Wait) {
		a, b := pair(t, k, Config{Wait: w})
		_, writers := pipes(t, MaxFiles)
		before := openDescriptors(t)
		for _, n := range []int{1, 2, 3, 16, MaxFiles} {
			for _, data := range []string{"data", ""} {
				require.NoError(t, a.SendFiles([]byte(data), writers[:n]...))
				got, files := recvFiles(t, b, len(data), n)
				require.Equal(t, data, got)
				requireSame(t, writers[:n], files)
				closeFiles(t, files)
			}
		}
		require.Equal(t, before, openDescriptors(t))
	})
}

// What arrives is the open file itself, and lives on when the sender has closed it.
func TestFileOutlivesSender(t *testing.T) {
	everyKind(t, func(t *testing.T, k Kind, w ipcbench.Wait) {
		a, b := pair(t, k, Config{Wait: w})
		readers, writers := pipes(t, 1)
		require.NoError(t, a.SendFiles([]byte("x"), writers...))
		closeFiles(t, writers)
		require.NoError(t, a.Close())
		_, files := recvFiles(t, b, 1, 1)
		_, err := files[0].WriteString("through the file")
		require.NoError(t, err)
		closeFiles(t, files)
		all, err := io.ReadAll(readers[0])
		require.NoError(t, err)
		require.Equal(t, "through the file", string(all))
	})
}

// A file that nobody closes is closed when it is collected, and nothing else with it.
func TestFileIsCollected(t *testing.T) {
	limit(t)
	a, b := pair(t, Stream, Config{})
	readers, writers := pipes(t, 1)
	before := openDescriptors(t)
	require.NoError(t, a.SendFiles([]byte("x"), writers...))
	recvFiles(t, b, 1, 1) // and forgotten
	for openDescriptors(t) > before {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	closeFiles(t, writers)
	_, err := readers[0].Read(make([]byte, 1))
	require.Equal(t, io.EOF, err, "the last writing end is closed")
	write(t, a, "still here")
	require.Equal(t, "still here", read(t, b))
}

// 254 files do not go with one message. Nothing is sent, and that is what the error says.
func TestTooManyFiles(t *testing.T) {
	everyKind(t, func(t *testing.T, k Kind, w ipcbench.Wait) {
		a, b := pair(t, k, Config{Wait: w})
		_, writers := pipes(t, 1)
		many := make([]*os.File, MaxFiles+1)
		for i := range many {
			many[i] = writers[0]
		}
		err := a.SendFiles([]byte("x"), many...)
		require.ErrorIs(t, err, unix.EINVAL)
		require.ErrorContains(t, err, "unixsock: send files: 254 files, 253 go with one message")
		_, err = b.TryRead(make([]byte, 1))
		require.ErrorIs(t, err, ipcbench.ErrWouldBlock)
		require.NoError(t, a.SendFiles([]byte("x"), many[1:]...))
		_, got := recvFiles(t, b, 1, 1000)
		require.Len(t, got, MaxFiles)
		closeFiles(t, got)
	})
}

// On a stream a file comes with the bytes that it was sent with.
func TestFilesInStream(t *testing.T) {
	everyWait(t, func(t *testing.T, w ipcbench.Wait) {
		a, b := pair(t, Stream, Config{Wait: w})
		_, writers := pipes(t, 2)
		send := func() {
			write(t, a, "abc")
			require.NoError(t, a.SendFiles([]byte("de"), writers[0]))
			require.NoError(t, a.SendFiles([]byte("fg"), writers[1]))
			write(t, a, "hi")
		}
		send()
		for _, want := range []struct {
			data  string
			files []*os.File
		}{{"abcde", writers[:1]}, {"fg", writers[1:]}, {"hi", nil}} {
			got, files := recvFiles(t, b, 100, 2)
			require.Equal(t, want.data, got)
			requireSame(t, want.files, files)
			closeFiles(t, files)
		}
		send()
		for i, want := range "abcdefghi" {
			got, files := recvFiles(t, b, 1, 2)
			require.Equal(t, string(want), got)
			switch i {
			case 3:
				requireSame(t, writers[:1], files)
			case 5:
				requireSame(t, writers[1:], files)
			default:
				require.Empty(t, files, "with byte %d", i)
			}
			closeFiles(t, files)
		}
	})
}

// Files go once with a Write that is longer than the stream holds.
func TestFilesWithLongData(t *testing.T) {
	everyWait(t, func(t *testing.T, w ipcbench.Wait) {
		a, b := pair(t, Stream, Config{Wait: w})
		_, writers := pipes(t, 1)
		long := strings.Repeat("0123456789", 200_000)
		sent := make(chan error, 1)
		go func() { sent <- a.SendFiles([]byte(long), writers...) }()
		got, files := recvFiles(t, b, 100_000, 2)
		for len(got) < len(long) {
			more, none := recvFiles(t, b, 100_000, 2)
			require.Empty(t, none)
			got += more
		}
		require.NoError(t, <-sent)
		require.True(t, long == got)
		requireSame(t, writers, files)
		closeFiles(t, files)
	})
}

// More files than asked for is an error; none is left, and the channel goes on.
func TestMoreFilesThanRoom(t *testing.T) {
	everyKind(t, func(t *testing.T, k Kind, w ipcbench.Wait) {
		a, b := pair(t, k, Config{Wait: w})
		readers, writers := pipes(t, 5)
		before := openDescriptors(t)
		for _, test := range []struct{ sent, room int }{{5, 2}, {2, 1}, {4, 3}, {1, 0}, {5, 0}} {
			require.NoError(t, a.SendFiles([]byte("gift"), writers[:test.sent]...))
			p := make([]byte, 10)
			n, files, err := b.RecvFiles(p, test.room)
			require.ErrorIs(t, err, ErrFilesTruncated)
			require.NotErrorIs(t, err, unix.EMFILE)
			require.EqualError(t, err, fmt.Sprintf("unixsock: receive files: files truncated: more than %d", test.room))
			require.Equal(t, "gift", string(p[:n]))
			require.Empty(t, files)
			require.Equal(t, before, openDescriptors(t))
		}
		require.NoError(t, a.SendFiles([]byte("next"), writers[0]))
		got, files := recvFiles(t, b, 10, 1)
		require.Equal(t, "next", got)
		closeFiles(t, files)
		closeFiles(t, writers)
		for _, r := range readers {
			_, err := r.Read(make([]byte, 1))
			require.Equal(t, io.EOF, err, "no writing end is left")
		}
	})
}

// Too few free descriptors is an error too, that says so, and leaves none.
func TestNoFreeDescriptor(t *testing.T) {
	everyKind(t, func(t *testing.T, k Kind, w ipcbench.Wait) {
		a, b := pair(t, k, Config{Wait: w})
		_, writers := pipes(t, 3)
		before := openDescriptors(t)
		require.NoError(t, a.SendFiles([]byte("gift"), writers...))
		p := make([]byte, 10)
		var n int
		var files []*os.File
		var err error
		withFreeDescriptors(t, 1, func() { n, files, err = b.RecvFiles(p, 3) })
		require.ErrorIs(t, err, ErrFilesTruncated)
		require.ErrorIs(t, err, unix.EMFILE)
		require.ErrorContains(t, err, "no free descriptor after 1")
		require.Equal(t, "gift", string(p[:n]))
		require.Empty(t, files)
		require.Equal(t, before, openDescriptors(t))
		require.NoError(t, a.SendFiles([]byte("next"), writers...))
		got, files := recvFiles(t, b, 10, 3)
		require.Equal(t, "next", got)
		closeFiles(t, files)
	})
}

// withFreeDescriptors runs f while only n numbers are free.
func withFreeDescriptors(t *testing.T, n int, f func()) {
	var was unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &was))
	var held []int
	for range n + 1 { // numbers are given out from the lowest on
		d, err := unix.FcntlInt(os.Stdin.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		require.NoError(t, err)
		held = append(held, d)
	}
	for _, d := range held {
		require.NoError(t, unix.Close(d))
	}
	low := was
	low.Cur = uint64(held[n])
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &low))
	defer func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &was)) }()
	f()
}

// With a message that is cut its files are closed.
func TestFilesOfTruncatedMessage(t *testing.T) {
	everyKind(t, func(t *testing.T, k Kind, w ipcbench.Wait) {
		a, b := pair(t, k, Config{Wait: w})
		_, writers := pipes(t, 2)
		before := openDescriptors(t)
		require.NoError(t, a.SendFiles([]byte("long"), writers...))
		p := make([]byte, 2)
		if k == Stream {
			p = nil // any other buffer would do
		}
		n, files, err := b.RecvFiles(p, 2)
		require.ErrorIs(t, err, ipcbench.ErrTruncated)
		require.Equal(t, "lo"[:len(p)], string(p[:n]))
		require.Empty(t, files)
		require.Equal(t, before, openDescriptors(t))
		if k == Stream {
			require.Equal(t, "ong", read(t, b))
		}
		write(t, a, "next")
		require.Equal(t, "next", read(t, b))
	})
}

// Files without data before the end are no end, though they read as 0 bytes.
func TestFilesBeforeEnd(t *testing.T) {
	for _, k := range []Kind{Stream, SeqPacket} {
		t.Run(k.String(), func(t *testing.T) {
			everyWait(t, func(t *testing.T, w ipcbench.Wait) {
				a, b := pair(t, k, Config{Wait: w})
				_, writers := pipes(t, 1)
				require.NoError(t, a.SendFiles(nil, writers...))
				require.NoError(t, a.SendFiles(nil, writers...))
				require.NoError(t, a.Close())
				_, _, err := b.RecvFiles(nil, 0)
				require.ErrorIs(t, err, ErrFilesTruncated)
				_, files := recvFiles(t, b, 0, 1)
				requireSame(t, writers, files)
				closeFiles(t, files)
				for range 2 {
					n, files, err := b.RecvFiles(make([]byte, 10), 1)
					require.Equal(t, io.EOF, err)
					require.Zero(t, n)
					require.Empty(t, files)
				}
			})
		})
	}
}

// Without files the calls are Write and Read, and mix with them.
func TestNoFiles(t *testing.T) {
	everyKind(t, func(t *testing.T, k Kind, w ipcbench.Wait) {
		a, b := pair(t, k, Config{Wait: w})
		require.NoError(t, a.SendFiles([]byte("abc")))
		require.Equal(t, "abc", read(t, b))
		write(t, a, "de")
		got, files := recvFiles(t, b, 10, 3)
		require.Equal(t, "de", got)
		require.Empty(t, files)
		if k == SeqPacket {
			require.ErrorIs(t, a.SendFiles(nil), ipcbench.ErrEmptyMessage)
		}
	})
}

func TestFilesRefused(t *testing.T) {
	everyKind(t, func(t *testing.T, k Kind, w ipcbench.Wait) {
		a, b := pair(t, k, Config{Wait: w})
		_, writers := pipes(t, 2)
		closeFiles(t, writers[1:])
		err := a.SendFiles([]byte("x"), writers...)
		require.ErrorIs(t, err, os.ErrClosed)
		require.ErrorContains(t, err, "unixsock: send files: file 1: ")
		err = a.SendFiles([]byte("x"), writers[0], nil)
		require.ErrorIs(t, err, os.ErrInvalid)
		require.ErrorContains(t, err, "file 1: ")
		_, _, err = b.RecvFiles(nil, -1)
		require.ErrorIs(t, err, unix.EINVAL)
		require.ErrorContains(t, err, "unixsock: receive files: room for -1 files")
		if k != Stream {
			err = a.SendFiles(make([]byte, a.Contract().MaxMessage+1), writers[0])
			require.ErrorIs(t, err, ipcbench.ErrMessageTooLong)
		}
		_, err = b.TryRead(make([]byte, 1))
		require.ErrorIs(t, err, ipcbench.ErrWouldBlock, "nothing was sent")
		require.NoError(t, a.SendFiles([]byte("x"), writers[0]))
		require.Equal(t, "x", read(t, b))
	})
}

// RecvFiles and SendFiles that wait are ended by a deadline and by Close.
func TestFilesThatWait(t *testing.T) {
	everyKind(t, func(t *testing.T, k Kind, w ipcbench.Wait) {
		a, b := pair(t, k, Config{Wait: w})
		_, writers := pipes(t, 1)
		receive := func() error { _, _, err := b.RecvFiles(make([]byte, 10), 1); return err }
		send := func() error { return a.SendFiles(make([]byte, 1000), writers...) }
		require.NoError(t, b.SetReadDeadline(time.Now().Add(2*time.Millisecond)))
		require.ErrorIs(t, receive(), os.ErrDeadlineExceeded)
		for {
			if _, err := a.TryWrite(make([]byte, 1000)); err != nil {
				require.ErrorIs(t, err, ipcbench.ErrWouldBlock)
				break
			}
		}
		require.NoError(t, a.SetWriteDeadline(time.Now().Add(2*time.Millisecond)))
		require.ErrorIs(t, send(), os.ErrDeadlineExceeded)
		require.NoError(t, a.SetWriteDeadline(time.Time{}))
		done := make(chan error)
		go func() { done <- send() }()
		require.NoError(t, a.Close())
		require.ErrorIs(t, <-done, os.ErrClosed)
		require.ErrorIs(t, send(), os.ErrClosed)
		a, b = pair(t, k, Config{Wait: w})
		go func() { done <- receive() }()
		require.NoError(t, b.Close())
		require.ErrorIs(t, <-done, os.ErrClosed)
		require.ErrorIs(t, receive(), os.ErrClosed)
	})
}

// A hundred thousand descriptors leave neither descriptors nor memory behind.
func TestManyFiles(t *testing.T) {
	limit(t)
	total := 100_000
	if testing.Short() {
		total = 10_000
	}
	a, b := pair(t, Stream, Config{})
	_, writers := pipes(t, 50)
	pass := func(n int) {
		p := []byte("x")
		for ; n > 0; n -= len(writers) {
			require.NoError(t, a.SendFiles(p, writers...))
			_, files, err := b.RecvFiles(p, len(writers))
			require.NoError(t, err)
			require.Len(t, files, len(writers))
			closeFiles(t, files)
		}
	}
	pass(1000)
	before, memory := openDescriptors(t), inUse()
	pass(total)
	require.Equal(t, before, openDescriptors(t))
	const slack = 1 << 20 // 10 bytes a descriptor
	require.Less(t, inUse(), memory+slack)
}

// inUse is the heap in bytes that is left when everything has been collected.
func inUse() uint64 {
	debug.FreeOSMemory()
	debug.FreeOSMemory() // what a finalizer let go
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}
