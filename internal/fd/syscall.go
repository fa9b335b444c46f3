//go:build linux

package fd

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Kind says which system calls move the bytes and what their results mean.
type Kind int

const (
	Pipe       Kind = iota // pipe(7): read and write
	PacketPipe             // pipe(2), O_DIRECT: each write of at most PIPE_BUF bytes is one read
	Stream                 // a stream socket
	Dgram                  // a datagram socket: reading 0 bytes is an empty message
	SeqPacket              // unix(7) SOCK_SEQPACKET: reading 0 bytes is an empty message or the end
)

func (k Kind) isPipe() bool     { return k == Pipe || k == PacketPipe }
func (k Kind) boundaries() bool { return k == PacketPipe || k == Dgram || k == SeqPacket }

// PipeBuf is PIPE_BUF of limits.h, in bytes: what pipe(7) writes atomically, on every architecture.
const PipeBuf = 4096

// How a system call meets a descriptor that is not ready.
type mode bool

const (
	mayBlock mode = false // blocks unless the description has O_NONBLOCK
	dontWait mode = true  // returns EAGAIN
)

// transfer moves bytes once, in the side's direction. On a channel with
// boundaries a read returns the length that the message had, which may exceed len(p).
func (s *side) transfer(p []byte, m mode) (int, unix.Errno) {
	switch {
	case !s.kind.isPipe() && s.write:
		return s.send(p, m)
	case !s.kind.isPipe():
		return s.recv(p, m)
	case m == dontWait && s.wait.blocks():
		return s.pipeNoWait(p)
	case s.write:
		return result(unix.Syscall(unix.SYS_WRITE, uintptr(s.fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p))))
	case s.kind == PacketPipe && len(p) < PipeBuf:
		iov := s.spare(p)
		return result(unix.Syscall(unix.SYS_READV, uintptr(s.fd), uintptr(unsafe.Pointer(iov)), 2))
	}
	return result(unix.Syscall(unix.SYS_READ, uintptr(s.fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p))))
}

// recv and send skip the scheduler's accounting where the call cannot block: it
// costs as much as a tenth of a round trip. MSG_TRUNC makes the kernel return the
// message's true length (recv(2)). Descriptors that travel with the data
// are closed by the kernel, since there is no room for them (unix(7)).
func (s *side) recv(p []byte, m mode) (int, unix.Errno) {
	flags := uintptr(0)
	if s.kind != Stream {
		flags = unix.MSG_TRUNC
	}
	if m == dontWait {
		return result(unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(s.fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), flags|unix.MSG_DONTWAIT, 0, 0))
	}
	return result(unix.Syscall6(unix.SYS_RECVFROM, uintptr(s.fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), flags, 0, 0))
}

func (s *side) send(p []byte, m mode) (int, unix.Errno) {
	if m == dontWait {
		return result(unix.RawSyscall6(unix.SYS_SENDTO, uintptr(s.fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT, 0, 0))
	}
	return result(unix.Syscall6(unix.SYS_SENDTO, uintptr(s.fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), unix.MSG_NOSIGNAL, 0, 0))
}

// pipeNoWait tries a pipe whose description is blocking. RWF_NOWAIT does that
// since Linux 6.4. Before, it asks poll first and then moves no more than poll
// has promised, which holds as long as no other process shares this end.
func (s *side) pipeNoWait(p []byte) (int, unix.Errno) {
	iov, count := s.spare(p), uintptr(1)
	number := uintptr(unix.SYS_PREADV2)
	if s.write {
		number = unix.SYS_PWRITEV2
	} else if s.kind == PacketPipe {
		count = 2
	}
	if !s.noNoWait {
		// The offset -1, split over two registers, means the file's own: none.
		n, errno := result(unix.Syscall6(number, uintptr(s.fd), uintptr(unsafe.Pointer(iov)), count, ^uintptr(0), ^uintptr(0), unix.RWF_NOWAIT))
		if errno != unix.EOPNOTSUPP && errno != unix.ENOSYS && errno != unix.EINVAL {
			return n, errno
		}
		s.noNoWait = true
	}
	if ready, errno := s.poll(0); !ready {
		return 0, errno
	}
	if s.write && len(p) > PipeBuf {
		p = p[:PipeBuf]
	}
	return s.transfer(p, mayBlock)
}

// spare returns p as an iovec, followed by a byte that is filled only when a message is longer than p.
func (s *side) spare(p []byte) *unix.Iovec {
	s.iov[0].Base = unsafe.SliceData(p)
	s.iov[0].SetLen(len(p))
	s.iov[1].Base = &s.spareByte
	s.iov[1].SetLen(1)
	return &s.iov[0]
}

// poll asks the kernel whether the side is ready, for at most timeout
// nanoseconds; less than 0 is for ever. Errors and hang-ups count as ready. When
// it is not, the errno is EAGAIN, for a signal too: the caller looks at its state and comes again.
func (s *side) poll(timeout int64) (bool, unix.Errno) {
	s.pollfd[0] = unix.PollFd{Fd: int32(s.fd), Events: unix.POLLIN}
	if s.write {
		s.pollfd[0].Events = unix.POLLOUT
	}
	var limit *unix.Timespec
	if timeout >= 0 {
		s.timeout = unix.NsecToTimespec(timeout)
		limit = &s.timeout
	}
	n, err := unix.Ppoll(s.pollfd[:], limit, nil)
	switch {
	case err == nil && n > 0:
		return true, 0
	case err == nil || err == unix.EINTR:
		return false, unix.EAGAIN
	}
	return false, err.(unix.Errno)
}

func result(n, _ uintptr, errno unix.Errno) (int, unix.Errno) {
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}
