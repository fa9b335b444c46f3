//go:build linux

package peer

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// limit is what a test waits for a child before it fails; never reached in a run that passes.
const limit = 20 * time.Second

func TestMain(m *testing.M) {
	Main(map[string]Handler{
		"echo":    echo,
		"files":   useFiles,
		"facts":   facts,
		"fail":    func(*Conn) error { return errors.New("no luck\ntoday") },
		"return":  func(*Conn) error { return nil },
		"relay":   relay,
		"panic":   func(*Conn) error { panic("boom in the child") },
		"verbose": verbose,
		"stuck":   stuck,
		"parent":  startStuck,
	})
	code := m.Run()
	if n := Live(); n != 0 {
		fmt.Fprintf(os.Stderr, "%d children not reaped\n", n)
		code = 1
	}
	os.Exit(code)
}

func echo(c *Conn) error {
	for {
		var v any
		if err := c.Recv(&v); err != nil {
			return err
		}
		if err := c.Send(v); err != nil {
			return err
		}
	}
}

// useFiles says whether each file is non-blocking, then writes its number to it.
func useFiles(c *Conn) error {
	var nonblocking []bool
	for i, f := range c.Files() {
		on, err := nonblock(f)
		if err != nil {
			return err
		}
		nonblocking = append(nonblocking, on)
		if _, err := fmt.Fprintf(f, "file %d", i); err != nil {
			return err
		}
	}
	return c.Send(nonblocking)
}

type childFacts struct {
	CPUs, MaxProcs, Threads int
	First                   bool // CPU 0 is allowed
	Env                     string
	Order                   bool     // the variable that makes a process a child is still set
	Open                    []string // descriptors and what they are
	Goroutines              int
	Inheritable             []int // of what Start handed over: what a child of its own would get
}

func facts(c *Conn) error {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return err
	}
	_, order := os.LookupEnv(variable)
	open, err := descriptors()
	if err != nil {
		return err
	}
	var inheritable []int
	for fd := controlFD; fd < firstFileFD+c.count; fd++ {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err != nil {
			return err
		}
		if flags&unix.FD_CLOEXEC == 0 {
			inheritable = append(inheritable, fd)
		}
	}
	return c.Send(childFacts{
		Inheritable: inheritable,
		CPUs:        set.Count(), MaxProcs: runtime.GOMAXPROCS(0), First: set.IsSet(0),
		Env: os.Getenv("PEER_TEST"), Order: order, Open: open, Goroutines: runtime.NumGoroutine(),
	})
}

// relay receives one message and ends, so that a second finds nobody.
func relay(c *Conn) error { return c.Recv(nil) }

func verbose(*Conn) error {
	fmt.Fprintln(os.Stderr, "the head")
	for range 2000 {
		fmt.Fprintln(os.Stderr, "the middle")
	}
	fmt.Fprintln(os.Stderr, "the tail")
	os.Exit(3)
	return nil
}

// stuck never looks at its control socket.
func stuck(c *Conn) error {
	if err := c.Send("stuck"); err != nil {
		return err
	}
	for {
		_ = unix.Pause()
	}
}

func startStuck(c *Conn) error {
	p, err := Start(Config{Role: "stuck"})
	if err != nil {
		return err
	}
	if err := p.Recv(nil, limit); err != nil {
		return err
	}
	if err := c.Send(p.PID()); err != nil {
		return err
	}
	return stuck(c)
}

func begin(t *testing.T, cfg Config) *Peer {
	t.Helper()
	p, err := Start(cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			p.Kill()
		}
		p.Close()
	})
	return p
}

func nonblock(f *os.File) (on bool, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return false, err
	}
	err = raw.Control(func(fd uintptr) {
		flags, _ := unix.FcntlInt(fd, unix.F_GETFL, 0)
		on = flags&unix.O_NONBLOCK != 0
	})
	return on, err
}

func descriptors() ([]string, error) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil, err
	}
	var open []string
	for _, e := range entries {
		// The one of ReadDir itself has gone by now.
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil {
			open = append(open, e.Name()+" "+target)
		}
	}
	return open, nil
}

