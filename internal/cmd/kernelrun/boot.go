//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	readyLimit = 90 * time.Second // from qemu's start to the test binary's; emulated it takes a few
	offLimit   = 2 * time.Second  // for the guest to power off when all is said
	maxBoots   = 5                // of a kernel that panics before the test binary starts
)

// kvmLimit is readyLimit of KVM that nobody has asked for: it takes a second.
var kvmLimit = 15 * time.Second

// An earlyEnd is a guest that ended before its first process could say a word,
// while qemu saw no error: some kernels panic now and then when they are emulated.
type earlyEnd struct{ console string }

func (e earlyEnd) Error() string {
	return "the kernel ended before the test binary was started" + e.console
}

// A lateStart is a guest that has not come to the test binary.
type lateStart struct {
	limit   time.Duration
	console string
}

func (e lateStart) Error() string {
	return fmt.Sprintf("the test binary was not started within %v%s", e.limit, e.console)
}

// runOn runs the binary once on a machine, with as many boots as that takes.
func (p *plan) runOn(ctx context.Context, m machine, archive *os.File, hello func(release string), out, errOut, note io.Writer) (status int, err error) {
	for boot := 1; ; boot++ {
		status, err := p.boot(ctx, m, archive, hello, out, errOut)
		var late lateStart
		if p.triesKVM && errors.As(err, &late) {
			p.triesKVM, p.accel, p.whyTCG = false, "tcg", "no KVM: "+m.name+" did not start in it"
			fmt.Fprintf(note, "# kernelrun: %s: not started by KVM within %v; emulated from here on, and at once with -accel=tcg\n", m.name, late.limit)
			continue
		}
		var early earlyEnd
		if !errors.As(err, &early) {
			return status, err
		}
		if boot == maxBoots {
			return 0, fmt.Errorf("%d boots: %w", boot, err)
		}
		fmt.Fprintf(note, "# kernelrun: %s: boot %d of at most %d failed (%s); booting again\n", m.name, boot, maxBoots, panicLine(early.console))
	}
}

// panicLine is what a console says in one line.
func panicLine(console string) string {
	for line := range strings.Lines(console) {
		if strings.Contains(line, "Kernel panic") {
			return strings.TrimSpace(line)
		}
	}
	return lastLine(console)
}

// boot starts a machine and passes on what its test binary writes. hello comes before all of it.
func (p *plan) boot(ctx context.Context, m machine, archive *os.File, hello func(release string), out, errOut io.Writer) (status int, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.timeout, fmt.Errorf("no end after %v", p.timeout))
	defer cancel()
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	var console, complaint tail
	var reading sync.WaitGroup
	cmd := p.qemu(ctx, m)
	cmd.Stderr = &complaint
	consoleReader, consoleWriter, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	wireReader, wireWriter, err := os.Pipe()
	if err != nil {
		consoleReader.Close()
		consoleWriter.Close()
		return 0, err
	}
	defer wireReader.Close()
	cmd.ExtraFiles = []*os.File{archive, consoleWriter, wireWriter}
	startErr := cmd.Start()
	consoleWriter.Close()
	wireWriter.Close()
	reading.Go(func() { io.Copy(&console, consoleReader); consoleReader.Close() })
	if startErr != nil {
		reading.Wait()
		return 0, startErr
	}
	limit := readyLimit
	if p.triesKVM {
		limit = kvmLimit
	}
	var late atomic.Bool
	watchdog := time.AfterFunc(limit, func() {
		late.Store(true)
		giveUp(lateStart{limit: limit})
	})
	defer watchdog.Stop()
	l := listener{hello: hello, out: out, errOut: errOut, started: func() { watchdog.Stop(); p.triesKVM = false }}
	heard := receive(wireReader, l.handle)
	if l.outErr != nil {
		giveUp(l.outErr)
	}
	if heard == nil { // killed in the end if it does not go by itself
		defer time.AfterFunc(offLimit, cancel).Stop()
	}
	qemuErr := cmd.Wait()
	reading.Wait()
	switch {
	case heard == nil:
		return l.status, l.failure
	case late.Load():
		return 0, lateStart{limit, console.quote("console")}
	case ctx.Err() != nil:
		return 0, fmt.Errorf("%w%s", context.Cause(ctx), console.quote("console"))
	case qemuErr != nil:
		return 0, fmt.Errorf("%s: %w%s%s", qemuName, qemuErr, complaint.quote(qemuName), console.quote("console"))
	case !l.isReady:
		return 0, earlyEnd{console.quote("console")}
	}
	return 0, fmt.Errorf("the guest ended while the test binary ran%s", console.quote("console"))
}

// A listener takes the guest's messages.
type listener struct {
	hello       func(release string)
	out, errOut io.Writer
	started     func()
	isReady     bool
	status      int
	failure     error // of the guest
	outErr      error // of our own output
}

func (l *listener) handle(m message) error {
	switch m.Kind {
	case ready:
		l.isReady = true
		l.started()
		l.hello(string(m.Data))
	case stdout:
		_, l.outErr = l.out.Write(m.Data)
	case stderr:
		_, l.outErr = l.errOut.Write(m.Data)
	case exited:
		l.status = m.Status
	case failed:
		l.failure = fmt.Errorf("guest: %s", m.Data)
	default:
		return fmt.Errorf("message of kind %d from the guest", m.Kind)
	}
	return l.outErr
}

// A tail keeps the last lines of what is written to it.
type tail struct{ data []byte }

const (
	tailBytes = 4 << 10
	tailLines = 30
)

func (t *tail) Write(p []byte) (int, error) {
	t.data = append(t.data, p...)
	if len(t.data) > 2*tailBytes {
		t.data = append(t.data[:0], t.data[len(t.data)-tailBytes:]...)
	}
	return len(p), nil
}

// quote returns the lines under a heading, to be put behind a message.
func (t *tail) quote(name string) string {
	text := strings.TrimSpace(strings.ToValidUTF8(strings.ReplaceAll(string(t.data), "\r", ""), "?"))
	if text == "" {
		return "\n" + name + ": silent"
	}
	lines := strings.Split(text, "\n")
	lines = lines[max(0, len(lines)-tailLines):]
	return "\n" + name + ", last lines:\n\t" + strings.Join(lines, "\n\t")
}
