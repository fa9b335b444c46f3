//go:build linux

package pipe_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/seed-e1736cc0/ipcbench"
	"github.com/seed-e1736cc0/ipcbench/pipe"
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

func pair(t *testing.T, cfg pipe.Config) (a, b *pipe.Channel) {
	a, b, err := pipe.Pair(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// A child is the test binary run again. It plays a role of TestChild and is killed at the test's end.
type child struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

const roleKey = "PIPE_TEST_ROLE"

func start(t *testing.T, role string, prepare func(*exec.Cmd)) *child {
	c := &child{Cmd: exec.Command("/proc/self/exe", "-test.run=^TestChild$")}
	c.Env = append(os.Environ(), roleKey+"="+role, "GORACE=atexit_sleep_ms=0") // or each would take a second to exit
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if prepare != nil {
		prepare(c.Cmd)
	}
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

func TestChild(t *testing.T) {
	switch role := os.Getenv(roleKey); role {
	case "":
		t.Skip("only as a child of other tests")
	case "bystander": // has what it has inherited, until its parent is done
		fmt.Println("> ready")
		io.Copy(io.Discard, os.Stdin)
	case "writer": // writes and exits without closing
		c, err := pipe.FromFiles([]*os.File{os.NewFile(3, "r"), os.NewFile(4, "w")}, pipe.Config{})
		require.NoError(t, err)
		_, err = c.Write([]byte("last words"))
		require.NoError(t, err)
		fmt.Println("> written")
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	case "big pipes":
		fmt.Println("> " + bigPipes())
	default:
		t.Fatal("no such role:", role)
	}
}

// nobody makes a command run without privileges.
func nobody() func(*exec.Cmd) {
	if os.Getuid() != 0 {
		return nil // already so, unless capabilities were given to the file
	}
	return func(c *exec.Cmd) {
		c.SysProcAttr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
}

func openDescriptors(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(entries)
}

func closeOnExec(t *testing.T, fds ...int) {
	for _, fd := range fds {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		require.NoError(t, err)
		require.NotZero(t, flags&unix.FD_CLOEXEC)
	}
}
