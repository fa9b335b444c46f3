//go:build linux

package poller

import (
	"errors"
	"io"

	"golang.org/x/sys/unix"
)

// Drain reads fd, which must be non-blocking, until EAGAIN, and calls got with what each
// read returned, valid until got returns. That is what Edge obliges to: as long as something
// is left unread, epoll stays silent about it.
//
// It returns nil once nothing is left, and io.EOF itself at the end of the
// stream. An error of got is returned as it is, any other as an [*Error]; then, as
// when got refuses, more may be left: call Drain again. A blocking descriptor is
// EINVAL: the last read would never return.
//
// fd must be a byte stream: on a datagram socket an empty message looks like the
// end. For messages, and for an ipcbench.Channel, there is [DrainFunc].
func Drain(fd int, buf []byte, got func([]byte) error) error {
	if len(buf) == 0 {
		return failed("drain", fd, unix.EINVAL)
	}
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err == nil && flags&unix.O_NONBLOCK == 0 {
		err = unix.EINVAL
	}
	if err != nil {
		return failed("drain", fd, err)
	}
	for {
		n, err := unix.Read(fd, buf)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return nil
		case err != nil:
			return failed("drain", fd, err)
		case n == 0:
			return io.EOF
		}
		if err := got(buf[:n]); err != nil {
			return err
		}
	}
}

// DrainFunc is Drain with a read of one's own, such as the TryRead of an
// ipcbench.NonBlocking: it calls read until an error that is EAGAIN, and got
// with what each call returned, an empty message too. Other errors of read and got are returned as they are.
func DrainFunc(read func([]byte) (int, error), buf []byte, got func([]byte) error) error {
	if len(buf) == 0 {
		return failed("drain", -1, unix.EINVAL)
	}
	for {
		n, err := read(buf)
		if n > 0 || err == nil {
			if err := got(buf[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, unix.EAGAIN) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
