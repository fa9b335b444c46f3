//go:build linux

package unixsock

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// makeFile binds s to a new file, as one step in the eyes of others. bind(2)
// itself is several: the file is there before the socket can be found by it
// (unix_bind_bsd in af_unix.c) and before it listens, and connecting in between is
// ECONNREFUSED, as if its owner were dead. So the file is made under a temporary
// name, and linked into place when connections are taken.
func (at place) makeFile(s int, k Kind) (cleanup func(), err error) {
	temp, err := at.bindTemporary(s)
	if err != nil {
		return nil, fmt.Errorf("bind %q: %w", at.path, err)
	}
	defer unix.Unlink(temp)
	var own unix.Stat_t
	if err := unix.Lstat(temp, &own); err != nil {
		return nil, fmt.Errorf("stat %q: %w", temp, err)
	}
	if own.Mode&0o777 != at.mode { // the umask has taken something away
		if err := unix.Chmod(temp, at.mode); err != nil {
			return nil, fmt.Errorf("chmod %q: %w", temp, err)
		}
	}
	if err := k.listen(s); err != nil {
		return nil, err
	}
	absolute, err := filepath.Abs(at.path) // the working directory may change before Close
	if err != nil {
		return nil, err
	}
	if err := link(temp, at.path); err != nil {
		return nil, fmt.Errorf("bind %q: %w", at.path, err)
	}
	return func() { removeOwn(absolute, own) }, nil
}

// removeOwn removes the file unless another has taken its place. It has to be
// called before the socket is closed: the open socket pins the inode, so that its
// number cannot have been given to another file.
func removeOwn(path string, own unix.Stat_t) {
	var st unix.Stat_t
	if unix.Lstat(path, &st) == nil && st.Dev == own.Dev && st.Ino == own.Ino {
		unix.Unlink(path)
	}
}

// bindTemporary binds s to a file in the directory of the path and returns its name.
// The file gets the mode of the socket's own inode, less the umask (unix_bind_bsd in
// af_unix.c), so it is at no time open to more than the mode says.
func (at place) bindTemporary(s int) (temp string, err error) {
	if err := unix.Fchmod(s, at.mode); err != nil {
		return "", os.NewSyscallError("fchmod", err)
	}
	for try := 0; ; try++ {
		temp, err = bindLong(s, at.path+"."+strconv.FormatUint(uint64(rand.Uint32()), 36))
		if err != unix.EADDRINUSE || try == 100 {
			return temp, err
		}
	}
}

// bindLong binds s to a file and returns its name. A name that does not fit is made a short one, and
// bound by way of the directory's descriptor, whose own name in /proc is short.
func bindLong(s int, name string) (string, error) {
	if len(name) <= maxName {
		return name, bind(s, address{path: name})
	}
	dir, short := filepath.Dir(name), ".unixsock"+filepath.Ext(name)
	d, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(d)
	return filepath.Join(dir, short), bind(s, address{path: fmt.Sprintf("/proc/self/fd/%d/%s", d, short)})
}

// link gives the file temp the name path. A dead owner's name is taken from it.
func link(temp, path string) error {
	for {
		if err := unix.Link(temp, path); err != unix.EEXIST {
			return err
		}
		_, dead, err := occupant(path)
		switch {
		case err != nil:
			return err
		case dead:
			return takeOver(temp, path)
		}
	}
}

// occupant says whether at path is the file of a dead owner, or nothing; anything
// else is an error. It asks with a datagram socket: connecting that to a stream
// or seqpacket socket is EPROTOTYPE and leaves no connection in the queue of a
// living owner, and to a dead one of any type ECONNREFUSED (unix_find_bsd in af_unix.c).
func occupant(path string) (st unix.Stat_t, dead bool, err error) {
	switch err := unix.Lstat(path, &st); {
	case err == unix.ENOENT:
		return st, false, nil
	case err != nil:
		return st, false, err
	case st.Mode&unix.S_IFMT != unix.S_IFSOCK:
		return st, false, fmt.Errorf("%w: by a file that is no socket", unix.EADDRINUSE)
	}
	s, err := Dgram.socket()
	if err != nil {
		return st, false, err
	}
	defer unix.Close(s)
	switch err := connect(s, address{path: path}); err {
	case unix.ECONNREFUSED:
		return st, true, nil
	case unix.ENOENT:
		return st, false, nil
	case nil, unix.EPROTOTYPE, unix.EPERM: // EPERM: a datagram socket that is connected to another
		return st, false, unix.EADDRINUSE
	default:
		return st, false, fmt.Errorf("%w, and its owner cannot be asked: %w", unix.EADDRINUSE, err)
	}
}

// takeOver replaces a dead owner's file. Of several that try, only one at a time
// may ask and remove, or the second would remove the file of the first: they
// take turns by a lock on the directory. Link decides against those who come
// when the dead file has just gone.
func takeOver(temp, path string) error {
	unlock, err := lockDirectory(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("a dead owner's file is in the way: %w", err)
	}
	defer unlock()
	found, dead, err := occupant(path)
	if err != nil {
		return err
	}
	if dead {
		var now unix.Stat_t
		if unix.Lstat(path, &now) == nil && now.Dev == found.Dev && now.Ino == found.Ino {
			err = unix.Unlink(path)
		}
		if err != nil && err != unix.ENOENT {
			return fmt.Errorf("a dead owner's file is in the way: %w", err)
		}
	}
	if err := unix.Link(temp, path); err != unix.EEXIST {
		return err
	}
	return unix.EADDRINUSE
}

// lockFor is how long to wait for the lock on a directory. Anybody who may read the
// directory can hold one, for ever.
const lockFor = time.Second

// lockDirectory takes the lock of flock(2) on a directory.
func lockDirectory(dir string) (unlock func(), err error) {
	d, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %q: %w", dir, err)
	}
	limit := time.Now().Add(lockFor)
	for pause := 100 * time.Microsecond; ; pause = min(2*pause, 20*time.Millisecond) {
		switch err := unix.Flock(d, unix.LOCK_EX|unix.LOCK_NB); {
		case err == nil:
			return func() { unix.Close(d) }, nil
		case err != unix.EWOULDBLOCK && err != unix.EINTR:
			unix.Close(d)
			return nil, fmt.Errorf("flock %q: %w", dir, err)
		case time.Now().After(limit):
			unix.Close(d)
			return nil, fmt.Errorf("%w: its directory is locked by another process", unix.EADDRINUSE)
		}
		time.Sleep(pause)
	}
}
