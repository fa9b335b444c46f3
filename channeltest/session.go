//go:build linux

package channeltest

import (
	"errors"
	"time"
)

// A session is a connection with its parties in place.
type session interface {
	// run makes the parties do n operations and returns what each has seen, the
	// one that timed first. A party that dies or fails, or the limit, is an error and
	// ends the session: close is then all that is left to call.
	run(n int, limit time.Duration) ([]report, error)
	close() error
}

const (
	// startLimit is how long a child may take to be ready.
	startLimit = 20 * time.Second
	// graceLimit is how long a party may go on after the other one has failed.
	graceLimit = time.Second
)

func (r row) open() (session, error) {
	if r.peer == asProcess {
		return openProcesses(r)
	}
	return openInsiders(r)
}

// collect waits for the ends of the given number of parties. Once one has
// failed the others get the grace, to say what they saw; then abort is called, which has to end them.
func collect(ended <-chan error, parties int, grace time.Duration, abort func()) error {
	var errs []error
	var late <-chan time.Time
	for parties > 0 {
		select {
		case err := <-ended:
			parties--
			if err == nil {
				continue
			}
			if errs = append(errs, err); late == nil {
				late = time.After(grace)
			}
		case <-late:
			abort()
			return errors.Join(errs...)
		}
	}
	return errors.Join(errs...)
}
