//go:build linux

package peer

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Config says what child Start starts.
type Config struct {
	// Role is one of the roles that Main was given.
	Role string
	// Files are handed over: they become Conn.Files in the child, in that
	// order. The caller keeps, and closes, its own. The open file descriptions
	// are shared and stay as they are, non-blocking ones too.
	Files []*os.File
	// CPUs is the affinity of the child from its first instruction on; its
	// GOMAXPROCS follows. Nil: that of the process.
	CPUs []int
	// Env is added to the environment, "KEY=value" each, and replaces what is there.
	Env []string
}

// Start starts a child. It needs Main to have been called. The caller must Close the Peer.
func Start(cfg Config) (*Peer, error) {
	p, err := start(cfg)
	if err != nil {
		return nil, fmt.Errorf("peer: start %s: %w", cfg.Role, err)
	}
	return p, nil
}

func start(cfg Config) (*Peer, error) {
	// Without Main the child would run the tests, and start children in turn.
	if _, ok := lookup(cfg.Role); !ok {
		return nil, errors.New("Main was given no such role")
	}
	var open handles
	defer open.close()
	attr, err := open.prepare(cfg)
	if err != nil {
		return nil, err
	}
	process, err := fork(attr)
	if err != nil {
		return nil, err
	}
	p := &Peer{
		role:    cfg.Role,
		process: process,
		control: os.NewFile(uintptr(open.take(open.parent)), "peer-control"),
		done:    make(chan struct{}),
	}
	var stderr *os.File
	if open.stderr >= 0 {
		stderr = os.NewFile(uintptr(open.take(open.stderr)), "peer-stderr")
	}
	live.Add(1)
	go p.reap(stderr)
	return p, nil
}

// handles are the descriptors a start needs: all of them FD_CLOEXEC, all closed
// after it, but for those that were taken.
type handles struct {
	all    []int
	parent int // the parent's end of the control socket
	stderr int // a memfd, -1 where the kernel has none
}

func (h *handles) add(fd int) int {
	h.all = append(h.all, fd)
	return fd
}

func (h *handles) take(fd int) int {
	for i := range h.all {
		if h.all[i] == fd {
			h.all[i] = -1
		}
	}
	return fd
}

func (h *handles) close() {
	for _, fd := range h.all {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

func (h *handles) prepare(cfg Config) (attr forkAttr, err error) {
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return attr, &os.PathError{Op: "open", Path: os.DevNull, Err: err}
	}
	h.add(null)
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return attr, os.NewSyscallError("socketpair", err)
	}
	h.parent = h.add(pair[0])
	h.add(pair[1])
	// Each end is an open file description of its own: the child's stays blocking.
	if err := unix.SetNonblock(h.parent, true); err != nil {
		return attr, os.NewSyscallError("fcntl", err)
	}
	stderr := h.openStderr(null)
	attr.fds = []int{null, null, stderr, pair[1]}
	for i, f := range cfg.Files {
		fd, err := duplicate(f)
		if err != nil {
			return attr, fmt.Errorf("file %d: %w", i, err)
		}
		attr.fds = append(attr.fds, h.add(fd))
	}
	attr.argv = []string{os.Args[0], "peer:" + cfg.Role} // for ps; nobody reads it
	order := fmt.Sprintf("%s=%d:%s", variable, len(cfg.Files), cfg.Role)
	attr.env = environment(os.Environ(), append([]string{raceOptions()}, cfg.Env...), order)
	attr.cpus = cfg.CPUs
	return attr, nil
}

// openStderr returns a file in memory, which unlike a pipe nobody has to read
// for the child to go on.
func (h *handles) openStderr(null int) int {
	fd, err := unix.MemfdCreate("peer-stderr", unix.MFD_CLOEXEC)
	if err != nil { // before Linux 3.17, or forbidden in a sandbox
		h.stderr = -1
		return null
	}
	h.stderr = h.add(fd)
	return fd
}

// duplicate returns a new descriptor of f. It does not call f.Fd, which sets
// the shared open file description blocking where os itself had made it
// non-blocking (golang/go#43894), os.Pipe's for one.
func duplicate(f *os.File) (fd int, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return -1, err
	}
	if ctlErr := raw.Control(func(from uintptr) {
		fd, err = unix.FcntlInt(from, unix.F_DUPFD_CLOEXEC, 0)
	}); ctlErr != nil {
		return -1, ctlErr
	}
	return fd, os.NewSyscallError("fcntl", err)
}

// raceOptions spares a child built with -race the second that the race
// detector sleeps before its exit (go.dev/doc/articles/race_detector).
func raceOptions() string {
	return strings.TrimSpace("GORACE=" + os.Getenv("GORACE") + " atexit_sleep_ms=0")
}

// environment returns base with every variable of added set. Duplicates do not
// stay: a Go child would see the first.
func environment(base, added []string, own string) []string {
	added = append(added[:len(added):len(added)], own)
	env := make([]string, 0, len(base)+len(added))
	for i, entry := range append(base[:len(base):len(base)], added...) {
		later := added[max(0, i+1-len(base)):]
		if !assigned(later, entry) {
			env = append(env, entry)
		}
	}
	return env
}

func assigned(env []string, entry string) bool {
	key, _, _ := strings.Cut(entry, "=")
	for _, e := range env {
		if k, _, _ := strings.Cut(e, "="); k == key {
			return true
		}
	}
	return false
}
