//go:build linux

package poller

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestDrain(t *testing.T) {
	limited(t)
	var got []string
	keep := func(b []byte) error {
		got = append(got, string(b))
		return nil
	}
	buf := make([]byte, 4)
	r, w := pipe(t)

	require.NoError(t, Drain(r, buf, keep))
	require.Empty(t, got)

	write(t, w, "abcdefghij")
	require.NoError(t, Drain(r, buf, keep))
	require.Equal(t, []string{"abcd", "efgh", "ij"}, got)
	_, err := unix.Read(r, buf)
	require.Equal(t, unix.EAGAIN, err)

	refusal := errors.New("enough")
	write(t, w, "abcdefgh")
	require.Equal(t, refusal, Drain(r, buf, func([]byte) error { return refusal }))
	require.Equal(t, "efgh", read(t, r, 8), "what was not read is still there")

	write(t, w, "last")
	shut(t, w)
	got = nil
	require.Equal(t, io.EOF, Drain(r, buf, keep))
	require.Equal(t, []string{"last"}, got)
}

func TestDrainRefuses(t *testing.T) {
	limited(t)
	r, w := pipe(t)
	none := func([]byte) error { return nil }
	require.ErrorIs(t, Drain(r, nil, none), unix.EINVAL)
	require.ErrorIs(t, DrainFunc(nil, nil, none), unix.EINVAL)
	require.ErrorIs(t, Drain(-1, make([]byte, 1), none), unix.EBADF)
	require.ErrorIs(t, Drain(w, make([]byte, 1), none), unix.EBADF, "the write end")
	require.NoError(t, unix.SetNonblock(r, false))
	require.ErrorIs(t, Drain(r, make([]byte, 1), none), unix.EINVAL, "would never return")
}

// A datagram of no bytes is a message, not the end.
func TestDrainFunc(t *testing.T) {
	limited(t)
	a, b := sockets(t, unix.SOCK_DGRAM)
	for _, m := range []string{"abc", "", "de"} {
		require.NoError(t, unix.Send(b, []byte(m), 0))
	}
	var got []string
	keep := func(m []byte) error {
		got = append(got, string(m))
		return nil
	}
	receive := func(p []byte) (int, error) {
		n, _, err := unix.Recvfrom(a, p, 0)
		return max(n, 0), err
	}
	require.NoError(t, DrainFunc(receive, make([]byte, 9), keep))
	require.Equal(t, []string{"abc", "", "de"}, got)

	got = nil
	require.Equal(t, io.EOF, DrainFunc(strings.NewReader("abcde").Read, make([]byte, 2), keep))
	require.Equal(t, []string{"ab", "cd", "e"}, got)

	got = nil
	torn := errors.New("torn")
	require.Equal(t, torn, DrainFunc(func(p []byte) (int, error) { return copy(p, "xy"), torn }, make([]byte, 9), keep))
	require.Equal(t, []string{"xy"}, got, "what came with the error")
}
