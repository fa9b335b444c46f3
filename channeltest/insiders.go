//go:build linux

package channeltest

import (
	"errors"
	"fmt"
	"os"
	"runtime"
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
	usage := meter.Thread
	if r.peer == asGoroutine {
		usage = meter.Process
	}
	s := &insiders{row: r, ends: []ipcbench.Channel{a, b}}
	if r.measure == selfLoop {
		s.parties = []*party{newParty(throughChannel(a), throughChannel(b), r.size, usage)}
		return s, nil
	}
	for _, end := range s.ends {
		s.parties = append(s.parties, newParty(throughChannel(end), nil, r.size, usage))
	}
	return s, nil
}

func (s *insiders) run(n int, limit time.Duration) (_ []report, err error) {
	if s.row.peer == asGoroutine {
		// A pinned thread must not wait in the runtime's poller: another one
		// would have to poll for it. So the whole process goes to the CPU.
		restore, err := cpu.PinProcess([]int{s.row.cpu(0)})
		if err != nil {
			return nil, err
		}
		defer restore()
	}
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
	if s.row.peer == asGoroutine && len(reports) > 1 {
		reports[1].Usage = meter.Usage{} // the first one's is the whole process's already
	}
	return reports, nil
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
