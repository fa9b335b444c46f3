//go:build linux

package fd

import (
	"encoding/binary"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An ancillary is the descriptors beside a message's bytes, as sendmsg(2) and recvmsg(2) take them.
type ancillary struct {
	msg     unix.Msghdr
	iov     unix.Iovec
	control []byte  // cmsg(3), with room for MaxFiles
	fds     []int32 // those that were received last
}

const sizeofFD = 4 // an int

// carry makes the next transfer one with ancillary data, until putDown. The caller holds mu.
func (s *side) carry() *ancillary {
	if s.ancillary == nil {
		a := &ancillary{control: make([]byte, unix.CmsgSpace(MaxFiles*sizeofFD))}
		a.msg.Iov = &a.iov
		a.msg.SetIovlen(1)
		a.msg.Control = &a.control[0]
		s.ancillary = a
	}
	s.carrying = true
	return s.ancillary
}

func (s *side) putDown() {
	s.carrying = false
	s.ancillary.iov.Base = nil
}

// makeRoom makes room for n descriptors, to send or to receive, and no more:
// CmsgSpace would round up to an even number, and the kernel would fill it.
func (a *ancillary) makeRoom(n int) {
	h := (*unix.Cmsghdr)(unsafe.Pointer(&a.control[0]))
	h.Level, h.Type = unix.SOL_SOCKET, unix.SCM_RIGHTS
	h.SetLen(unix.CmsgLen(n * sizeofFD))
	a.msg.SetControllen(unix.CmsgLen(n * sizeofFD))
}

// put makes fd the i-th of those to send.
func (a *ancillary) put(i int, fd uintptr) {
	binary.NativeEndian.PutUint32(a.control[unix.CmsgLen(i*sizeofFD):], uint32(fd))
}

// get returns the descriptors that were received. They lie in a.
func (a *ancillary) get() []int32 {
	a.fds = a.fds[:0]
	for rest := a.control[:a.msg.Controllen]; len(rest) >= unix.CmsgLen(0); {
		h, data, next, err := unix.ParseOneSocketControlMessage(rest)
		if err != nil {
			break
		}
		if h.Level == unix.SOL_SOCKET && h.Type == unix.SCM_RIGHTS {
			for ; len(data) >= sizeofFD; data = data[sizeofFD:] {
				a.fds = append(a.fds, int32(binary.NativeEndian.Uint32(data)))
			}
		}
		rest = next
	}
	return a.fds
}

// message is send and recv with ancillary data. Received descriptors are
// close-on-exec from birth.
func (s *side) message(p []byte, m mode) (int, unix.Errno) {
	a := s.ancillary
	a.iov.Base = unsafe.SliceData(p)
	a.iov.SetLen(len(p))
	number, flags := uintptr(unix.SYS_RECVMSG), uintptr(unix.MSG_CMSG_CLOEXEC)
	switch {
	case s.write:
		number, flags = unix.SYS_SENDMSG, unix.MSG_NOSIGNAL
	case s.kind != Stream:
		flags |= unix.MSG_TRUNC
	}
	if m == dontWait || s.write && len(p) <= short {
		n, errno := result(syscall.RawSyscall(number, uintptr(s.fd), uintptr(unsafe.Pointer(&a.msg)), flags|unix.MSG_DONTWAIT))
		if m == dontWait || errno != unix.EAGAIN {
			return n, errno
		}
	}
	return result(syscall.Syscall(number, uintptr(s.fd), uintptr(unsafe.Pointer(&a.msg)), flags))
}
