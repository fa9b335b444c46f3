package ipcbench

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSentinels(t *testing.T) {
	all := []error{ErrTruncated, ErrNoEndOfStream, ErrWouldBlock, ErrMessageTooLong, ErrEmptyMessage}
	for i, a := range all {
		wrapped := fmt.Errorf("pipe: read: %w", a)
		for j, b := range all {
			require.Equal(t, i == j, errors.Is(wrapped, b), "%v is %v", a, b)
		}
		require.Equal(t, a == ErrNoEndOfStream, errors.Is(wrapped, errors.ErrUnsupported), "%v", a)
	}
}

func TestWaitNames(t *testing.T) {
	var names []string
	for _, w := range Waits() {
		names = append(names, w.String())
	}
	require.Equal(t, []string{"netpoll", "block", "spin", "adaptive"}, names)
	require.Equal(t, "Wait(7)", Wait(7).String())
}
