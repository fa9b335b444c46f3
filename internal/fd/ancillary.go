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
	control []byte // cmsg(3), with room for MaxFiles
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

// put makes fds what is sent.
func (a *ancillary) put(fds []int32) {
	h := (*unix.Cmsghdr)(unsafe.Pointer(&a.control[0]))
	h.Level, h.Type = unix.SOL_SOCKET, unix.SCM_RIGHTS
	h.SetLen(unix.CmsgLen(len(fds) * sizeofFD))
	for i, d := range fds {
		binary.NativeEndian.PutUint32(a.control[unix.CmsgLen(i*sizeofFD):], uint32(d))
	}
	a.msg.SetControllen(unix.CmsgSpace(len(fds) * sizeofFD))
}

// makeRoom makes room for max descriptors and no more: CmsgSpace would round up
// to an even number, and the kernel would fill it.
func (a *ancillary) makeRoom(max int) {
	a.msg.SetControllen(unix.CmsgLen(max * sizeofFD))
	if max == 0 {
		a.msg.SetControllen(0)
	}
}

// get returns the descriptors that were received.
func (a *ancillary) get() (fds []int32) {
	for rest := a.control[:a.msg.Controllen]; len(rest) >= unix.CmsgLen(0); {
		h, data, next, err := unix.ParseOneSocketControlMessage(rest)
		if err != nil {
			break
		}
		if h.Level == unix.SOL_SOCKET && h.Type == unix.SCM_RIGHTS {
			for ; len(data) >= sizeofFD; data = data[sizeofFD:] {
				fds = append(fds, int32(binary.NativeEndian.Uint32(data)))
			}
		}
		rest = next
	}
	return fds
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
	if m == dontWait {
		return result(syscall.RawSyscall(number, uintptr(s.fd), uintptr(unsafe.Pointer(&a.msg)), flags|unix.MSG_DONTWAIT))
	}
	return result(syscall.Syscall(number, uintptr(s.fd), uintptr(unsafe.Pointer(&a.msg)), flags))
}
