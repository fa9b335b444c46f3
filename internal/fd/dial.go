//go:build linux

package fd

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// connectSlice is how long one connect may block: within it the end of a context
// is seen. The kernel wakes a connect that waits, so a slot that becomes free is taken at once.
const connectSlice = 50 * time.Millisecond

// Limited returns ctx with a limit after which its cause is os.ErrDeadlineExceeded. 0: none.
func Limited(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc, error) {
	switch {
	case limit < 0:
		return nil, nil, fmt.Errorf("timeout %v: %w", limit, unix.EINVAL)
	case limit == 0:
		return ctx, func() {}, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, os.ErrDeadlineExceeded)
	return ctx, cancel, nil
}

// Connect connects a blocking socket by calling connect, and waits while the
// listener's queue is full, until ctx ends; the error is its cause then.
//
// SO_SNDTIMEO limits connect (socket(7)). A unix socket returns EAGAIN then and is as it
// was; TCP returns EINPROGRESS, goes on connecting, and a further connect waits for
// the outcome, with EALREADY if it does not come.
func Connect(ctx context.Context, s int, connect func() error) error {
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := limitSend(s, slice(ctx)); err != nil {
			return err
		}
		switch err := connect(); err {
		case nil:
			return limitSend(s, 0) // or it would limit writes too
		case unix.EAGAIN, unix.EINPROGRESS, unix.EALREADY, unix.EINTR:
		default:
			return err
		}
	}
}

// slice is the time until ctx has to be looked at. At least a millisecond: 0 would be no limit.
func slice(ctx context.Context) time.Duration {
	d := connectSlice
	if end, ok := ctx.Deadline(); ok {
		d = min(d, time.Until(end))
	}
	return max(d, time.Millisecond)
}

func limitSend(s int, d time.Duration) error {
	t := unix.NsecToTimeval(int64(d))
	return os.NewSyscallError("setsockopt", unix.SetsockoptTimeval(s, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &t))
}
