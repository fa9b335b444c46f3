//go:build linux

package fd

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-e1736cc0/ipcbench"
)

// Header and body go and come behind each other, in every wait; where there are boundaries it is refused.
func TestVectors(t *testing.T) {
	every(t, func(t *testing.T, a, b *Conn, _ ipcbench.Wait) {
		head, body := make([]byte, 4), make([]byte, 8)
		if a.cfg.Kind.boundaries() {
			_, err := a.WriteGather(head, body)
			require.ErrorIs(t, err, errors.ErrUnsupported)
			_, err = b.ReadScatter(head, body)
			require.ErrorIs(t, err, errors.ErrUnsupported)
			return
		}
		n, err := a.WriteGather([]byte("head"), []byte("body"))
		require.NoError(t, err)
		require.Equal(t, 8, n)
		n, err = b.ReadScatter(head, body)
		require.NoError(t, err)
		require.Equal(t, "headbody", string(head)+string(body[:n-4]))

		_, err = a.Write([]byte("ab")) // less than a header
		require.NoError(t, err)
		n, err = b.ReadScatter(head, body)
		require.NoError(t, err)
		require.Equal(t, "ab", string(head[:n]))

		require.NoError(t, b.SetReadDeadline(time.Now().Add(10*time.Millisecond)))
		n, err = b.ReadScatter(head, body)
		require.Zero(t, n)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NoError(t, b.SetReadDeadline(time.Time{}))

		// More than fits goes through while it is read, and then there is the end.
		long := bytes.Repeat([]byte("0123456789"), 100_000)
		sent := make(chan error, 1)
		go func() {
			_, err := a.WriteGather(long[:7], long[7:])
			sent <- errors.Join(err, a.CloseWrite())
		}()
		var got []byte
		for err = nil; err == nil; {
			if n, err = b.ReadScatter(head, body); n > 0 {
				got = append(append(got, head[:min(n, 4)]...), body[:max(n-4, 0)]...)
			}
		}
		require.Equal(t, io.EOF, err)
		require.True(t, bytes.Equal(long, got))
		require.NoError(t, <-sent)
	})
}
