//go:build linux

package tcploop

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// atDescriptorLimit makes the next descriptor of this process an EMFILE. free
// makes room for one more, restore for all.
func atDescriptorLimit(t *testing.T) (free, restore func()) {
	var old unix.Rlimit
	require.NoError(t, unix.Prlimit(0, unix.RLIMIT_NOFILE, nil, &old))
	next, err := unix.Dup(0)
	require.NoError(t, err)
	filler := []int{next}
	require.NoError(t, unix.Prlimit(0, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(next) + 1, Max: old.Max}, nil))
	restore = func() {
		unix.Prlimit(0, unix.RLIMIT_NOFILE, &old, nil)
		for _, d := range filler {
			unix.Close(d)
		}
		filler = nil
	}
	t.Cleanup(restore)
	for {
		d, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			require.Equal(t, unix.EMFILE, err)
			break
		}
		filler = append(filler, d)
	}
	free = func() {
		unix.Close(filler[0])
		filler = filler[1:]
	}
	return free, restore
}

// cpuTime is what the process has used, in user and system mode.
func cpuTime(t *testing.T) time.Duration {
	var u unix.Rusage
	require.NoError(t, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Accept at the limit of descriptors waits without spinning, obeys its deadline and Close,
// and goes on once there is a descriptor.
func TestAcceptAtDescriptorLimit(t *testing.T) {
	limit(t)
	l := listening(t, "127.0.0.1:0", Config{})
	a := dialled(t, l.Addr(), Config{})
	dialled(t, l.Addr(), Config{})
	free, restore := atDescriptorLimit(t)
	defer restore()

	const patience = 300 * time.Millisecond
	before := cpuTime(t)
	require.NoError(t, l.SetDeadline(time.Now().Add(patience)))
	_, err := l.Accept()
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.Less(t, cpuTime(t)-before, patience/5, "it span")

	require.NoError(t, l.SetDeadline(time.Time{}))
	type accepted struct {
		c   *Channel
		err error
	}
	accept := func() <-chan accepted {
		done := make(chan accepted, 1)
		go func() { c, err := l.Accept(); done <- accepted{c, err} }()
		return done
	}
	done := accept()
	select {
	case got := <-done:
		t.Fatal("accepted without a descriptor: ", got.err)
	case <-time.After(30 * time.Millisecond):
	}
	free()
	got := <-done
	require.NoError(t, got.err)
	closing(t, got.c)

	done = accept()
	require.NoError(t, l.SetDeadline(time.Now().Add(20*time.Millisecond)))
	require.ErrorIs(t, (<-done).err, os.ErrDeadlineExceeded, "a deadline set meanwhile")
	require.NoError(t, l.SetDeadline(time.Time{}))
	done = accept()
	require.NoError(t, l.Close())
	require.ErrorIs(t, (<-done).err, os.ErrClosed)
	restore()
	requireConversation(t, a, got.c)
}

func TestAcceptObeysDeadlineAndClose(t *testing.T) {
	families(t, func(t *testing.T, addr string, cfg Config) {
		l := listening(t, addr, cfg)
		require.NoError(t, l.SetDeadline(time.Unix(1, 0)))
		_, err := l.Accept()
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.EqualError(t, err, "tcploop: accept: i/o timeout")
		require.NoError(t, l.SetDeadline(time.Time{}))
		done := make(chan error, 3)
		for range cap(done) {
			go func() {
				c, err := l.Accept()
				if err == nil {
					err = errors.Join(errors.New("accepted"), c.Close())
				}
				done <- err
			}()
		}
		require.NoError(t, l.Close())
		for range cap(done) {
			require.ErrorIs(t, <-done, os.ErrClosed)
		}
		require.ErrorIs(t, l.Close(), os.ErrClosed)
		require.ErrorIs(t, l.SetDeadline(time.Time{}), os.ErrClosed)
	})
}
