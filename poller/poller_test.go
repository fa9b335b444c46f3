//go:build linux

package poller

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// What each kind reports of a descriptor in some state, and that it is the same in all.
func TestReady(t *testing.T) {
	type state func(t *testing.T) (fd int)
	stream := func(shape func(t *testing.T, peer int)) state {
		return func(t *testing.T) int {
			a, b := sockets(t, unix.SOCK_STREAM)
			shape(t, b)
			return a
		}
	}
	reader := func(shape func(t *testing.T, w int)) state {
		return func(t *testing.T) int {
			r, w := pipe(t)
			shape(t, w)
			return r
		}
	}
	writer := func(shape func(t *testing.T, r, w int)) state {
		return func(t *testing.T) int {
			r, w := pipe(t)
			shape(t, r, w)
			return w
		}
	}
	fill := func(t *testing.T, fd int) {
		chunk := make([]byte, unix.Getpagesize())
		for {
			if _, err := unix.Write(fd, chunk); err != nil {
				require.Equal(t, unix.EAGAIN, err)
				return
			}
		}
	}
	for _, c := range []struct {
		name  string
		state state
		in    Interest
		want  Ready // 0: not reported
	}{
		{"empty pipe", reader(func(*testing.T, int) {}), Readable, 0},
		{"pipe with data", reader(func(t *testing.T, w int) { write(t, w, "x") }), Readable, CanRead},
		{"pipe with data and no writer", reader(func(t *testing.T, w int) { write(t, w, "x"); shut(t, w) }), Readable, CanRead | HangUp},
		{"pipe without writer", reader(func(t *testing.T, w int) { shut(t, w) }), Readable, HangUp},
		{"pipe with room", writer(func(*testing.T, int, int) {}), Writable, CanWrite},
		{"full pipe", writer(func(t *testing.T, _, w int) { fill(t, w) }), Writable, 0},
		{"pipe without reader", writer(func(t *testing.T, r, _ int) { shut(t, r) }), Writable, CanWrite | Failed},
		{"full pipe without reader", writer(func(t *testing.T, r, w int) { fill(t, w); shut(t, r) }), Writable, Failed},
		{"pipe without reader, asked to read", writer(func(t *testing.T, r, _ int) { shut(t, r) }), Readable, Failed},
		{"idle socket", stream(func(*testing.T, int) {}), Readable, 0},
		{"idle socket, both asked", stream(func(*testing.T, int) {}), Readable | Writable, CanWrite},
		{"socket with data, both asked", stream(func(t *testing.T, b int) { write(t, b, "x") }), Readable | Writable, CanRead | CanWrite},
		{"socket with data, write asked", stream(func(t *testing.T, b int) { write(t, b, "x") }), Writable, CanWrite},
		{"socket whose peer shut its sending side", stream(func(t *testing.T, b int) { require.NoError(t, unix.Shutdown(b, unix.SHUT_WR)) }), Readable, CanRead | HangUp},
		{"the same, write asked", stream(func(t *testing.T, b int) { require.NoError(t, unix.Shutdown(b, unix.SHUT_WR)) }), Writable, CanWrite},
		{"socket whose peer closed", stream(func(t *testing.T, b int) { shut(t, b) }), Readable, CanRead | HangUp},
		{"the same, write asked", stream(func(t *testing.T, b int) { shut(t, b) }), Writable, CanWrite | HangUp},
		{"message socket whose peer closed", func(t *testing.T) int {
			a, b := sockets(t, unix.SOCK_SEQPACKET)
			shut(t, b)
			return a
		}, Readable, CanRead | HangUp},
		{"eventfd", func(t *testing.T) int {
			fd, err := unix.Eventfd(1, unix.EFD_CLOEXEC)
			require.NoError(t, err)
			return own(t, fd)
		}, Readable | Writable, CanRead | CanWrite},
	} {
		t.Run(c.name, func(t *testing.T) {
			each(t, func(t *testing.T, _ Kind, p *poller) {
				fd := c.state(t)
				require.NoError(t, p.Add(fd, c.in))
				want := map[int]Ready{}
				if c.want != 0 {
					want[fd] = c.want
				}
				require.Equal(t, want, now(t, p))
				require.Equal(t, want, now(t, p), "a level does not go away by being reported")
				if c.want != 0 {
					require.Equal(t, want, found(t, p, -1))
				}
			})
		})
	}
}

