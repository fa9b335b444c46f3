//go:build linux

package tcploop

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestCongestion(t *testing.T) {
	families(t, func(t *testing.T, addr string, cfg Config) {
		system, err := Default()
		require.NoError(t, err)
		available, err := Available()
		require.NoError(t, err)
		require.Contains(t, available, system)
		allowed, err := Allowed()
		require.NoError(t, err)
		require.Subset(t, available, allowed)
		for _, name := range append(slices.Clone(allowed), "") {
			cfg.Congestion = name
			want := name
			if name == "" {
				want = system
			}
			a, b := paired(t, cfg)
			l := listening(t, addr, cfg)
			c := dialled(t, l.Addr(), cfg)
			d, err := l.Accept()
			require.NoError(t, err)
			closing(t, d)
			for _, end := range []*Channel{a, b, c, d} {
				got, err := end.Congestion()
				require.NoError(t, err)
				require.Equal(t, want, got)
			}
			require.NoError(t, c.Close())
			_, err = c.Congestion()
			require.ErrorIs(t, err, os.ErrClosed)
		}
	})
}

func TestUnknownCongestion(t *testing.T) {
	limit(t)
	before := openDescriptors(t)
	available, err := readSysctl("tcp_available_congestion_control")
	require.NoError(t, err)
	names := []string{"nosuch", strings.Repeat("x", 16), "reno" + strings.Repeat("x", 100), "reno\x00x", strings.Repeat("x", 5000)}
	for _, name := range names {
		cfg := Config{Congestion: name}
		_, _, pairErr := Pair(cfg)
		_, listenErr := Listen("127.0.0.1:0", cfg)
		_, dialErr := Dial("127.0.0.1:1", cfg)
		for _, err := range []error{pairErr, listenErr, dialErr} {
			require.ErrorIs(t, err, unix.ENOENT)
			require.ErrorContains(t, err, "this kernel has "+available)
		}
	}
	require.Equal(t, before, openDescriptors(t))
}

// One that is kept for the privileged is refused to others with what they may have instead.
func TestForbiddenCongestion(t *testing.T) {
	limit(t)
	if os.Getenv(roleKey) != "nobody" {
		asNobody(t, t.Name())
		return
	}
	available, err := Available()
	require.NoError(t, err)
	allowed, err := Allowed()
	require.NoError(t, err)
	for _, name := range available {
		if slices.Contains(allowed, name) {
			continue
		}
		_, _, err := Pair(Config{Congestion: name})
		require.ErrorIs(t, err, unix.EPERM)
		require.ErrorContains(t, err, "allowed to everybody are "+strings.Join(allowed, " "))
	}
}
