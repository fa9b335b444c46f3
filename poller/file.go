//go:build linux

package poller

import "golang.org/x/sys/unix"

// An identity tells apart two files that had one number after the other. epoll
// does that by itself; poll and select see numbers only. Files that have no inode of their
// own (eventfd, timerfd, epoll) cannot be told apart from each other.
type identity struct{ dev, ino uint64 }

// inspect returns the identity of an open descriptor, and refuses what epoll
// would refuse, so that all kinds accept the same.
func inspect(fd int) (identity, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return identity{}, err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFIFO, unix.S_IFSOCK: // all of them know readiness
	default:
		if err := probe(fd); err != nil {
			return identity{}, err
		}
	}
	return identity{uint64(st.Dev), st.Ino}, nil
}

// probe asks epoll whether fd can be waited for. The type of a file does not say
// so: most regular files and some devices cannot, /proc/self/mounts and terminals can.
func probe(fd int) error {
	epfd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(epfd)
	if err = control(epfd, unix.EPOLL_CTL_ADD, fd, 0, 0); err == unix.EPERM {
		return ErrNotPollable
	}
	return err
}

// closedError says of a descriptor that was found closed what epoll would say.
func closedError(fd int) error {
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil {
		return err
	}
	return unix.ENOENT // the number belongs to a file that was never added
}

func levelOnly(in Interest) error {
	if in&(Edge|OneShot) != 0 {
		return errEpollOnly
	}
	return nil
}