func TestRoundTrip(t *testing.T) {
	p := begin(t, Config{Role: "echo"})
	large := strings.Repeat("0123456789\n", 100_000) // more than a socket's buffer, and newlines
	for _, want := range []string{"a", "", large, "z"} {
		require.NoError(t, p.Send(want))
		var got string
		require.NoError(t, p.Recv(&got, limit))
		require.Equal(t, want, got)
	}
	require.NoError(t, p.Send(1))
	require.NoError(t, p.Send(2))
	var got int
	require.NoError(t, p.Recv(nil, limit))
	require.NoError(t, p.Recv(&got, limit))
	require.Equal(t, 2, got)

	require.NoError(t, p.Err())
	require.Equal(t, 1, Live())
	require.NoError(t, p.Close())
	require.NoError(t, p.Close())
	require.NoError(t, p.Err())
	require.Equal(t, 0, Live())
	require.ErrorIs(t, p.Recv(nil, limit), os.ErrClosed)
	require.ErrorIs(t, p.Send(1), os.ErrClosed)
}

func TestFiles(t *testing.T) {
	r, w, err := os.Pipe() // non-blocking, in our netpoller
	require.NoError(t, err)
	defer r.Close()
	defer w.Close()
	regular, err := os.CreateTemp(t.TempDir(), "") // blocking
	require.NoError(t, err)
	defer regular.Close()

	p := begin(t, Config{Role: "files", Files: []*os.File{regular, w, regular}})
	var nonblocking []bool
	require.NoError(t, p.Recv(&nonblocking, limit))
	require.Equal(t, []bool{false, true, false}, nonblocking)

	on, err := nonblock(w)
	require.NoError(t, err)
	require.True(t, on, "the parent's description was set blocking")
	on, err = nonblock(regular)
	require.NoError(t, err)
	require.False(t, on)

	require.NoError(t, p.Close())
	require.NoError(t, w.Close(), "the parent's own is still open")
	text, err := io.ReadAll(r) // an end means that no copy stayed open here
	require.NoError(t, err)
	require.Equal(t, "file 1", string(text))
	content, err := os.ReadFile(regular.Name())
	require.NoError(t, err)
	require.Equal(t, "file 0file 2", string(content))
}

func TestFilesThatAreNone(t *testing.T) {
	closed, err := os.Open(os.DevNull)
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	for _, f := range []*os.File{nil, closed} {
		_, err := Start(Config{Role: "echo", Files: []*os.File{f}})
		require.ErrorContains(t, err, "peer: start echo: file 0: ")
	}
}

func TestKilled(t *testing.T) {
	p := begin(t, Config{Role: "stuck"})
	require.NoError(t, p.Recv(nil, limit))
	failed := make(chan error, 1)
	go func() { failed <- p.Recv(nil, limit) }()
	began := time.Now()
	p.Kill()
	err := <-failed
	require.Less(t, time.Since(began), 5*time.Second)

	var exit *ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, fmt.Sprintf("peer: stuck (pid %d): signal: killed", p.PID()), err.Error())
	<-p.Done()
	require.Equal(t, err, p.Err())
	require.ErrorAs(t, p.Send("more"), &exit)
	p.Kill()
	require.NoError(t, p.Close(), "its death was asked for")
}

func TestCloseKillsTheStuck(t *testing.T) {
	p := begin(t, Config{Role: "stuck"})
	require.NoError(t, p.Recv(nil, limit))
	began := time.Now()
	require.ErrorContains(t, p.Close(), "signal: killed")
	require.GreaterOrEqual(t, time.Since(began), closeLimit)
	require.ErrorContains(t, p.Close(), "signal: killed")
}

func TestPanic(t *testing.T) {
	p := begin(t, Config{Role: "panic"})
	err := p.Recv(nil, limit)
	var exit *ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 2, exit.State.ExitCode())
	require.ErrorContains(t, err, "exit status 2\n")
	require.ErrorContains(t, err, "panic: boom in the child")
	require.ErrorContains(t, p.Close(), "boom in the child")
}

