//go:build unix

package ipcbench

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSentinelsMatchErrno(t *testing.T) {
	require.ErrorIs(t, ErrWouldBlock, syscall.EAGAIN)
	require.ErrorIs(t, ErrMessageTooLong, syscall.EMSGSIZE)
}
