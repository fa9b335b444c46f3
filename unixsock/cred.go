//go:build linux

package unixsock

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// A Cred says who is, or was, at the other end.
type Cred struct{ PID, UID, GID int }

// PeerCred returns the credentials of the other end's process as they were when the connection
// was made (SO_PEERCRED, unix(7)): those of who called Dial or Pair, or, seen from Dial, Listen. They stay
// the same when the process changes its user, passes its end to another process, or dies and its PID is given to another.
//
// It is EOPNOTSUPP on a Dgram, which has no connection, and ESRCH where
// the kernel knows no process: its PID namespace is not seen from here.
func (c *Channel) PeerCred() (cred Cred, err error) {
	err = c.Control("peer credentials", func(s, _ int) error {
		cred, err = peerCred(s)
		return err
	})
	return cred, err
}

func peerCred(s int) (Cred, error) {
	typ, err := unix.GetsockoptInt(s, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return Cred{}, os.NewSyscallError("getsockopt", err)
	}
	if typ == unix.SOCK_DGRAM {
		return Cred{}, fmt.Errorf("a datagram socket has no connection: %w", unix.EOPNOTSUPP)
	}
	u, err := unix.GetsockoptUcred(s, unix.SOL_SOCKET, unix.SO_PEERCRED)
	switch {
	case err != nil:
		return Cred{}, os.NewSyscallError("getsockopt", err)
	case u.Pid == 0:
		return Cred{}, fmt.Errorf("no process that is seen from here: %w", unix.ESRCH)
	}
	return Cred{int(u.Pid), int(u.Uid), int(u.Gid)}, nil
}

// admit asks Config.Accept about a new connection.
func (cfg Config) admit(s int) error {
	if cfg.Accept == nil {
		return nil
	}
	cred, err := peerCred(s)
	if err != nil {
		return err
	}
	return cfg.Accept(cred)
}
