//go:build linux

package unixsock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// takers are the ways to take a path, by mechanism.
var takers = []string{"unix-stream", "unix-seqpacket", "unix-dgram"}

// A server that was killed leaves its file, and the next one takes it over.
func TestKilledOwner(t *testing.T) {
	for _, dying := range takers {
		for _, next := range takers {
			t.Run(dying+" "+next, func(t *testing.T) {
				limit(t)
				path := newPath(t)
				c := start(t, "server")
				c.tell(t, dying+" "+path)
				require.Equal(t, "won", c.says(t))
				_, err := take(next, path)
				require.ErrorIs(t, err, unix.EADDRINUSE, "it lives")
				require.NoError(t, c.Process.Kill())
				c.Wait()
				require.FileExists(t, path)
				l, err := take(next, path)
				require.NoError(t, err)
				requireReachable(t, next, path)
				require.NoError(t, l.Close())
				require.Empty(t, files(t, filepath.Dir(path)))
			})
		}
	}
}

func kindOf(name string) Kind {
	for k := range kinds {
		if kinds[k].name == name {
			return Kind(k)
		}
	}
	panic(name)
}

func requireReachable(t *testing.T, kind, path string) {
	t.Helper()
	c, err := Dial(kindOf(kind), path, Config{})
	require.NoError(t, err)
	require.NoError(t, c.Close())
}

// A living owner keeps its file, and gets no connection from being asked.
func TestLivingOwner(t *testing.T) {
	for _, taken := range takers {
		t.Run(taken, func(t *testing.T) {
			limit(t)
			path := newPath(t)
			owner, err := take(taken, path)
			require.NoError(t, err)
			defer owner.Close()
			for _, kind := range takers {
				_, err := take(kind, path)
				require.ErrorIs(t, err, unix.EADDRINUSE)
				require.ErrorContains(t, err, path)
			}
			if l, ok := owner.(*Listener); ok {
				require.NoError(t, l.SetDeadline(time.Now().Add(time.Millisecond)))
				_, err := l.Accept()
				require.ErrorIs(t, err, os.ErrDeadlineExceeded, "a stray connection")
			}
			requireReachable(t, taken, path)
			require.Equal(t, []string{"s"}, files(t, filepath.Dir(path)))
		})
	}
}

// An owner that was made by other means lives too while its queue is full, or while it does not listen yet.
func TestLivingForeignOwner(t *testing.T) {
	limit(t)
	path := newPath(t)
	s := foreign(t, unix.SOCK_STREAM)
	defer unix.Close(s)
	require.NoError(t, unix.Bind(s, &unix.SockaddrUnix{Name: path}))
	_, err := Listen(Stream, path, Config{})
	require.ErrorIs(t, err, unix.EADDRINUSE)
	require.NoError(t, unix.Listen(s, 0))
	dialled(t, Stream, path, Config{})
	_, err = Listen(Stream, path, Config{})
	require.ErrorIs(t, err, unix.EADDRINUSE)
	require.FileExists(t, path)
}

// What is no socket is an error and stays.
func TestForeignFile(t *testing.T) {
	for what, make := range map[string]func(path string) error{
		"file":      func(path string) error { return os.WriteFile(path, []byte("precious"), 0o600) },
		"directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"link":      func(path string) error { return os.Symlink("nowhere", path) },
		"pipe":      func(path string) error { return unix.Mkfifo(path, 0o600) },
	} {
		t.Run(what, func(t *testing.T) {
			limit(t)
			path := newPath(t)
			require.NoError(t, make(path))
			before, err := os.Lstat(path)
			require.NoError(t, err)
			for _, kind := range takers {
				_, err := take(kind, path)
				require.ErrorIs(t, err, unix.EADDRINUSE)
				require.ErrorContains(t, err, "no socket")
			}
			after, err := os.Lstat(path)
			require.NoError(t, err)
			require.True(t, os.SameFile(before, after))
			require.Equal(t, before.Size(), after.Size())
			require.Equal(t, []string{"s"}, files(t, filepath.Dir(path)))
		})
	}
}

// verdict is a word for what came of taking a path.
func verdict(err error) string {
	switch {
	case err == nil:
		return "won"
	case errors.Is(err, unix.EADDRINUSE):
		return "in use"
	}
	return err.Error()
}

