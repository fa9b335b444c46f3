//go:build linux

package channeltest

import (
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mmsghdr is struct mmsghdr of sendmmsg(2): a message, and how many bytes of it were moved.
type mmsghdr struct {
	header unix.Msghdr
	n      uint32
}

// vectors describes count messages of size bytes that lie one behind the other in buf.
func vectors(buf []byte, size, count int) []mmsghdr {
	messages := make([]mmsghdr, count)
	for i := range messages {
		iov := &unix.Iovec{Base: &buf[i*size]}
		iov.SetLen(size)
		messages[i].header.Iov = iov
		messages[i].header.SetIovlen(1)
	}
	return messages
}

// sendMany sends all messages, in as few calls as there is room for.
func (c *courier) sendMany(messages []mmsghdr) error {
	for len(messages) > 0 {
		n, err := c.writable.call(unix.SYS_SENDMMSG, c.w, unsafe.Pointer(unsafe.SliceData(messages)), uintptr(len(messages)), unix.MSG_NOSIGNAL)
		if err != nil {
			return os.NewSyscallError("sendmmsg", err)
		}
		messages = messages[n:]
	}
	return nil
}

// receiveMany receives as many as are there, at least one.
func (c *courier) receiveMany(messages []mmsghdr) (int, error) {
	n, err := c.readable.call(unix.SYS_RECVMMSG, c.r, unsafe.Pointer(unsafe.SliceData(messages)), uintptr(len(messages)), 0)
	return n, os.NewSyscallError("recvmmsg", err)
}

// A poll is an epoll instance (epoll(7)) that waits, edge-triggered, for one
// descriptor.
type poll struct{ fd int }

func (p *poll) open(fd int, events uint32) (err error) {
	if p.fd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return os.NewSyscallError("epoll_create1", err)
	}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events | unix.EPOLLET}))
}

// wait returns when something has changed.
func (p *poll) wait() error {
	var event unix.EpollEvent
	for {
		_, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.fd), uintptr(unsafe.Pointer(&event)), 1, ^uintptr(0), 0, 0)
		switch errno {
		case 0:
			return nil
		case unix.EINTR:
		default:
			return os.NewSyscallError("epoll_pwait", errno)
		}
	}
}
