//go:build linux

package unixsock

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A child is the test binary run again. It plays a role of TestChild and is killed at the test's end.
type child struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

const (
	roleKey   = "UNIXSOCK_TEST_ROLE"
	firstFile = 3 // after the standard streams
)

// start starts a child, which finds the files at firstFile and after.
func start(t testing.TB, role string, files ...*os.File) *child {
	c := newChild(t, role, files...)
	require.NoError(t, c.Start())
	return c
}

// newChild is start without the start itself.
func newChild(t testing.TB, role string, files ...*os.File) *child {
	c := &child{Cmd: exec.Command("/proc/self/exe", "-test.run=^TestChild$")}
	c.ExtraFiles = files
	c.Env = append(os.Environ(), roleKey+"="+role, "GORACE=atexit_sleep_ms=0") // or each would take a second to exit
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var err error
	c.in, err = c.StdinPipe()
	require.NoError(t, err)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	c.out = bufio.NewReader(out)
	t.Cleanup(func() {
		if c.Process != nil {
			c.Process.Kill()
			c.Wait()
		}
	})
	return c
}

func (c *child) tell(t testing.TB, line string) {
	_, err := fmt.Fprintln(c.in, line)
	require.NoError(t, err)
}

// says returns the next line of the child that is meant for the test.
func (c *child) says(t testing.TB) string {
	for {
		line, err := c.out.ReadString('\n')
		require.NoError(t, err, "the child has ended: %s", line)
		if said, ok := strings.CutPrefix(line, "> "); ok {
			return strings.TrimSpace(said)
		}
	}
}

// roles are what children do.
var roles = map[string]func(t *testing.T, lines *bufio.Scanner){
	"server":     serve,
	"file-giver": giveFiles,
	"file-taker": takeFiles,
	"dialler":    dialOnce,
	"credential": sayCredential,
}

func TestChild(t *testing.T) {
	role, ok := roles[os.Getenv(roleKey)]
	if !ok {
		t.Skip("only as a child of other tests")
	}
	role(t, bufio.NewScanner(os.Stdin))
}

// say tells the test.
func say(what any) { fmt.Println(">", what) }

// serve takes a path for each line "mechanism path", says what came of it, and leaves it at the next line.
func serve(t *testing.T, lines *bufio.Scanner) {
	for lines.Scan() {
		kind, path, _ := strings.Cut(lines.Text(), " ")
		c, err := take(kind, path)
		say(verdict(err))
		if lines.Scan(); err == nil {
			require.NoError(t, c.Close())
		}
		say("left")
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
