//go:build linux

package unixsock

import (
	"fmt"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/seed-e1736cc0/ipcbench"
	"github.com/seed-e1736cc0/ipcbench/internal/fd"
)

// A Kind is the type of a socket, and with it what a Read means.
type Kind int

const (
	Stream    Kind = iota // a stream of bytes with an end
	Dgram                 // messages, no end
	SeqPacket             // messages and an end
)

// kinds says what follows from a Kind.
var kinds = [...]struct {
	name     string
	typ      int
	kind     fd.Kind
	contract ipcbench.Contract
}{
	Stream:    {"unix-stream", unix.SOCK_STREAM, fd.Stream, ipcbench.Contract{EndOfStream: true}},
	Dgram:     {"unix-dgram", unix.SOCK_DGRAM, fd.Dgram, ipcbench.Contract{Boundaries: true}},
	SeqPacket: {"unix-seqpacket", unix.SOCK_SEQPACKET, fd.SeqPacket, ipcbench.Contract{Boundaries: true, EndOfStream: true}},
}

// String returns the mechanism's name: "unix-stream", "unix-dgram" or "unix-seqpacket".
func (k Kind) String() string {
	if k < 0 || int(k) >= len(kinds) {
		return fmt.Sprintf("Kind(%d)", int(k))
	}
	return kinds[k].name
}

// socket makes a socket of the kind, blocking as the kernel makes it.
func (k Kind) socket() (int, error) {
	if k < 0 || int(k) >= len(kinds) {
		return -1, fmt.Errorf("%v: %w", k, unix.EINVAL)
	}
	return fd.Socket(unix.AF_UNIX, kinds[k].typ)
}

// Config says how to make a channel. Its zero value waits in the runtime's
// poller, with the system's buffers, and makes socket files for their owner alone.
type Config struct {
	// Wait is how Read and Write wait.
	Wait ipcbench.Wait
	// SendBuffer is SO_SNDBUF in bytes; 0 is the system's, net.core.wmem_default.
	// The kernel doubles it, to at least 4608, and cuts it silently to twice
	// net.core.wmem_max: Channel.Buffers says what came of it. It counts the bytes on their
	// way with the kernel's overhead, and limits a message to its size less 32. Negative is EINVAL.
	SendBuffer int
	// RecvBuffer is SO_RCVBUF in bytes, doubled and cut by net.core.rmem_max. The
	// kernel accepts it and a unix socket makes no use of it (unix(7)).
	RecvBuffer int
	// Mode is the permissions of the socket file, whatever the umask; 0 is 0600.
	// To connect takes the permission to write.
	Mode os.FileMode
	// Accept is asked by Listener.Accept about the peer of each new connection, as PeerCred has
	// it. A connection for which it returns an error, or whose peer is unknown, is closed
	// before a byte is read, and Listener.Accept goes on with the next. Nil: all are welcome. Dial and Pair do not ask; Bind
	// refuses it, since a datagram has no connection to ask about.
	Accept func(Cred) error
	// Timeout limits how long Dial waits for a place in the listener's queue; 0: no limit.
	Timeout time.Duration
}

// A Channel is one end of a connection. It implements ipcbench.Channel,
// ipcbench.Deadliner, ipcbench.NonBlocking, ipcbench.Descriptors and ipcbench.Exporter.
type Channel struct {
	*fd.Conn
	addr string
}

// Pair returns the two ends of a new connection without an address.
func Pair(k Kind, cfg Config) (a, b *Channel, err error) {
	if k < 0 || int(k) >= len(kinds) {
		return nil, nil, fd.Wrap("unixsock", "pair", fmt.Errorf("%v: %w", k, unix.EINVAL))
	}
	s, err := unix.Socketpair(unix.AF_UNIX, kinds[k].typ|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fd.Wrap("unixsock", "pair", os.NewSyscallError("socketpair", err))
	}
	if a, err = newChannel(k, s[0], cfg, nil); err != nil {
		unix.Close(s[1])
		return nil, nil, fd.Wrap("unixsock", "pair", err)
	}
	if b, err = newChannel(k, s[1], cfg, nil); err != nil {
		a.Close()
		return nil, nil, fd.Wrap("unixsock", "pair", err)
	}
	return a, b, nil
}

// FromFiles makes a channel of what Files gave, as a rule in another process. It
// takes the file over, on error too. What kind of socket it is is asked of the
// kernel; one that listens, or is not connected, is an error, except for a receiver that Bind made.
func FromFiles(files []*os.File, cfg Config) (*Channel, error) {
	c, err := fromFiles(files, cfg)
	return c, fd.Wrap("unixsock", "from files", err)
}

func fromFiles(files []*os.File, cfg Config) (*Channel, error) {
	fds, err := fd.Take(files, 1)
	if err != nil {
		return nil, err
	}
	k, err := recognise(fds[0])
	if err != nil {
		unix.Close(fds[0])
		return nil, err
	}
	return newChannel(k, fds[0], cfg, nil)
}

// recognise says what kind of channel a descriptor is, or why it is none.
func recognise(s int) (Kind, error) {
	t, err := fd.Recognise(s)
	if err != nil {
		return 0, err
	}
	for k := range kinds {
		if t.Domain != unix.AF_UNIX || t.Type != kinds[k].typ {
			continue
		}
		if _, err := unix.Getpeername(s); err != nil && !(Kind(k) == Dgram && hasName(s)) {
			return 0, os.NewSyscallError("getpeername", err)
		}
		return Kind(k), nil
	}
	return 0, fmt.Errorf("not a unix socket: %w", unix.EINVAL)
}

// hasName: somebody could send to it. The wrapper of getsockname hides the length, which tells no name from an abstract one.
func hasName(s int) bool {
	var at unix.RawSockaddrUnix
	size := uint32(unsafe.Sizeof(at))
	_, _, errno := unix.Syscall(unix.SYS_GETSOCKNAME, uintptr(s), uintptr(unsafe.Pointer(&at)), uintptr(unsafe.Pointer(&size)))
	return errno == 0 && size > uint32(unsafe.Sizeof(at.Family))
}

// newChannel takes s over, on error too.
func newChannel(k Kind, s int, cfg Config, cleanup func()) (*Channel, error) {
	if err := fd.SetBuffers(s, cfg.SendBuffer, cfg.RecvBuffer); err != nil {
		unix.Close(s)
		return nil, err
	}
	contract := kinds[k].contract
	contract.Mechanism, contract.Files = kinds[k].name, true
	c, err := fd.New(fd.Config{
		Package: "unixsock", Kind: kinds[k].kind, Wait: cfg.Wait, Contract: contract,
		SizedByBuffer: contract.Boundaries, Cleanup: cleanup,
	}, s, s)
	if err != nil {
		return nil, err
	}
	return &Channel{Conn: c}, nil
}

// Buffers returns SO_SNDBUF and SO_RCVBUF in bytes, as the kernel has them now.
func (c *Channel) Buffers() (send, recv int, err error) { return fd.Buffers(c.Conn) }
