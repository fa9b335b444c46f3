//go:build linux

package pipe_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/seed-e1736cc0/ipcbench"
	"github.com/seed-e1736cc0/ipcbench/pipe"
)

// The end comes when the writer's process exits, at once: neither its parent nor a
// child that happened to start meanwhile keeps a copy of the writing end.
func TestEndWhenWriterExits(t *testing.T) {
	everyWait(t, func(t *testing.T, w ipcbench.Wait) {
		a, b := pair(t, pipe.Config{Wait: w})
		closeOnExec(t, a.ReadFD(), a.WriteFD(), b.ReadFD(), b.WriteFD())
		files, err := b.Files()
		require.NoError(t, err)
		bystander := start(t, "bystander", nil)
		writer := start(t, "writer", func(c *exec.Cmd) { c.ExtraFiles = files })
		for _, f := range files {
			require.NoError(t, f.Close())
		}
		require.NoError(t, b.Close())
		require.Equal(t, "ready", bystander.says(t))
		require.Equal(t, "written", writer.says(t))
		p := make([]byte, 100)
		n, err := a.Read(p)
		require.NoError(t, err)
		require.Equal(t, "last words", string(p[:n]))
		_, err = a.TryRead(p)
		require.ErrorIs(t, err, ipcbench.ErrWouldBlock, "the writer lives")
		writer.in.Close()
		_, err = a.Read(p)
		require.Equal(t, io.EOF, err)
	})
}

// fillTo leaves room for exactly free bytes, a multiple of the page.
func fillTo(t *testing.T, c *pipe.Channel, free int) {
	capacity, err := c.Capacity()
	require.NoError(t, err)
	n, err := c.TryWrite(make([]byte, capacity-free))
	require.NoError(t, err)
	require.Equal(t, capacity-free, n)
}

// A TryWrite that does not fit takes what does, and the next goes on behind it.
func TestTryWriteTakesWhatFits(t *testing.T) {
	everyWait(t, func(t *testing.T, w ipcbench.Wait) {
		a, b := pair(t, pipe.Config{Wait: w})
		page := os.Getpagesize()
		fillTo(t, a, 2*page)
		data := make([]byte, 2*page+1808)
		for i := range data {
			data[i] = byte(i % 251)
		}
		sent := 0
		for {
			n, err := a.TryWrite(data[sent:])
			sent += n
			if err != nil {
				require.ErrorIs(t, err, ipcbench.ErrWouldBlock)
				require.ErrorIs(t, err, unix.EAGAIN)
				require.Zero(t, n)
				break
			}
			require.Positive(t, n)
		}
		require.Equal(t, 2*page, sent)
		capacity, err := a.Capacity()
		require.NoError(t, err)
		_, err = io.ReadFull(b, make([]byte, capacity-2*page))
		require.NoError(t, err)
		n, err := a.TryWrite(data[sent:])
		require.NoError(t, err)
		require.Equal(t, len(data)-sent, n)
		got := make([]byte, len(data))
		_, err = io.ReadFull(b, got)
		require.NoError(t, err)
		require.True(t, bytes.Equal(data, got))
	})
}

// Up to PIPE_BUF a TryWrite is all or nothing.
func TestTryWriteUpToPipeBufIsAtomic(t *testing.T) {
	everyWait(t, func(t *testing.T, w ipcbench.Wait) {
		a, b := pair(t, pipe.Config{Wait: w})
		fillTo(t, a, os.Getpagesize())
		n, err := a.TryWrite(make([]byte, os.Getpagesize()-100))
		require.NoError(t, err)
		require.Equal(t, os.Getpagesize()-100, n)
		n, err = a.TryWrite(make([]byte, min(4096, os.Getpagesize())))
		require.ErrorIs(t, err, ipcbench.ErrWouldBlock)
		require.Zero(t, n)
		n, err = a.TryWrite(make([]byte, 100))
		require.NoError(t, err)
		require.Equal(t, 100, n)
		capacity, err := a.Capacity()
		require.NoError(t, err)
		_, err = io.ReadFull(b, make([]byte, capacity))
		require.NoError(t, err)
		_, err = b.TryRead(make([]byte, 1))
		require.ErrorIs(t, err, ipcbench.ErrWouldBlock, "nothing of the refused one")
	})
}

