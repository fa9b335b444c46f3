//go:build linux

package fd

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/seed-e1736cc0/ipcbench"
)

// MaxFiles is how many descriptors the kernel passes with one message (SCM_MAX_FD, unix(7)).
const MaxFiles = 253

// ErrFilesTruncated: more files came with a message than there was room for; all of them are closed.
var ErrFilesTruncated = errors.New("files truncated")

// carrier is what carries files on a stream that come without data: ancillary
// data travel with a byte at least (unix(7)).
var carrier = []byte{0}

// SendFiles writes p with the files beside its first byte, as part of the same message
// where there are boundaries. It is no method, since only a unix socket has it.
func SendFiles(c *Conn, p []byte, files []*os.File) error {
	switch {
	case len(files) == 0:
		_, err := c.Write(p)
		return err
	case len(files) > MaxFiles:
		return Wrap(c.cfg.Package, "send files", fmt.Errorf("%d files, %d go with one message: %w", len(files), MaxFiles, unix.EINVAL))
	case len(p) == 0 && c.cfg.Kind == Stream:
		p = carrier
	}
	s := &c.w
	s.mu.Lock()
	defer s.mu.Unlock()
	s.carry().makeRoom(len(files))
	defer s.putDown()
	return Wrap(c.cfg.Package, "send files", s.lend(files, 0, p))
}

// lend writes p with the numbers of files[i:] added to those before, which stay valid until it returns.
func (s *side) lend(files []*os.File, i int, p []byte) error {
	if i == len(files) {
		return s.sendAll(p)
	}
	raw, err := files[i].SyscallConn()
	if err != nil {
		return fmt.Errorf("file %d: %w", i, err)
	}
	closed := raw.Control(func(n uintptr) {
		s.ancillary.put(i, n)
		err = s.lend(files, i+1, p)
	})
	if closed != nil {
		return fmt.Errorf("file %d: %w", i, os.ErrClosed)
	}
	return err
}

// sendAll writes all of p, with what the ancillary holds.
func (s *side) sendAll(p []byte) error {
	n, err := s.await(p)
	s.putDown() // the files have gone with the first bytes
	for err == nil && n < len(p) {
		var m int
		m, err = s.await(p[n:])
		n += m
	}
	if n > 0 && err != nil {
		return fmt.Errorf("the files and %d of %d bytes are sent: %w", n, len(p), err)
	}
	return err
}

// RecvFiles reads as Conn.Read does, and takes up to max files that come with what it reads.
func RecvFiles(c *Conn, p []byte, max int) (n int, files []*os.File, err error) {
	if max < 0 {
		return 0, nil, Wrap(c.cfg.Package, "receive files", fmt.Errorf("room for %d files: %w", max, unix.EINVAL))
	}
	s := &c.r
	s.mu.Lock()
	defer s.mu.Unlock()
	n, fds, err := s.recvFiles(p, min(max, MaxFiles))
	switch {
	case err != nil:
		for _, d := range fds {
			unix.Close(int(d))
		}
		if err != io.EOF {
			err = Wrap(c.cfg.Package, "receive files", err)
		}
	case len(fds) > 0:
		files = make([]*os.File, len(fds))
		for i, d := range fds {
			files[i] = os.NewFile(uintptr(d), c.cfg.Contract.Mechanism)
		}
	}
	return n, files, err
}

// recvFiles reads once. The descriptors are valid until mu is released, which the caller holds.
func (s *side) recvFiles(p []byte, max int) (n int, fds []int32, err error) {
	room := p
	if len(p) == 0 && s.kind == Stream {
		room = s.spareByte[:]
	}
	a := s.carry()
	a.makeRoom(max)
	n, err = s.await(room)
	s.putDown()
	if err != nil {
		return 0, nil, err
	}
	fds = a.get()
	n, err = s.came(n, p, len(fds))
	if err == nil && a.msg.Flags&unix.MSG_CTRUNC != 0 {
		err = truncated(len(fds), max)
	}
	return n, fds, err
}

// came says what n bytes, with some files beside them, are to a reader with room for p.
func (s *side) came(n int, p []byte, files int) (int, error) {
	switch lost := s.ancillary.msg.Flags&unix.MSG_CTRUNC != 0; {
	case n == 0 && s.kind == Stream:
		return 0, io.EOF
	case n == 0 && s.kind == SeqPacket && files == 0 && !lost && s.atEnd():
		return 0, io.EOF
	case n > len(p) && s.kind == Stream && s.spareByte[0] == 0 && (files > 0 || lost):
		return 0, nil // the carrier
	case n > len(p):
		return len(p), ipcbench.ErrTruncated
	}
	return n, nil
}

// truncated says why some files of a message are missing (scm_detach_fds in scm.c of Linux).
func truncated(came, max int) error {
	if came < max {
		return fmt.Errorf("%w: room for %d, and no free descriptor after %d: %w", ErrFilesTruncated, max, came, unix.EMFILE)
	}
	return fmt.Errorf("%w: more than %d", ErrFilesTruncated, max)
}
