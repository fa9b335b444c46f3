//go:build linux

package peer

import (
	"errors"
	"os"
	"runtime"
	"sync"
	"syscall"

	"github.com/seed-e1736cc0/ipcbench/internal/cpu"
	"golang.org/x/sys/unix"
)

// executables are tried in turn: the first is this very file even when it has
// been removed or replaced, the second serves where /proc is not mounted.
var executables = []string{"/proc/self/exe", os.Args[0]}

// forkAttr is what the forking thread needs to know.
type forkAttr struct {
	fds  []int // the child's descriptors 0, 1, …
	argv []string
	env  []string
	cpus []int
}

type forkRequest struct {
	attr  forkAttr
	reply chan forkReply
}

type forkReply struct {
	process *os.Process
	err     error
}

var (
	forkOnce     sync.Once
	forkRequests chan forkRequest
)

// fork starts a process from a thread that lives as long as this process does.
// PR_SET_PDEATHSIG is sent when the *thread* that forked ends (prctl(2)), and
// threads of Go programs do end: with a locked goroutine, for one.
func fork(attr forkAttr) (*os.Process, error) {
	forkOnce.Do(func() {
		forkRequests = make(chan forkRequest)
		go serveForks()
	})
	reply := make(chan forkReply, 1)
	forkRequests <- forkRequest{attr, reply}
	r := <-reply
	return r.process, r.err
}

func serveForks() {
	runtime.LockOSThread() // and never unlocks
	for r := range forkRequests {
		process, err := forkPinned(r.attr)
		r.reply <- forkReply{process, err}
	}
}

// forkPinned has the child inherit the affinity of this thread, which it
// changes for that while. No thread of this process inherits it: the runtime
// does not clone threads from a locked one.
func forkPinned(attr forkAttr) (*os.Process, error) {
	if attr.cpus == nil {
		return forkExec(attr)
	}
	var before unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return nil, os.NewSyscallError("sched_getaffinity", err)
	}
	if err := cpu.PinThread(attr.cpus...); err != nil {
		return nil, errors.Join(err, restore(&before))
	}
	process, err := forkExec(attr)
	if restoreErr := restore(&before); restoreErr != nil && err == nil {
		_ = process.Kill()
		_, _ = process.Wait()
		return nil, restoreErr
	}
	return process, err
}

func restore(before *unix.CPUSet) error {
	return os.NewSyscallError("sched_setaffinity", unix.SchedSetaffinity(0, before))
}

func forkExec(attr forkAttr) (*os.Process, error) {
	sys := &syscall.ProcAttr{Env: attr.env, Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}}
	for _, fd := range attr.fds {
		sys.Files = append(sys.Files, uintptr(fd))
	}
	var first error
	for _, path := range executables {
		pid, err := syscall.ForkExec(path, attr.argv, sys)
		if err == nil {
			// No other process can have this pid before we wait for it.
			return os.FindProcess(pid)
		}
		if first == nil {
			first = &os.PathError{Op: "fork/exec", Path: path, Err: err}
		}
	}
	return nil, first
}
