//go:build linux

package pipe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-e1736cc0/ipcbench/internal/fd"
)

// Create makes the named pipes path.a and path.b (fifo(7)), for their owner
// alone, and waits for another process to Open them. It returns once both
// directions have both ends, so that no Read can meet an end that is none: or an
// error that is os.ErrDeadlineExceeded after Config.Timeout. It removes
// the names before it returns: a connection has two parties, and a third would
// steal bytes from one of them. Names that exist already are an error that is
// os.ErrExist and are left alone.
func Create(path string, cfg Config) (*Channel, error) {
	return CreateContext(context.Background(), path, cfg)
}

// CreateContext is Create that ends with ctx too.
func CreateContext(ctx context.Context, path string, cfg Config) (*Channel, error) {
	if err := cfg.fit(); err != nil {
		return nil, fd.Wrap("pipe", "create", err)
	}
	for i, name := range names(path) {
		if err := unix.Mkfifo(name, 0o600); err != nil {
			if i > 0 {
				os.Remove(names(path)[0])
			}
			return nil, fd.Wrap("pipe", "create", &os.PathError{Op: "mkfifo", Path: name, Err: err})
		}
	}
	defer func() {
		for _, name := range names(path) {
			os.Remove(name)
		}
	}()
	return meet(ctx, "create", names(path)[1], names(path)[0], cfg)
}

// Open connects to what another process is creating under path. Like Create it
// returns once both directions have both ends. It waits also for the names to appear.
func Open(path string, cfg Config) (*Channel, error) {
	return OpenContext(context.Background(), path, cfg)
}

// OpenContext is Open that ends with ctx too.
func OpenContext(ctx context.Context, path string, cfg Config) (*Channel, error) {
	if err := cfg.fit(); err != nil {
		return nil, fd.Wrap("pipe", "open", err)
	}
	return meet(ctx, "open", names(path)[0], names(path)[1], cfg)
}

// names are the pipes of a connection: the first carries what the creator writes.
func names(path string) [2]string { return [2]string{path + ".a", path + ".b"} }

func (cfg Config) fit() error {
	if cfg.Packets {
		return fmt.Errorf("a named pipe has no packet mode here: %w", errors.ErrUnsupported)
	}
	if cfg.Timeout < 0 {
		return fmt.Errorf("timeout %v: %w", cfg.Timeout, unix.EINVAL)
	}
	return fd.CheckWait(cfg.Wait)
}

// meet opens both pipes and waits until the other party has done the same.
func meet(ctx context.Context, op, in, out string, cfg Config) (*Channel, error) {
	if cfg.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, cfg.Timeout, os.ErrDeadlineExceeded)
		defer cancel()
	}
	r, err := openFIFO(ctx, in, unix.O_RDONLY)
	if err != nil {
		return nil, fd.Wrap("pipe", op, err)
	}
	w, err := openFIFO(ctx, out, unix.O_WRONLY)
	if err != nil {
		fd.CloseAll(r)
		return nil, fd.Wrap("pipe", op, err)
	}
	if err := awaitWriter(ctx, r); err != nil {
		fd.CloseAll(r, w)
		return nil, fd.Wrap("pipe", op, err)
	}
	return newChannel(op, r, w, cfg, "fifo")
}

// openFIFO opens one pipe. A non-blocking open for writing is ENXIO until there is a reader
// (fifo(7)); a blocking one could not be given up.
func openFIFO(ctx context.Context, name string, access int) (n int, err error) {
	err = retry(ctx, func() error {
		n, err = unix.Open(name, access|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
		if err == unix.ENXIO || err == unix.ENOENT || err == unix.EINTR {
			return errNotYet
		}
		if err != nil {
			return &os.PathError{Op: "open", Path: name, Err: err}
		}
		var st unix.Stat_t
		if err := unix.Fstat(n, &st); err == nil && st.Mode&unix.S_IFMT == unix.S_IFIFO {
			return nil
		}
		unix.Close(n)
		return &os.PathError{Op: "open", Path: name, Err: fmt.Errorf("not a named pipe: %w", unix.EINVAL)}
	})
	return n, err
}

// awaitWriter waits until r has a writer, or had one. Reading would take data
// away, and poll says nothing of a writer that is silent. tee(2) does neither: it
// copies 0 bytes where there is no writer, is EAGAIN where there is a silent one, and leaves data where they are.
func awaitWriter(ctx context.Context, r int) error {
	var scratch [2]int
	if err := unix.Pipe2(scratch[:], unix.O_CLOEXEC); err != nil {
		return os.NewSyscallError("pipe2", err)
	}
	defer fd.CloseAll(scratch[:]...)
	return retry(ctx, func() error {
		n, err := unix.Tee(r, scratch[1], 1, unix.SPLICE_F_NONBLOCK)
		switch {
		case err == unix.EAGAIN || int32(n) > 0: // on 32 bits x/sys puts a second register into n
			return nil
		case err != nil && err != unix.EINTR:
			return os.NewSyscallError("tee", err)
		}
		hungUp := []unix.PollFd{{Fd: int32(r)}}
		if n, err := unix.Poll(hungUp, 0); err == nil && n > 0 {
			return nil // it came and went: that is the end of the stream
		}
		return errNotYet
	})
}

var errNotYet = errors.New("the other party is not there yet")

// retry calls try until it is settled or ctx ends: there is nothing to wait on.
func retry(ctx context.Context, try func() error) error {
	for pause := 50 * time.Microsecond; ; pause = min(2*pause, 10*time.Millisecond) {
		if err := try(); err != errNotYet {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
		}
	}
}
