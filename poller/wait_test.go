//go:build linux

package poller

import (
	"math"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// counting counts how often the kernel is entered, and for how long at last.
type counting struct {
	set
	entered, last atomic.Int64
}

func (c *counting) look(events []Event) (int, error) {
	c.entered.Add(1)
	return c.set.look(events)
}

func (c *counting) enter(ms int) unix.Errno {
	c.entered.Add(1)
	c.last.Store(int64(ms))
	return c.set.enter(ms)
}

func count(p *poller) *counting {
	c := &counting{set: p.set}
	p.set = c
	return c
}

// A timeout is rounded up to what the kernel counts in: what is left is never
// 0, which would spin, and the longest does not overflow.
func TestMilliseconds(t *testing.T) {
	for d, want := range map[time.Duration]int{
		-1:                        -1,
		math.MinInt64:             -1,
		0:                         0,
		1:                         1,
		500 * time.Microsecond:    1,
		time.Millisecond:          1,
		time.Millisecond + 1:      2,
		30 * 24 * time.Hour:       math.MaxInt32,
		math.MaxInt64:             math.MaxInt32,
		math.MaxInt64 - 1:         math.MaxInt32,
		24 * 24 * time.Hour:       24 * 24 * 3600 * 1000,
		1500 * time.Microsecond:   2,
		math.MaxInt32 * 1_000_000: math.MaxInt32,
	} {
		require.Equal(t, want, milliseconds(d), d)
	}
}

func TestTimeout(t *testing.T) {
	each(t, func(t *testing.T, _ Kind, p *poller) {
		r, _ := pipe(t)
		require.NoError(t, p.Add(r, Readable))
		c := count(p)
		events := make([]Event, 1)
		for _, timeout := range []time.Duration{0, 1, 500 * time.Microsecond, 3 * time.Millisecond} {
			c.entered.Store(0)
			start := time.Now()
			n, err := p.Wait(events, timeout)
			require.NoError(t, err)
			require.Zero(t, n)
			require.GreaterOrEqual(t, time.Since(start), timeout, "returned early")
			// Once, on Epoll after a look; and room for a signal of the runtime's.
			require.LessOrEqual(t, c.entered.Load(), int64(4), "spins for %v", timeout)
		}
	})
}

func TestLongTimeout(t *testing.T) {
	each(t, func(t *testing.T, _ Kind, p *poller) {
		r, w := pipe(t)
		require.NoError(t, p.Add(r, Readable))
		for _, timeout := range []time.Duration{30 * 24 * time.Hour, math.MaxInt64} {
			c := count(p)
			go func() {
				for !inKernel(p) {
					runtime.Gosched()
				}
				unix.Write(w, []byte("x"))
			}()
			require.Equal(t, map[int]Ready{r: CanRead}, found(t, p, timeout))
			require.LessOrEqual(t, c.entered.Load(), int64(6))
			read(t, r, 1)
		}
	})
}

// A storm of signals neither ends a Wait nor makes it start again with its whole time.
func TestSignals(t *testing.T) {
	each(t, func(t *testing.T, _ Kind, p *poller) {
		r, _ := pipe(t)
		require.NoError(t, p.Add(r, Readable))
		c := count(p)
		thread, done := make(chan int), make(chan struct{})
		var n int
		var err error
		var took time.Duration
		const timeout = 300 * time.Millisecond
		go func() {
			defer close(done)
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			thread <- unix.Gettid()
			start := time.Now()
			n, err = p.Wait(make([]Event, 1), timeout)
			took = time.Since(start)
		}()
		tid, storm := <-thread, time.NewTicker(time.Millisecond)
		defer storm.Stop()
		for {
			select {
			case <-storm.C:
				// SIGURG is the runtime's own, for preemption: its handler does no harm.
				require.NoError(t, unix.Tgkill(unix.Getpid(), tid, unix.SIGURG))
				continue
			case <-done:
			}
			break
		}
		require.NoError(t, err)
		require.Zero(t, n)
		require.GreaterOrEqual(t, took, timeout)
		require.Greater(t, c.entered.Load(), int64(10), "hardly a signal came through: the test shows nothing")
		require.Less(t, c.last.Load(), timeout.Milliseconds(), "began with the whole time again")
	})
}

func TestWake(t *testing.T) {
	woken := outcome{events: []Event{}}
	each(t, func(t *testing.T, _ Kind, p *poller) {
		r, w := pipe(t)
		require.NoError(t, p.Add(r, Readable))
		set := 0
		if s, ok := p.set.(*epollSet); ok {
			set = s.fd
		}

		done := waiting(p)
		require.NoError(t, p.Wake())
		require.Equal(t, woken, <-done)
		if s, ok := p.set.(*epollSet); ok {
			require.Equal(t, set, s.fd, "took the word for an orphan's event")
		}

		for range 3 {
			require.NoError(t, p.Wake())
		}
		require.Empty(t, found(t, p, -1), "the next Wait, when none is under way")
		require.Empty(t, now(t, p))

		// Many calls are one, also on a Wait under way.
		done = waiting(p)
		var wakers sync.WaitGroup
		for range 8 {
			wakers.Go(func() {
				for range 100 {
					p.Wake()
				}
			})
		}
		require.Equal(t, woken, <-done)
		wakers.Wait()
		now(t, p) // a call after the return counts for the next
		write(t, w, "x")
		require.Equal(t, map[int]Ready{r: CanRead}, found(t, p, -1))

		read(t, r, 1)
		c := count(p)
		require.Empty(t, found(t, p, 2*time.Millisecond))
		require.LessOrEqual(t, c.entered.Load(), int64(4), "spins once woken")

		write(t, w, "x")
		require.NoError(t, p.Wake())
		require.Empty(t, found(t, p, -1), "first the word, then what is ready")
		require.Equal(t, map[int]Ready{r: CanRead}, found(t, p, -1))
	})
}

func TestClose(t *testing.T) {
	for _, kind := range Kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			limited(t)
			r, _ := pipe(t)
			before := len(descriptors())
			p := open(t, kind)
			require.NoError(t, p.Add(r, Readable))
			done := waiting(p)
			require.NoError(t, p.Close())
			require.ErrorIs(t, (<-done).err, os.ErrClosed)
			require.Len(t, descriptors(), before)

			idle := open(t, kind)
			require.NoError(t, idle.Add(r, Readable))
			require.NoError(t, idle.Close())
			require.Len(t, descriptors(), before)
			for _, p := range []*poller{p, idle} {
				_, err := p.Wait(make([]Event, 1), -1)
				require.ErrorIs(t, err, os.ErrClosed)
				require.ErrorIs(t, p.Add(r, Readable), os.ErrClosed)
				require.ErrorIs(t, p.Modify(r, Readable), os.ErrClosed)
				require.ErrorIs(t, p.Remove(r), os.ErrClosed)
				require.ErrorIs(t, p.Wake(), os.ErrClosed)
				require.ErrorIs(t, p.Close(), os.ErrClosed)
				require.False(t, p.Current(Event{FD: r, generation: 1}))
			}
		})
	}
}

