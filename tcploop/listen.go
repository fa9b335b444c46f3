//go:build linux

package tcploop

import (
	"fmt"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-e1736cc0/ipcbench/internal/fd"
)

// A Listener takes connections at a loopback address.
type Listener struct {
	l   *fd.Listener
	cfg Config
	at  netip.AddrPort
}

// Listen takes connections at "127.0.0.1:0", "[::1]:0" and the like; with port
// 0 the kernel chooses one, which Addr tells. The queue of connections not yet
// accepted is as long as net.core.somaxconn allows. A port in use is EADDRINUSE; one whose
// connections are only in TIME_WAIT is free (SO_REUSEADDR).
func Listen(addr string, cfg Config) (*Listener, error) {
	at, err := cfg.parse(addr)
	if err != nil {
		return nil, fd.Wrap("tcploop", "listen", err)
	}
	l, err := listen(at, cfg)
	return l, fd.Wrap("tcploop", "listen", err)
}

func listen(at netip.AddrPort, cfg Config) (*Listener, error) {
	if err := fd.CheckWait(cfg.Wait); err != nil {
		return nil, err
	}
	if cfg.Timeout < 0 {
		return nil, fmt.Errorf("timeout %v: %w", cfg.Timeout, unix.EINVAL)
	}
	s, err := cfg.socket(at)
	if err != nil {
		return nil, lacksIPv6(at, err)
	}
	if at, err = bind(s, at); err != nil {
		unix.Close(s)
		return nil, err
	}
	l, err := fd.NewListener("tcploop", s, nil)
	if err != nil {
		return nil, err
	}
	return &Listener{l, cfg, at}, nil
}

// bind makes s listen at the address, and returns it with the port that it has got.
func bind(s int, at netip.AddrPort) (netip.AddrPort, error) {
	if err := unix.SetsockoptInt(s, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return at, os.NewSyscallError("setsockopt", err)
	}
	if err := unix.Bind(s, sockaddr(at)); err != nil {
		return at, fmt.Errorf("bind %v: %w", at, lacksIPv6(at, err))
	}
	if err := unix.Listen(s, fd.Backlog); err != nil {
		return at, fmt.Errorf("listen %v: %w", at, err)
	}
	got, err := unix.Getsockname(s)
	return addrPort(got), os.NewSyscallError("getsockname", err)
}

// Accept waits for the next connection. At the limit of descriptors, or out of
// memory, it waits too, 5 ms at first and at most 1 s between tries, until there is room again.
func (l *Listener) Accept() (*Channel, error) {
	s, _, err := l.l.Accept()
	if err != nil {
		return nil, fd.Wrap("tcploop", "accept", err)
	}
	c, err := accepted(s, l.cfg)
	return c, fd.Wrap("tcploop", "accept", err)
}

// accepted makes a channel of a connection. On Linux it has the listener's
// options already, but no manual says so.
func accepted(s int, cfg Config) (*Channel, error) {
	if err := cfg.apply(s); err != nil {
		unix.Close(s)
		return nil, err
	}
	return newChannel(s, cfg)
}

// Addr returns the address to Dial.
func (l *Listener) Addr() string { return l.at.String() }

// SetDeadline sets the time after which Accept, pending or to come, returns an
// error that is os.ErrDeadlineExceeded. The zero time: none.
func (l *Listener) SetDeadline(t time.Time) error { return l.l.SetDeadline(t) }

// Close ends the listener and a pending Accept, which returns os.ErrClosed.
// Close again: os.ErrClosed.
func (l *Listener) Close() error { return l.l.Close() }
