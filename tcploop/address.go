//go:build linux

package tcploop

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrNotLoopback: the address is not one of 127.0.0.0/8, ::1, or localhost.
var ErrNotLoopback = errors.New("not a loopback address")

// parse reads "host:port", where host is an address of the loopback interface,
// IPv6 in brackets, or localhost.
func (cfg Config) parse(addr string) (netip.AddrPort, error) {
	i := strings.LastIndexByte(addr, ':')
	if i < 0 {
		return netip.AddrPort{}, fmt.Errorf("address %q: no port: %w", addr, unix.EINVAL)
	}
	host := addr[:i]
	port, err := strconv.ParseUint(addr[i+1:], 10, 16)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("address %q: port %q is not a number up to 65535: %w", addr, addr[i+1:], unix.EINVAL)
	}
	bracketed := strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]")
	if bracketed {
		host = host[1 : len(host)-1]
	}
	switch {
	case strings.ContainsAny(host, "[]"), bracketed != strings.Contains(host, ":"):
		return netip.AddrPort{}, fmt.Errorf("address %q: IPv6, and nothing else, stands in brackets: %w", addr, unix.EINVAL)
	case host == "localhost":
		return netip.AddrPortFrom(cfg.loopback(), uint16(port)), nil
	}
	// What is no literal is a name, and whose it is would have to be looked up.
	ip, err := netip.ParseAddr(host)
	if ip = ip.Unmap(); err != nil || ip.Zone() != "" || !ip.IsLoopback() {
		return netip.AddrPort{}, fmt.Errorf("address %q: %w", addr, ErrNotLoopback)
	}
	return netip.AddrPortFrom(ip, uint16(port)), nil
}

func (cfg Config) loopback() netip.Addr {
	if cfg.IPv6 {
		return netip.IPv6Loopback()
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

func sockaddr(at netip.AddrPort) unix.Sockaddr {
	if at.Addr().Is6() {
		return &unix.SockaddrInet6{Port: int(at.Port()), Addr: at.Addr().As16()}
	}
	return &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}
}

// addrPort is the reverse of sockaddr; the zero AddrPort is none.
func addrPort(sa unix.Sockaddr) netip.AddrPort {
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(sa.Addr), uint16(sa.Port))
	}
	return netip.AddrPort{}
}

// lacksIPv6 marks the error of a machine without IPv6, or with it turned off:
// such a one has no ::1 to bind to.
func lacksIPv6(at netip.AddrPort, err error) error {
	if !at.Addr().Is6() {
		return err
	}
	s, lack := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if lack == nil {
		lack = unix.Bind(s, &unix.SockaddrInet6{Addr: netip.IPv6Loopback().As16()})
		unix.Close(s)
	}
	if lack == unix.EAFNOSUPPORT || lack == unix.EADDRNOTAVAIL {
		return fmt.Errorf("%w: this machine has no IPv6 loopback: %w", errors.ErrUnsupported, err)
	}
	return err
}
