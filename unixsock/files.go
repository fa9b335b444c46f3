//go:build linux

package unixsock

import (
	"os"

	"github.com/seed-e1736cc0/ipcbench/internal/fd"
)

// MaxFiles is how many files the kernel passes with one message (SCM_MAX_FD, unix(7)).
const MaxFiles = fd.MaxFiles

// ErrFilesTruncated: a message came with more files than RecvFiles had asked for, or than the process
// has free descriptors (RLIMIT_NOFILE), and then the error is EMFILE too. All its files are closed.
var ErrFilesTruncated = fd.ErrFilesTruncated

// SendFiles writes p, as Write does, and passes the open files with it (SCM_RIGHTS,
// unix(7)): the peer gets descriptors of its own for the same open file
// descriptions, which live on when the files are closed here. The files remain
// the caller's, who may close them as soon as SendFiles has returned.
//
// On a channel with boundaries p and the files are one message, and p may be empty. On a Stream the files travel
// with the first byte of p; an empty p is sent as one zero byte. Without files it is Write.
//
// More than MaxFiles is EINVAL and a closed file os.ErrClosed; nothing is sent then. A
// process without privileges that has more descriptors on their way than RLIMIT_NOFILE allows gets ETOOMANYREFS.
// A Close of one of the files waits for a SendFiles under way.
func (c *Channel) SendFiles(p []byte, files ...*os.File) error {
	return fd.SendFiles(c.Conn, p, files)
}

// RecvFiles reads into p, as Read does, and returns the files that came with
// what was read, at most max of them; there may be none. They are close-on-exec from birth, and the caller closes
// them. A non-blocking one is in the runtime's poller, and has deadlines.
//
// On a Stream a file comes with the byte that it was sent with, and never with
// an earlier one: what is read ends before the next message that has files. Into an empty p, a
// RecvFiles of a Stream takes the zero byte of a SendFiles without data; any other byte is lost and ipcbench.ErrTruncated.
//
// With an error there are no files: whatever came is closed. More than max, or than there are free
// descriptors, is ErrFilesTruncated; n bytes of p were read nevertheless. After any such error the channel goes
// on with the next message. A negative max is EINVAL. Files that come with what Read reads are closed by the kernel.
func (c *Channel) RecvFiles(p []byte, max int) (n int, files []*os.File, err error) {
	return fd.RecvFiles(c.Conn, p, max)
}
