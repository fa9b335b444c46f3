//go:build linux && (amd64 || arm64)

package channeltest

// exchange makes calls system calls, trap1(fd1, p, size) and trap2(fd2, p, size)
// in turn, for as long as each moves size bytes. It returns how many did, and, if
// that is not all, the raw result of the one that did not. With stamps it keeps the ticks after each
// second call. A loop in C is no shorter: after a switch between processes
// each return is mispredicted and each page a miss of the TLB, so that a function more shows.
//
//go:noescape
func exchange(trap1, fd1, trap2, fd2 uintptr, p *byte, size, calls int, stamps *int64) (done, last int)
