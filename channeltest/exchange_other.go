//go:build linux && !amd64 && !arm64

package channeltest

import (
	"syscall"
	"unsafe"
)

// exchange is as in exchange_asm.go, some per cent slower.
func exchange(trap1, fd1, trap2, fd2 uintptr, p *byte, size, calls int, stamps *int64) (done, last int) {
	var kept []int64
	if stamps != nil {
		kept = unsafe.Slice(stamps, calls/2)
	}
	for done < calls {
		n, _, errno := syscall.RawSyscall(trap1, fd1, uintptr(unsafe.Pointer(p)), uintptr(size))
		if last = int(n); errno != 0 {
			last = -int(errno)
		}
		if last != size {
			break
		}
		if done++; done%2 == 0 && kept != nil {
			kept[done/2-1] = ticks()
		}
		trap1, trap2 = trap2, trap1
		fd1, fd2 = fd2, fd1
	}
	return done, last
}