func TestOneWaitAtATime(t *testing.T) {
	each(t, func(t *testing.T, _ Kind, p *poller) {
		done := waiting(p)
		_, err := p.Wait(make([]Event, 1), 0)
		require.ErrorIs(t, err, ErrBusy)
		require.EqualError(t, err, "poller: wait: another wait is under way")
		require.NoError(t, p.Wake())
		require.NoError(t, (<-done).err)
		require.Empty(t, now(t, p))
	})
}

// A Wait under way takes up what others change.
func TestChangeDuringWait(t *testing.T) {
	each(t, func(t *testing.T, _ Kind, p *poller) {
		r, w := pipe(t)
		write(t, w, "x")
		done := waiting(p)
		require.NoError(t, p.Add(r, Readable))
		require.Equal(t, r, (<-done).events[0].FD)
		require.NoError(t, p.Remove(r))

		require.NoError(t, p.Add(w, Readable))
		done = waiting(p)
		require.NoError(t, p.Modify(w, Readable|Writable))
		got := <-done
		require.Equal(t, w, got.events[0].FD)
		require.Equal(t, CanWrite, got.events[0].Ready)
		require.NoError(t, p.Modify(w, Readable))

		read(t, r, 1)
		require.NoError(t, p.Add(r, Readable))
		done = waiting(p)
		require.NoError(t, p.Remove(r))
		write(t, w, "x")
		require.NoError(t, p.Wake())
		require.Empty(t, (<-done).events, "an event of a descriptor that was removed before")
	})
}