// A write without a reader is an error and no signal.
func TestWriteWithoutReader(t *testing.T) {
	everyWait(t, func(t *testing.T, w ipcbench.Wait) {
		for _, packets := range []bool{false, true} {
			a, b := pair(t, pipe.Config{Wait: w, Packets: packets})
			require.NoError(t, b.Close())
			n, err := a.Write([]byte("anybody?"))
			require.ErrorIs(t, err, unix.EPIPE)
			require.Zero(t, n)
			_, err = a.TryWrite([]byte("anybody?"))
			require.ErrorIs(t, err, unix.EPIPE)
			require.EqualError(t, err, "pipe: write: broken pipe")
		}
	})
}

func TestCapacity(t *testing.T) {
	limit(t)
	a, b := pair(t, pipe.Config{Capacity: 5000})
	for _, c := range []*pipe.Channel{a, b} {
		n, err := c.Capacity()
		require.NoError(t, err)
		require.Equal(t, roundUp(5000), n, "rounded by the kernel")
	}
	if strconv.IntSize == 64 {
		tooMuch := int64(1<<32 + 5000) // of which fcntl would see 5000
		require.ErrorIs(t, a.SetCapacity(int(tooMuch)), unix.EINVAL)
	}
	require.NoError(t, a.SetCapacity(100_000))
	n, err := a.Capacity()
	require.NoError(t, err)
	require.Equal(t, 131072, n)
	fillTo(t, a, 0)
	err = a.SetCapacity(5000)
	require.ErrorIs(t, err, unix.EBUSY)
	require.ErrorContains(t, err, "holds now")
	n, err = a.Capacity()
	require.NoError(t, err)
	require.Equal(t, 131072, n, "a refusal changes nothing")
	_, err = io.ReadFull(b, make([]byte, 131072))
	require.NoError(t, err)

	require.ErrorIs(t, a.SetCapacity(0), unix.EINVAL)
	_, _, err = pipe.Pair(pipe.Config{Capacity: -1})
	require.ErrorIs(t, err, unix.EINVAL)
	require.NoError(t, a.Close())
	_, err = a.Capacity()
	require.ErrorIs(t, err, os.ErrClosed)
	require.ErrorIs(t, a.SetCapacity(5000), os.ErrClosed)
}

// roundUp is what the kernel makes of a pipe's size: a power of two of pages.
func roundUp(n int) int {
	size := os.Getpagesize()
	for size < n {
		size *= 2
	}
	return size
}

