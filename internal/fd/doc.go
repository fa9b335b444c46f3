// Package fd is what the mechanisms share: a channel over one or two
// descriptors, with the four ways to wait, deadlines, closing, and errors.
//
// A [Conn] has two sides, one for each direction. Each side has a lock that a
// Read or Write holds while it uses the descriptor's number, so that Close,
// which takes both locks before it gives the number back, can never hit a
// number that has been reused. What ends a call under way depends on how it
// waits: a deadline in the past in the runtime's poller, a flag where it spins,
// and where the thread is blocked in the kernel O_NONBLOCK and a signal
// (interrupt.go).
package fd
