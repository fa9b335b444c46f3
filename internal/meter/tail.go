package meter

import (
	"slices"
	"time"
)

// A Tail says how durations are distributed: exact percentiles by nearest rank
// (the smallest sample that at least p per cent of the samples do not exceed).
type Tail struct {
	P50, P99, P999, Max time.Duration
}

// NewTail sorts samples, in nanoseconds, and reads them off. None give a zero Tail.
func NewTail(samples []int64) Tail {
	if len(samples) == 0 {
		return Tail{}
	}
	slices.Sort(samples)
	at := func(permille int) time.Duration {
		rank := (len(samples)*permille + 999) / 1000
		return time.Duration(samples[rank-1])
	}
	return Tail{P50: at(500), P99: at(990), P999: at(999), Max: at(1000)}
}
