//go:build linux

package fd

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Socket makes a socket that no child inherits.
func Socket(family, typ int) (int, error) {
	s, err := unix.Socket(family, typ|unix.SOCK_CLOEXEC, 0)
	return s, os.NewSyscallError("socket", err)
}

// SetBuffers asks for SO_SNDBUF and SO_RCVBUF in bytes; 0 leaves the system's.
// The kernel doubles what was asked, and cuts it silently to net.core.wmem_max and
// rmem_max (socket(7)).
func SetBuffers(s, send, recv int) error {
	for _, b := range []struct {
		name           string
		option, length int
	}{{"send", unix.SO_SNDBUF, send}, {"receive", unix.SO_RCVBUF, recv}} {
		if b.length < 0 {
			return fmt.Errorf("%s buffer of %d bytes: %w", b.name, b.length, unix.EINVAL)
		}
		if b.length == 0 {
			continue
		}
		// The option is an int of 32 bits on every architecture.
		if err := unix.SetsockoptInt(s, unix.SOL_SOCKET, b.option, min(b.length, 1<<31-1)); err != nil {
			return fmt.Errorf("%s buffer of %d bytes: %w", b.name, b.length, err)
		}
	}
	return nil
}

// Buffers returns SO_SNDBUF and SO_RCVBUF of a socket as the kernel has them
// now, in bytes. It is no method, since a pipe has neither.
func Buffers(c *Conn) (send, recv int, err error) {
	err = c.Control("buffers", func(s, _ int) error {
		if send, err = unix.GetsockoptInt(s, unix.SOL_SOCKET, unix.SO_SNDBUF); err != nil {
			return err
		}
		recv, err = unix.GetsockoptInt(s, unix.SOL_SOCKET, unix.SO_RCVBUF)
		return err
	})
	return send, recv, err
}

// A SocketType is what the kernel says about a socket that came from elsewhere.
type SocketType struct{ Domain, Type, Protocol int }

// Recognise asks what a descriptor is. One that is no socket, or a socket that
// listens, is an error.
func Recognise(s int) (SocketType, error) {
	var t SocketType
	for _, q := range []struct {
		option int
		answer *int
	}{{unix.SO_DOMAIN, &t.Domain}, {unix.SO_TYPE, &t.Type}, {unix.SO_PROTOCOL, &t.Protocol}} {
		var err error
		if *q.answer, err = unix.GetsockoptInt(s, unix.SOL_SOCKET, q.option); err != nil {
			return t, os.NewSyscallError("getsockopt", err)
		}
	}
	if listens, err := unix.GetsockoptInt(s, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err == nil && listens != 0 {
		return t, fmt.Errorf("the socket is a listening one: %w", unix.EINVAL)
	}
	return t, nil
}
