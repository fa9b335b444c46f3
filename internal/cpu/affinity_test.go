//go:build linux

package cpu

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func allowed(t *testing.T) []int {
	t.Helper()
	cpus, err := Allowed()
	require.NoError(t, err)
	require.NotEmpty(t, cpus)
	return cpus
}

func requireNoStray(t *testing.T) {
	t.Helper()
	stray, err := Stray()
	require.NoError(t, err)
	require.Empty(t, stray)
}

// threadCPUs is the kernel's own word, by another way than ours.
func threadCPUs(t *testing.T, tid string) string {
	t.Helper()
	status, err := os.ReadFile("/proc/self/task/" + tid + "/status")
	if os.IsNotExist(err) {
		return ""
	}
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(status), "Cpus_allowed_list:")
	require.True(t, found)
	line, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(line)
}

func TestAllowed(t *testing.T) {
	cpus, ok := parseList(threadCPUs(t, strconv.Itoa(os.Getpid())))
	require.True(t, ok)
	require.Equal(t, cpus, allowed(t))
}

func TestPinThread(t *testing.T) {
	cpus := allowed(t)
	last := cpus[len(cpus)-1]
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer UnpinThread()
	self := "self"
	if entry, err := os.Readlink("/proc/thread-self"); err == nil {
		self = entry[strings.LastIndexByte(entry, '/')+1:]
	}
	require.NoError(t, PinThread(last))
	require.Equal(t, strconv.Itoa(last), threadCPUs(t, self))
	if len(cpus) > 1 {
		stray, err := Stray()
		require.NoError(t, err)
		tid, err := strconv.Atoi(self)
		require.NoError(t, err)
		require.Equal(t, []int{tid}, stray)
	}
	require.NoError(t, UnpinThread())
	requireNoStray(t)

	require.NoError(t, PinThread(cpus...))
	requireNoStray(t)
}

func TestPinThreadErrors(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer UnpinThread()
	require.EqualError(t, PinThread(), "cpu: pin thread to []: no CPU")
	require.EqualError(t, PinThread(-1), "cpu: pin thread to [-1]: no such CPU: -1")
	require.EqualError(t, PinThread(1024), "cpu: pin thread to [1024]: no such CPU: 1024")
	require.ErrorContains(t, PinThread(1023), "cpu: pin thread to [1023]: sched_setaffinity: invalid argument")
	require.ErrorContains(t, PinThread(allowed(t)[0], 1023), "can be had")
}

// startThreads has more goroutines in the kernel than there were threads.
func startThreads(n int) (stop func()) {
	var ready, done sync.WaitGroup
	release := make(chan struct{})
	for range n {
		ready.Add(1)
		done.Add(1)
		go func() {
			defer done.Done()
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			ready.Done()
			<-release
		}()
	}
	ready.Wait()
	return func() { close(release); done.Wait() }
}

func TestPinProcess(t *testing.T) {
	cpus := allowed(t)
	last := cpus[len(cpus)-1]
	defer startThreads(8)()
	restore, err := PinProcess([]int{last})
	require.NoError(t, err)
	defer restore()
	defer startThreads(16)() // these inherit it

	threads, err := os.ReadDir("/proc/self/task")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(threads), 24)
	for _, thread := range threads {
		if now := threadCPUs(t, thread.Name()); now != "" {
			require.Equal(t, strconv.Itoa(last), now)
		}
	}
	require.NoError(t, restore())
	requireNoStray(t)
}

// Threads are cloned all the while, by threads that may not be pinned yet.
func TestPinProcessUnderway(t *testing.T) {
	cpus := allowed(t)
	wanted, err := mask(cpus[:1])
	require.NoError(t, err)
	stop := make(chan struct{})
	var cloning sync.WaitGroup
	for range 4 {
		cloning.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					// A thread that ends with its goroutine, so that the next needs a new one.
					ended := make(chan struct{})
					go func() { runtime.LockOSThread(); close(ended) }()
					<-ended
				}
			}
		})
	}
	for range 20 {
		restore, err := PinProcess(cpus[:1])
		require.NoError(t, err)
		require.NoError(t, eachThread(func(tid int) error {
			now, err := affinity(tid)
			if err == nil && now != wanted {
				err = fmt.Errorf("thread %d is not pinned", tid)
			}
			return err
		}))
		require.NoError(t, restore())
	}
	close(stop)
	cloning.Wait()
	requireNoStray(t)
}

func TestPinProcessErrors(t *testing.T) {
	for _, cpus := range [][]int{nil, {-1}, {1023}, {allowed(t)[0], 1023}} {
		restore, err := PinProcess(cpus)
		require.ErrorContains(t, err, "cpu: pin process to ")
		require.Nil(t, restore)
		requireNoStray(t)
	}
}

// Under taskset, Allowed is what it left.
func TestAllowedUnderTaskset(t *testing.T) {
	cpus := allowed(t)
	if len(cpus) < 2 {
		t.Skip("one CPU")
	}
	if _, err := exec.LookPath("taskset"); err != nil {
		t.Skip(err)
	}
	self, err := os.Executable()
	require.NoError(t, err)
	last := strconv.Itoa(cpus[len(cpus)-1])
	out, err := exec.Command("taskset", "-c", last, self, "-test.run=^TestAllowed$|^TestHere$|^TestPinProcess$").CombinedOutput()
	require.NoError(t, err, string(out))
}
