//go:build linux

package meter

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// A Usage is what was used, as getrusage(2) has it.
//
// The sum of User and Sys is exact to the scheduler's clock. How it divides is
// sampled at the timer's tick on most kernels (CONFIG_TICK_CPU_ACCOUNTING), so
// over less than about a second it is an estimate.
type Usage struct {
	User        time.Duration `json:"user"` // nanoseconds in JSON, in steps of 1 µs
	Sys         time.Duration `json:"sys"`
	Voluntary   int64         `json:"vcsw"`  // context switches because it had to wait
	Involuntary int64         `json:"ivcsw"` // context switches because another had its turn
}

// Process returns the usage of all threads of the process, those that have ended included.
func Process() (Usage, error) { return read(unix.RUSAGE_SELF) }

// Thread returns the usage of the calling thread; its goroutine should be locked to it.
func Thread() (Usage, error) { return read(unix.RUSAGE_THREAD) }

// Add returns u + v.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.User + v.User, u.Sys + v.Sys, u.Voluntary + v.Voluntary, u.Involuntary + v.Involuntary}
}

// Sub returns u - v.
func (u Usage) Sub(v Usage) Usage {
	return Usage{u.User - v.User, u.Sys - v.Sys, u.Voluntary - v.Voluntary, u.Involuntary - v.Involuntary}
}

// CPU is the time on a CPU, exact to the scheduler's clock.
func (u Usage) CPU() time.Duration { return u.User + u.Sys }

func read(who int) (Usage, error) {
	var r unix.Rusage
	if err := unix.Getrusage(who, &r); err != nil {
		return Usage{}, os.NewSyscallError("getrusage", err)
	}
	return Usage{
		User:        time.Duration(r.Utime.Nano()),
		Sys:         time.Duration(r.Stime.Nano()),
		Voluntary:   int64(r.Nvcsw), // 32 bits wide on some platforms
		Involuntary: int64(r.Nivcsw),
	}, nil
}
