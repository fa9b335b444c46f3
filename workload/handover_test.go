//go:build linux

package workload

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/seed-e1736cc0/ipcbench"
	"github.com/seed-e1736cc0/ipcbench/internal/meter"
	"github.com/seed-e1736cc0/ipcbench/internal/peer"
	"github.com/seed-e1736cc0/ipcbench/tcploop"
	"github.com/seed-e1736cc0/ipcbench/unixsock"
)

// Handing over: one process accepts TCP connections and passes each to a worker, which answers it; beside that,
// workers that accept for themselves.

func init() {
	peer.Register("handover-acceptor", acceptForWorkers)
	peer.Register("handover-worker", workHandedOver)
	peer.Register("handover-self", workAccepted)
	peer.Register("handover-client", visitWorkers)
}

// handClients is how many connections are under way at once.
const handClients = 4

type handOrder struct {
	Address string
	N       int // connections
}

type handReport struct {
	Served int
	Took   time.Duration
	Usage  meter.Usage
}

// BenchmarkHandOver counts a connection, with a byte each way, as an operation. There are four clients in one
// process; the server's processes are placed by the scheduler.
func BenchmarkHandOver(b *testing.B) {
	for _, by := range []string{"parent", "worker"} {
		for _, workers := range []int{1, 4} {
			if testing.Short() && workers != 4 {
				continue
			}
			b.Run(fmt.Sprintf("by=%s/workers=%d", by, workers), func(b *testing.B) { handOver(b, by, workers) })
		}
	}
}

func handOver(b *testing.B, by string, workers int) {
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(b, err)
	file, err := l.File() // one that blocks
	require.NoError(b, errors.Join(err, l.Close()))
	defer file.Close()
	o := handOrder{l.Addr().String(), b.N}
	crew := handWorkers(b, by, workers, file, o)
	client := hire(b, peer.Config{Role: "handover-client"}, o)
	b.ResetTimer()
	var c handReport
	require.NoError(b, client.Recv(&c, limitFor(o.N)))
	b.StopTimer()
	// Who waits in accept returns with EINVAL: see shutdown in the kernel's inet_csk_accept.
	require.NoError(b, unix.Shutdown(int(file.Fd()), unix.SHUT_RDWR))
	total := handReport{Usage: c.Usage}
	for _, p := range crew {
		var r handReport
		require.NoError(b, p.Recv(&r, 10*time.Second))
		total.Served += r.Served
		total.Usage = total.Usage.Add(r.Usage)
	}
	require.Equal(b, o.N, total.Served)
	b.ReportMetric(float64(c.Took)/float64(o.N), "ns/op")
	reportUsage(b, o.N, total.Usage)
}

