//go:build linux

package tcploop

import (
	"fmt"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-e1736cc0/ipcbench"
	"github.com/seed-e1736cc0/ipcbench/internal/fd"
)

// Config says how to make a channel. Its zero value is IPv4 in the runtime's
// poller, without Nagle's algorithm, with the system's buffers and congestion control.
type Config struct {
	// Wait is how Read and Write wait.
	Wait ipcbench.Wait
	// IPv6: Pair, and the name localhost, are ::1 and not 127.0.0.1. Where the
	// machine has no IPv6, that is an error that is errors.ErrUnsupported.
	IPv6 bool
	// Nagle gathers small writes while data are unacknowledged: no TCP_NODELAY.
	Nagle bool
	// Congestion is the name of a congestion control, TCP_CONGESTION; the system's if
	// empty. One that the kernel lacks is ENOENT, one that is only for the privileged EPERM.
	Congestion string
	// SendBuffer and RecvBuffer are SO_SNDBUF and SO_RCVBUF in bytes; 0 leaves
	// them to the kernel, which adapts them to the connection (tcp_wmem, tcp_rmem in tcp(7)). It
	// doubles what is asked and cuts it silently to twice net.core.wmem_max and
	// rmem_max: Channel.Buffers says what came of it. Negative is EINVAL.
	SendBuffer, RecvBuffer int
	// Timeout limits how long Dial and Pair wait for the connection; 0: Dial as long as the kernel tries, Pair 10 s.
	Timeout time.Duration
}

// A Channel is one end of a connection. It implements ipcbench.Channel,
// ipcbench.Deadliner, ipcbench.NonBlocking, ipcbench.Descriptors and ipcbench.Exporter.
type Channel struct{ *fd.Conn }

// FromFiles makes a channel of what Files gave, as a rule in another process. It
// takes the file over, on error too. Whether it is IPv4 or IPv6 is asked of the
// kernel. A socket that listens or has never been connected or bound is an error, and one that is
// not bound to a loopback address ErrNotLoopback.
func FromFiles(files []*os.File, cfg Config) (*Channel, error) {
	c, err := fromFiles(files, cfg)
	return c, fd.Wrap("tcploop", "from files", err)
}

func fromFiles(files []*os.File, cfg Config) (*Channel, error) {
	fds, err := fd.Take(files, 1)
	if err != nil {
		return nil, err
	}
	if err = recognise(fds[0]); err == nil {
		err = cfg.apply(fds[0])
	}
	if err != nil {
		unix.Close(fds[0])
		return nil, err
	}
	return newChannel(fds[0], cfg)
}

// recognise says why a descriptor is no channel. It asks for the socket's own
// address: that of the peer is gone once the connection is reset.
func recognise(s int) error {
	t, err := fd.Recognise(s)
	if err != nil {
		return err
	}
	if t.Domain != unix.AF_INET && t.Domain != unix.AF_INET6 || t.Type != unix.SOCK_STREAM || t.Protocol != unix.IPPROTO_TCP {
		return fmt.Errorf("not a TCP socket: %w", unix.EINVAL)
	}
	local, err := unix.Getsockname(s)
	if err != nil {
		return os.NewSyscallError("getsockname", err)
	}
	switch at := addrPort(local); {
	case at.Port() == 0:
		return fmt.Errorf("the socket is not connected: %w", unix.ENOTCONN)
	case !at.Addr().Unmap().IsLoopback():
		return fmt.Errorf("%v: %w", at, ErrNotLoopback)
	}
	return nil
}

// apply sets the options. Buffers have to be set before listen or connect to
// have their full effect (tcp(7)).
func (cfg Config) apply(s int) error {
	nodelay := 1
	if cfg.Nagle {
		nodelay = 0
	}
	if err := unix.SetsockoptInt(s, unix.IPPROTO_TCP, unix.TCP_NODELAY, nodelay); err != nil {
		return os.NewSyscallError("setsockopt", err)
	}
	if cfg.Congestion != "" {
		if err := setCongestion(s, cfg.Congestion); err != nil {
			return err
		}
	}
	return fd.SetBuffers(s, cfg.SendBuffer, cfg.RecvBuffer)
}

// socket makes a socket for the address with all options set.
func (cfg Config) socket(at netip.AddrPort) (int, error) {
	family := unix.AF_INET
	if at.Addr().Is6() {
		family = unix.AF_INET6
	}
	s, err := fd.Socket(family, unix.SOCK_STREAM)
	if err != nil {
		return -1, err
	}
	if err := cfg.apply(s); err != nil {
		unix.Close(s)
		return -1, err
	}
	return s, nil
}

// newChannel takes s over, on error too.
func newChannel(s int, cfg Config) (*Channel, error) {
	contract := ipcbench.Contract{Mechanism: "tcp", EndOfStream: true}
	domain, err := unix.GetsockoptInt(s, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		unix.Close(s)
		return nil, os.NewSyscallError("getsockopt", err)
	}
	if domain == unix.AF_INET6 {
		contract.Mechanism = "tcp6"
	}
	c, err := fd.New(fd.Config{Package: "tcploop", Kind: fd.Stream, Wait: cfg.Wait, Contract: contract}, s, s)
	if err != nil {
		return nil, err
	}
	return &Channel{c}, nil
}

// Buffers returns SO_SNDBUF and SO_RCVBUF in bytes, as the kernel has them now.
func (c *Channel) Buffers() (send, recv int, err error) { return fd.Buffers(c.Conn) }
