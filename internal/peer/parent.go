//go:build linux

package peer

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	sendLimit  = 10 * time.Second // of Peer.Send: a child that never receives must not hang its parent
	closeLimit = 2 * time.Second  // for a child to end by itself in Close
)

// live counts the children that are not yet reaped.
var live atomic.Int64

// Live returns the number of children that are not yet reaped.
func Live() int { return int(live.Load()) }

// A Peer is a child process as its parent sees it. All methods may be called
// from several goroutines at once.
type Peer struct {
	role    string
	process *os.Process
	control *os.File // non-blocking, in the netpoller

	sending   sync.Mutex
	receiving sync.Mutex
	in        inbox // guarded by receiving

	killed atomic.Bool   // by Kill: the death was asked for
	done   chan struct{} // closed once reaped
	exit   *ExitError    // how it ended; written before done is closed

	closing  sync.Once
	closeErr error
}

// PID returns the child's process id. It may belong to another process once Done is closed.
func (p *Peer) PID() int { return p.process.Pid }

// Done is closed once the child has been reaped.
func (p *Peer) Done() <-chan struct{} { return p.done }

// Err returns nil before Done is closed and for exit status 0, else an *ExitError.
func (p *Peer) Err() error {
	select {
	case <-p.done:
	default:
		return nil
	}
	if p.exit.ok() {
		return nil
	}
	return p.exit
}

// Send sends v to the child as JSON. A dead child is an *ExitError; one that
// receives nothing for 10 s is an error that is os.ErrDeadlineExceeded.
func (p *Peer) Send(v any) error {
	line, err := encode(kindValue, v)
	if err != nil {
		return err
	}
	p.sending.Lock()
	defer p.sending.Unlock()
	deadline := time.Now().Add(sendLimit)
	if p.control.SetWriteDeadline(deadline) != nil { // fails on a closed file only
		return p.failed("send", os.ErrClosed)
	}
	if _, err := p.control.Write(line); err != nil {
		if errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) {
			return p.ended("send", deadline)
		}
		return p.failed("send", err)
	}
	return nil
}

// Recv stores the child's next message in v, as json.Unmarshal does; a nil v
// discards it. What the child sent before its death is received first. Then a
// dead child is an *ExitError, at once and whatever its exit status. A
// Handler's error is a *HandlerError. More than limit without a message is an
// error that is os.ErrDeadlineExceeded; a later Recv may still get it. After
// Close it is os.ErrClosed.
func (p *Peer) Recv(v any, limit time.Duration) error {
	p.receiving.Lock()
	defer p.receiving.Unlock()
	deadline := time.Now().Add(limit)
	if p.control.SetReadDeadline(deadline) != nil { // fails on a closed file only
		return p.failed("receive", os.ErrClosed)
	}
	kind, body, err := p.in.next(p.control.Read)
	switch {
	case err == io.EOF || errors.Is(err, unix.ECONNRESET):
		return p.ended("receive", deadline)
	case err != nil:
		return p.failed("receive", err)
	case kind == kindError:
		return p.handlerError(body)
	}
	return decode(body, v)
}

func (p *Peer) handlerError(body []byte) error {
	e := &HandlerError{Role: p.role, PID: p.PID()}
	if err := decode(body, &e.Text); err != nil {
		return err
	}
	return e
}

// ended waits for the exit status of a child whose end of the socket has gone:
// the kernel closes a dying process's descriptors a little before it can be reaped.
func (p *Peer) ended(call string, deadline time.Time) error {
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-p.done:
		return p.exit
	case <-timer.C:
		return p.failed(call, os.ErrDeadlineExceeded)
	}
}

// failed names the child in an error of its control file.
func (p *Peer) failed(call string, err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		err = path.Err // its path says nothing
	}
	return fmt.Errorf("peer: %s: %s (pid %d): %w", call, p.role, p.PID(), err)
}

// Kill sends SIGKILL. It acts on the process handle and never hits a stranger
// with a reused process id.
func (p *Peer) Kill() {
	p.killed.Store(true)
	// The one error to expect is os.ErrProcessDone.
	_ = p.process.Kill()
}

// Close ends the child and releases everything: it closes the control socket,
// which the child's Recv reports as io.EOF, kills a child that is still there
// 2 s later, and reaps it. It returns an *ExitError if the child failed or had
// to be killed, but nil if Kill had been called. Calling it again is harmless
// and returns the same.
func (p *Peer) Close() error {
	p.closing.Do(func() {
		p.control.Close()
		asked := p.killed.Load()
		timer := time.NewTimer(closeLimit)
		defer timer.Stop()
		select {
		case <-p.done:
		case <-timer.C:
			p.Kill()
			<-p.done
		}
		if !asked && !p.exit.ok() {
			p.closeErr = p.exit
		}
	})
	return p.closeErr
}

// reap waits for the child's end, in a goroutine of its own.
func (p *Peer) reap(stderr *os.File) {
	state, err := p.process.Wait()
	p.exit = &ExitError{Role: p.role, PID: p.PID(), State: state, wait: err, Stderr: excerpt(stderr)}
	if stderr != nil {
		stderr.Close()
	}
	live.Add(-1)
	close(p.done)
}
