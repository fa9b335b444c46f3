//go:build linux

package poller

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLevelTriggered(t *testing.T) {
	each(t, func(t *testing.T, _ Kind, p *poller) {
		r, w := pipe(t)
		require.NoError(t, p.Add(r, Readable))
		write(t, w, "sixpack")
		for range 3 {
			require.Equal(t, map[int]Ready{r: CanRead}, found(t, p, -1))
			read(t, r, 2)
		}
		read(t, r, 2)
		require.Empty(t, now(t, p))
	})
}

func TestTriggersAreEpollsAlone(t *testing.T) {
	each(t, func(t *testing.T, kind Kind, p *poller) {
		r, _ := pipe(t)
		for _, in := range []Interest{Readable | Edge, Readable | OneShot} {
			if kind == Epoll {
				require.NoError(t, p.Add(r, in))
				require.NoError(t, p.Remove(r))
				continue
			}
			require.ErrorIs(t, p.Add(r, in), errors.ErrUnsupported)
			require.NoError(t, p.Add(r, Readable))
			require.ErrorIs(t, p.Modify(r, in), errors.ErrUnsupported)
			require.NoError(t, p.Remove(r))
		}
	})
}

// An edge is reported once; what is left unread is not, until more arrives or Modify asks again.
func TestEdgeTriggered(t *testing.T) {
	limited(t)
	p := open(t, Epoll)
	r, w := pipe(t)
	require.NoError(t, p.Add(r, Readable|Edge))
	write(t, w, "sixpak")
	require.Equal(t, map[int]Ready{r: CanRead}, found(t, p, -1))
	require.Equal(t, "si", read(t, r, 2))
	require.Empty(t, now(t, p), "four bytes are left, and no new edge")
	write(t, w, "!")
	require.Equal(t, map[int]Ready{r: CanRead}, found(t, p, -1))
	require.Equal(t, "xp", read(t, r, 2))
	require.Empty(t, now(t, p))
	require.NoError(t, p.Modify(r, Readable|Edge))
	require.Equal(t, map[int]Ready{r: CanRead}, found(t, p, -1))
	require.Equal(t, "ak!", read(t, r, 9))
	shut(t, w)
	require.Equal(t, map[int]Ready{r: HangUp}, found(t, p, -1))
	require.Empty(t, now(t, p))
}

func TestOneShot(t *testing.T) {
	limited(t)
	p := open(t, Epoll)
	r, w := pipe(t)
	require.NoError(t, p.Add(r, Readable|OneShot))
	write(t, w, "x")
	require.Equal(t, map[int]Ready{r: CanRead}, found(t, p, -1))
	write(t, w, "y")
	require.Empty(t, now(t, p))
	require.NoError(t, p.Modify(r, Readable|OneShot))
	require.Equal(t, map[int]Ready{r: CanRead}, found(t, p, -1))
	shut(t, w)
	require.Empty(t, now(t, p), "the end is silent too")
	require.NoError(t, p.Modify(r, Readable|OneShot))
	require.Equal(t, map[int]Ready{r: CanRead | HangUp}, found(t, p, -1))
}

// More are ready than there is room for: all get their turn, none is starved.
func TestTurns(t *testing.T) {
	each(t, func(t *testing.T, _ Kind, p *poller) {
		const many = 7
		for range many {
			r, w := pipe(t)
			require.NoError(t, p.Add(r, Readable))
			write(t, w, "x")
		}
		for _, room := range []int{1, 2, 3, many} {
			seen := map[int]bool{}
			events := make([]Event, room)
			for range (many + room - 1) / room {
				n, err := p.Wait(events, -1)
				require.NoError(t, err)
				require.Equal(t, room, n)
				for _, e := range events {
					seen[e.FD] = true
				}
			}
			require.Len(t, seen, many, "room for %d", room)
		}
	})
}

func TestNoAllocation(t *testing.T) {
	each(t, func(t *testing.T, _ Kind, p *poller) {
		r, w := pipe(t)
		require.NoError(t, p.Add(r, Readable))
		events := make([]Event, 8)
		allocations := func(want int, timeout time.Duration) float64 {
			return testing.AllocsPerRun(20, func() {
				if n, err := p.Wait(events, timeout); n != want || err != nil {
					t.Errorf("%d events, %v", n, err)
				}
			})
		}
		require.Zero(t, allocations(0, 0))
		require.Zero(t, allocations(0, time.Nanosecond))
		write(t, w, "x")
		require.Zero(t, allocations(1, 0))
		require.Zero(t, allocations(1, time.Second))
		require.Zero(t, allocations(1, -1))
	})
}
