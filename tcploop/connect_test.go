//go:build linux

package tcploop

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/seed-e1736cc0/ipcbench"
)

func TestListenAndDial(t *testing.T) {
	families(t, func(t *testing.T, addr string, cfg Config) {
		for _, w := range ipcbench.Waits() {
			cfg.Wait = w
			l := listening(t, addr, cfg)
			at, err := netip.ParseAddrPort(l.Addr())
			require.NoError(t, err)
			require.True(t, at.Addr().IsLoopback())
			require.NotZero(t, at.Port())
			a := dialled(t, l.Addr(), cfg)
			b, err := l.Accept()
			require.NoError(t, err)
			closing(t, b)
			want := ipcbench.Contract{Mechanism: "tcp", EndOfStream: true}
			if cfg.IPv6 {
				want.Mechanism = "tcp6"
			}
			for _, c := range []*Channel{a, b} {
				require.Equal(t, want, c.Contract())
				flags, err := unix.FcntlInt(uintptr(c.ReadFD()), unix.F_GETFD, 0)
				require.NoError(t, err)
				require.NotZero(t, flags&unix.FD_CLOEXEC)
			}
			requireConversation(t, b, a) // the listener's side ends it: its port is left in TIME_WAIT
			_, err = Listen(l.Addr(), cfg)
			require.ErrorIs(t, err, unix.EADDRINUSE)
			require.ErrorContains(t, err, l.Addr())
			require.NoError(t, l.Close())
			_, err = Dial(l.Addr(), cfg)
			require.ErrorIs(t, err, unix.ECONNREFUSED)
			require.ErrorContains(t, err, "tcploop: dial: connect "+l.Addr()+": ")
			again, err := Listen(l.Addr(), cfg)
			require.NoError(t, err)
			require.NoError(t, again.Close())
		}
	})
}

func TestLocalhost(t *testing.T) {
	families(t, func(t *testing.T, addr string, cfg Config) {
		l := listening(t, "localhost:0", cfg)
		dialled(t, l.Addr(), Config{})
		host, err := cfg.parse(addr)
		require.NoError(t, err)
		require.Equal(t, host.Addr(), l.at.Addr())
	})
}

// Without Nagle's algorithm at both ends a request in two writes does not wait for an
// acknowledgement that is delayed by 40 ms and more.
func TestTwoWritesARequest(t *testing.T) {
	families(t, func(t *testing.T, addr string, cfg Config) {
		l := listening(t, addr, cfg)
		a := dialled(t, l.Addr(), cfg)
		b, err := l.Accept()
		require.NoError(t, err)
		closing(t, b)
		c, d := paired(t, cfg)
		for _, ends := range [][2]*Channel{{a, b}, {c, d}} {
			for _, end := range ends {
				require.Equal(t, 1, option(t, end, unix.IPPROTO_TCP, unix.TCP_NODELAY))
			}
		}
		cfg.Nagle = true
		a, b = paired(t, cfg)
		for _, end := range []*Channel{a, b} {
			require.Zero(t, option(t, end, unix.IPPROTO_TCP, unix.TCP_NODELAY))
		}
	})
}

// Pair returns the ends of one connection, whoever else comes to its port.
func TestPairIgnoresStrangers(t *testing.T) {
	families(t, func(t *testing.T, addr string, cfg Config) {
		l := listening(t, addr, cfg)
		var strangers []*Channel
		for range 3 {
			strangers = append(strangers, dialled(t, l.Addr(), cfg))
		}
		a := dialled(t, l.Addr(), cfg)
		strangers = append(strangers, dialled(t, l.Addr(), cfg))
		b, err := l.acceptFrom(a)
		require.NoError(t, err)
		closing(t, b)
		for _, s := range strangers[:3] {
			_, err := s.Read(make([]byte, 1))
			require.Error(t, err, "it was sent away")
			_, err = s.Write([]byte("x"))
			_ = err // accepted or refused, it must not arrive at b
		}
		requireConversation(t, a, b)
	})
}

