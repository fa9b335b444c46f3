//go:build linux

package poller

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The calls below exist on every architecture, and get no signal mask.

// epollWait is epoll_wait(2); found means nothing on an error.
func epollWait(epfd int, events []unix.EpollEvent, ms int) (found int, errno unix.Errno) {
	n, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT, uintptr(epfd), uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), uintptr(ms), 0, 0)
	return int(n), errno
}

// epollNow is epollWait with a timeout of 0: it cannot block, and the scheduler is told nothing.
func epollNow(epfd int, events []unix.EpollEvent) (found int, errno unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epfd), uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), 0, 0, 0)
	return int(n), errno
}

// ppoll is poll(2) with a timespec, which the kernel changes; nil is no limit.
func ppoll(fds []unix.PollFd, timeout *unix.Timespec) (int, unix.Errno) {
	p := unsafe.Pointer(unsafe.SliceData(fds))
	if brief(len(fds), timeout) {
		return result(unix.RawSyscall6(unix.SYS_PPOLL, uintptr(p), uintptr(len(fds)), uintptr(unsafe.Pointer(timeout)), 0, 0, 0))
	}
	return result(unix.Syscall6(unix.SYS_PPOLL, uintptr(p), uintptr(len(fds)), uintptr(unsafe.Pointer(timeout)), 0, 0, 0))
}

// pselect is select(2) with bitmaps of any length; both hold at least nfds bits, but for a write that is nil.
func pselect(nfds int, read, write bitmap, timeout *unix.Timespec) (int, unix.Errno) {
	r, w := unsafe.Pointer(unsafe.SliceData(read)), unsafe.Pointer(unsafe.SliceData(write))
	if brief(nfds, timeout) {
		return result(unix.RawSyscall6(unix.SYS_PSELECT6, uintptr(nfds), uintptr(r), uintptr(w), 0, uintptr(unsafe.Pointer(timeout)), 0))
	}
	return result(unix.Syscall6(unix.SYS_PSELECT6, uintptr(nfds), uintptr(r), uintptr(w), 0, uintptr(unsafe.Pointer(timeout)), 0))
}

// brief says that a call neither blocks nor takes long, some microseconds, so
// that the scheduler need not know of it. A longer one would hold up whoever wants to stop the world.
func brief(fds int, timeout *unix.Timespec) bool {
	return fds <= 64 && timeout != nil && *timeout == unix.Timespec{}
}

func result(n, _ uintptr, errno unix.Errno) (int, unix.Errno) {
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

// limit stores a timeout in t and returns it, nil if it is less than 0: no limit.
func limit(t *unix.Timespec, ms int) *unix.Timespec {
	if ms < 0 {
		return nil
	}
	*t = unix.NsecToTimespec(int64(ms) * int64(time.Millisecond))
	return t
}
