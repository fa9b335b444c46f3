//go:build linux

package meter

import (
	"encoding/json"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// burn uses that much CPU time of the calling thread.
func burn(t *testing.T, d time.Duration) {
	t.Helper()
	start, err := Thread()
	require.NoError(t, err)
	for now := start; now.Sub(start).User+now.Sub(start).Sys < d; {
		for range 1000 {
			unix.Getppid()
		}
		now, err = Thread()
		require.NoError(t, err)
	}
}

func TestProcessCountsWhatThreadDoesNot(t *testing.T) {
	const spent = 50 * time.Millisecond
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	thread, err := Thread()
	require.NoError(t, err)
	process, err := Process()
	require.NoError(t, err)

	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		burn(t, spent)
	}()
	<-done

	processAfter, err := Process()
	require.NoError(t, err)
	threadAfter, err := Thread()
	require.NoError(t, err)
	process, thread = processAfter.Sub(process), threadAfter.Sub(thread)
	require.GreaterOrEqual(t, process.User+process.Sys, spent)
	require.Less(t, thread.User+thread.Sys, spent/2)
	require.Positive(t, process.Sys)
}

// A wait is a voluntary switch, whatever else runs on the machine. It is long, or
// a slow machine's timer has fired before the thread is asleep.
func TestVoluntarySwitches(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, err := Thread()
	require.NoError(t, err)
	const waits = 50
	for range waits {
		pause := unix.NsecToTimespec(int64(5 * time.Millisecond))
		_ = unix.Nanosleep(&pause, nil) // EINTR had to wait too
	}
	after, err := Thread()
	require.NoError(t, err)
	require.GreaterOrEqual(t, after.Sub(before).Voluntary, int64(waits*9/10))
	require.Less(t, after.Sub(before).Voluntary, int64(waits*2))
}

func TestArithmetic(t *testing.T) {
	a, b := Usage{9, 8, 7, 6}, Usage{1, 2, 3, 4}
	require.Equal(t, Usage{10, 10, 10, 10}, a.Add(b))
	require.Equal(t, Usage{8, 6, 4, 2}, a.Sub(b))
	require.Equal(t, a, a.Sub(b).Add(b))
}

func TestJSON(t *testing.T) {
	text, err := json.Marshal(Usage{time.Second, time.Microsecond, 3, 4})
	require.NoError(t, err)
	require.Equal(t, `{"user":1000000000,"sys":1000,"vcsw":3,"ivcsw":4}`, string(text))
	var got Usage
	require.NoError(t, json.Unmarshal(text, &got))
	require.Equal(t, Usage{time.Second, time.Microsecond, 3, 4}, got)
}

func TestNoAllocation(t *testing.T) {
	require.Zero(t, testing.AllocsPerRun(100, func() {
		a, _ := Process()
		b, _ := Thread()
		_ = a.Sub(b).Add(a)
	}))
}

func TestError(t *testing.T) {
	_, err := read(12345)
	require.EqualError(t, err, "getrusage: invalid argument")
}
