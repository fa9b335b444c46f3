//go:build linux

package channeltest

import (
	"os"
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
