//go:build linux

package fd

import (
	"math"
	"syscall"
	"time"
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

// short is the length in bytes of a send that is first tried without waiting, even where it may block: as a rule there is
// room, and the copy is over before the scheduler could use the processor.
const short = PipeBuf

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
	case s.carrying:
		return s.message(p, m)
	case len(s.head) > 0:
		return s.vector(p, m)
	case !s.kind.isPipe() && s.write:
		return s.send(p, m)
	case !s.kind.isPipe():
		return s.recv(p, m)
	case m == dontWait && s.wait.blocks():
		return s.pipeNoWait(p)
	case s.write:
		return result(syscall.Syscall(unix.SYS_WRITE, uintptr(s.fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p))))
	case s.kind == PacketPipe && len(p) < PipeBuf:
		iov := s.spare(p)
		return result(syscall.Syscall(unix.SYS_READV, uintptr(s.fd), uintptr(unsafe.Pointer(iov)), 2))
	}
	return result(syscall.Syscall(unix.SYS_READ, uintptr(s.fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p))))
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
		return result(syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(s.fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), flags|unix.MSG_DONTWAIT, 0, 0))
	}
	return result(syscall.Syscall6(unix.SYS_RECVFROM, uintptr(s.fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), flags, 0, 0))
}

func (s *side) send(p []byte, m mode) (int, unix.Errno) {
	if m == dontWait || len(p) <= short || s.kind != Stream { // a stream takes a part, and would have to be tried again
		n, errno := result(syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(s.fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT, 0, 0))
		if m == dontWait || errno != unix.EAGAIN {
			return n, errno
		}
	}
	return result(syscall.Syscall6(unix.SYS_SENDTO, uintptr(s.fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), unix.MSG_NOSIGNAL, 0, 0))
}

// pipeNoWait tries a pipe whose description is blocking. RWF_NOWAIT does that
// for anonymous pipes since Linux 6.4. For named ones, and before, O_NONBLOCK is set
// for the moment: who waits in another process that shares this end may see EAGAIN.
// Asking poll first would not do: a full pipe may have room in its last page.
func (s *side) pipeNoWait(p []byte) (int, unix.Errno) {
	if !s.noNoWait {
		number, count := uintptr(unix.SYS_PREADV2), uintptr(1)
		switch {
		case s.write:
			number = unix.SYS_PWRITEV2
		case s.kind == PacketPipe:
			count = 2
		}
		// The offset -1, split over two registers, means the file's own: none.
		n, errno := result(syscall.Syscall6(number, uintptr(s.fd), uintptr(unsafe.Pointer(s.spare(p))), count, ^uintptr(0), ^uintptr(0), unix.RWF_NOWAIT))
		if errno != unix.EOPNOTSUPP && errno != unix.ENOSYS && errno != unix.EINVAL {
			return n, errno
		}
		s.noNoWait = true
	}
	if err := unix.SetNonblock(s.fd, true); err != nil {
		return 0, err.(unix.Errno)
	}
	defer unix.SetNonblock(s.fd, false)
	return s.transfer(p, mayBlock)
}

// spare returns p as an iovec, followed by a byte that is filled only when a message is longer than p.
func (s *side) spare(p []byte) *unix.Iovec {
	s.iov[0].Base = unsafe.SliceData(p)
	s.iov[0].SetLen(len(p))
	s.iov[1].Base = &s.spareByte[0]
	s.iov[1].SetLen(1)
	return &s.iov[0]
}

// poll waits until the side is ready, for at most timeout nanoseconds; less
// than 0 is for ever. Errors and hang-ups count as ready. It returns early, and without an
// errno, for a signal too: the caller looks at its state and tries again.
func (s *side) poll(timeout int64) unix.Errno {
	s.pollfd[0] = unix.PollFd{Fd: int32(s.fd), Events: unix.POLLIN}
	if s.write {
		s.pollfd[0].Events = unix.POLLOUT
	}
	var limit *unix.Timespec
	if timeout >= 0 {
		const most = math.MaxInt32 * int64(time.Second) // what 32 bits hold; the caller looks at its deadline and comes again
		s.timeout = unix.NsecToTimespec(min(timeout, most))
		limit = &s.timeout
	}
	if _, err := unix.Ppoll(s.pollfd[:], limit, nil); err != nil && err != unix.EINTR {
		return err.(unix.Errno)
	}
	return 0
}

func result(n, _ uintptr, errno unix.Errno) (int, unix.Errno) {
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}
