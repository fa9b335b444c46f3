//go:build linux

package poller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Removing one descriptor of a batch, or reusing its number, shows in the events already returned.
func TestCurrent(t *testing.T) {
	each(t, func(t *testing.T, _ Kind, p *poller) {
		r1, w1 := pipe(t)
		r2, w2 := pipe(t)
		require.NoError(t, p.Add(r1, Readable))
		require.NoError(t, p.Add(r2, Readable))
		write(t, w1, "x")
		write(t, w2, "x")
		events := make([]Event, 2)
		n, err := p.Wait(events, -1)
		require.NoError(t, err)
		require.Equal(t, 2, n)
		first, second := events[0], events[1]
		require.True(t, p.Current(first) && p.Current(second))

		require.NoError(t, p.Modify(second.FD, Readable|Writable))
		require.True(t, p.Current(second), "another interest is the same registration")
		require.NoError(t, p.Remove(second.FD))
		require.True(t, p.Current(first))
		require.False(t, p.Current(second))

		// The number's next owner is another: its predecessor's event is not about it.
		fd := second.FD
		shut(t, fd)
		r3, w3 := pipe(t)
		if r3 != fd {
			r3 = moved(t, r3, fd)
		}
		require.NoError(t, p.Add(r3, Readable))
		require.False(t, p.Current(second))
		read(t, first.FD, 1)
		require.Empty(t, now(t, p))
		write(t, w3, "x")
		require.Equal(t, map[int]Ready{fd: CanRead}, now(t, p))
	})
}

// The four orders in which a number with a duplicate open loses its file and
// gets another. What happens to the former file must never be told of the number.
func TestReusedNumber(t *testing.T) {
	remove := func(t *testing.T, p *poller, fd int) { require.NoError(t, p.Remove(fd)) }
	for name, step := range map[string]struct {
		beforeClose, afterClose func(*testing.T, *poller, int)
	}{
		"Remove, close":             {beforeClose: remove},
		"close, Remove":             {afterClose: remove},
		"close":                     {},
		"close, wait as if nothing": {afterClose: func(t *testing.T, p *poller, _ int) { p.Wait(make([]Event, 1), 0) }},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, _ Kind, p *poller) {
				r, w := pipe(t)
				own(t, dup(t, r))
				require.NoError(t, p.Add(r, Readable))
				if step.beforeClose != nil {
					step.beforeClose(t, p, r)
				}
				shut(t, r)
				if step.afterClose != nil {
					step.afterClose(t, p, r)
				}
				r2, w2 := pipe(t)
				if r2 != r {
					r2 = moved(t, r2, r)
				}
				require.NoError(t, p.Add(r2, Readable))
				require.ErrorIs(t, p.Add(r2, Readable), unix.EEXIST)
				write(t, w, "for the former")
				require.Empty(t, now(t, p))
				require.Empty(t, now(t, p))
				write(t, w2, "x")
				require.Equal(t, map[int]Ready{r2: CanRead}, found(t, p, -1))
				require.NoError(t, p.Remove(r2))
				require.Empty(t, now(t, p))
			})
		})
	}
}

// The file of a number that is gone stays readable for ever: that must neither be reported nor keep Wait busy.
func TestOrphan(t *testing.T) {
	each(t, func(t *testing.T, _ Kind, p *poller) {
		other, otherW := pipe(t)
		require.NoError(t, p.Add(other, Readable))
		r, w := pipe(t)
		twin := own(t, dup(t, r))
		r = moved(t, r, 200) // a number that nobody else will take
		require.NoError(t, p.Add(r, Readable))
		shut(t, r)
		require.NoError(t, p.Remove(r))
		write(t, w, "x")

		c := count(p)
		require.Empty(t, found(t, p, 2*time.Millisecond))
		require.LessOrEqual(t, c.entered.Load(), int64(6))
		write(t, otherW, "x")
		require.Equal(t, map[int]Ready{other: CanRead}, found(t, p, -1))

		// The number names the same file again, which a kernel that still knows it may refuse.
		require.NoError(t, unix.Dup3(twin, r, unix.O_CLOEXEC))
		own(t, r)
		require.NoError(t, p.Add(r, Readable))
		require.Equal(t, map[int]Ready{other: CanRead, r: CanRead}, found(t, p, -1))
	})
}

func TestSameFileUnderItsOldNumber(t *testing.T) {
	each(t, func(t *testing.T, _ Kind, p *poller) {
		r, w := pipe(t)
		twin := own(t, dup(t, r))
		require.NoError(t, p.Add(r, Readable))
		shut(t, r)
		require.NoError(t, p.Remove(r))
		require.NoError(t, unix.Dup3(twin, r, unix.O_CLOEXEC))
		own(t, r)
		require.NoError(t, p.Add(r, Readable))
		write(t, w, "x")
		require.Equal(t, map[int]Ready{r: CanRead}, found(t, p, -1))
	})
}

