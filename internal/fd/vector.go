//go:build linux

package fd

import (
	"errors"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ReadScatter implements ipcbench.Vectored, by readv(2) or recvmsg(2).
func (c *Conn) ReadScatter(head, body []byte) (n int, err error) {
	s := &c.r
	switch {
	case c.cfg.Kind.boundaries():
		return 0, c.wrap(s, errors.ErrUnsupported)
	case len(head) == 0:
		return c.Read(body)
	case len(body) == 0:
		return c.Read(head)
	}
	s.mu.Lock()
	s.head = head
	n, err = s.await(body)
	s.head = nil
	n, err = c.received(n, len(head)+len(body), err)
	s.mu.Unlock()
	return n, err
}

// WriteGather implements ipcbench.Vectored, by writev(2) or sendmsg(2).
func (c *Conn) WriteGather(head, body []byte) (n int, err error) {
	s := &c.w
	if c.cfg.Kind.boundaries() {
		return 0, c.wrap(s, errors.ErrUnsupported)
	}
	if len(head) == 0 || len(body) == 0 {
		return c.Write(append(head, body...))
	}
	s.mu.Lock()
	for s.head = head; err == nil && n < len(head)+len(body); {
		var m int
		m, err = s.await(body[max(n-len(head), 0):])
		n += m
		s.head = head[min(n, len(head)):]
	}
	s.head = nil
	s.mu.Unlock()
	if err != nil {
		err = c.wrap(s, err)
	}
	return n, err
}

// vector moves head and p. A blocking pipe that must not wait takes head alone:
// the caller comes again for the rest.
func (s *side) vector(p []byte, m mode) (int, unix.Errno) {
	if s.kind.isPipe() && m == dontWait && s.wait.blocks() {
		head := s.head
		s.head = nil
		n, errno := s.pipeNoWait(head)
		s.head = head
		return n, errno
	}
	s.iov[0].Base = unsafe.SliceData(s.head)
	s.iov[0].SetLen(len(s.head))
	s.iov[1].Base = unsafe.SliceData(p)
	s.iov[1].SetLen(len(p))
	n, errno := s.vectorCall(m)
	s.iov[0].Base, s.iov[1].Base = nil, nil
	return n, errno
}

// vectorCall is the system call on iov.
func (s *side) vectorCall(m mode) (int, unix.Errno) {
	switch {
	case s.kind.isPipe() && s.write:
		return result(syscall.Syscall(unix.SYS_WRITEV, uintptr(s.fd), uintptr(unsafe.Pointer(&s.iov[0])), 2))
	case s.kind.isPipe():
		return result(syscall.Syscall(unix.SYS_READV, uintptr(s.fd), uintptr(unsafe.Pointer(&s.iov[0])), 2))
	}
	s.msg.Iov = &s.iov[0]
	s.msg.SetIovlen(2)
	number, flags := uintptr(unix.SYS_RECVMSG), uintptr(0)
	if s.write {
		number, flags = unix.SYS_SENDMSG, unix.MSG_NOSIGNAL
	}
	if m == dontWait {
		return result(syscall.RawSyscall(number, uintptr(s.fd), uintptr(unsafe.Pointer(&s.msg)), flags|unix.MSG_DONTWAIT))
	}
	return result(syscall.Syscall(number, uintptr(s.fd), uintptr(unsafe.Pointer(&s.msg)), flags))
}