func setting(name string) (int, error) {
	text, err := os.ReadFile("/proc/sys/fs/" + name)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// Without privileges a pipe larger than pipe-max-size is EPERM, and so is one too
// many of that size; the error names both limits, and all others go on working.
func TestCapacityLimitsOfTheUnprivileged(t *testing.T) {
	limit(t)
	require.Equal(t, "ok", start(t, "big pipes", nobody()).says(t))
}

// bigPipes runs as nobody and returns "ok" or what is wrong.
func bigPipes() string {
	largest, err := setting("pipe-max-size")
	if err != nil {
		return err.Error()
	}
	_, _, err = pipe.Pair(pipe.Config{Capacity: 2 * largest})
	if !errors.Is(err, unix.EPERM) || !strings.Contains(err.Error(), "pipe-max-size ("+strconv.Itoa(largest)+" bytes)") {
		return fmt.Sprint("capacity above the limit: ", err)
	}
	soft, err := setting("pipe-user-pages-soft")
	if err != nil {
		return err.Error()
	}
	most := soft * os.Getpagesize() / largest
	if soft == 0 || most > 200 {
		return "ok" // no limit, or too far away to try
	}
	var good *pipe.Channel
	for range most {
		a, b, err := pipe.Pair(pipe.Config{Capacity: largest})
		if err == nil {
			defer func() { a.Close(); b.Close() }()
			good = a
			continue
		}
		switch n, err2 := good.Capacity(); {
		case !errors.Is(err, unix.EPERM) || !strings.Contains(err.Error(), "pipe-user-pages-soft"):
			return fmt.Sprint("one pipe too many: ", err)
		case err2 != nil || n != largest:
			return fmt.Sprint("the pipes before it: ", n, err2)
		}
		small, other, err := pipe.Pair(pipe.Config{})
		if err != nil {
			return fmt.Sprint("a pipe of the default size: ", err)
		}
		defer other.Close()
		defer small.Close()
		if n, err := small.Capacity(); err != nil || n <= 0 {
			return fmt.Sprint("capacity at the limit: ", n, err)
		}
		return "ok"
	}
	return fmt.Sprintf("%d pairs of %d bytes were allowed", most, largest)
}

func TestFromFilesRefuses(t *testing.T) {
	limit(t)
	before := openDescriptors(t)
	for name, test := range map[string]struct {
		cfg   pipe.Config
		files func(r, w *os.File) []*os.File
		text  string
	}{
		"none":         {files: func(_, _ *os.File) []*os.File { return nil }, text: "0 files, want 2"},
		"one":          {files: func(r, _ *os.File) []*os.File { return []*os.File{r} }, text: "1 files, want 2"},
		"three":        {files: func(r, w *os.File) []*os.File { return []*os.File{r, w, w} }, text: "3 files, want 2"},
		"nil":          {files: func(r, _ *os.File) []*os.File { return []*os.File{r, nil} }, text: "nil"},
		"swapped":      {files: func(r, w *os.File) []*os.File { return []*os.File{w, r} }, text: "first file has to be for reading"},
		"both to read": {files: func(r, _ *os.File) []*os.File { return []*os.File{r, r} }, text: "second for writing"},
		"packets":      {files: func(r, w *os.File) []*os.File { return []*os.File{r, w} }, cfg: pipe.Config{Packets: true}, text: "Packets"},
		"wait":         {files: func(r, w *os.File) []*os.File { return []*os.File{r, w} }, cfg: pipe.Config{Wait: 17}, text: "17"},
		"a file": {files: func(_, w *os.File) []*os.File {
			f, err := os.Open(os.Args[0])
			require.NoError(t, err)
			return []*os.File{f, w}
		}, text: "not a pipe"},
	} {
		t.Run(name, func(t *testing.T) {
			r, w, err := os.Pipe()
			require.NoError(t, err)
			files := test.files(r, w)
			_, err = pipe.FromFiles(files, test.cfg)
			require.ErrorIs(t, err, unix.EINVAL)
			require.ErrorContains(t, err, "pipe: from files: ")
			require.ErrorContains(t, err, test.text)
			for _, f := range files {
				if f != nil {
					require.ErrorIs(t, f.Close(), os.ErrClosed, "taken over on error too")
				}
			}
			r.Close()
			w.Close()
		})
	}
	require.Equal(t, before, openDescriptors(t))
}

func TestFromFilesRecognises(t *testing.T) {
	limit(t)
	for _, test := range []struct {
		mechanism string
		make      func() *pipe.Channel
	}{
		{"pipe", func() *pipe.Channel { a, _ := pair(t, pipe.Config{}); return a }},
		{"pipe-packet", func() *pipe.Channel { a, _ := pair(t, pipe.Config{Packets: true}); return a }},
		{"fifo", func() *pipe.Channel { a, _ := fifos(t, pipe.Config{}); return a }},
	} {
		a := test.make()
		require.Equal(t, test.mechanism, a.Contract().Mechanism)
		files, err := a.Files()
		require.NoError(t, err)
		got, err := pipe.FromFiles(files, pipe.Config{Packets: test.mechanism == "pipe-packet"})
		require.NoError(t, err)
		require.Equal(t, a.Contract(), got.Contract())
		require.NoError(t, got.Close())
	}
}

// fifos returns a connection over named pipes.
func fifos(t *testing.T, cfg pipe.Config) (a, b *pipe.Channel) {
	path := filepath.Join(t.TempDir(), "fifo")
	type made struct {
		c   *pipe.Channel
		err error
	}
	opened := make(chan made, 1)
	go func() { c, err := pipe.Open(path, cfg); opened <- made{c, err} }()
	a, err := pipe.Create(path, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { a.Close() })
	other := <-opened
	require.NoError(t, other.err)
	t.Cleanup(func() { other.c.Close() })
	return a, other.c
}