// Of several that start at once on a dead owner's file, or on none, exactly one has the address afterwards.
func TestStartingAtOnce(t *testing.T) {
	rounds := 150
	if testing.Short() {
		rounds = 40
	}
	for what, before := range startingPoints {
		t.Run(what, func(t *testing.T) {
			limit(t)
			path := newPath(t)
			for round := range rounds {
				before(t, path, round)
				kinds, owners, errs := race(path, round)
				requireOneWinner(t, path, kinds, errs)
				for _, o := range owners {
					require.NoError(t, o.Close())
				}
				require.Empty(t, files(t, filepath.Dir(path)))
			}
		})
	}
}

// race takes path from several goroutines at once, of mechanisms that change with the round.
func race(path string, round int) (kinds []string, owners []io.Closer, errs []error) {
	const racers = 6
	var all sync.WaitGroup
	var mu sync.Mutex
	begin := make(chan struct{})
	for i := range racers {
		kind := takers[(i*(round%3)+round)%len(takers)] // all the same in a third of the rounds
		all.Go(func() {
			<-begin
			o, err := take(kind, path)
			mu.Lock()
			defer mu.Unlock()
			kinds, errs = append(kinds, kind), append(errs, err)
			if err == nil {
				owners = append(owners, o)
			}
		})
	}
	close(begin)
	all.Wait()
	return kinds, owners, errs
}

var startingPoints = map[string]func(t *testing.T, path string, round int){
	"nothing there": func(*testing.T, string, int) {},
	"dead owner": func(t *testing.T, path string, round int) {
		stale(t, []int{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_SEQPACKET}[round%3], path)
	},
}

func requireOneWinner(t *testing.T, path string, kinds []string, errs []error) {
	t.Helper()
	winner := ""
	for i, err := range errs {
		switch verdict(err) {
		case "won":
			require.Empty(t, winner, "a second winner")
			winner = kinds[i]
		case "in use":
		default:
			require.NoError(t, err)
		}
	}
	require.NotEmpty(t, winner, "nobody has won")
	requireReachable(t, winner, path)
}

// The same with processes.
func TestProcessesStartingAtOnce(t *testing.T) {
	rounds := 40
	if testing.Short() {
		rounds = 10
	}
	limit(t)
	children := []*child{start(t, "server"), start(t, "server"), start(t, "server")}
	path := newPath(t)
	for round := range rounds {
		startingPoints["dead owner"](t, path, round)
		winner := ""
		kind := func(i int) string { return takers[(i*(round%3)+round)%len(takers)] }
		for i, c := range children {
			c.tell(t, kind(i)+" "+path)
		}
		for i, c := range children {
			if said := c.says(t); said == "won" {
				require.Empty(t, winner, "a second winner")
				winner = kind(i)
			} else {
				require.Equal(t, "in use", said)
			}
		}
		require.NotEmpty(t, winner, "nobody has won")
		requireReachable(t, winner, path)
		for _, c := range children {
			c.tell(t, "leave")
			require.Equal(t, "left", c.says(t))
		}
		require.Empty(t, files(t, filepath.Dir(path)))
	}
}

// Who saw a dead owner, and waited for its turn, must look again: another may have taken over meanwhile.
func TestTakingOverTooLate(t *testing.T) {
	for _, taken := range takers {
		t.Run(taken, func(t *testing.T) {
			limit(t)
			path := newPath(t)
			owner, err := take(taken, path)
			require.NoError(t, err)
			defer owner.Close()
			late := path + ".late"
			stale(t, unix.SOCK_STREAM, late)
			require.ErrorIs(t, takeOver(late, path), unix.EADDRINUSE)
			requireReachable(t, taken, path)
		})
	}
}

// Somebody who has the directory locked can keep a dead file there, but not keep Listen for ever.
func TestLockedDirectory(t *testing.T) {
	limit(t)
	path := newPath(t)
	stale(t, unix.SOCK_STREAM, path)
	dir, err := os.Open(filepath.Dir(path))
	require.NoError(t, err)
	defer dir.Close()
	require.NoError(t, unix.Flock(int(dir.Fd()), unix.LOCK_EX))
	_, err = Listen(Stream, path, Config{})
	require.ErrorIs(t, err, unix.EADDRINUSE)
	require.ErrorContains(t, err, "locked")
	require.Equal(t, []string{"s"}, files(t, filepath.Dir(path)))
	require.NoError(t, unix.Flock(int(dir.Fd()), unix.LOCK_UN))
	listening(t, Stream, path, Config{})
}