// An error is reported also when nothing was asked for, but for select, which cannot see it.
func TestNothingAsked(t *testing.T) {
	each(t, func(t *testing.T, kind Kind, p *poller) {
		r, w := pipe(t)
		if kind == Select || kind == SelectWide {
			require.ErrorIs(t, p.Add(w, 0), errors.ErrUnsupported)
			require.NoError(t, p.Add(w, Writable))
			require.ErrorIs(t, p.Modify(w, 0), errors.ErrUnsupported)
			require.Equal(t, map[int]Ready{w: CanWrite}, now(t, p), "a Modify that fails changes nothing")
			return
		}
		require.NoError(t, p.Add(w, 0))
		require.Empty(t, now(t, p))
		shut(t, r)
		require.Equal(t, map[int]Ready{w: Failed}, now(t, p))
	})
}

// What was sent before the end is reported and read before the end is.
func TestEndOfStream(t *testing.T) {
	for name, pair := range map[string]func(t testing.TB) (int, int){
		"pipe":      pipe,
		"stream":    func(t testing.TB) (int, int) { return sockets(t, unix.SOCK_STREAM) },
		"seqpacket": func(t testing.TB) (int, int) { return sockets(t, unix.SOCK_SEQPACKET) },
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, _ Kind, p *poller) {
				r, w := pair(t)
				require.NoError(t, p.Add(r, Readable))
				write(t, w, "data")
				require.Equal(t, map[int]Ready{r: CanRead}, found(t, p, -1))
				shut(t, w)
				require.Equal(t, map[int]Ready{r: CanRead | HangUp}, found(t, p, -1))
				require.Equal(t, "data", read(t, r, 4))
				require.NotZero(t, found(t, p, -1)[r]&HangUp)
				require.Empty(t, read(t, r, 4))
			})
		})
	}
}

func TestRegistration(t *testing.T) {
	each(t, func(t *testing.T, _ Kind, p *poller) {
		r, w := pipe(t)
		require.ErrorIs(t, p.Modify(r, Readable), unix.ENOENT)
		require.ErrorIs(t, p.Remove(r), unix.ENOENT)
		require.NoError(t, p.Add(r, Readable))
		require.ErrorIs(t, p.Add(r, Readable), unix.EEXIST)
		require.NoError(t, p.Add(w, Readable))
		require.Empty(t, now(t, p))

		require.NoError(t, p.Modify(w, Readable|Writable))
		require.Equal(t, map[int]Ready{w: CanWrite}, now(t, p))
		write(t, w, "x")
		require.Equal(t, map[int]Ready{r: CanRead, w: CanWrite}, now(t, p))
		require.NoError(t, p.Modify(w, Readable))
		require.Equal(t, map[int]Ready{r: CanRead}, now(t, p))

		require.NoError(t, p.Remove(r))
		require.Empty(t, now(t, p))
		require.ErrorIs(t, p.Remove(r), unix.ENOENT)
		require.NoError(t, p.Add(r, Readable))
		require.Equal(t, map[int]Ready{r: CanRead}, now(t, p))

		require.NoError(t, p.Remove(w), "and the other one stays as it is")
		require.Equal(t, map[int]Ready{r: CanRead}, now(t, p))
	})
}

func TestRefused(t *testing.T) {
	each(t, func(t *testing.T, _ Kind, p *poller) {
		r, _ := pipe(t)
		for _, fd := range []int{-1, math.MinInt32, 19_999, math.MaxInt32, beyond(r)} {
			err := p.Add(fd, Readable)
			if errors.Is(err, ErrDescriptorRange) {
				continue // select did not even ask
			}
			require.ErrorIs(t, err, unix.EBADF, fd)
		}
		require.ErrorIs(t, p.Add(r, 1<<7), unix.EINVAL)
		require.ErrorIs(t, p.Modify(-1, Readable), unix.ENOENT)
		require.ErrorIs(t, p.Remove(-1), unix.ENOENT)
		require.ErrorIs(t, p.Remove(math.MaxInt), unix.ENOENT)
		require.False(t, p.Current(Event{FD: -1}))
		require.False(t, p.Current(Event{FD: r}))

		_, err := p.Wait(nil, 0)
		require.ErrorIs(t, err, unix.EINVAL)
		require.Empty(t, now(t, p))
	})
	_, err := New(Kind(99))
	require.ErrorIs(t, err, unix.EINVAL)
}