// overtaken runs a hook after the kernel has found something, and before the poller has read what.
type overtaken struct {
	set
	hook func()
}

func (o *overtaken) look([]Event) (int, error) { return 0, nil }

func (o *overtaken) enter(ms int) unix.Errno {
	errno := o.set.enter(ms)
	if hook := o.hook; hook != nil {
		o.hook = nil
		hook()
	}
	return errno
}

// What the kernel has found is out of date when the set was changed meanwhile.
func TestChangeOvertakesWait(t *testing.T) {
	each(t, func(t *testing.T, kind Kind, p *poller) {
		r, w := pipe(t)
		other, otherW := pipe(t)
		require.NoError(t, p.Add(other, Readable))
		require.NoError(t, p.Add(r, Readable))
		o := &overtaken{set: p.set}
		p.set = o

		write(t, w, "x")
		shut(t, w)
		o.hook = func() {
			require.NoError(t, p.Remove(r))
			write(t, otherW, "x")
		}
		require.Equal(t, map[int]Ready{other: CanRead}, found(t, p, -1), "removed")
		read(t, other, 1)

		require.NoError(t, p.Add(r, Readable))
		o.hook = func() {
			require.NoError(t, p.Remove(r))
			shut(t, r)
			r2, w2 := pipe(t)
			if r2 != r {
				moved(t, r2, r)
			}
			require.NoError(t, p.Add(r, Readable))
			shut(t, w2)
		}
		require.Equal(t, map[int]Ready{r: HangUp}, found(t, p, -1), "taken by another")
		require.NoError(t, p.Remove(r))

		require.NoError(t, p.Add(otherW, Writable))
		o.hook = func() {
			if kind == Epoll {
				require.NoError(t, p.Modify(otherW, Readable|OneShot))
			} else {
				require.NoError(t, p.Modify(otherW, Readable))
			}
			write(t, otherW, "x")
		}
		require.Equal(t, map[int]Ready{other: CanRead}, found(t, p, -1), "modified")
	})
}

// Everything at once: for the race detector, and for what may hang.
func TestConcurrently(t *testing.T) {
	each(t, func(t *testing.T, _ Kind, p *poller) {
		var workers sync.WaitGroup
		for range 4 {
			workers.Go(func() {
				for range 100 {
					var pair [2]int
					if err := unix.Pipe2(pair[:], unix.O_NONBLOCK|unix.O_CLOEXEC); err != nil {
						t.Error(err)
						return
					}
					if err := p.Add(pair[0], Readable); err != nil {
						t.Error(err)
					}
					unix.Write(pair[1], []byte("x"))
					p.Wake()
					if err := p.Modify(pair[0], Readable|Writable); err != nil {
						t.Error(err)
					}
					if err := p.Remove(pair[0]); err != nil {
						t.Error(err)
					}
					unix.Close(pair[0])
					unix.Close(pair[1])
				}
			})
		}
		finished := make(chan struct{})
		go func() {
			workers.Wait()
			p.Close()
			close(finished)
		}()
		events := make([]Event, 3)
		for {
			n, err := p.Wait(events, -1)
			if err != nil {
				require.ErrorIs(t, err, os.ErrClosed)
				break
			}
			for _, e := range events[:n] {
				p.Current(e)
			}
		}
		<-finished
	})
}