// selfConnected returns a socket that is its own peer, by simultaneous open.
func selfConnected(t *testing.T) int {
	s, err := Config{}.socket(netip.MustParseAddrPort("127.0.0.1:0"))
	require.NoError(t, err)
	t.Cleanup(func() { unix.Close(s) })
	require.NoError(t, unix.Bind(s, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	own, err := unix.Getsockname(s)
	require.NoError(t, err)
	require.NoError(t, unix.Connect(s, own))
	return s
}

func TestSelfConnection(t *testing.T) {
	limit(t)
	require.ErrorIs(t, refuseSelf(selfConnected(t)), unix.ECONNREFUSED)
	a, _ := paired(t, Config{})
	require.NoError(t, refuseSelf(a.ReadFD()))
	// With one port to choose from, the kernel chooses the very one that is dialled.
	ownNetwork(t, map[string]string{"ipv4/ip_local_port_range": "50000 50000"}, func(t *testing.T) {
		before := openDescriptors(t)
		for range 3 {
			_, err := Dial("127.0.0.1:50000", Config{})
			require.ErrorIs(t, err, unix.ECONNREFUSED)
			require.ErrorContains(t, err, "itself")
			require.Equal(t, before, openDescriptors(t))
		}
	})
}

// Without a free local port Dial says what it lacks.
func TestPortsAreExhausted(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:40000", "[::1]:40000"} {
		ownNetwork(t, map[string]string{"ipv4/ip_local_port_range": "50000 50003"}, func(t *testing.T) {
			if addr[0] == '[' {
				needIPv6(t)
			}
			listening(t, addr, Config{})
			for range 4 {
				dialled(t, addr, Config{})
			}
			_, err := Dial(addr, Config{})
			require.ErrorIs(t, err, unix.EADDRNOTAVAIL)
			require.NotErrorIs(t, err, errors.ErrUnsupported)
			require.ErrorContains(t, err, "no local port is free: net.ipv4.ip_local_port_range is 50000-50003")
		})
	}
}

// Dial to a full queue waits until its limit or its context.
func TestDialWaitsForPlace(t *testing.T) {
	families(t, func(t *testing.T, addr string, cfg Config) {
		l := listening(t, addr, cfg)
		require.NoError(t, l.l.Close())
		at, err := cfg.parse(l.Addr())
		require.NoError(t, err)
		s, err := cfg.socket(at)
		require.NoError(t, err)
		defer unix.Close(s)
		require.NoError(t, unix.Bind(s, sockaddr(at)))
		require.NoError(t, unix.Listen(s, 0))
		cfg.Timeout = 60 * time.Millisecond
		for err == nil { // how many connections a queue of 0 takes is the kernel's affair
			var c *Channel
			if c, err = Dial(l.Addr(), cfg); err == nil {
				closing(t, c)
			}
		}
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		cause := errors.New("changed my mind")
		ctx, cancel := context.WithCancelCause(context.Background())
		time.AfterFunc(5*time.Millisecond, func() { cancel(cause) })
		_, err = DialContext(ctx, l.Addr(), Config{})
		require.ErrorIs(t, err, cause)
		require.ErrorContains(t, err, l.Addr())
	})
}

func TestDialLeavesNoTimeout(t *testing.T) {
	limit(t)
	a, _ := paired(t, Config{Timeout: time.Minute})
	got, err := unix.GetsockoptTimeval(a.WriteFD(), unix.SOL_SOCKET, unix.SO_SNDTIMEO)
	require.NoError(t, err)
	require.Zero(t, got.Nano())
}

func TestBuffers(t *testing.T) {
	families(t, func(t *testing.T, addr string, cfg Config) {
		cfg.SendBuffer, cfg.RecvBuffer = 50_000, 60_000
		a, b := paired(t, cfg)
		for _, c := range []*Channel{a, b} {
			send, recv, err := c.Buffers()
			require.NoError(t, err)
			require.Equal(t, []int{2 * 50_000, 2 * 60_000}, []int{send, recv}, "the kernel doubles them (socket(7))")
		}
		cfg.SendBuffer = 1 << 30
		a, _ = paired(t, cfg)
		send, _, err := a.Buffers()
		require.NoError(t, err)
		require.Equal(t, 2*setting(t, "core/wmem_max"), send, "and cuts them")
	})
}

func TestRefusedArguments(t *testing.T) {
	limit(t)
	before := openDescriptors(t)
	l := listening(t, "127.0.0.1:0", Config{})
	for _, cfg := range []Config{{Timeout: -1}, {SendBuffer: -1}, {RecvBuffer: -1}, {Wait: 17}} {
		_, err := Listen("127.0.0.1:0", cfg)
		require.ErrorIs(t, err, unix.EINVAL)
		_, err = Dial(l.Addr(), cfg)
		require.ErrorIs(t, err, unix.EINVAL)
		_, _, err = Pair(cfg)
		require.ErrorIs(t, err, unix.EINVAL)
	}
	_, _, err := Pair(Config{Wait: 17})
	require.ErrorIs(t, err, unix.EINVAL)
	require.ErrorContains(t, err, "tcploop: pair: ")
	require.NoError(t, l.Close())
	require.Equal(t, before, openDescriptors(t))
}

func TestFromFiles(t *testing.T) {
	families(t, func(t *testing.T, addr string, cfg Config) {
		for _, w := range ipcbench.Waits() {
			a, b := paired(t, Config{IPv6: cfg.IPv6, Wait: w, Nagle: true})
			files, err := a.Files()
			require.NoError(t, err)
			c, err := FromFiles(files, Config{Wait: w, IPv6: !cfg.IPv6}) // what it is, the kernel knows better
			require.NoError(t, err)
			closing(t, c)
			require.Equal(t, a.Contract(), c.Contract())
			require.Equal(t, 1, option(t, c, unix.IPPROTO_TCP, unix.TCP_NODELAY))
			require.ErrorIs(t, files[0].Close(), os.ErrClosed)
			require.NoError(t, a.Close())
			requireConversation(t, c, b)
		}
	})
}

// A connection that has been reset on its way here is still one, which Read reports.
func TestFromFilesOfResetConnection(t *testing.T) {
	limit(t)
	a, b := paired(t, Config{})
	files, err := a.Files()
	require.NoError(t, err)
	_, err = a.Write([]byte("unread"))
	require.NoError(t, err)
	require.NoError(t, b.Close())
	c, err := FromFiles(files, Config{})
	require.NoError(t, err)
	closing(t, c)
	_, err = c.Read(make([]byte, 1))
	require.ErrorIs(t, err, unix.ECONNRESET)
}

func TestFromFilesRefuses(t *testing.T) {
	limit(t)
	before := openDescriptors(t)
	socket := func(family, typ int, prepare ...func(s int) error) *os.File {
		s, err := unix.Socket(family, typ|unix.SOCK_CLOEXEC, 0)
		require.NoError(t, err)
		for _, p := range prepare {
			require.NoError(t, p(s))
		}
		return os.NewFile(uintptr(s), "")
	}
	loopback := func(s int) error { return unix.Bind(s, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}) }
	anywhere := func(s int) error { return unix.Bind(s, &unix.SockaddrInet4{}) }
	listen := func(s int) error { return unix.Listen(s, 1) }
	file, err := os.Open(os.Args[0])
	require.NoError(t, err)
	for _, test := range []struct {
		what  string
		files []*os.File
		cfg   Config
		want  error
	}{
		{"none", nil, Config{}, unix.EINVAL},
		{"nil", []*os.File{nil}, Config{}, unix.EINVAL},
		{"two", []*os.File{socket(unix.AF_INET, unix.SOCK_STREAM), socket(unix.AF_INET, unix.SOCK_STREAM)}, Config{}, unix.EINVAL},
		{"a file", []*os.File{file}, Config{}, unix.ENOTSOCK},
		{"another family", []*os.File{socket(unix.AF_UNIX, unix.SOCK_STREAM)}, Config{}, unix.EINVAL},
		{"another protocol", []*os.File{socket(unix.AF_INET, unix.SOCK_DGRAM)}, Config{}, unix.EINVAL},
		{"listening", []*os.File{socket(unix.AF_INET, unix.SOCK_STREAM, loopback, listen)}, Config{}, unix.EINVAL},
		{"not connected", []*os.File{socket(unix.AF_INET, unix.SOCK_STREAM)}, Config{}, unix.ENOTCONN},
		{"not loopback", []*os.File{socket(unix.AF_INET, unix.SOCK_STREAM, anywhere)}, Config{}, ErrNotLoopback},
		{"wait", []*os.File{socket(unix.AF_INET, unix.SOCK_STREAM, loopback)}, Config{Wait: 17}, unix.EINVAL},
		{"congestion", []*os.File{socket(unix.AF_INET, unix.SOCK_STREAM, loopback)}, Config{Congestion: "nosuch"}, unix.ENOENT},
	} {
		_, err := FromFiles(test.files, test.cfg)
		require.ErrorIs(t, err, test.want, test.what)
		require.ErrorContains(t, err, "tcploop: from files: ", test.what)
		for _, f := range test.files {
			if f != nil {
				require.ErrorIs(t, f.Close(), os.ErrClosed, test.what)
			}
		}
	}
	require.Equal(t, before, openDescriptors(t))
}

func TestWriteToPeerThatHasGone(t *testing.T) {
	everyWait(t, func(t *testing.T, w ipcbench.Wait) {
		a, b := paired(t, Config{Wait: w})
		require.NoError(t, b.Close())
		var err error
		for err == nil { // the first write brings the reset
			_, err = a.Write([]byte("anybody?"))
		}
		require.True(t, errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET), fmt.Sprint(err))
	})
}

func TestNoAllocation(t *testing.T) {
	everyWait(t, func(t *testing.T, w ipcbench.Wait) {
		a, b := paired(t, Config{Wait: w})
		p := make([]byte, 100)
		var failed error
		note := func(_ int, err error) {
			if err != nil && !errors.Is(err, ipcbench.ErrWouldBlock) {
				failed = err
			}
		}
		allocs := testing.AllocsPerRun(100, func() {
			note(a.Write(p))
			note(b.Read(p))
			note(a.TryWrite(p))
			note(b.Read(p))
			note(b.TryRead(p))
		})
		require.NoError(t, failed)
		require.Zero(t, allocs)
	})
}