// beyond returns a number of more than 32 bits, the lower of which are fd's, where int has them.
func beyond(fd int) int {
	if math.MaxInt > math.MaxInt32 {
		high := int64(1) << 32
		return int(high) + fd
	}
	return -1
}

// The 1024 is libc's: Select keeps to it and says so, the kernel's own select has none.
func TestDescriptorRange(t *testing.T) {
	needDescriptors(t, 1100)
	each(t, func(t *testing.T, kind Kind, p *poller) {
		last, next := 1023, 1024
		r, w := pipe(t)
		r = moved(t, r, last)
		require.NoError(t, p.Add(r, Readable))
		write(t, w, "x")
		require.Equal(t, map[int]Ready{r: CanRead}, now(t, p))

		r2, w2 := pipe(t)
		r2 = moved(t, r2, next)
		write(t, w2, "x")
		if kind == Select {
			err := p.Add(r2, Readable)
			require.ErrorIs(t, err, ErrDescriptorRange)
			require.ErrorIs(t, err, unix.EINVAL)
			require.EqualError(t, err, "poller: add 1024: descriptor outside the set of select")
			require.ErrorIs(t, p.Add(math.MaxInt32, Readable), ErrDescriptorRange)
			require.Equal(t, map[int]Ready{r: CanRead}, now(t, p))
			return
		}
		require.NoError(t, p.Add(r2, Readable))
		require.Equal(t, map[int]Ready{r: CanRead, r2: CanRead}, now(t, p))
	})
}

// A Select made when all low numbers are taken works: its own descriptor counts for no limit.
func TestSelectAmongManyDescriptors(t *testing.T) {
	limited(t)
	needDescriptors(t, 1100)
	r, w := pipe(t)
	spare := own(t, dup(t, r))
	for fd := 0; fd < fdSetSize; {
		fd = own(t, dup(t, r))
	}
	shut(t, spare)
	p := open(t, Select)
	require.Equal(t, spare, p.wake)
	q := open(t, Select)
	require.Greater(t, q.wake, fdSetSize)
	require.NoError(t, q.Add(r, Readable))
	done := waiting(q)
	require.NoError(t, q.Wake())
	require.Equal(t, outcome{events: []Event{}}, <-done)
	write(t, w, "x")
	require.Equal(t, map[int]Ready{r: CanRead}, found(t, q, -1))
}

func dup(t testing.TB, fd int) int {
	t.Helper()
	d, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	require.NoError(t, err)
	return d
}

// Every descriptor that the limit allows can be in one set.
func TestFull(t *testing.T) {
	lowerLimit(t, 20_000)
	each(t, func(t *testing.T, kind Kind, p *poller) {
		r, w := pipe(t)
		require.NoError(t, p.Add(r, Readable))
		added := 1
		var all []int
		defer func() {
			for _, fd := range all {
				unix.Close(fd)
			}
		}()
		for {
			fd, err := unix.FcntlInt(uintptr(r), unix.F_DUPFD_CLOEXEC, 0)
			if err != nil {
				require.Equal(t, unix.EMFILE, err)
				break
			}
			all = append(all, fd)
			if kind == Select && fd >= fdSetSize {
				break
			}
			require.NoError(t, p.Add(fd, Readable))
			added++
		}
		require.Empty(t, now(t, p))
		write(t, w, "x")
		events := make([]Event, added+1)
		n, err := p.Wait(events, -1)
		require.NoError(t, err)
		require.Equal(t, added, n)
	})
}

func needDescriptors(t *testing.T, n uint64) {
	var limit unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	if limit.Cur < n {
		t.Skipf("needs %d descriptors, the limit (ulimit -Hn) is %d", n, limit.Cur)
	}
}

