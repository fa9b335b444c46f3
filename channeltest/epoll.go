//go:build linux

package channeltest

import (
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

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

// call makes a system call until it does not say EAGAIN, and waits for the descriptor in between.
func (p *poll) call(trap, fd uintptr, at unsafe.Pointer, n, flags uintptr) (int, error) {
	for {
		got, _, errno := syscall.RawSyscall6(trap, fd, uintptr(at), n, flags, 0, 0)
		switch errno {
		case 0:
			return int(got), nil
		case unix.EAGAIN:
			if err := p.wait(); err != nil {
				return 0, err
			}
		case unix.EINTR:
		default:
			return 0, errno
		}
	}
}
