package meter

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTail(t *testing.T) {
	hundred := make([]int64, 100)
	for i, v := range rand.Perm(100) {
		hundred[i] = int64(v + 1)
	}
	require.Equal(t, Tail{P50: 50, P99: 99, P999: 100, Max: 100}, NewTail(hundred))
	require.Equal(t, Tail{P50: 2, P99: 3, P999: 3, Max: 3}, NewTail([]int64{3, 1, 2}))
	require.Equal(t, Tail{P50: 7, P99: 7, P999: 7, Max: 7}, NewTail([]int64{7}))
	require.Equal(t, Tail{}, NewTail(nil))

	thousands := make([]int64, 10_000)
	for i := range thousands {
		thousands[i] = int64(10_000 - i)
	}
	require.Equal(t, Tail{P50: 5000, P99: 9900, P999: 9990, Max: 10_000}, NewTail(thousands))
}
