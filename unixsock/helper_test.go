//go:build linux

package unixsock

import (
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/seed-e1736cc0/ipcbench"
)

// limit ends the whole run, with all goroutines' stacks, when a test is stuck.
func limit(t *testing.T) {
	timer := time.AfterFunc(30*time.Second, func() { panic(t.Name() + " is stuck") })
	t.Cleanup(func() { timer.Stop() })
}

// everyWait runs f for each wait strategy.
func everyWait(t *testing.T, f func(t *testing.T, w ipcbench.Wait)) {
	for _, w := range ipcbench.Waits() {
		t.Run(w.String(), func(t *testing.T) { limit(t); f(t, w) })
	}
}

// everyKind runs f for each kind and wait strategy.
func everyKind(t *testing.T, f func(t *testing.T, k Kind, w ipcbench.Wait)) {
	for k := range kinds {
		t.Run(Kind(k).String(), func(t *testing.T) {
			everyWait(t, func(t *testing.T, w ipcbench.Wait) { f(t, Kind(k), w) })
		})
	}
}

// A meeting is a place to meet at: a path in a directory of its own, or an abstract name that is new.
var meetings = map[string]func(t *testing.T) string{
	"path":     newPath,
	"abstract": func(*testing.T) string { return newAbstract() },
}

// newPath returns a short path; t.TempDir has the test's name in it, which may be longer than a socket's may be.
func newPath(t *testing.T) string {
	dir, err := os.MkdirTemp("", "us")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

func newAbstract() string { return "@ipcbench-" + strconv.FormatUint(rand.Uint64(), 36) }

func pair(t *testing.T, k Kind, cfg Config) (a, b *Channel) {
	a, b, err := Pair(k, cfg)
	require.NoError(t, err)
	return closing(t, a), closing(t, b)
}

// closing closes c at the test's end, if the test has not.
func closing[C io.Closer](t *testing.T, c C) C {
	t.Cleanup(func() { c.Close() })
	return c
}

func listening(t *testing.T, k Kind, addr string, cfg Config) *Listener {
	l, err := Listen(k, addr, cfg)
	require.NoError(t, err)
	return closing(t, l)
}

func bound(t *testing.T, addr string, cfg Config) *Channel {
	c, err := Bind(addr, cfg)
	require.NoError(t, err)
	return closing(t, c)
}

func dialled(t *testing.T, k Kind, addr string, cfg Config) *Channel {
	c, err := Dial(k, addr, cfg)
	require.NoError(t, err)
	return closing(t, c)
}

// meet connects two ends at an address. From a datagram receiver to its writer nothing can be written.
func meet(t *testing.T, k Kind, addr string, cfg Config) (writer, reader *Channel) {
	if k == Dgram {
		reader = bound(t, addr, cfg)
		return dialled(t, k, addr, cfg), reader
	}
	l := listening(t, k, addr, cfg)
	writer = dialled(t, k, l.Addr(), cfg)
	reader, err := l.Accept()
	require.NoError(t, err)
	return writer, closing(t, reader)
}

// A foreign socket is one that is made without this package.
func foreign(t *testing.T, typ int) int {
	s, err := unix.Socket(unix.AF_UNIX, typ|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	return s
}

// stale leaves a socket file at path whose owner has gone.
func stale(t *testing.T, typ int, path string) {
	s := foreign(t, typ)
	require.NoError(t, unix.Bind(s, &unix.SockaddrUnix{Name: path}))
	if typ != unix.SOCK_DGRAM {
		require.NoError(t, unix.Listen(s, 1))
	}
	require.NoError(t, unix.Close(s))
}

func write(t *testing.T, c *Channel, message string) {
	t.Helper()
	n, err := c.Write([]byte(message))
	require.NoError(t, err)
	require.Equal(t, len(message), n)
}

func read(t *testing.T, c *Channel) string {
	t.Helper()
	p := make([]byte, 1000)
	n, err := c.Read(p)
	require.NoError(t, err)
	return string(p[:n])
}

func setting(t *testing.T, name string) int {
	text, err := os.ReadFile("/proc/sys/net/" + name)
	require.NoError(t, err)
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	return n
}

func openDescriptors(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(entries)
}

func files(t *testing.T, dir string) (names []string) {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
