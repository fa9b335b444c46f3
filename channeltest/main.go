//go:build linux

package channeltest

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/seed-e1736cc0/ipcbench/internal/cpu"
	"github.com/seed-e1736cc0/ipcbench/internal/host"
	"github.com/seed-e1736cc0/ipcbench/internal/peer"
)

// registered are the mechanisms that peers in other processes know, by name.
var registered = map[string]Mechanism{}

// Main runs the tests and benchmarks of a package; TestMain passes its result to
// os.Exit. It is what makes peers in other processes possible: they are the test binary run again,
// and turn off here before a flag is parsed. For the mechanisms named, the
// benchmarks and Conformance have such peers.
//
// Main raises the soft limit on descriptors to the hard one, prints the
// machine's facts before benchmarks (see IPCBENCH_CONFIG in the package
// documentation), has each row take half a second unless -benchtime says otherwise, prints how noisy it
// was after them, and fails the run if it leaves descriptors open, children
// running, or threads pinned.
func Main(m *testing.M, mechs ...Mechanism) int {
	for _, mech := range mechs {
		registered[mech.Name] = mech
	}
	peer.Main(roles())
	raiseDescriptorLimit()
	flag.Parse()
	if f := flag.Lookup("test.bench"); f != nil && f.Value.String() != "" {
		printLines(host.Lines(os.Getenv("IPCBENCH_CONFIG") == "1"))
		printLines(explainCounters())
		setBenchtime()
		noise := host.StartWatch()
		defer func() { printLines(noise.Lines()) }()
	}
	before, err := openDescriptors()
	code := m.Run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "channeltest: descriptors cannot be checked:", err)
		return code
	}
	for _, leak := range settle(func() []string { return leaks(before) }) {
		fmt.Fprintln(os.Stderr, "channeltest: leaked:", leak)
		code = max(code, 1)
	}
	return code
}

// setBenchtime has each row take half the usual second unless -benchtime says
// otherwise: that is tens of thousands of operations, and all rows take a few minutes.
func setBenchtime() {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.benchtime" })
	const usual = "500ms"
	if !given && flag.Set("test.benchtime", usual) == nil {
		fmt.Println("# benchtime:", usual)
	}
}

func printLines(lines []string) {
	for _, line := range lines {
		fmt.Println(line)
	}
}

// roles are what a child process can be told to play.
func roles() map[string]peer.Handler {
	all := conformanceRoles()
	all[partyRole] = playParty
	return all
}

func raiseDescriptorLimit() {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil && limit.Cur < limit.Max {
		limit.Cur = limit.Max
		syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
	}
}

// openDescriptors lists the process's descriptors with what they are. It opens
// the runtime's poller first, which stays open for good.
func openDescriptors() ([]string, error) {
	if r, w, err := os.Pipe(); err == nil {
		r.Close()
		w.Close()
	}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil, err
	}
	var open []string
	for _, e := range entries {
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err != nil {
			continue // the descriptor of the listing itself
		}
		open = append(open, e.Name()+" "+target)
	}
	return open, nil
}

// settle asks until nothing is left or two seconds have passed: a thread or a
// child that has done its work still takes a moment to go.
func settle(left func() []string) []string {
	for limit := time.Now().Add(2 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if found := left(); len(found) == 0 || time.Now().After(limit) {
			return found
		}
	}
}

// leaks names what a run has left behind.
func leaks(before []string) []string {
	found := newDescriptors(before)
	if n := peer.Live(); n > 0 {
		found = append(found, strconv.Itoa(n)+" child processes")
	}
	stray, err := cpu.Stray()
	if err != nil {
		found = append(found, err.Error())
	}
	for _, tid := range stray {
		found = append(found, "pinned thread "+strconv.Itoa(tid))
	}
	return found
}

// newDescriptors names those that were not open before.
func newDescriptors(before []string) (found []string) {
	after, err := openDescriptors()
	if err != nil {
		return []string{err.Error()}
	}
	for _, d := range after {
		if !slices.Contains(before, d) {
			found = append(found, "descriptor "+d)
		}
	}
	return found
}
