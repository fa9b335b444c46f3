//go:build linux

package unixsock

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// bind and connect make the calls themselves: unix.SockaddrUnix has no room for
// an abstract name of full length.

func bind(s int, a address) error { return call(unix.SYS_BIND, s, a) }

func connect(s int, a address) error { return call(unix.SYS_CONNECT, s, a) }

func call(number uintptr, s int, a address) error {
	raw := unix.RawSockaddrUnix{Family: unix.AF_UNIX}
	length := unsafe.Offsetof(raw.Path)
	switch path := unsafe.Slice((*byte)(unsafe.Pointer(&raw.Path)), len(raw.Path)); {
	case a.path != "":
		length += uintptr(copy(path, a.path)) + 1 // with its NUL
	case a.name != "":
		length += 1 + uintptr(copy(path[1:], a.name))
	default: // bind has the kernel choose an abstract name (autobind, unix(7))
	}
	_, _, errno := unix.Syscall(number, uintptr(s), uintptr(unsafe.Pointer(&raw)), length)
	if errno != 0 {
		return errno
	}
	return nil
}
