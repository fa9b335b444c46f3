// Package peer runs the other party of a test or benchmark in a child process:
// the test binary, started again in a role.
//
// The parent's TestMain names the roles with Main, Start runs one of them, and
// both sides exchange small messages as JSON. The child is measured, so it is
// kept quiet: no inherited standard streams, and nothing in Go's netpoller and
// no goroutine beside the role's own while it waits for orders.
//
// A child never outlives its parent, however the parent ends. Linux only.
package peer
