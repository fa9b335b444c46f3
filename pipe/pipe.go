//go:build linux

package pipe

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-e1736cc0/ipcbench"
	"github.com/seed-e1736cc0/ipcbench/internal/fd"
)

// Config says how to make a channel. Its zero value is a byte stream in the
// runtime's poller with the system's capacity, and no limit on waiting for the other party.
type Config struct {
	// Wait is how Read and Write wait.
	Wait ipcbench.Wait
	// Capacity is how many bytes each pipe should hold; 0 is the system's
	// default, 16 pages (65536 where a page has 4096). The kernel rounds it up to a power of two of at least a page (F_SETPIPE_SZ,
	// fcntl(2)): Channel.Capacity says what came of it. Above
	// /proc/sys/fs/pipe-max-size it takes CAP_SYS_RESOURCE and is EPERM without;
	// past 2 GiB it is EINVAL.
	Capacity int
	// Packets makes every Write of at most 4096 bytes one Read.
	Packets bool
	// Timeout limits how long Create and Open wait for the other party; 0: no limit.
	Timeout time.Duration
}

// A Channel is one end of two pipes. It implements ipcbench.Channel,
// ipcbench.Deadliner, ipcbench.NonBlocking, ipcbench.Descriptors and ipcbench.Exporter.
type Channel struct{ *fd.Conn }

// Pair returns the two ends of a new connection.
func Pair(cfg Config) (a, b *Channel, err error) {
	var f, g [2]int // f carries a's writes, g carries b's
	if err := unix.Pipe2(f[:], cfg.flags()); err != nil {
		return nil, nil, fd.Wrap("pipe", "pair", os.NewSyscallError("pipe2", err))
	}
	if err := unix.Pipe2(g[:], cfg.flags()); err != nil {
		fd.CloseAll(f[:]...)
		return nil, nil, fd.Wrap("pipe", "pair", os.NewSyscallError("pipe2", err))
	}
	a, err = newChannel("pair", g[0], f[1], cfg, cfg.mechanism())
	if err != nil {
		fd.CloseAll(f[0], g[1])
		return nil, nil, err
	}
	b, err = newChannel("pair", f[0], g[1], cfg, cfg.mechanism())
	if err != nil {
		a.Close()
		return nil, nil, err
	}
	return a, b, nil
}

// FromFiles makes a channel of what Files gave, as a rule in another process:
// the file to read from and the file to write to. It takes the files over, on
// error too. Whether they are in packet mode, which the kernel says of a writing end only, and
// whether they have a name is asked of it; a Config that contradicts it is EINVAL.
func FromFiles(files []*os.File, cfg Config) (*Channel, error) {
	fds, err := fd.Take(files, 2)
	if err != nil {
		return nil, fd.Wrap("pipe", "from files", err)
	}
	r, w := fds[0], fds[1]
	mechanism, err := recognise(r, w, cfg)
	if err != nil {
		fd.CloseAll(r, w)
		return nil, fd.Wrap("pipe", "from files", err)
	}
	return newChannel("from files", r, w, cfg, mechanism)
}

// recognise says what the two descriptors are, or why they are no channel.
func recognise(r, w int, cfg Config) (string, error) {
	for _, end := range []struct{ fd, access int }{{r, unix.O_RDONLY}, {w, unix.O_WRONLY}} {
		var st unix.Stat_t
		if err := unix.Fstat(end.fd, &st); err != nil {
			return "", os.NewSyscallError("fstat", err)
		}
		flags, err := unix.FcntlInt(uintptr(end.fd), unix.F_GETFL, 0)
		if err != nil {
			return "", os.NewSyscallError("fcntl", err)
		}
		switch {
		case st.Mode&unix.S_IFMT != unix.S_IFIFO:
			return "", fmt.Errorf("not a pipe: %w", unix.EINVAL)
		case flags&unix.O_ACCMODE != end.access:
			return "", fmt.Errorf("the first file has to be for reading, the second for writing: %w", unix.EINVAL)
		case (flags&unix.O_DIRECT != 0) != cfg.Packets && end.access == unix.O_WRONLY:
			return "", fmt.Errorf("Config.Packets is %v and the pipe's mode is not: %w", cfg.Packets, unix.EINVAL)
		}
	}
	// An anonymous pipe's name in /proc is pipe:[inode], a named one's its path.
	name, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(r))
	if err == nil && !strings.HasPrefix(name, "pipe:") && !cfg.Packets {
		return "fifo", nil
	}
	return cfg.mechanism(), nil
}

func (cfg Config) mechanism() string {
	if cfg.Packets {
		return "pipe-packet"
	}
	return "pipe"
}

func (cfg Config) flags() int {
	if cfg.Packets {
		return unix.O_CLOEXEC | unix.O_DIRECT
	}
	return unix.O_CLOEXEC
}

// newChannel takes r and w over, on error too.
func newChannel(op string, r, w int, cfg Config, mechanism string) (*Channel, error) {
	if err := setCapacity(w, cfg.Capacity); err != nil {
		fd.CloseAll(r, w)
		return nil, fd.Wrap("pipe", op, err)
	}
	contract := ipcbench.Contract{Mechanism: mechanism, EndOfStream: true, AtomicWrite: fd.PipeBuf}
	kind := fd.Pipe
	if cfg.Packets {
		kind = fd.PacketPipe
		contract.Boundaries, contract.MaxMessage = true, fd.PipeBuf
	}
	c, err := fd.New(fd.Config{Package: "pipe", Kind: kind, Wait: cfg.Wait, Contract: contract}, r, w)
	if err != nil {
		return nil, fd.Wrap("pipe", op, err)
	}
	return &Channel{c}, nil
}

// setCapacity asks for a pipe's size in bytes; 0 leaves it.
func setCapacity(w, capacity int) error {
	if capacity == 0 {
		return nil
	}
	if capacity < 0 || int64(capacity) > 1<<31 { // fcntl would cut it to 32 bits
		return fmt.Errorf("capacity %d: %w", capacity, unix.EINVAL)
	}
	_, err := unix.FcntlInt(uintptr(w), unix.F_SETPIPE_SZ, capacity)
	switch err {
	case nil:
		return nil
	case unix.EPERM:
		return fmt.Errorf("capacity %d: above the limit of /proc/sys/fs/pipe-max-size (%s bytes), or the user's of pipe-user-pages-soft: %w",
			capacity, sysctl("pipe-max-size"), err)
	case unix.EBUSY:
		return fmt.Errorf("capacity %d: less than what the pipe holds now: %w", capacity, err)
	}
	return fmt.Errorf("capacity %d: %w", capacity, err)
}

func sysctl(name string) string {
	text, err := os.ReadFile("/proc/sys/fs/" + name)
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}

// Capacity returns how many bytes the outgoing pipe holds before a Write waits, as the kernel has it now.
func (c *Channel) Capacity() (n int, err error) {
	err = c.Control("capacity", func(_, w int) error {
		n, err = unix.FcntlInt(uintptr(w), unix.F_GETPIPE_SZ, 0)
		return err
	})
	return n, err
}

// SetCapacity asks for another size of the outgoing pipe, in bytes, as
// Config.Capacity does. Less than what the pipe holds at the moment is EBUSY.
func (c *Channel) SetCapacity(n int) error {
	if n <= 0 {
		return fd.Wrap("pipe", "set capacity", fmt.Errorf("capacity %d: %w", n, unix.EINVAL))
	}
	return c.Control("set capacity", func(_, w int) error { return setCapacity(w, n) })
}
