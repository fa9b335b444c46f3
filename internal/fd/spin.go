//go:build linux

package fd

import (
	"errors"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

const (
	forever time.Duration = -1
	// spinFor is how long Adaptive spins before it parks: as long as a wake-up
	// on another CPU costs at worst. Spinning that long and then parking costs at most
	// twice what the better of the two alone would have (Karlin et al., 1990).
	// Measured on two virtual CPUs: parking adds 6 µs a hop while the other CPU is
	// awake and 13 to 45 µs once it has halted; of the budgets 5, 10, 20, 50, 100 and 200 µs none differs
	// where the peer answers at once, so the longest wake-up decides.
	spinFor = 50 * time.Microsecond
	// yieldEvery is how many tries pass before other goroutines get their turn.
	// Gosched on a locked thread hands everything to another thread and costs
	// more than a whole exchange, so it must not come within one.
	// With GOMAXPROCS=1 the other party can be a goroutine that has only our
	// turns to run in; still, yielding after each try doubled a round trip between processes.
	yieldEvery       = 64
	yieldEveryOneCPU = 8
)

var errStillBusy = errors.New("still busy")

// spin tries again until it works, for at most the given time. The caller holds mu.
func (s *side) spin(p []byte, limit time.Duration) (int, error) {
	var began int64
	for i := 1; ; i++ {
		if s.closed.Load() {
			return 0, os.ErrClosed
		}
		if d := s.deadline.Load(); d != 0 && now() >= d {
			return 0, os.ErrDeadlineExceeded
		}
		n, errno := s.transfer(p, dontWait)
		switch {
		case errno == 0:
			return n, nil
		case errno != unix.EAGAIN && errno != unix.EINTR:
			return 0, errno
		}
		if limit != forever {
			switch t := now(); {
			case began == 0:
				began = t
			case t-began > int64(limit):
				return 0, errStillBusy
			}
		}
		s.relax(i)
	}
}

// relax lets the other party run. On a CPU of its own sched_yield is a pause in
// which nobody holds the channel's lock; on a shared CPU each hop would cost
// a scheduler slice without it.
func (s *side) relax(try int) {
	unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	every := yieldEvery
	if s.oneCPU {
		every = yieldEveryOneCPU
	}
	if try%every == 0 {
		runtime.Gosched()
	}
}
