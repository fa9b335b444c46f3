//go:build linux

package fd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-e1736cc0/ipcbench"
)

// Config says what a Conn is made of.
type Config struct {
	Package  string // named in errors
	Kind     Kind
	Wait     ipcbench.Wait
	Contract ipcbench.Contract
	// SizedByBuffer: MaxMessage and AtomicWrite follow from SO_SNDBUF (unix(7)) and are asked for anew each time.
	SizedByBuffer bool
	// Cleanup runs once in Close, before the descriptors are given back.
	Cleanup func()
}

// A Conn is an ipcbench.Channel over two pipes or one socket, with all the optional interfaces.
type Conn struct {
	cfg    Config
	r, w   side
	socket bool // both sides are one descriptor

	ctl    sync.Mutex // taken before a side's lock; guards closed, and the numbers outside of Read and Write
	closed bool

	errWouldRead, errWouldWrite error // made beforehand: TryRead and TryWrite do not allocate
}

var _ interface {
	ipcbench.Channel
	ipcbench.Deadliner
	ipcbench.NonBlocking
	ipcbench.Descriptors
	ipcbench.Exporter
} = (*Conn)(nil)

// New makes a Conn that reads from r and writes to w, one number for a socket. It takes both over, on error too.
func New(cfg Config, r, w int) (*Conn, error) {
	c := &Conn{cfg: cfg, socket: r == w}
	c.errWouldRead = Wrap(cfg.Package, "read", ipcbench.ErrWouldBlock)
	c.errWouldWrite = Wrap(cfg.Package, "write", ipcbench.ErrWouldBlock)
	if err := CheckWait(cfg.Wait); err != nil {
		CloseAll(r, w)
		return nil, err
	}
	rfile, err := own(r, cfg)
	if err != nil {
		if !c.socket {
			unix.Close(w)
		}
		return nil, err
	}
	wfile := rfile
	if !c.socket {
		if wfile, err = own(w, cfg); err != nil {
			rfile.Close()
			return nil, err
		}
	}
	err = errors.Join(c.r.init(r, false, cfg, rfile), c.w.init(w, true, cfg, wfile))
	if err != nil {
		rfile.Close()
		wfile.Close()
		return nil, err
	}
	return c, nil
}

// CheckWait refuses a number that is no wait: who listens is to hear of it before anybody connects.
func CheckWait(w ipcbench.Wait) error {
	if w < ipcbench.Netpoll || w > ipcbench.Adaptive {
		return fmt.Errorf("%v: %w", w, unix.EINVAL)
	}
	return nil
}