// What epoll reports only once is neither lost nor repeated when its set is made anew.
func TestRebuild(t *testing.T) {
	limited(t)
	p := open(t, Epoll)
	spent, spentW := pipe(t)
	ended, endedW := pipe(t)
	fresh, freshW := pipe(t)
	edge, edgeW := pipe(t)
	require.NoError(t, p.Add(spent, Readable|OneShot))
	write(t, spentW, "x")
	require.NoError(t, p.Add(ended, Readable|OneShot))
	shut(t, endedW)
	require.Equal(t, map[int]Ready{spent: CanRead, ended: HangUp}, found(t, p, -1))
	require.NoError(t, p.Add(fresh, Readable|OneShot))
	require.NoError(t, p.Add(edge, Readable|Edge))

	// A number that was closed without Remove, and belongs to a stranger now.
	gone, _ := pipe(t)
	gone = moved(t, gone, 200)
	require.NoError(t, p.Add(gone, Readable))
	shut(t, gone)
	stranger, strangerW := pipe(t)
	moved(t, stranger, gone)
	write(t, strangerW, "x")

	r, w := pipe(t)
	own(t, dup(t, r))
	r = moved(t, r, 201)
	require.NoError(t, p.Add(r, Readable))
	shut(t, r)
	require.NoError(t, p.Remove(r))
	write(t, w, "x")
	before := p.set.(*epollSet).fd
	require.Empty(t, now(t, p))
	require.NotEqual(t, before, p.set.(*epollSet).fd)

	require.Empty(t, now(t, p))
	write(t, freshW, "x")
	write(t, edgeW, "x")
	require.Equal(t, map[int]Ready{fresh: CanRead, edge: CanRead}, found(t, p, -1))
	require.Empty(t, now(t, p))
	for _, fd := range []int{spent, ended, fresh} {
		require.NoError(t, p.Modify(fd, Readable|OneShot))
	}
	require.Equal(t, map[int]Ready{spent: CanRead, ended: HangUp, fresh: CanRead}, found(t, p, -1))
	require.Empty(t, now(t, p))
}

// A descriptor closed without Remove: each kind says what it can, once, and goes on with the others.
func TestClosedBehindItsBack(t *testing.T) {
	each(t, func(t *testing.T, kind Kind, p *poller) {
		other, otherW := pipe(t)
		write(t, otherW, "x")
		r, _ := pipe(t)
		require.NoError(t, p.Add(r, Readable))
		require.NoError(t, p.Add(other, Readable))
		shut(t, r)

		events := make([]Event, 4)
		switch kind {
		case Poll:
			require.Equal(t, map[int]Ready{r: Failed, other: CanRead}, now(t, p))
		case Epoll:
		default:
			n, err := p.Wait(events, -1)
			require.Zero(t, n)
			require.ErrorIs(t, err, unix.EBADF)
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, Error{Op: "wait", FD: r, Err: unix.EBADF}, *e)
		}
		require.Equal(t, map[int]Ready{other: CanRead}, now(t, p))
		require.ErrorIs(t, p.Modify(r, Readable), unix.EBADF)
		read(t, other, 1)
		c := count(p)
		require.Empty(t, found(t, p, 2*time.Millisecond))
		require.LessOrEqual(t, c.entered.Load(), int64(4))

		// The number's next owner is not registered by that.
		r2, w2 := pipe(t)
		if r2 != r {
			r2 = moved(t, r2, r)
		}
		write(t, w2, "x")
		require.Empty(t, now(t, p))
		require.ErrorIs(t, p.Modify(r, Readable), unix.ENOENT)
		require.NoError(t, p.Add(r2, Readable))
		require.Equal(t, map[int]Ready{r2: CanRead}, now(t, p))
		require.NoError(t, p.Modify(r2, Readable|Writable))
		require.NoError(t, p.Remove(r2))

		// Remove puts it right too.
		require.NoError(t, p.Add(r2, Readable))
		shut(t, r2)
		require.NoError(t, p.Remove(r2))
		require.Empty(t, now(t, p))
		require.ErrorIs(t, p.Remove(r2), unix.ENOENT)
	})
}

// Muted descriptors stay in poll's set until Remove: taking others out must not confuse them.
func TestRemoveAmongMuted(t *testing.T) {
	each(t, func(t *testing.T, kind Kind, p *poller) {
		var fds []int
		for range 5 {
			r, w := pipe(t)
			write(t, w, "x")
			require.NoError(t, p.Add(r, Readable))
			fds = append(fds, r)
		}
		shut(t, fds[4])
		shut(t, fds[2])
		for range 3 { // select tells of one at a time
			p.Wait(make([]Event, 8), 0)
		}
		require.Len(t, now(t, p), 3)
		require.NoError(t, p.Remove(fds[0]))
		require.NoError(t, p.Remove(fds[4]))
		require.Equal(t, map[int]Ready{fds[1]: CanRead, fds[3]: CanRead}, now(t, p))
		require.NoError(t, p.Remove(fds[2]))
		require.NoError(t, p.Remove(fds[3]))
		require.Equal(t, map[int]Ready{fds[1]: CanRead}, now(t, p))
	})
}

// A stranger has closed the poller's own descriptor: an error, and no endless loop.
func TestOwnDescriptorClosed(t *testing.T) {
	each(t, func(t *testing.T, kind Kind, p *poller) {
		fd := p.wake
		if kind == Epoll {
			fd = p.set.(*epollSet).fd
		}
		require.NoError(t, unix.Close(fd))
		_, err := p.Wait(make([]Event, 1), -1)
		require.ErrorIs(t, err, unix.EBADF)
	})
}