func TestLongStderr(t *testing.T) {
	p := begin(t, Config{Role: "verbose"})
	<-p.Done()
	err := p.Err()
	require.ErrorContains(t, err, "exit status 3\nthe head\n")
	require.Regexp(t, `the tail$`, err.Error())
	require.Less(t, len(err.Error()), 5000)
}

func TestHandlerError(t *testing.T) {
	p := begin(t, Config{Role: "fail"})
	err := p.Recv(nil, limit)
	var handler *HandlerError
	require.ErrorAs(t, err, &handler)
	require.Equal(t, "no luck\ntoday", handler.Text)
	require.Equal(t, fmt.Sprintf("peer: fail (pid %d): no luck\ntoday", p.PID()), err.Error())
	require.ErrorContains(t, p.Recv(nil, limit), "exit status 1")
	require.ErrorContains(t, p.Close(), "exit status 1")
}

func TestEndsEarly(t *testing.T) {
	p := begin(t, Config{Role: "return"})
	<-p.Done()
	require.NoError(t, p.Err())
	require.ErrorContains(t, p.Recv(nil, limit), "exit status 0")
	require.ErrorContains(t, p.Send(1), "exit status 0")
	require.NoError(t, p.Close())
}

// A child that dies with messages unread resets the socket, which must read as its end.
func TestDiesWithMessagesUnread(t *testing.T) {
	p := begin(t, Config{Role: "stuck"})
	require.NoError(t, p.Recv(nil, limit))
	require.NoError(t, p.Send(1))
	p.Kill()
	require.ErrorContains(t, p.Recv(nil, limit), "signal: killed")
}

func TestRecvLimit(t *testing.T) {
	p := begin(t, Config{Role: "echo"})
	err := p.Recv(nil, 20*time.Millisecond)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.Equal(t, fmt.Sprintf("peer: receive: echo (pid %d): i/o timeout", p.PID()), err.Error())
	require.NoError(t, p.Send("later"))
	var got string
	require.NoError(t, p.Recv(&got, limit), "a limit that passed spoils nothing")
	require.Equal(t, "later", got)
}

func TestChildIsQuiet(t *testing.T) {
	t.Setenv("PEER_TEST", "inherited")
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	defer w.Close()
	p := begin(t, Config{Role: "facts", Files: []*os.File{r, w}, Env: []string{"PEER_TEST=first", "PEER_TEST=replaced"}})
	var got childFacts
	require.NoError(t, p.Recv(&got, limit))
	require.Empty(t, got.Inheritable)
	require.Equal(t, "replaced", got.Env)
	require.False(t, got.Order)
	require.Equal(t, 1, got.Goroutines)
	require.Contains(t, got.Open, "0 /dev/null")
	require.Contains(t, got.Open, "1 /dev/null")
	require.Contains(t, got.Open, "2 /memfd:peer-stderr (deleted)")
	require.NotContains(t, strings.Join(got.Open, "\n"), "eventpoll")
}

func TestAffinity(t *testing.T) {
	var allowed unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &allowed))
	last := 0
	for cpu := range 1024 {
		if allowed.IsSet(cpu) {
			last = cpu
		}
	}
	var got childFacts
	p := begin(t, Config{Role: "facts", CPUs: []int{last}})
	require.NoError(t, p.Recv(&got, limit))
	require.Equal(t, 1, got.CPUs)
	require.Equal(t, 1, got.MaxProcs)
	require.Equal(t, last == 0, got.First)

	// The thread that forks is back where it was.
	p = begin(t, Config{Role: "facts"})
	require.NoError(t, p.Recv(&got, limit))
	require.Equal(t, allowed.Count(), got.CPUs)
}

func TestAffinityThatCannotBeHad(t *testing.T) {
	for name, cpus := range map[string][]int{"absent": {1023}, "partly": {0, 1023}, "negative": {-1}, "beyond": {99999}, "none": {}} {
		t.Run(name, func(t *testing.T) {
			_, err := Start(Config{Role: "echo", CPUs: cpus})
			require.ErrorContains(t, err, fmt.Sprintf("peer: start echo: cpu: pin thread to %v: ", cpus))
			require.Zero(t, Live())
		})
	}
	var allowed unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &allowed))
	var got childFacts
	require.NoError(t, begin(t, Config{Role: "facts"}).Recv(&got, limit))
	require.Equal(t, allowed.Count(), got.CPUs)
}