// handWorkers starts the server's processes, each of which reports how many connections it has served.
func handWorkers(tb testing.TB, by string, workers int, listener *os.File, o handOrder) (crew []*peer.Peer) {
	duplicate := func() *os.File {
		fd, err := unix.FcntlInt(listener.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		require.NoError(tb, err)
		return os.NewFile(uintptr(fd), "")
	}
	if by == "worker" {
		for range workers {
			crew = append(crew, hire(tb, peer.Config{Role: "handover-self", Files: []*os.File{duplicate()}}, o))
		}
		return crew
	}
	files := []*os.File{duplicate()}
	for range workers {
		a, b, err := unixsock.Pair(unixsock.SeqPacket, unixsock.Config{})
		require.NoError(tb, err)
		files = append(files, export(tb, a)...)
		crew = append(crew, hire(tb, peer.Config{Role: "handover-worker", Files: export(tb, b)}, o))
	}
	return append(crew, hire(tb, peer.Config{Role: "handover-acceptor", Files: files}, o))
}

// accepted waits for a connection in the kernel. io.EOF: the listener has been shut down.
func accepted(listener *os.File) (*os.File, error) {
	for {
		s, _, err := unix.Accept4(int(listener.Fd()), unix.SOCK_CLOEXEC)
		switch {
		case err == unix.EINTR:
		case err == unix.EINVAL:
			return nil, io.EOF
		case err != nil:
			return nil, os.NewSyscallError("accept4", err)
		default:
			return os.NewFile(uintptr(s), ""), nil
		}
	}
}

func answer(connection *os.File) error {
	return welcome(func() (ipcbench.Channel, error) {
		return tcploop.FromFiles([]*os.File{connection}, tcploop.Config{Wait: ipcbench.Block})
	})
}

// measured runs f to its end and reports how many connections it served.
func measured(c *peer.Conn, f func() (served int, err error)) error {
	runtime.LockOSThread()
	var r handReport
	var err error
	r.Usage, err = used(func() (err error) { r.Served, err = f(); return err })
	if err != nil {
		return err
	}
	return c.Send(r)
}

// acceptForWorkers serves nobody itself.
func acceptForWorkers(c *peer.Conn) error {
	if err := c.Recv(nil); err != nil {
		return err
	}
	files := c.Files()
	var workers []*unixsock.Channel
	for _, f := range files[1:] {
		w, err := unixsock.FromFiles([]*os.File{f}, unixsock.Config{Wait: ipcbench.Block})
		if err != nil {
			return err
		}
		defer w.Close()
		workers = append(workers, w)
	}
	return measured(c, func() (int, error) {
		for i := 0; ; i++ {
			connection, err := accepted(files[0])
			if err == io.EOF {
				break
			}
			if err != nil {
				return 0, err
			}
			if err := errors.Join(workers[i%len(workers)].SendFiles([]byte("c"), connection), connection.Close()); err != nil {
				return 0, err
			}
		}
		var errs []error
		for _, w := range workers {
			errs = append(errs, w.CloseWrite())
		}
		return 0, errors.Join(errs...)
	})
}

func workHandedOver(c *peer.Conn) error {
	if err := c.Recv(nil); err != nil {
		return err
	}
	from, err := unixsock.FromFiles(c.Files(), unixsock.Config{Wait: ipcbench.Block})
	if err != nil {
		return err
	}
	defer from.Close()
	return measured(c, func() (served int, err error) {
		for p := make([]byte, 1); ; served++ {
			_, files, err := from.RecvFiles(p, 1)
			if err == io.EOF {
				return served, nil
			}
			if err != nil {
				return served, err
			}
			if len(files) != 1 {
				return served, fmt.Errorf("%d files with a message, want 1", len(files))
			}
			if err := answer(files[0]); err != nil {
				return served, err
			}
		}
	})
}

func workAccepted(c *peer.Conn) error {
	if err := c.Recv(nil); err != nil {
		return err
	}
	listener := c.Files()[0]
	return measured(c, func() (served int, err error) {
		for ; ; served++ {
			connection, err := accepted(listener)
			if err == io.EOF {
				return served, nil
			}
			if err == nil {
				err = answer(connection)
			}
			if err != nil {
				return served, err
			}
		}
	})
}

// visitWorkers is the clients: several at once, as each has to wait for its answer.
func visitWorkers(c *peer.Conn) error {
	var o handOrder
	if err := c.Recv(&o); err != nil {
		return err
	}
	connect := func() (ipcbench.Channel, error) { return dial("tcp", o.Address) }
	var r handReport
	var err error
	r.Usage, err = used(func() error {
		errs := make([]error, handClients)
		began := time.Now()
		var all sync.WaitGroup
		for i := range errs {
			share := o.N / handClients
			if i < o.N%handClients {
				share++
			}
			all.Go(func() { errs[i] = repeatConnect(connect, share) })
		}
		all.Wait()
		r.Took = time.Since(began)
		return errors.Join(errs...)
	})
	if err != nil {
		return err
	}
	return c.Send(r)
}

// Without its acceptor, or its only worker, no client waits for ever.
func TestHandOverKilled(t *testing.T) {
	for _, victim := range []string{"acceptor", "worker"} {
		t.Run(victim, func(t *testing.T) {
			l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
			require.NoError(t, err)
			file, err := l.File()
			require.NoError(t, errors.Join(err, l.Close()))
			o := handOrder{l.Addr().String(), 1 << 20}
			server := handServer(t, file, o)
			client := start(t, peer.Config{Role: "handover-client"}, o)
			killed := server["acceptor"]
			if victim == "worker" {
				killed = server["worker"]
			}
			time.AfterFunc(20*time.Millisecond, killed.Kill)
			err = client.Recv(nil, 10*time.Second)
			var failed *peer.HandlerError
			require.ErrorAs(t, err, &failed)
			require.Error(t, client.Close())
			for _, p := range server {
				p.Kill()
				p.Close()
			}
		})
	}
}

// handServer is an acceptor and one worker; nobody else has the listener.
func handServer(t *testing.T, listener *os.File, o handOrder) map[string]*peer.Peer {
	a, b, err := unixsock.Pair(unixsock.SeqPacket, unixsock.Config{})
	require.NoError(t, err)
	files := append([]*os.File{listener}, export(t, a)...)
	return map[string]*peer.Peer{
		"worker":   start(t, peer.Config{Role: "handover-worker", Files: export(t, b)}, o),
		"acceptor": start(t, peer.Config{Role: "handover-acceptor", Files: files}, o),
	}
}
