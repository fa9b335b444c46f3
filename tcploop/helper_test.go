//go:build linux

package tcploop

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
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

// families are the addresses to try. IPv6 is left out, by name, where the machine lacks it.
func families(t *testing.T, f func(t *testing.T, addr string, cfg Config)) {
	for name, addr := range map[string]string{"tcp": "127.0.0.1:0", "tcp6": "[::1]:0"} {
		t.Run(name, func(t *testing.T) {
			limit(t)
			if name == "tcp6" {
				needIPv6(t)
			}
			f(t, addr, Config{IPv6: name == "tcp6"})
		})
	}
}

func needIPv6(t *testing.T) {
	s, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Bind(s, &unix.SockaddrInet6{Addr: [16]byte{15: 1}})
		unix.Close(s)
	}
	if errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EADDRNOTAVAIL) {
		t.Skip("no IPv6 loopback here:", err)
	}
	require.NoError(t, err)
}

// closing closes c at the test's end, if the test has not.
func closing[C io.Closer](t *testing.T, c C) C {
	t.Cleanup(func() { c.Close() })
	return c
}

func paired(t *testing.T, cfg Config) (a, b *Channel) {
	t.Helper()
	a, b, err := Pair(cfg)
	require.NoError(t, err)
	return closing(t, a), closing(t, b)
}

func listening(t *testing.T, addr string, cfg Config) *Listener {
	t.Helper()
	l, err := Listen(addr, cfg)
	require.NoError(t, err)
	return closing(t, l)
}

func dialled(t *testing.T, addr string, cfg Config) *Channel {
	t.Helper()
	c, err := Dial(addr, cfg)
	require.NoError(t, err)
	return closing(t, c)
}

// requireConversation moves bytes both ways, and the end.
func requireConversation(t *testing.T, a, b *Channel) {
	t.Helper()
	for _, ends := range [][2]*Channel{{a, b}, {b, a}} {
		for _, m := range []string{"abc", "de", "fghi"} {
			_, err := ends[0].Write([]byte(m))
			require.NoError(t, err)
		}
		p := make([]byte, 9)
		_, err := io.ReadFull(ends[1], p)
		require.NoError(t, err)
		require.Equal(t, "abcdefghi", string(p))
	}
	require.NoError(t, a.CloseWrite())
	_, err := b.Read(make([]byte, 1))
	require.Equal(t, io.EOF, err)
	require.NoError(t, b.Close())
	_, err = a.Read(make([]byte, 1))
	require.Equal(t, io.EOF, err)
}

func option(t *testing.T, c *Channel, level, name int) (n int) {
	t.Helper()
	require.NoError(t, c.Control("option", func(s, _ int) (err error) {
		n, err = unix.GetsockoptInt(s, level, name)
		return err
	}))
	return n
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

// ownNetwork runs f in a subtest whose thread has a network namespace to itself:
// a loopback interface, and settings that concern nobody else. The thread ends with the subtest.
func ownNetwork(t *testing.T, settings map[string]string, f func(t *testing.T)) {
	t.Run("own network", func(t *testing.T) {
		limit(t)
		runtime.LockOSThread()
		err := unix.Unshare(unix.CLONE_NEWNET)
		if errors.Is(err, unix.EPERM) {
			runtime.UnlockOSThread()
			t.Skip("a network namespace takes CAP_SYS_ADMIN:", err)
		}
		require.NoError(t, err)
		for name, value := range settings {
			err := os.WriteFile("/proc/sys/net/"+name, []byte(value), 0)
			if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) || strings.HasPrefix(name, "ipv6/") && errors.Is(err, fs.ErrNotExist) {
				t.Skip("settings cannot be written here:", err)
			}
			require.NoError(t, err)
		}
		s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		require.NoError(t, err)
		defer unix.Close(s)
		lo, err := unix.NewIfreq("lo")
		require.NoError(t, err)
		lo.SetUint16(unix.IFF_UP | unix.IFF_LOOPBACK | unix.IFF_RUNNING)
		require.NoError(t, unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, lo))
		f(t)
	})
}

const roleKey = "TCPLOOP_TEST_ROLE"

// asNobody runs the named test in a process without privileges.
func asNobody(t *testing.T, name string) {
	c := exec.Command("/proc/self/exe", "-test.v", "-test.run=^"+name+"$")
	c.Env = append(os.Environ(), roleKey+"=nobody", "GORACE=atexit_sleep_ms=0")
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Getuid() == 0 {
		c.SysProcAttr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: "+name)
}

// everyWait runs f for each wait strategy.
func everyWait(t *testing.T, f func(t *testing.T, w ipcbench.Wait)) {
	for _, w := range ipcbench.Waits() {
		t.Run(w.String(), func(t *testing.T) { limit(t); f(t, w) })
	}
}
