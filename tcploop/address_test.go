//go:build linux

package tcploop

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestAddresses(t *testing.T) {
	for addr, want := range map[string]any{
		"127.0.0.1:0":             "127.0.0.1:0",
		"127.0.0.1:65535":         "127.0.0.1:65535",
		"127.255.255.254:80":      "127.255.255.254:80",
		"[::1]:80":                "[::1]:80",
		"[0:0:0:0:0:0:0:1]:80":    "[::1]:80",
		"[::ffff:127.0.0.1]:80":   "127.0.0.1:80",
		"localhost:80":            "127.0.0.1:80",
		"0.0.0.0:80":              ErrNotLoopback,
		"[::]:80":                 ErrNotLoopback,
		":80":                     ErrNotLoopback,
		"10.0.0.1:80":             ErrNotLoopback,
		"128.0.0.1:80":            ErrNotLoopback,
		"[::2]:80":                ErrNotLoopback,
		"[fe80::1%lo]:80":         ErrNotLoopback,
		"[::1%lo]:80":             ErrNotLoopback,
		"[::ffff:10.0.0.1]:80":    ErrNotLoopback,
		"[::127.0.0.1]:80":        ErrNotLoopback,
		"example.com:80":          ErrNotLoopback,
		"localhost.evil.test:80":  ErrNotLoopback,
		"127.0.0.1.evil.test:80":  ErrNotLoopback,
		"127.1:80":                ErrNotLoopback, // other libraries read it as 127.0.0.1
		"0177.0.0.1:80":           ErrNotLoopback,
		" 127.0.0.1:80":           ErrNotLoopback,
		"":                        unix.EINVAL,
		"127.0.0.1":               unix.EINVAL,
		"localhost":               unix.EINVAL,
		"127.0.0.1:":              unix.EINVAL,
		"127.0.0.1:http":          unix.EINVAL,
		"127.0.0.1:-1":            unix.EINVAL,
		"127.0.0.1:+1":            unix.EINVAL,
		"127.0.0.1:65536":         unix.EINVAL,
		"127.0.0.1:80 ":           unix.EINVAL,
		"::1:80":                  unix.EINVAL,
		"[::1]80":                 unix.EINVAL,
		"[::1]":                   unix.EINVAL,
		"[127.0.0.1]:80":          unix.EINVAL,
		"[localhost]:80":          unix.EINVAL,
		"[[::1]]:80":              unix.EINVAL,
		"[::1]:80]:80":            unix.EINVAL,
		"127.0.0.1\x00:80":        ErrNotLoopback,
		"http://127.0.0.1:80":     unix.EINVAL,
		"127.0.0.1@10.0.0.1:80":   ErrNotLoopback,
		"user@127.0.0.1:80":       ErrNotLoopback,
		"127.0.0.1#.evil.test:80": ErrNotLoopback,
	} {
		got, err := Config{}.parse(addr)
		if want, ok := want.(error); ok {
			require.ErrorIs(t, err, want, addr)
			require.Equal(t, want == ErrNotLoopback, errors.Is(err, ErrNotLoopback), addr)
			require.Equal(t, want == unix.EINVAL, errors.Is(err, unix.EINVAL), addr)
			_, err = Listen(addr, Config{})
			require.ErrorIs(t, err, want, addr)
			_, err = Dial(addr, Config{})
			require.ErrorIs(t, err, want, addr)
			continue
		}
		require.NoError(t, err, addr)
		require.Equal(t, want, got.String(), addr)
	}
	got, err := Config{IPv6: true}.parse("localhost:80")
	require.NoError(t, err)
	require.Equal(t, "[::1]:80", got.String())
}

// A machine without IPv6 says so in a way that a caller can tell from a fault.
func TestWithoutIPv6(t *testing.T) {
	ownNetwork(t, map[string]string{
		"ipv6/conf/all/disable_ipv6": "1", "ipv6/conf/default/disable_ipv6": "1", "ipv6/conf/lo/disable_ipv6": "1",
	}, func(t *testing.T) {
		_, err := Listen("[::1]:0", Config{})
		require.ErrorIs(t, err, errors.ErrUnsupported)
		require.ErrorIs(t, err, unix.EADDRNOTAVAIL)
		_, err = Dial("[::1]:80", Config{})
		require.ErrorIs(t, err, errors.ErrUnsupported)
		require.NotContains(t, err.Error(), "ip_local_port_range")
		_, _, err = Pair(Config{IPv6: true})
		require.ErrorIs(t, err, errors.ErrUnsupported)
		a, b := paired(t, Config{})
		requireConversation(t, a, b)
	})
}