// lowerLimit has at most limit descriptors for a test that takes all.
func lowerLimit(t *testing.T, limit uint64) {
	var old unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &old))
	low := old
	low.Cur = min(low.Cur, limit)
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &low))
	t.Cleanup(func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &old)) })
}

// exhaust takes all descriptors but spare.
func exhaust(t *testing.T, spare int) (give func()) {
	r, _ := pipe(t)
	var all []int
	for {
		fd, err := unix.FcntlInt(uintptr(r), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			require.Equal(t, unix.EMFILE, err)
			break
		}
		all = append(all, fd)
	}
	for _, fd := range all[:spare] {
		unix.Close(fd)
	}
	return func() {
		for _, fd := range all[spare:] {
			unix.Close(fd)
		}
	}
}

// Without a descriptor left nothing is half made, and nothing is lost.
func TestNoDescriptorLeft(t *testing.T) {
	lowerLimit(t, 4096)
	each(t, func(t *testing.T, kind Kind, p *poller) {
		regular, err := os.Open(os.Args[0])
		require.NoError(t, err)
		defer regular.Close()
		orphan, orphanW := pipe(t)
		own(t, dup(t, orphan))
		require.NoError(t, p.Add(orphan, Readable))
		write(t, orphanW, "x")

		give := exhaust(t, 0)
		_, err = New(kind)
		adding := p.Add(int(regular.Fd()), Readable)
		give()
		require.ErrorIs(t, err, unix.EMFILE)
		require.ErrorContains(t, err, "poller: new: ")
		if kind == Epoll {
			require.ErrorIs(t, adding, unix.EPERM)
		} else {
			require.ErrorIs(t, adding, unix.EMFILE, "it needs a descriptor to find out")
		}

		shut(t, orphan)
		give = exhaust(t, 1)
		for range 2 { // the second fails too, if the first keeps what it got
			q, err := New(kind)
			if err == nil {
				q.Close()
			}
			require.Equal(t, kind == Epoll, errors.Is(err, unix.EMFILE))
		}
		take := dup(t, orphanW)
		require.NoError(t, p.Remove(orphan))
		n, err := p.Wait(make([]Event, 1), 0)
		unix.Close(take)
		give()
		require.Zero(t, n)
		require.Equal(t, kind == Epoll, errors.Is(err, unix.EMFILE), "cannot make the set anew")
		require.Empty(t, now(t, p))
	})
}

// Files without readiness are refused, whatever the kind; other files that are no pipe or socket are not.
func TestNotPollable(t *testing.T) {
	dir := t.TempDir()
	regular := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(regular, []byte("x"), 0o600))
	each(t, func(t *testing.T, _ Kind, p *poller) {
		for _, path := range []string{regular, dir, "/dev/null", "/dev/zero"} {
			fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			require.NoError(t, err, path)
			own(t, fd)
			err = p.Add(fd, Readable)
			require.ErrorIs(t, err, ErrNotPollable, path)
			require.ErrorIs(t, err, unix.EPERM, path)
			require.ErrorIs(t, p.Remove(fd), unix.ENOENT, path)
		}
		fd, err := unix.Open("/proc/self/mounts", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		require.NoError(t, err)
		require.NoError(t, p.Add(own(t, fd), Readable), "a regular file that knows readiness")
		require.NotZero(t, now(t, p)[fd]&CanRead)
	})
}

func TestErrors(t *testing.T) {
	p := open(t, Epoll)
	err := p.Add(-1, Readable)
	require.EqualError(t, err, "poller: add: bad file descriptor")
	err = p.Remove(7)
	require.EqualError(t, err, "poller: remove 7: no such file or directory")
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, &Error{Op: "remove", FD: 7, Err: unix.ENOENT}, e)
	require.ErrorIs(t, ErrBusy, unix.EBUSY)

	require.Equal(t, "read|edge", (Readable | Edge).String())
	require.Equal(t, "write|oneshot|0x80", (Writable | OneShot | 1<<7).String())
	require.Equal(t, "hangup|failed", (HangUp | Failed).String())
	require.Equal(t, "none", Ready(0).String())
	require.Equal(t, "Kind(9)", Kind(9).String())
}
