//go:build linux

package meter

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Scope is what is metered.
type Scope int

const (
	OfProcess Scope = iota // all its threads, and those that they start
	OfThread               // the calling one; its goroutine should be locked to it
)

// Usage returns what the scope has used so far.
func (s Scope) Usage() (Usage, error) {
	if s == OfThread {
		return Thread()
	}
	return Process()
}

// Counts are what the CPU has counted. User says that the kernel's part was not allowed to be counted.
type Counts struct {
	Instructions, Cycles float64
	User                 bool
}

// Add returns c + d.
func (c Counts) Add(d Counts) Counts {
	return Counts{c.Instructions + d.Instructions, c.Cycles + d.Cycles, c.User || d.User}
}

// Sub returns c - d.
func (c Counts) Sub(d Counts) Counts {
	return Counts{c.Instructions - d.Instructions, c.Cycles - d.Cycles, c.User || d.User}
}

// Counters are the CPU's own, perf_event_open(2).
type Counters struct {
	fds  [2][]int // by event, one for each thread
	user bool
}

// An event is what a counter counts.
type event struct {
	kind   uint32
	config uint64
}

var hardware = [2]event{
	{unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_INSTRUCTIONS},
	{unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CPU_CYCLES},
}

// Counters starts to count in the scope. It fails where the machine has no counters or does not give them away:
// ENOENT or EOPNOTSUPP as a rule in a virtual machine, EACCES or EPERM by kernel.perf_event_paranoid, ENOSYS without
// perf events. If only the kernel's part is refused, the user's is counted.
func (s Scope) Counters() (*Counters, error) { return s.counters(hardware) }

func (s Scope) counters(events [2]event) (*Counters, error) {
	c, err := s.open(events, false)
	if errors.Is(err, os.ErrPermission) {
		c, err = s.open(events, true)
	}
	return c, err
}

func (s Scope) open(events [2]event, user bool) (*Counters, error) {
	threads, err := s.threads()
	if err != nil {
		return nil, err
	}
	c := &Counters{user: user}
	for i, e := range events {
		for _, tid := range threads {
			attr := unix.PerfEventAttr{
				Type: e.kind, Config: e.config, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
				Read_format: unix.PERF_FORMAT_TOTAL_TIME_ENABLED | unix.PERF_FORMAT_TOTAL_TIME_RUNNING,
			}
			if s == OfProcess {
				attr.Bits |= unix.PerfBitInherit
			}
			if user {
				attr.Bits |= unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv
			}
			fd, err := unix.PerfEventOpen(&attr, tid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
			if err == unix.ESRCH {
				continue // the thread has just ended
			}
			if err != nil {
				c.Close()
				return nil, os.NewSyscallError("perf_event_open", err)
			}
			c.fds[i] = append(c.fds[i], fd)
		}
	}
	return c, nil
}

// threads are those that are there now; the ones to come inherit the counters.
func (s Scope) threads() (tids []int, err error) {
	if s == OfThread {
		return []int{0}, nil
	}
	entries, err := os.ReadDir("/proc/self/task")
	for _, e := range entries {
		tid, err := strconv.Atoi(e.Name())
		if err != nil {
			return nil, err
		}
		tids = append(tids, tid)
	}
	return tids, err
}

// Read returns the counts so far.
func (c *Counters) Read() (Counts, error) {
	var sums [2]float64
	for i, fds := range c.fds {
		for _, fd := range fds {
			n, err := readCounter(fd)
			if err != nil {
				return Counts{}, err
			}
			sums[i] += n
		}
	}
	return Counts{sums[0], sums[1], c.user}, nil
}

// readCounter returns a count, for the whole time also where the counter had to share the CPU's with others.
func readCounter(fd int) (float64, error) {
	var p [24]byte // the value, and for how long it was enabled and running
	if n, err := unix.Read(fd, p[:]); err != nil || n != len(p) {
		return 0, fmt.Errorf("read of a counter: %d bytes: %w", n, err)
	}
	value := float64(binary.NativeEndian.Uint64(p[:]))
	enabled, running := binary.NativeEndian.Uint64(p[8:]), binary.NativeEndian.Uint64(p[16:])
	if running == 0 || running == enabled {
		return value, nil
	}
	return math.Round(value * float64(enabled) / float64(running)), nil
}

// Close gives the counters back.
func (c *Counters) Close() error {
	var errs []error
	for _, fds := range c.fds {
		for _, fd := range fds {
			errs = append(errs, os.NewSyscallError("close", unix.Close(fd)))
		}
	}
	return errors.Join(errs...)
}
