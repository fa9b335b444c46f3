//go:build linux

package meter

import (
	"errors"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Software events are counted on any machine, by the same calls.
var software = [2]event{
	{unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_PAGE_FAULTS},
	{unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_TASK_CLOCK},
}

func openOrSkip(t *testing.T, s Scope, events [2]event) *Counters {
	c, err := s.counters(events)
	if errors.Is(err, os.ErrPermission) || errors.Is(err, syscall.ENOSYS) {
		t.Skip("the machine does not give counters away:", err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// touch makes n pages the process's own.
func touch(t *testing.T, n int) {
	size := unix.Getpagesize()
	p, err := unix.Mmap(-1, 0, n*size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	require.NoError(t, err)
	require.NoError(t, unix.Madvise(p, unix.MADV_NOHUGEPAGE))
	for i := 0; i < len(p); i += size {
		p[i] = 1
	}
	require.NoError(t, unix.Munmap(p))
}

func onOtherThread(f func()) {
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread() // and ends with it: it is none of those that are there already
		defer close(done)
		f()
	}()
	<-done
}

func TestCounters(t *testing.T) {
	const pages = 1000
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, s := range []Scope{OfThread, OfProcess} {
		c := openOrSkip(t, s, software)
		before, err := c.Read()
		require.NoError(t, err)
		touch(t, pages)
		mine, err := c.Read()
		require.NoError(t, err)
		if c.user {
			require.True(t, mine.User)
		}
		require.GreaterOrEqual(t, mine.Sub(before).Instructions, float64(pages))
		require.Positive(t, mine.Sub(before).Cycles)

		onOtherThread(func() { touch(t, 10*pages) })
		all, err := c.Read()
		require.NoError(t, err)
		if others := all.Sub(mine).Instructions; s == OfThread {
			require.Less(t, others, float64(10*pages))
		} else {
			require.GreaterOrEqual(t, others, float64(10*pages))
		}
	}
}

func TestHardwareCountersOrTheReason(t *testing.T) {
	c, err := OfThread.Counters()
	if err != nil {
		require.ErrorContains(t, err, "perf_event_open")
		return
	}
	defer c.Close()
	before, err := c.Read()
	require.NoError(t, err)
	for began := time.Now(); time.Since(began) < time.Millisecond; {
	}
	after, err := c.Read()
	require.NoError(t, err)
	require.Positive(t, after.Sub(before).Instructions)
}

func TestCountsAdd(t *testing.T) {
	a, b := Counts{10, 20, false}, Counts{1, 2, true}
	require.Equal(t, Counts{11, 22, true}, a.Add(b))
	require.Equal(t, Counts{9, 18, true}, a.Sub(b))
}
