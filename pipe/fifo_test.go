//go:build linux

package pipe_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/seed-e1736cc0/ipcbench"
	"github.com/seed-e1736cc0/ipcbench/pipe"
)

func TestNamedPipes(t *testing.T) {
	everyWait(t, func(t *testing.T, w ipcbench.Wait) {
		a, b := fifos(t, pipe.Config{Wait: w, Timeout: 20 * time.Second})
		closeOnExec(t, a.ReadFD(), a.WriteFD(), b.ReadFD(), b.WriteFD())
		require.Equal(t, "fifo", a.Contract().Mechanism)
		p := make([]byte, 10)
		// A named pipe that has had no writer yet reads as its end: that must not be seen.
		for _, c := range []*pipe.Channel{a, b} {
			_, err := c.TryRead(p)
			require.ErrorIs(t, err, ipcbench.ErrWouldBlock, "a false end")
		}
		for _, ends := range [][2]*pipe.Channel{{a, b}, {b, a}} {
			_, err := ends[0].Write([]byte("hello"))
			require.NoError(t, err)
			n, err := ends[1].Read(p)
			require.NoError(t, err)
			require.Equal(t, "hello", string(p[:n]))
		}
		require.NoError(t, a.CloseWrite())
		_, err := b.Read(p)
		require.Equal(t, io.EOF, err)
		require.NoError(t, a.Close())
		_, err = b.Write([]byte("x"))
		require.ErrorIs(t, err, unix.EPIPE)
	})
}

// The names are for two parties and go once these have met.
func TestNamesAreRemoved(t *testing.T) {
	limit(t)
	path := filepath.Join(t.TempDir(), "x")
	done := make(chan error, 1)
	go func() {
		c, err := pipe.Open(path, pipe.Config{})
		if err == nil {
			c.Close()
		}
		done <- err
	}()
	c, err := pipe.Create(path, pipe.Config{})
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, <-done)
	requireEmpty(t, filepath.Dir(path))
}

func requireEmpty(t *testing.T, dir string) {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}

// Data and the end of a party that has come and gone are still read.
func TestOpenMeetsPartyThatHasGone(t *testing.T) {
	limit(t)
	path := filepath.Join(t.TempDir(), "x")
	for range 20 {
		done := make(chan error, 1)
		go func() {
			c, err := pipe.Create(path, pipe.Config{})
			if err == nil {
				_, err = c.Write([]byte("bye"))
				err = errors.Join(err, c.Close())
			}
			done <- err
		}()
		c, err := pipe.Open(path, pipe.Config{})
		require.NoError(t, err)
		got, err := io.ReadAll(c)
		require.NoError(t, err)
		require.Equal(t, "bye", string(got))
		require.NoError(t, <-done)
		require.NoError(t, c.Close())
	}
}

func TestNobodyComes(t *testing.T) {
	limit(t)
	before := openDescriptors(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	for name, meet := range map[string]func(context.Context, string, pipe.Config) (*pipe.Channel, error){
		"create": pipe.CreateContext, "open": pipe.OpenContext,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := meet(context.Background(), path, pipe.Config{Timeout: 10 * time.Millisecond})
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			require.ErrorContains(t, err, "pipe: "+name+": ")
			cause := errors.New("changed my mind")
			ctx, cancel := context.WithCancelCause(context.Background())
			time.AfterFunc(5*time.Millisecond, func() { cancel(cause) })
			_, err = meet(ctx, path, pipe.Config{})
			require.ErrorIs(t, err, cause)
			for _, cfg := range []pipe.Config{{Timeout: -1}, {Wait: 17}} {
				_, err = meet(context.Background(), path, cfg)
				require.ErrorIs(t, err, unix.EINVAL)
			}
			_, err = meet(context.Background(), path, pipe.Config{Packets: true})
			require.ErrorIs(t, err, errors.ErrUnsupported)
			requireEmpty(t, dir)
		})
	}
	require.Equal(t, before, openDescriptors(t))
}

// A name that is taken is an error, and what has it stays as it is.
func TestForeignFiles(t *testing.T) {
	for _, suffix := range []string{".a", ".b"} {
		t.Run(suffix, func(t *testing.T) {
			limit(t)
			dir := t.TempDir()
			path := filepath.Join(dir, "x")
			require.NoError(t, os.WriteFile(path+suffix, []byte("precious"), 0o600))
			_, err := pipe.Create(path, pipe.Config{})
			require.ErrorIs(t, err, os.ErrExist)
			require.ErrorContains(t, err, path+suffix)
			entries, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Len(t, entries, 1, "the other name is removed again")

			other := path + map[string]string{".a": ".b", ".b": ".a"}[suffix]
			require.NoError(t, unix.Mkfifo(other, 0o600))
			keep, err := os.OpenFile(other, os.O_RDWR, 0)
			require.NoError(t, err)
			defer keep.Close()
			_, err = pipe.Open(path, pipe.Config{Timeout: 10 * time.Second})
			require.ErrorIs(t, err, unix.EINVAL)
			require.ErrorContains(t, err, "not a named pipe")
			got, err := os.ReadFile(path + suffix)
			require.NoError(t, err)
			require.Equal(t, "precious", string(got))
		})
	}
}
