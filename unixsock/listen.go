//go:build linux

package unixsock

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-e1736cc0/ipcbench/internal/fd"
)

// A Listener takes connections at an address.
type Listener struct {
	l    *fd.Listener
	kind Kind
	cfg  Config
	addr string
}

// Listen takes connections of a Stream or SeqPacket at a path or an abstract
// name; "@" alone has the kernel choose a name, which Addr tells. The queue of
// connections not yet accepted is as long as net.core.somaxconn allows.
// An address that is in use, or a file that is no socket, is EADDRINUSE; Dgram is EOPNOTSUPP (see Bind).
// Close removes the file if it is still the listener's own, and resets connections that nobody has accepted.
func Listen(k Kind, addr string, cfg Config) (*Listener, error) {
	l, err := listen(k, addr, cfg)
	return l, fd.Wrap("unixsock", "listen", err)
}

func listen(k Kind, addr string, cfg Config) (*Listener, error) {
	if k == Dgram {
		return nil, fmt.Errorf("a datagram socket has no connections to accept, Bind makes a receiver: %w", unix.EOPNOTSUPP)
	}
	at, err := cfg.place(addr)
	if err != nil {
		return nil, err
	}
	s, err := k.socket()
	if err != nil {
		return nil, err
	}
	// Accepted sockets do not inherit the buffers: this refuses bad ones here and not in Accept.
	if err := fd.SetBuffers(s, cfg.SendBuffer, cfg.RecvBuffer); err != nil {
		unix.Close(s)
		return nil, err
	}
	name, cleanup, err := at.open(s, k)
	if err != nil {
		unix.Close(s)
		return nil, err
	}
	l, err := fd.NewListener("unixsock", s, cleanup)
	if err != nil {
		return nil, err
	}
	return &Listener{l, k, cfg, name}, nil
}

// Bind makes a receiver of datagrams at an address as Listen takes it, for any
// number of writers that Dial it. It is connected to none of them: a Write on
// it is ENOTCONN. Close removes the file if it is still the channel's own.
func Bind(addr string, cfg Config) (*Channel, error) {
	c, err := receiver(addr, cfg)
	return c, fd.Wrap("unixsock", "bind", err)
}

func receiver(addr string, cfg Config) (*Channel, error) {
	if cfg.Accept != nil {
		return nil, fmt.Errorf("a datagram has no connection for Config.Accept to refuse: %w", unix.EOPNOTSUPP)
	}
	at, err := cfg.place(addr)
	if err != nil {
		return nil, err
	}
	s, err := Dgram.socket()
	if err != nil {
		return nil, err
	}
	cleanup := func() {}
	c, err := newChannel(Dgram, s, cfg, func() { cleanup() })
	if err != nil {
		return nil, err
	}
	name, remove, err := at.open(s, Dgram) // c owns s, and nobody else has c yet
	if err != nil {
		c.Close()
		return nil, err
	}
	cleanup, c.addr = remove, name
	return c, nil
}

// Addr returns the address that Bind has given the channel, to Dial; "" for any other channel.
func (c *Channel) Addr() string { return c.addr }

// Accept waits for the next connection that Config.Accept welcomes. At the limit of descriptors, or out of
// memory, it waits too, 5 ms at first and at most 1 s between tries, until there is room again.
func (l *Listener) Accept() (*Channel, error) {
	for {
		s, _, err := l.l.Accept()
		if err != nil {
			return nil, fd.Wrap("unixsock", "accept", err)
		}
		if l.cfg.admit(s) != nil {
			unix.Close(s)
			continue
		}
		c, err := newChannel(l.kind, s, l.cfg, nil)
		return c, fd.Wrap("unixsock", "accept", err)
	}
}

// Addr returns the address to Dial; an abstract name begins with '@'.
func (l *Listener) Addr() string { return l.addr }

// SetDeadline sets the time after which Accept, pending or to come, returns an
// error that is os.ErrDeadlineExceeded. The zero time: none.
func (l *Listener) SetDeadline(t time.Time) error { return l.l.SetDeadline(t) }

// Close ends the listener and a pending Accept, which returns os.ErrClosed.
// Close again: os.ErrClosed.
func (l *Listener) Close() error { return l.l.Close() }

// A place is an address with the mode that its file shall have.
type place struct {
	address
	mode uint32
}

// place checks what Listen and Bind were asked for.
func (cfg Config) place(addr string) (place, error) {
	at, err := parse(addr)
	if err = errors.Join(err, fd.CheckWait(cfg.Wait)); err != nil {
		return place{}, err
	}
	switch {
	case cfg.Timeout < 0:
		return place{}, fmt.Errorf("timeout %v: %w", cfg.Timeout, unix.EINVAL)
	case cfg.Mode&^os.ModePerm != 0:
		return place{}, fmt.Errorf("mode %v is more than permissions: %w", cfg.Mode, unix.EINVAL)
	case cfg.Mode == 0:
		return place{at, 0o600}, nil
	}
	return place{at, uint32(cfg.Mode)}, nil
}

// open makes s take connections or datagrams here. cleanup removes what that has
// left in the file system, and has to be called before s is closed.
func (at place) open(s int, k Kind) (name string, cleanup func(), err error) {
	if at.path != "" {
		cleanup, err = at.makeFile(s, k)
		return at.path, cleanup, err
	}
	if err := bind(s, at.address); err != nil {
		return "", nil, fmt.Errorf("bind %q: %w", at.String(), err)
	}
	if at.name == "" {
		chosen, err := unix.Getsockname(s)
		if err != nil {
			return "", nil, os.NewSyscallError("getsockname", err)
		}
		at.name = strings.TrimPrefix(chosen.(*unix.SockaddrUnix).Name, "@")
	}
	return at.String(), func() {}, k.listen(s)
}

func (k Kind) listen(s int) error {
	if k == Dgram {
		return nil
	}
	return os.NewSyscallError("listen", unix.Listen(s, fd.Backlog))
}
