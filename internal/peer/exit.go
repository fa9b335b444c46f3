//go:build linux

package peer

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// An ExitError says how a child ended.
type ExitError struct {
	Role   string
	PID    int
	State  *os.ProcessState // nil where another part of the process had reaped the child
	Stderr string           // what it wrote to standard error; of more than 4 KiB the first and last 2 KiB
	wait   error
}

// Error names role, pid and wait status ("signal: killed", "exit status 1") in
// its first line. What the child wrote to standard error follows, if anything.
func (e *ExitError) Error() string {
	text := fmt.Sprintf("peer: %s (pid %d): %s", e.Role, e.PID, e.Status())
	if e.Stderr != "" {
		text += "\n" + e.Stderr
	}
	return text
}

// Status returns the wait status as text: "signal: killed", "exit status 1".
func (e *ExitError) Status() string {
	if e.State == nil {
		return fmt.Sprintf("exit status unknown: %v", e.wait)
	}
	return e.State.String()
}

func (e *ExitError) ok() bool { return e.State != nil && e.State.Success() }

// A HandlerError is an error that a child's Handler returned.
type HandlerError struct {
	Role string
	PID  int
	Text string
}

func (e *HandlerError) Error() string {
	return fmt.Sprintf("peer: %s (pid %d): %s", e.Role, e.PID, e.Text)
}

// excerptHalf is what an ExitError shows of each end of a long standard error:
// a panic names its reason first, other programs last.
const excerptHalf = 2 << 10

// excerpt returns the head and tail of what was written to f; f may be nil.
func excerpt(f *os.File) string {
	if f == nil {
		return ""
	}
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	part := func(off, n int64) string {
		p, _ := io.ReadAll(io.NewSectionReader(f, off, n))
		return string(p)
	}
	size := info.Size()
	text := part(0, min(size, 2*excerptHalf))
	if size > 2*excerptHalf {
		text = text[:excerptHalf] + "\n[…]\n" + part(size-excerptHalf, excerptHalf)
	}
	return strings.ToValidUTF8(strings.TrimSpace(text), "?")
}
