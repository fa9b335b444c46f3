//go:build linux

package unixsock

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/seed-e1736cc0/ipcbench/internal/fd"
)

// Dial connects to a listener of the kind, or with Dgram to a receiver that Bind
// made. While the listener's queue is full it waits, and is os.ErrDeadlineExceeded after Config.Timeout.
// Where nobody listens it is ECONNREFUSED, or ENOENT if there is no file; a socket of another kind is
// EPROTOTYPE, and one whose file may not be written EACCES.
func Dial(k Kind, addr string, cfg Config) (*Channel, error) {
	return DialContext(context.Background(), k, addr, cfg)
}

// DialContext is Dial that ends with ctx too, and then returns its cause.
func DialContext(ctx context.Context, k Kind, addr string, cfg Config) (*Channel, error) {
	c, err := dial(ctx, k, addr, cfg)
	return c, fd.Wrap("unixsock", "dial", err)
}

func dial(ctx context.Context, k Kind, addr string, cfg Config) (*Channel, error) {
	to, err := parse(addr)
	if err == nil && to == (address{}) {
		err = fmt.Errorf("%q: no name to connect to: %w", addr, unix.EINVAL)
	}
	if err != nil {
		return nil, err
	}
	ctx, cancel, err := fd.Limited(ctx, cfg.Timeout)
	if err != nil {
		return nil, err
	}
	defer cancel()
	s, err := k.socket()
	if err != nil {
		return nil, err
	}
	if err := fd.Connect(ctx, s, func() error { return connect(s, to) }); err != nil {
		unix.Close(s)
		return nil, fmt.Errorf("connect %q: %w", to.String(), err)
	}
	return newChannel(k, s, cfg, nil)
}