// The grandchild never looks at its control socket, and its parent has no
// chance to end it.
func TestDiesWithItsParent(t *testing.T) {
	p := begin(t, Config{Role: "parent"})
	var pid int
	require.NoError(t, p.Recv(&pid, limit))
	handle, err := unix.PidfdOpen(pid, 0)
	require.NoError(t, err)
	defer unix.Close(handle)
	p.Kill()
	require.NoError(t, waitReadable(handle, limit), "the grandchild lives on")
}

// waitReadable waits for a process handle, which is readable once the process has ended (pidfd_open(2)).
func waitReadable(fd int, limit time.Duration) error {
	for end := time.Now().Add(limit); ; {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(time.Until(end).Milliseconds()))
		switch {
		case err == unix.EINTR:
		case err != nil:
			return err
		case n == 0:
			return os.ErrDeadlineExceeded
		default:
			return nil
		}
	}
}

// The death signal is tied to the thread that forks, so that thread must not be the caller's.
func TestOutlivesTheStartingThread(t *testing.T) {
	type result struct {
		p   *Peer
		err error
		tid int
	}
	started := make(chan result)
	onEndingThread(func() {
		p, err := Start(Config{Role: "echo"})
		started <- result{p, err, unix.Gettid()}
	})
	r := <-started
	require.NoError(t, r.err)
	defer r.p.Close()
	require.Eventually(t, func() bool {
		_, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", r.tid))
		return errors.Is(err, os.ErrNotExist)
	}, limit, time.Millisecond)
	require.NoError(t, r.p.Send("alive"))
	require.NoError(t, r.p.Recv(nil, limit))
	require.NoError(t, r.p.Close())
}

// onEndingThread runs f on a thread that ends with it. The process's first
// thread is none: the runtime parks it for ever.
func onEndingThread(f func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != os.Getpid() {
			f()
			return
		}
		defer runtime.UnlockOSThread()
		done := make(chan struct{})
		onEndingThread(func() { f(); close(done) })
		<-done
	}()
}

func TestNoLeak(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	defer w.Close()
	cycle := func(role string) {
		p, err := Start(Config{Role: role, Files: []*os.File{w}})
		require.NoError(t, err)
		if role == "stuck" {
			p.Kill()
		}
		p.Close()
	}
	cycle("echo") // brings the netpoller's descriptors
	before, err := descriptors()
	require.NoError(t, err)
	for i := range 50 {
		cycle([]string{"echo", "stuck", "fail"}[i%3])
		_, err := Start(Config{Role: "echo", Files: []*os.File{w, nil}})
		require.Error(t, err)
	}
	after, err := descriptors()
	require.NoError(t, err)
	require.Equal(t, len(before), len(after), "%v\n%v", before, after)
}

func TestManyAtOnce(t *testing.T) {
	for i := range 8 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			p, err := Start(Config{Role: "echo"})
			require.NoError(t, err)
			require.NoError(t, p.Send(i))
			var got int
			require.NoError(t, p.Recv(&got, limit))
			require.Equal(t, i, got)
			require.NoError(t, p.Close())
		})
	}
}

func TestCannotStart(t *testing.T) {
	_, err := Start(Config{Role: "nobody"})
	require.EqualError(t, err, "peer: start nobody: Main was given no such role")

	defer func(was []string) { executables = was }(executables)
	executables = []string{"/nonexistent/program", "/nonexistent/fallback"}
	_, err = Start(Config{Role: "echo"})
	require.EqualError(t, err, "peer: start echo: fork/exec /nonexistent/program: no such file or directory")
	require.ErrorIs(t, err, os.ErrNotExist)

	executables = append(executables, "/proc/self/exe")
	p, err := Start(Config{Role: "echo"})
	require.NoError(t, err)
	require.NoError(t, p.Close())
}

func TestMainTwice(t *testing.T) {
	require.Panics(t, func() { Main(nil) })
}