// The file of somebody who has taken the name meanwhile stays.
func TestCloseRemovesOnlyItsOwn(t *testing.T) {
	for _, kind := range takers {
		t.Run(kind, func(t *testing.T) {
			limit(t)
			path := newPath(t)
			first, err := take(kind, path)
			require.NoError(t, err)
			require.NoError(t, os.Remove(path))
			second, err := take(kind, path)
			require.NoError(t, err)
			require.NoError(t, first.Close())
			requireReachable(t, kind, path)
			require.ErrorIs(t, first.Close(), os.ErrClosed)
			require.NoError(t, second.Close())
			require.NoFileExists(t, path)
			third, err := take(kind, path)
			require.NoError(t, err)
			require.NoError(t, os.Remove(path))
			require.NoError(t, third.Close(), "and none at all is no fault")
		})
	}
}

// The mode is as asked, whatever the umask, and never wider before.
func TestMode(t *testing.T) {
	limit(t)
	defer unix.Umask(unix.Umask(0))
	for _, umask := range []int{0, 0o022, 0o077, 0o777} {
		unix.Umask(umask)
		for _, mode := range []os.FileMode{0, 0o600, 0o660, 0o666, 0o400, 0o777} {
			want := mode
			if mode == 0 {
				want = 0o600
			}
			for _, kind := range []Kind{Stream, Dgram, SeqPacket} {
				unix.Umask(0o022)
				path := newPath(t)
				unix.Umask(umask)
				s, err := kind.socket()
				require.NoError(t, err)
				at, err := Config{Mode: mode}.place(path)
				require.NoError(t, err)
				temp, err := at.bindTemporary(s)
				require.NoError(t, err)
				st, err := os.Lstat(temp)
				require.NoError(t, err)
				require.Equal(t, want&^os.FileMode(umask), st.Mode().Perm(), "from the first moment")
				require.NoError(t, os.Remove(temp))
				unix.Close(s)

				var c io.Closer
				if kind == Dgram {
					c, err = Bind(path, Config{Mode: mode})
				} else {
					c, err = Listen(kind, path, Config{Mode: mode})
				}
				require.NoError(t, err)
				st, err = os.Lstat(path)
				require.NoError(t, err)
				require.Equal(t, os.ModeSocket|want, st.Mode())
				require.NoError(t, c.Close())
			}
		}
	}
	_, err := Listen(Stream, newAbstract(), Config{Mode: os.ModeSetuid | 0o600})
	require.ErrorIs(t, err, unix.EINVAL)
}

func TestAcceptObeysDeadlineAndClose(t *testing.T) {
	for what, place := range meetings {
		t.Run(what, func(t *testing.T) {
			limit(t)
			l := listening(t, Stream, place(t), Config{})
			require.NoError(t, l.SetDeadline(time.Unix(1, 0)))
			_, err := l.Accept()
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			require.EqualError(t, err, "unixsock: accept: i/o timeout")

			accepting := func() <-chan error {
				done := make(chan error, 1)
				go func() {
					c, err := l.Accept()
					if err == nil {
						c.Close()
					}
					done <- err
				}()
				return done
			}
			require.NoError(t, l.SetDeadline(time.Now().Add(time.Hour)))
			done := accepting()
			require.NoError(t, l.SetDeadline(time.Now().Add(5*time.Millisecond)))
			require.ErrorIs(t, <-done, os.ErrDeadlineExceeded)
			require.NoError(t, l.SetDeadline(time.Time{}))
			done, another := accepting(), accepting()
			dialled(t, Stream, l.Addr(), Config{})
			var first error
			select {
			case first = <-done:
				done = another
			case first = <-another:
			}
			require.NoError(t, first)
			require.NoError(t, l.Close())
			require.ErrorIs(t, <-done, os.ErrClosed)
			_, err = l.Accept()
			require.ErrorIs(t, err, os.ErrClosed)
			require.ErrorIs(t, l.Close(), os.ErrClosed)
			require.ErrorIs(t, l.SetDeadline(time.Time{}), os.ErrClosed)
		})
	}
}

