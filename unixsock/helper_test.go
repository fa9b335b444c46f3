//go:build linux

package unixsock

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
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

// A child is the test binary run again. It plays a role of TestChild and is killed at the test's end.
type child struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

const roleKey = "UNIXSOCK_TEST_ROLE"

func start(t *testing.T, role string) *child {
	c := &child{Cmd: exec.Command("/proc/self/exe", "-test.run=^TestChild$")}
	c.Env = append(os.Environ(), roleKey+"="+role, "GORACE=atexit_sleep_ms=0") // or each would take a second to exit
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var err error
	c.in, err = c.StdinPipe()
	require.NoError(t, err)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	c.out = bufio.NewReader(out)
	require.NoError(t, c.Start())
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	return c
}

func (c *child) tell(t *testing.T, line string) {
	_, err := fmt.Fprintln(c.in, line)
	require.NoError(t, err)
}

// says returns the next line of the child that is meant for the test.
func (c *child) says(t *testing.T) string {
	for {
		line, err := c.out.ReadString('\n')
		require.NoError(t, err, "the child has ended: %s", line)
		if said, ok := strings.CutPrefix(line, "> "); ok {
			return strings.TrimSpace(said)
		}
	}
}

// TestChild is what children do: they take a path for each line "mechanism path", say
// what came of it, and leave it at the next line.
func TestChild(t *testing.T) {
	if os.Getenv(roleKey) != "server" {
		t.Skip("only as a child of other tests")
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		kind, path, _ := strings.Cut(lines.Text(), " ")
		c, err := take(kind, path)
		fmt.Println("> " + verdict(err))
		if lines.Scan(); err == nil {
			require.NoError(t, c.Close())
		}
		fmt.Println("> left")
	}
}

// take makes a listener, or a receiver of datagrams, at path.
func take(kind, path string) (io.Closer, error) {
	switch kind {
	case "unix-stream":
		return Listen(Stream, path, Config{})
	case "unix-seqpacket":
		return Listen(SeqPacket, path, Config{})
	}
	return Bind(path, Config{})
}
