//go:build linux

package cpu

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxCPUs is what a unix.CPUSet has room for.
const maxCPUs = 8 * int(unsafe.Sizeof(unix.CPUSet{}))

// initial is the affinity of the process at its start, before anything was pinned.
var initial, initialErr = affinity(0)

// Allowed returns the CPUs that the process might use at its start, in
// ascending order: sched_getaffinity(2), which knows of taskset, cpusets and
// offline CPUs, and works without /sys.
func Allowed() ([]int, error) {
	if initialErr != nil {
		return nil, fmt.Errorf("cpu: %w", initialErr)
	}
	return list(initial), nil
}

// PinThread restricts the calling thread to cpus. Its goroutine must be locked
// to it, and must call UnpinThread or stay locked until it ends, when the
// runtime ends the thread: unless it is the process's first, which the runtime
// parks for ever as it is. So UnpinThread is the better end.
//
// sched_setaffinity(2) passes over CPUs that cannot be had as long as there is another; here that is an error.
func PinThread(cpus ...int) error {
	m, err := mask(cpus)
	if err == nil {
		err = setAffinity(0, m)
	}
	if err != nil {
		return fmt.Errorf("cpu: pin thread to %v: %w", cpus, err)
	}
	return nil
}

// UnpinThread gives the calling thread the affinity of the process at its start.
func UnpinThread() error {
	if err := errors.Join(initialErr, setAffinity(0, initial)); err != nil {
		return fmt.Errorf("cpu: unpin thread: %w", err)
	}
	return nil
}

// PinProcess restricts all threads of the process to cpus; threads to come
// inherit it. Restore gives each the affinity of the process at its start.
//
// The runtime follows: within some seconds GOMAXPROCS becomes the number of
// cpus, unless it was set or GODEBUG has updatemaxprocs=0.
func PinProcess(cpus []int) (restore func() error, err error) {
	m, err := mask(cpus)
	if err = errors.Join(err, initialErr); err != nil {
		return nil, fmt.Errorf("cpu: pin process to %v: %w", cpus, err)
	}
	restore = func() error {
		if err := setAll(initial); err != nil {
			return fmt.Errorf("cpu: unpin process: %w", err)
		}
		return nil
	}
	if err := setAll(m); err != nil {
		// Some threads may be pinned by now.
		return nil, fmt.Errorf("cpu: pin process to %v: %w", cpus, errors.Join(err, setAll(initial)))
	}
	return restore, nil
}

// Stray returns the ids of the threads of this process whose affinity is not
// what the process's was at its start. After everything was unpinned there are
// none, but for threads that are just about to end.
func Stray() ([]int, error) {
	if initialErr != nil {
		return nil, fmt.Errorf("cpu: %w", initialErr)
	}
	var stray []int
	err := eachThread(func(tid int) error {
		now, err := affinity(tid)
		if err == nil && now != initial {
			stray = append(stray, tid)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cpu: %w", err)
	}
	return stray, nil
}

// setAll repeats until it finds nothing to do: a thread that is not pinned yet
// may clone one that is not either, behind the reader of the directory.
func setAll(m unix.CPUSet) error {
	for again := true; again; {
		again = false
		err := eachThread(func(tid int) error {
			now, err := affinity(tid)
			if err != nil || now == m {
				return err
			}
			again = true
			return setAffinity(tid, m)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// eachThread calls f for each thread of the process; one that ends meanwhile is no error.
func eachThread(f func(tid int) error) error {
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, e := range entries {
		tid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if err := f(tid); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}

func affinity(tid int) (m unix.CPUSet, err error) {
	return m, os.NewSyscallError("sched_getaffinity", unix.SchedGetaffinity(tid, &m))
}

func setAffinity(tid int, m unix.CPUSet) error {
	if err := unix.SchedSetaffinity(tid, &m); err != nil {
		return os.NewSyscallError("sched_setaffinity", err)
	}
	got, err := affinity(tid)
	if err == nil && got != m {
		err = fmt.Errorf("sched_setaffinity: only %v can be had", list(got))
	}
	return err
}

func mask(cpus []int) (m unix.CPUSet, err error) {
	if len(cpus) == 0 {
		return m, errors.New("no CPU")
	}
	for _, cpu := range cpus {
		if cpu < 0 || cpu >= maxCPUs {
			return m, fmt.Errorf("no such CPU: %d", cpu)
		}
		m.Set(cpu)
	}
	return m, nil
}

func list(m unix.CPUSet) []int {
	var cpus []int
	for cpu := range maxCPUs {
		if m.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}
