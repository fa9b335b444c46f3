//go:build linux

package unixsock

import (
	"bufio"
	"errors"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/seed-e1736cc0/ipcbench"
)

func self() Cred { return Cred{os.Getpid(), os.Getuid(), os.Getgid()} }

func everyConnection(t *testing.T, f func(t *testing.T, k Kind, w ipcbench.Wait)) {
	for _, k := range []Kind{Stream, SeqPacket} {
		t.Run(k.String(), func(t *testing.T) {
			everyWait(t, func(t *testing.T, w ipcbench.Wait) { f(t, k, w) })
		})
	}
}

func TestPeerCred(t *testing.T) {
	everyConnection(t, func(t *testing.T, k Kind, w ipcbench.Wait) {
		a, b := pair(t, k, Config{Wait: w})
		x, y := meet(t, k, newAbstract(), Config{Wait: w})
		for _, c := range []*Channel{a, b, x, y} {
			cred, err := c.PeerCred()
			require.NoError(t, err)
			require.Equal(t, self(), cred)
		}
		require.NoError(t, b.Close())
		cred, err := a.PeerCred()
		require.NoError(t, err)
		require.Equal(t, self(), cred, "after the peer has closed")
		require.NoError(t, a.Close())
		_, err = a.PeerCred()
		require.ErrorIs(t, err, os.ErrClosed)
		require.ErrorContains(t, err, "unixsock: peer credentials: ")
	})
}

// The credentials are those of the process that connected, when it is dead and
// when another one holds its end.
func TestPeerCredOfChild(t *testing.T) {
	limit(t)
	l := listening(t, SeqPacket, newAbstract(), Config{})
	c := start(t, "dialler")
	c.tell(t, l.Addr())
	ch, err := l.Accept()
	require.NoError(t, err)
	closing(t, ch)
	require.NoError(t, c.Process.Kill())
	c.Process.Wait()
	cred, err := ch.PeerCred()
	require.NoError(t, err)
	require.Equal(t, Cred{c.Process.Pid, os.Getuid(), os.Getgid()}, cred)

	mine, theirs := pair(t, Stream, Config{})
	files, err := theirs.Files()
	require.NoError(t, err)
	heir := start(t, "credential", files...)
	closeFiles(t, files)
	require.Equal(t, strconv.Itoa(os.Getpid()), heir.says(t), "the child sees who made the pair")
	cred, err = mine.PeerCred()
	require.NoError(t, err)
	require.Equal(t, self(), cred, "and so do we")
}

func dialOnce(t *testing.T, lines *bufio.Scanner) {
	require.True(t, lines.Scan())
	_, err := Dial(SeqPacket, lines.Text(), Config{})
	require.NoError(t, err)
	lines.Scan() // until killed
}

func sayCredential(t *testing.T, _ *bufio.Scanner) {
	c, err := FromFiles([]*os.File{os.NewFile(firstFile, "")}, Config{})
	require.NoError(t, err)
	defer c.Close()
	switch cred, err := c.PeerCred(); {
	case errors.Is(err, unix.ESRCH):
		say("ESRCH")
	case err != nil:
		say(err)
	default:
		say(cred.PID)
	}
}

// What the kernel does not know is an error and never the process 0.
func TestNoPeerCred(t *testing.T) {
	limit(t)
	a, b := pair(t, Dgram, Config{})
	x, y := meet(t, Dgram, newAbstract(), Config{})
	for _, c := range []*Channel{a, b, x, y} {
		cred, err := c.PeerCred()
		require.ErrorIs(t, err, unix.EOPNOTSUPP)
		require.ErrorIs(t, err, errors.ErrUnsupported)
		require.Zero(t, cred)
	}
	if os.Getuid() != 0 {
		t.Skip("a PID namespace takes privileges")
	}
	_, theirs := pair(t, Stream, Config{})
	files, err := theirs.Files()
	require.NoError(t, err)
	c := newChild(t, "credential", files...)
	c.SysProcAttr.Cloneflags = syscall.CLONE_NEWPID // this process has no number there
	if err := c.Start(); errors.Is(err, unix.EPERM) {
		t.Skip("a PID namespace takes privileges:", err)
	} else {
		require.NoError(t, err)
	}
	closeFiles(t, files)
	require.Equal(t, "ESRCH", c.says(t))
}

// A refused connection is closed before a byte is read, and Accept goes on to the next.
func TestAcceptRefuses(t *testing.T) {
	everyConnection(t, func(t *testing.T, k Kind, w ipcbench.Wait) {
		var asked []Cred
		l := listening(t, k, newAbstract(), Config{Wait: w, Accept: func(c Cred) error {
			if asked = append(asked, c); len(asked) < 3 {
				return errors.New("not you")
			}
			return nil
		}})
		before := openDescriptors(t)
		var clients []*Channel
		for range 3 {
			c := dialled(t, k, l.Addr(), Config{Wait: w})
			write(t, c, "password")
			clients = append(clients, c)
		}
		ch, err := l.Accept()
		require.NoError(t, err)
		closing(t, ch)
		require.Equal(t, []Cred{self(), self(), self()}, asked)
		require.Equal(t, before+4, openDescriptors(t), "three clients and one accepted")
		for _, c := range clients[:2] {
			_, err := c.Read(make([]byte, 1))
			require.ErrorIs(t, err, unix.ECONNRESET, "what it wrote was never read")
		}
		require.Equal(t, "password", read(t, ch))
		write(t, ch, "welcome")
		require.Equal(t, "welcome", read(t, clients[2]))
	})
}

// An Accept that refuses whoever comes still ends with its deadline, and with Close.
func TestAcceptThatRefusesEnds(t *testing.T) {
	limit(t)
	refused := make(chan struct{}, 10)
	l := listening(t, Stream, newAbstract(), Config{Accept: func(Cred) error {
		refused <- struct{}{}
		return errors.New("nobody")
	}})
	dialled(t, Stream, l.Addr(), Config{})
	require.NoError(t, l.SetDeadline(time.Now().Add(20*time.Millisecond)))
	_, err := l.Accept()
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, l.SetDeadline(time.Time{}))
	dialled(t, Stream, l.Addr(), Config{})
	done := make(chan error)
	go func() { _, err := l.Accept(); done <- err }()
	for range 2 {
		<-refused
	}
	require.NoError(t, l.Close())
	require.ErrorIs(t, <-done, os.ErrClosed)
}

// A check that nobody would make is refused, not forgotten.
func TestBindRefusesAccept(t *testing.T) {
	path := newPath(t)
	_, err := Bind(path, Config{Accept: func(Cred) error { return nil }})
	require.ErrorIs(t, err, unix.EOPNOTSUPP)
	require.ErrorContains(t, err, "unixsock: bind: ")
	require.NoFileExists(t, path)
}