// full returns an address whose listener accepts nothing and has its queue full.
func full(t *testing.T, k Kind) (addr string, s int) {
	addr = newAbstract()
	s = foreign(t, kinds[k].typ)
	t.Cleanup(func() { unix.Close(s) })
	require.NoError(t, unix.Bind(s, &unix.SockaddrUnix{Name: addr}))
	require.NoError(t, unix.Listen(s, 1))
	for range 2 { // the queue takes one more than it says
		dialled(t, k, addr, Config{})
	}
	return addr, s
}

// Dial to a full queue is neither refused nor done at once: it waits until its
// limit, or its context, or for a place.
func TestDialWaitsForPlace(t *testing.T) {
	for _, k := range []Kind{Stream, SeqPacket} {
		t.Run(k.String(), func(t *testing.T) {
			limit(t)
			addr, s := full(t, k)
			before := openDescriptors(t)
			begin := time.Now()
			_, err := Dial(k, addr, Config{Timeout: 120 * time.Millisecond})
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			require.GreaterOrEqual(t, time.Since(begin), 120*time.Millisecond)
			require.ErrorContains(t, err, fmt.Sprintf("unixsock: dial: connect %q: ", addr))

			cause := errors.New("changed my mind")
			ctx, cancel := context.WithCancelCause(context.Background())
			time.AfterFunc(5*time.Millisecond, func() { cancel(cause) })
			_, err = DialContext(ctx, k, addr, Config{})
			require.ErrorIs(t, err, cause)
			_, err = DialContext(ctx, k, addr, Config{})
			require.ErrorIs(t, err, cause, "a context that has ended already")
			require.Equal(t, before, openDescriptors(t))

			done := make(chan error, 1)
			go func() {
				c, err := Dial(k, addr, Config{Timeout: 20 * time.Second})
				if err == nil {
					err = c.Close()
				}
				done <- err
			}()
			accepted, _, err := unix.Accept4(s, unix.SOCK_CLOEXEC)
			require.NoError(t, err)
			defer unix.Close(accepted)
			require.NoError(t, <-done)
		})
	}
}

// The limit on connecting must not stay as a limit on writing.
func TestDialLeavesNoTimeout(t *testing.T) {
	limit(t)
	a, _ := meet(t, Stream, newAbstract(), Config{Timeout: time.Minute})
	got, err := unix.GetsockoptTimeval(a.WriteFD(), unix.SOL_SOCKET, unix.SO_SNDTIMEO)
	require.NoError(t, err)
	require.Zero(t, got.Nano())
}

func TestRefusedArguments(t *testing.T) {
	limit(t)
	before := openDescriptors(t)
	addr := newAbstract()
	for _, cfg := range []Config{{Timeout: -1}, {SendBuffer: -1}, {RecvBuffer: -1}, {Wait: 17}} {
		_, err := Listen(Stream, addr, cfg)
		require.ErrorIs(t, err, unix.EINVAL)
		_, err = Bind(addr, cfg)
		require.ErrorIs(t, err, unix.EINVAL)
		_, err = Dial(Stream, addr, Config{Timeout: -1})
		require.ErrorIs(t, err, unix.EINVAL)
		if cfg.Timeout == 0 {
			_, _, err = Pair(Stream, cfg)
			require.ErrorIs(t, err, unix.EINVAL)
		}
	}
	_, err := Listen(Dgram, addr, Config{})
	require.ErrorIs(t, err, errors.ErrUnsupported)
	for _, k := range []Kind{-1, 3} {
		_, err = Listen(k, addr, Config{})
		require.ErrorIs(t, err, unix.EINVAL)
		_, err = Dial(k, addr, Config{})
		require.ErrorIs(t, err, unix.EINVAL)
		_, _, err = Pair(k, Config{})
		require.ErrorIs(t, err, unix.EINVAL)
	}
	_, err = Dial(Stream, addr, Config{})
	require.ErrorIs(t, err, unix.ECONNREFUSED)
	path := newPath(t)
	_, err = Dial(Stream, path, Config{})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, path)
	_, err = Listen(Stream, path+"/no/such/directory", Config{})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.Equal(t, before, openDescriptors(t))
}
