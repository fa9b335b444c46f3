//go:build linux

package peer

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// variable tells a process that it is a child: "<number of files>:<role>".
const variable = "IPCBENCH_PEER"

// What a child finds at its start, beside its standard streams.
const (
	controlFD   = 3 // the socket to its parent
	firstFileFD = 4 // Config.Files, in order
)

// A Handler plays a role in a child process. Its return ends the process: nil
// with exit status 0; an error with 1, and its text is what the parent's Recv
// returns next. An error that only says that the parent has gone counts as nil.
type Handler func(c *Conn) error

// known holds the roles of Register and Main.
var known struct {
	sync.Mutex
	roles map[string]Handler
	set   bool
}

// Register adds a role to those that Main will be given: for a package whose
// TestMain leaves Main to another one. It must be called before Main, as in an init.
func Register(role string, play Handler) {
	known.Lock()
	defer known.Unlock()
	if known.set {
		panic("peer: Register after Main")
	}
	if known.roles == nil {
		known.roles = map[string]Handler{}
	}
	known.roles[role] = play
}

// Main must be called once, in TestMain, before flags are parsed. In a child it
// runs its role and exits the process; in a parent it returns at once.
func Main(roles map[string]Handler) {
	for role, play := range roles {
		Register(role, play)
	}
	known.Lock()
	if known.set {
		known.Unlock()
		panic("peer: Main called twice")
	}
	known.set = true
	known.Unlock()

	order, ok := os.LookupEnv(variable)
	if !ok {
		return
	}
	// What the role itself starts is no peer, unless by Start.
	os.Unsetenv(variable)
	os.Exit(runRole(order))
}

func runRole(order string) int {
	count, role, _ := strings.Cut(order, ":")
	files, err := strconv.Atoi(count)
	if err != nil {
		fmt.Fprintf(os.Stderr, "peer: %s=%q: no number of files\n", variable, order)
		return 1
	}
	// By what they are for, inherited descriptors come without FD_CLOEXEC.
	for fd := controlFD; fd < firstFileFD+files; fd++ {
		unix.CloseOnExec(fd)
	}
	c := &Conn{count: files}
	err = fmt.Errorf("unknown role %q", role)
	if handler, ok := lookup(role); ok {
		err = handler(c)
	}
	if err == nil || c.onlyGone(err) {
		return 0
	}
	if c.write(kindError, err.Error()) != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return 1
}

func lookup(role string) (Handler, bool) {
	known.Lock()
	defer known.Unlock()
	h, ok := known.roles[role]
	return h, ok
}

// A Conn is the child's side of the conversation with its parent. Its calls
// block their thread in the kernel and never involve Go's netpoller. One
// goroutine at a time may receive, and one send.
type Conn struct {
	count int
	once  sync.Once
	files []*os.File
	in    inbox
	gone  bool // the parent has ended or closed its side
}

// Files returns the files of Config.Files, in that order; the caller owns them.
// They share their open file descriptions with the parent's, in whatever mode
// the parent had them: a non-blocking one joins this process's netpoller with
// the first call of Files.
func (c *Conn) Files() []*os.File {
	c.once.Do(func() {
		for i := range c.count {
			c.files = append(c.files, os.NewFile(uintptr(firstFileFD+i), fmt.Sprintf("peer-file-%d", i)))
		}
	})
	return c.files
}

// Recv stores the parent's next message in v, as json.Unmarshal does; a nil v
// discards it. It waits as long as the parent lives, and returns io.EOF itself when it has gone.
func (c *Conn) Recv(v any) error {
	_, body, err := c.in.next(readControl)
	if err == io.EOF || errors.Is(err, unix.ECONNRESET) {
		// ECONNRESET is the end of a parent that had messages of ours unread (unix(7)).
		c.gone = true
		return io.EOF
	}
	if err != nil {
		return err
	}
	return decode(body, v)
}

// Send sends v as JSON. When the parent has gone it is an error that is EPIPE.
func (c *Conn) Send(v any) error { return c.write(kindValue, v) }

func (c *Conn) write(kind byte, v any) error {
	line, err := encode(kind, v)
	if err != nil {
		return err
	}
	for len(line) > 0 {
		n, err := ignoreEINTR(func() (int, error) { return unix.Write(controlFD, line) })
		if err != nil {
			c.gone = c.gone || errors.Is(err, unix.EPIPE)
			return fmt.Errorf("peer: send: %w", err)
		}
		line = line[n:]
	}
	return nil
}

// onlyGone reports whether err says no more than that the parent has gone.
func (c *Conn) onlyGone(err error) bool {
	return c.gone && (errors.Is(err, io.EOF) || errors.Is(err, unix.EPIPE))
}

func readControl(p []byte) (int, error) {
	n, err := ignoreEINTR(func() (int, error) { return unix.Read(controlFD, p) })
	if err != nil {
		return 0, fmt.Errorf("peer: receive: %w", err)
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func ignoreEINTR(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); err != unix.EINTR {
			return n, err
		}
	}
}
