//go:build linux

package poller

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/seed-e1736cc0/ipcbench/internal/host"
	"github.com/seed-e1736cc0/ipcbench/internal/meter"
	"github.com/seed-e1736cc0/ipcbench/internal/peer"
)

func TestMain(m *testing.M) {
	peer.Main(map[string]peer.Handler{waiterRole: playWaiter, echoRole: playEcho})
	raiseLimit()
	startNetpoller()
	flag.Parse()
	noise := func() []string { return nil }
	if flag.Lookup("test.bench").Value.String() != "" {
		prepareBenchmarks()
		noise = host.StartWatch().Lines
	}
	before := descriptors()
	code := m.Run()
	for _, line := range noise() {
		fmt.Println(line)
	}
	for _, name := range descriptors() {
		if !slices.Contains(before, name) {
			fmt.Fprintln(os.Stderr, "poller: left open:", name)
			code = max(code, 1)
		}
	}
	if n := peer.Live(); n > 0 {
		fmt.Fprintln(os.Stderr, "poller: left running:", n, "children")
		code = max(code, 1)
	}
	os.Exit(code)
}

// prepareBenchmarks prints the machine's facts, and has the many rows take a
// third of the usual second each unless -benchtime says otherwise: enough for
// thousands of operations, and the whole package takes a minute.
func prepareBenchmarks() {
	for _, line := range host.Lines(os.Getenv("IPCBENCH_CONFIG") == "1") {
		fmt.Println(line)
	}
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.benchtime" })
	if !given {
		const usual = "300ms"
		fmt.Println("# benchtime:", usual)
		if err := flag.Set("test.benchtime", usual); err != nil {
			panic(err)
		}
	}
}

// startNetpoller has the runtime open the two descriptors that it keeps.
func startNetpoller() {
	r, w, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	r.Close()
	w.Close()
}

// raiseLimit raises the soft limit of open descriptors to the hard one.
func raiseLimit() {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil {
		limit.Cur = limit.Max
		_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)
	}
}

// descriptors returns what every open descriptor of the process names.
func descriptors() (names []string) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		panic(err)
	}
	for _, e := range entries {
		if name, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil { // all but that of ReadDir
			names = append(names, e.Name()+"="+name)
		}
	}
	return names
}

// limited ends the process, with all stacks, if the test hangs.
func limited(t testing.TB) {
	t.Helper()
	name := t.Name()
	timer := time.AfterFunc(20*time.Second, func() { panic(name + " hangs") })
	t.Cleanup(func() { timer.Stop() })
}

// each runs a test on a poller of every kind.
func each(t *testing.T, test func(t *testing.T, kind Kind, p *poller)) {
	t.Helper()
	for _, kind := range Kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			limited(t)
			test(t, kind, open(t, kind))
		})
	}
}

func open(t testing.TB, kind Kind) *poller {
	t.Helper()
	p, err := New(kind)
	require.NoError(t, err)
	t.Cleanup(func() { p.Close() })
	return p.(*poller)
}

// pipe returns the two ends of a new pipe, non-blocking.
func pipe(t testing.TB) (r, w int) {
	t.Helper()
	var p [2]int
	require.NoError(t, unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK))
	return own(t, p[0]), own(t, p[1])
}

// sockets returns the two ends of a new pair, non-blocking.
func sockets(t testing.TB, kind int) (a, b int) {
	t.Helper()
	p, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	require.NoError(t, err)
	return own(t, p[0]), own(t, p[1])
}

// owned are the descriptors that a test's end is to close.
var owned = map[int]bool{}

// own has fd closed at the end of the test, unless shut closes it before.
func own(t testing.TB, fd int) int {
	owned[fd] = true
	t.Cleanup(func() {
		if owned[fd] {
			shut(t, fd)
		}
	})
	return fd
}

func shut(t testing.TB, fd int) {
	t.Helper()
	require.NoError(t, unix.Close(fd))
	delete(owned, fd)
}

// moved returns a duplicate of fd with the number to, and closes fd.
func moved(t testing.TB, fd, to int) int {
	t.Helper()
	require.NoError(t, unix.Dup3(fd, to, unix.O_CLOEXEC))
	shut(t, fd)
	return own(t, to)
}

func write(t testing.TB, fd int, data string) {
	t.Helper()
	n, err := unix.Write(fd, []byte(data))
	require.NoError(t, err)
	require.Equal(t, len(data), n)
}

func read(t testing.TB, fd, size int) string {
	t.Helper()
	p := make([]byte, size)
	n, err := unix.Read(fd, p)
	require.NoError(t, err)
	return string(p[:n])
}

// now returns what the poller finds without waiting, by descriptor.
func now(t testing.TB, p Poller) map[int]Ready {
	t.Helper()
	return found(t, p, 0)
}

// found returns what one Wait finds, by descriptor.
func found(t testing.TB, p Poller, timeout time.Duration) map[int]Ready {
	t.Helper()
	events := make([]Event, 64)
	n, err := p.Wait(events, timeout)
	require.NoError(t, err)
	ready := map[int]Ready{}
	for _, e := range events[:n] {
		require.NotContains(t, ready, e.FD, "reported twice in one batch")
		require.True(t, p.Current(e))
		ready[e.FD] = e.Ready
	}
	return ready
}

type outcome struct {
	events []Event
	err    error
}

// waiting starts a Wait that has no limit, and returns once it is in the kernel.
func waiting(p *poller) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		events := make([]Event, 64)
		n, err := p.Wait(events, -1)
		done <- outcome{events[:n], err}
	}()
	for !inKernel(p) {
		runtime.Gosched()
	}
	return done
}

func inKernel(p *poller) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting
}

// withCosts has b report allocations and, at the end, what its operations have cost the process: for a
// benchmark that does nothing but them from here on.
func withCosts(b *testing.B) {
	b.ReportAllocs()
	before, err := meter.Process()
	require.NoError(b, err)
	b.Cleanup(func() {
		after, err := meter.Process()
		require.NoError(b, err)
		reportUsage(b, after.Sub(before))
	})
}

func reportUsage(b *testing.B, u meter.Usage) {
	n := float64(b.N)
	b.ReportMetric(float64(u.User)/n, "user-ns/op")
	b.ReportMetric(float64(u.Sys)/n, "sys-ns/op")
	b.ReportMetric(float64(u.Voluntary)/n, "vcsw/op")
	b.ReportMetric(float64(u.Involuntary)/n, "ivcsw/op")
}