// own puts a descriptor into the mode that the wait needs, and into a file
// that gives the number back, if need be when it is collected. It takes it over, on
// error too. A file that is made while the description blocks stays out of the
// runtime's poller, which would cost a spinning party a notification a message.
func own(fd int, cfg Config) (*os.File, error) {
	w := strategy(cfg.Wait)
	if err := unix.SetNonblock(fd, w.parks()); err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	file := os.NewFile(uintptr(fd), cfg.Contract.Mechanism)
	var err error
	switch {
	case w.parks():
		// NewFile says nothing of a descriptor that epoll refuses; a deadline does.
		err = file.SetDeadline(time.Time{})
	case !w.blocks():
		err = os.NewSyscallError("fcntl", unix.SetNonblock(fd, true))
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// Read implements ipcbench.Channel.
func (c *Conn) Read(p []byte) (int, error) {
	s := &c.r
	if len(p) == 0 && !c.cfg.Kind.boundaries() {
		return 0, c.refused(s)
	}
	s.mu.Lock()
	n, err := s.await(p)
	n, err = c.received(n, len(p), err)
	s.mu.Unlock()
	return n, err
}

// TryRead implements ipcbench.NonBlocking.
func (c *Conn) TryRead(p []byte) (int, error) {
	s := &c.r
	if err := c.refused(s); err != nil || len(p) == 0 && !c.cfg.Kind.boundaries() {
		return 0, err
	}
	if !s.mu.TryLock() {
		return 0, c.errWouldRead // another Read is waiting for the same bytes
	}
	defer s.mu.Unlock()
	if err := c.refused(s); err != nil {
		return 0, err
	}
	n, err := s.try(p)
	return c.received(n, len(p), err)
}

// received turns what a system call returned into what Read returns. The caller holds the lock of r.
func (c *Conn) received(n, room int, err error) (int, error) {
	switch {
	case err != nil:
		return 0, c.wrap(&c.r, err)
	case n > room:
		return room, c.wrap(&c.r, ipcbench.ErrTruncated)
	case n > 0 || c.cfg.Kind == Dgram:
		return n, nil
	case c.cfg.Kind == SeqPacket && !c.r.atEnd():
		return 0, nil
	}
	return 0, io.EOF
}

// atEnd tells the end of a seqpacket connection from an empty message, which
// read as the same 0: the peer has not hung up, or more is queued. An empty message
// directly before the close stays hidden.
func (s *side) atEnd() bool {
	s.pollfd[0] = unix.PollFd{Fd: int32(s.fd), Events: unix.POLLRDHUP}
	if n, err := unix.Poll(s.pollfd[:], 0); err == nil && n == 0 {
		return false
	}
	queued, err := unix.IoctlGetInt(s.fd, unix.TIOCINQ) // FIONREAD, ioctl_tty(2)
	return err != nil || queued == 0
}

// Write implements ipcbench.Channel.
func (c *Conn) Write(p []byte) (n int, err error) {
	s := &c.w
	if len(p) == 0 || len(p) > PipeBuf {
		if done, err := c.special(p); done {
			return 0, err
		}
	}
	s.mu.Lock()
	for {
		var m int
		m, err = s.await(p[n:])
		n += m
		if err != nil || n == len(p) {
			break
		}
	}
	s.mu.Unlock()
	if err != nil {
		err = c.wrap(s, err)
	}
	return n, err
}

// TryWrite implements ipcbench.NonBlocking.
func (c *Conn) TryWrite(p []byte) (int, error) {
	s := &c.w
	if err := c.refused(s); err != nil {
		return 0, err
	}
	if done, err := c.special(p); done {
		return 0, err
	}
	if !s.mu.TryLock() {
		return 0, c.errWouldWrite // another Write is waiting for room
	}
	defer s.mu.Unlock()
	if err := c.refused(s); err != nil {
		return 0, err
	}
	n, err := s.try(p)
	if err != nil {
		return 0, c.wrap(s, err)
	}
	return n, nil
}

// special settles a Write that needs no system call, or must not have one.
func (c *Conn) special(p []byte) (done bool, err error) {
	s := &c.w
	switch {
	case len(p) == 0 && !c.cfg.Kind.boundaries():
		return true, c.refused(s)
	case len(p) == 0 && c.cfg.Kind != Dgram:
		if err := c.refused(s); err != nil {
			return true, err
		}
		return true, c.wrap(s, ipcbench.ErrEmptyMessage)
	case len(p) > PipeBuf && c.cfg.Kind == PacketPipe: // the kernel would split it
		if err := c.refused(s); err != nil {
			return true, err
		}
		return true, c.wrap(s, ipcbench.ErrMessageTooLong)
	}
	return false, nil
}

// refused returns the error of a call on a side that has ended.
func (c *Conn) refused(s *side) error {
	if s.closed.Load() {
		return c.wrap(s, os.ErrClosed)
	}
	return nil
}

func (c *Conn) wrap(s *side, err error) error {
	switch {
	case err == unix.EAGAIN && s.write:
		return c.errWouldWrite
	case err == unix.EAGAIN:
		return c.errWouldRead
	case s.write:
		return Wrap(c.cfg.Package, "write", err)
	}
	return Wrap(c.cfg.Package, "read", err)
}

// CloseWrite implements ipcbench.Channel.
func (c *Conn) CloseWrite() error {
	c.ctl.Lock()
	defer c.ctl.Unlock()
	s := &c.w
	switch {
	case s.closed.Load():
		return Wrap(c.cfg.Package, "close write", os.ErrClosed)
	case !c.cfg.Contract.EndOfStream:
		return Wrap(c.cfg.Package, "close write", ipcbench.ErrNoEndOfStream)
	}
	s.closed.Store(true)
	s.end()
	defer s.mu.Unlock()
	if c.socket {
		err := unix.Shutdown(s.fd, unix.SHUT_WR)
		if err == unix.ENOTCONN {
			err = nil // the peer has gone already: nobody is left to be told
		}
		return Wrap(c.cfg.Package, "close write", err)
	}
	s.fd = -1
	return Wrap(c.cfg.Package, "close write", s.file.Close())
}

// Close implements ipcbench.Channel.
func (c *Conn) Close() error {
	c.ctl.Lock()
	defer c.ctl.Unlock()
	if c.closed {
		return Wrap(c.cfg.Package, "close", os.ErrClosed)
	}
	c.closed = true
	if c.cfg.SizedByBuffer {
		c.measure()
	}
	writing := !c.w.closed.Swap(true)
	c.r.closed.Store(true)
	c.r.end()
	defer c.r.mu.Unlock()
	if writing {
		c.w.end()
	} else {
		c.w.mu.Lock()
	}
	defer c.w.mu.Unlock()
	if c.cfg.Cleanup != nil {
		c.cfg.Cleanup()
	}
	err := c.r.file.Close()
	if !c.socket && writing {
		err = errors.Join(err, c.w.file.Close())
	}
	c.r.fd, c.w.fd = -1, -1
	return Wrap(c.cfg.Package, "close", err)
}

// Contract implements ipcbench.Channel.
func (c *Conn) Contract() ipcbench.Contract {
	c.ctl.Lock()
	defer c.ctl.Unlock()
	if c.cfg.SizedByBuffer && !c.closed {
		c.measure()
	}
	return c.cfg.Contract
}

// dgramOverhead is what af_unix.c keeps of SO_SNDBUF from the longest message, in bytes.
const dgramOverhead = 32

// measure asks for the longest message. The caller holds ctl.
func (c *Conn) measure() {
	if n, err := unix.GetsockoptInt(c.r.fd, unix.SOL_SOCKET, unix.SO_SNDBUF); err == nil {
		c.cfg.Contract.MaxMessage = n - dgramOverhead
		c.cfg.Contract.AtomicWrite = n - dgramOverhead
	}
}

// SetDeadline implements ipcbench.Deadliner.
func (c *Conn) SetDeadline(t time.Time) error { return c.setDeadlines(t, &c.r, &c.w) }

// SetReadDeadline implements ipcbench.Deadliner.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.setDeadlines(t, &c.r) }

// SetWriteDeadline implements ipcbench.Deadliner.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.setDeadlines(t, &c.w) }

func (c *Conn) setDeadlines(t time.Time, sides ...*side) error {
	c.ctl.Lock()
	defer c.ctl.Unlock()
	if c.closed {
		return Wrap(c.cfg.Package, "set deadline", os.ErrClosed)
	}
	for _, s := range sides {
		if s.closed.Load() {
			continue // after CloseWrite nothing is left that could wait
		}
		if err := s.setDeadline(t); err != nil {
			return Wrap(c.cfg.Package, "set deadline", err)
		}
	}
	return nil
}

// ReadFD implements ipcbench.Descriptors.
func (c *Conn) ReadFD() int { return c.number(&c.r) }

// WriteFD implements ipcbench.Descriptors; it is -1 after CloseWrite of a pipe too.
func (c *Conn) WriteFD() int { return c.number(&c.w) }

func (c *Conn) number(s *side) int {
	c.ctl.Lock()
	defer c.ctl.Unlock()
	return s.fd
}

// Files implements ipcbench.Exporter: the reading and the writing pipe, or the one socket.
func (c *Conn) Files() ([]*os.File, error) {
	var files []*os.File
	err := c.Control("files", func(r, w int) error {
		fds := []int{r, w}
		if c.socket {
			fds = fds[:1]
		}
		for _, fd := range fds {
			if fd < 0 {
				return os.ErrClosed // CloseWrite has given it back
			}
			d, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
			if err != nil {
				return os.NewSyscallError("fcntl", err)
			}
			files = append(files, os.NewFile(uintptr(d), c.cfg.Contract.Mechanism))
		}
		return nil
	})
	if err != nil {
		for _, f := range files {
			f.Close()
		}
		return nil, err
	}
	return files, nil
}

// Control calls f with both numbers, which stay valid until f returns.
func (c *Conn) Control(op string, f func(r, w int) error) error {
	c.ctl.Lock()
	defer c.ctl.Unlock()
	if c.closed {
		return Wrap(c.cfg.Package, op, os.ErrClosed)
	}
	return Wrap(c.cfg.Package, op, f(c.r.fd, c.w.fd))
}

// CloseAll gives descriptors back that no Conn owns yet. Both ends of a socket may be the same number.
func CloseAll(fds ...int) {
	for i, fd := range fds {
		if i == 0 || fd != fds[i-1] {
			unix.Close(fd)
		}
	}
}
