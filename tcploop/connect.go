//go:build linux

package tcploop

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-e1736cc0/ipcbench/internal/fd"
)

// Dial connects to a listener. Where nobody listens it is ECONNREFUSED. While the
// listener's queue is full it waits, and is os.ErrDeadlineExceeded after Config.Timeout.
func Dial(addr string, cfg Config) (*Channel, error) {
	return DialContext(context.Background(), addr, cfg)
}

// DialContext is Dial that ends with ctx too, and then returns its cause.
func DialContext(ctx context.Context, addr string, cfg Config) (*Channel, error) {
	to, err := cfg.parse(addr)
	if err != nil {
		return nil, fd.Wrap("tcploop", "dial", err)
	}
	c, err := dial(ctx, to, cfg)
	return c, fd.Wrap("tcploop", "dial", err)
}

func dial(ctx context.Context, to netip.AddrPort, cfg Config) (*Channel, error) {
	ctx, cancel, err := fd.Limited(ctx, cfg.Timeout)
	if err != nil {
		return nil, err
	}
	defer cancel()
	s, err := cfg.socket(to)
	if err != nil {
		return nil, lacksIPv6(to, err)
	}
	err = fd.Connect(ctx, s, func() error { return unix.Connect(s, sockaddr(to)) })
	if err == nil {
		err = refuseSelf(s)
	}
	if err != nil {
		unix.Close(s)
		return nil, fmt.Errorf("connect %v: %w", to, explain(to, err))
	}
	return newChannel(s, cfg)
}

// refuseSelf refuses a socket that is connected to itself. TCP allows that
// (simultaneous open, RFC 9293, 3.5), and it happens when the kernel picks as local port the very
// one that is dialled and nobody listens there: the port would be taken from
// the server that is to come, and the client would hear its own words.
func refuseSelf(s int) error {
	local, err := unix.Getsockname(s)
	if err != nil {
		return os.NewSyscallError("getsockname", err)
	}
	remote, err := unix.Getpeername(s)
	if err == nil && addrPort(local) == addrPort(remote) {
		// Closed with a reset, it does not keep the port in TIME_WAIT.
		unix.SetsockoptLinger(s, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
		return fmt.Errorf("%w: the socket had connected to itself, nobody listens", unix.ECONNREFUSED)
	}
	return nil // a peer that has reset the connection again is for Read to tell
}

// explain says what a refusal of the kernel means here.
func explain(to netip.AddrPort, err error) error {
	if lack := lacksIPv6(to, err); lack != err {
		return lack
	}
	if err == unix.EADDRNOTAVAIL {
		return fmt.Errorf("%w: no local port is free: net.ipv4.ip_local_port_range is %s, and a closed connection keeps its port for a minute (TIME_WAIT)",
			err, strings.Join(strings.Fields(sysctl("ip_local_port_range")), "-"))
	}
	return err
}

// pairLimit is how long Pair waits for its own connection to come out of its own
// listener, if Config.Timeout does not say. It is there at once, unless somebody floods the port.
const pairLimit = 10 * time.Second

// Pair returns the two ends of a new connection, over a listener on a port of the kernel's choice.
func Pair(cfg Config) (a, b *Channel, err error) {
	a, b, err = pair(cfg)
	return a, b, fd.Wrap("tcploop", "pair", err)
}

func pair(cfg Config) (a, b *Channel, err error) {
	l, err := listen(netip.AddrPortFrom(cfg.loopback(), 0), cfg)
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	limit := pairLimit
	if cfg.Timeout > 0 {
		limit = cfg.Timeout
	}
	l.SetDeadline(time.Now().Add(limit))
	if a, err = dial(context.Background(), l.at, cfg); err != nil {
		return nil, nil, err
	}
	if b, err = l.acceptFrom(a); err != nil {
		a.Close()
		return nil, nil, err
	}
	return a, b, nil
}

// acceptFrom accepts the connection that a is the other end of, and closes any that a stranger has made.
func (l *Listener) acceptFrom(a *Channel) (*Channel, error) {
	local, err := unix.Getsockname(a.ReadFD())
	if err != nil {
		return nil, os.NewSyscallError("getsockname", err)
	}
	for {
		s, from, err := l.l.Accept()
		if err != nil {
			return nil, err
		}
		if addrPort(from) == addrPort(local) {
			return accepted(s, l.cfg)
		}
		unix.Close(s)
	}
}
