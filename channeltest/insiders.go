//go:build linux

package channeltest

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-e1736cc0/ipcbench"
	"github.com/seed-e1736cc0/ipcbench/internal/cpu"
	"github.com/seed-e1736cc0/ipcbench/internal/meter"
)

// insiders is a session whose parties are threads or goroutines of the test process.
type insiders struct {
	row     row
	parties []*party
	ends    []ipcbench.Channel
}

func openInsiders(r row) (session, error) {
	a, b, err := r.mech.Pair(r.wait)
	if err != nil {
		return nil, err
	}
	scope := meter.OfThread
	if r.peer == asGoroutine {
		scope = meter.OfProcess
	}
	s := &insiders{row: r, ends: []ipcbench.Channel{a, b}}
	wires := [][2]wire{{throughChannel(a)}, {throughChannel(b)}}
	if r.measure.alone() {
		wires = [][2]wire{{throughChannel(a), throughChannel(b)}}
	}
	for _, w := range wires {
		p, err := newParty(w[0], w[1], r.size, scope)
		if err != nil {
			return nil, errors.Join(err, s.closeEnds())
		}
		p.rate = r.rate
		s.parties = append(s.parties, p)
	}
	return s, nil
}

func (s *insiders) run(n int, limit time.Duration) (_ []report, err error) {
	restore, err := s.row.makeRoom()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, restore()) }()
	reports := make([]report, len(s.parties))
	ended := make(chan error, len(s.parties)+1)
	for i := len(s.parties) - 1; i >= 0; i-- {
		play := func() {
			var err error
			reports[i], err = s.play(i, n)
			ended <- err
		}
		if s.row.peer == asThread {
			go onThreadOfItsOwn(play)
		} else {
			go play()
		}
	}
	watchdog := time.AfterFunc(limit, func() {
		ended <- fmt.Errorf("no end after %v: %w", limit, os.ErrDeadlineExceeded)
		s.closeEnds()
	})
	defer watchdog.Stop()
	err = collect(ended, len(s.parties), 0, func() { go s.closeEnds() })
	if err != nil {
		return nil, err // a party that still runs may be writing to reports
	}
	if len(reports) > 1 { // what the first one has of the whole process is not to be counted twice
		reports[1].Mallocs, reports[1].Bytes = 0, 0
		if s.row.peer == asGoroutine {
			reports[1].Usage = meter.Usage{}
			if reports[1].Counts != nil {
				reports[1].Counts = &meter.Counts{}
			}
		}
	}
	return reports, nil
}

// makeRoom puts the process where the row wants it.
func (r row) makeRoom() (restore func() error, err error) {
	if r.peer == asGoroutine {
		// A pinned thread must not wait in the runtime's poller: another one
		// would have to poll for it. So the whole process goes to the CPU.
		return cpu.PinProcess([]int{r.cpu(0)})
	}
	// The parties' threads pin themselves. The runtime's monitor, awake every
	// 20 to 100 µs while they block, must not run on their CPUs if there are others.
	others, err := cpu.Allowed()
	if err != nil {
		return nil, err
	}
	others = slices.DeleteFunc(others, func(c int) bool { return c == r.cpu(0) || c == r.cpu(1) })
	unpin := func() error { return nil }
	if len(others) > 0 {
		if unpin, err = cpu.PinProcess(others); err != nil {
			return nil, err
		}
	}
	procs := spareProcs()
	return func() error {
		runtime.GOMAXPROCS(procs)
		return unpin()
	}, nil
}

// spareProcs raises a GOMAXPROCS that is the number of CPUs, and so nobody's
// choice, to one with Ps to spare, and returns what it was. Were both Ps in system calls, the monitor
// would take one away every few messages to look for other work, and its party would return to wait
// for it: two CPUs would measure what four do not.
func spareProcs() (was int) {
	const enough = 4
	was = runtime.GOMAXPROCS(0)
	if was == runtime.NumCPU() && was < enough {
		runtime.GOMAXPROCS(enough)
	}
	return was
}

// play runs one party.
func (s *insiders) play(i, n int) (report, error) {
	if s.row.peer == asThread {
		if err := cpu.PinThread(s.row.cpu(i)); err != nil {
			return report{}, err
		}
	}
	return s.parties[i].run(s.row.measure, i == 0, n)
}

// onThreadOfItsOwn runs f on a locked thread that ends with it, since a pinned one
// that lived on would serve others on its CPU. The process's first
// thread cannot end: a goroutine that finds itself there keeps it busy and passes f on.
func onThreadOfItsOwn(f func()) {
	runtime.LockOSThread()
	if unix.Gettid() != unix.Getpid() {
		f()
		return
	}
	defer runtime.UnlockOSThread()
	done := make(chan struct{})
	go func() {
		defer close(done)
		onThreadOfItsOwn(f)
	}()
	<-done
}

func (s *insiders) close() error {
	closed := make(chan error, 1)
	go func() { closed <- s.closeEnds() }()
	select {
	case err := <-closed:
		return err
	case <-time.After(graceLimit):
		return fmt.Errorf("no return from Close: %w", os.ErrDeadlineExceeded)
	}
}

func (s *insiders) closeEnds() error {
	var errs []error
	for _, ch := range s.ends {
		if err := ch.Close(); !errors.Is(err, os.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
