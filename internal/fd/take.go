//go:build linux

package fd

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Take returns descriptors of its own for the files, of which there have to be
// want, and closes the files, on error too. A duplicate is needed
// because a file cannot give its number away.
func Take(files []*os.File, want int) ([]int, error) {
	defer func() {
		for _, f := range files {
			if f != nil {
				f.Close()
			}
		}
	}()
	if len(files) != want {
		return nil, fmt.Errorf("%d files, want %d: %w", len(files), want, unix.EINVAL)
	}
	var fds []int
	for _, f := range files {
		d, err := duplicate(f)
		if err != nil {
			CloseAll(fds...)
			return nil, err
		}
		fds = append(fds, d)
	}
	return fds, nil
}

// duplicate leaves the mode of the description alone, which File.Fd would make blocking.
func duplicate(f *os.File) (d int, err error) {
	if f == nil {
		return -1, fmt.Errorf("a file is nil: %w", unix.EINVAL)
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return -1, err
	}
	control := raw.Control(func(n uintptr) {
		d, err = unix.FcntlInt(n, unix.F_DUPFD_CLOEXEC, 0)
	})
	if control != nil {
		return -1, control
	}
	return d, os.NewSyscallError("fcntl", err)
}
