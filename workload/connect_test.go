//go:build linux

package workload

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
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

// Connections: connect, a byte each way, close.

func init() {
	peer.Register("connect-server", serveConnections)
	peer.Register("connect-client", makeConnections)
}

type connectOrder struct {
	Mechanism string
	Address   string // where the client finds the server; in the server's order a path for a unix socket
	Warm, N   int
}

type connectReport struct {
	Address string
	Took    time.Duration
	Usage   meter.Usage
	Served  int
}

// A listener accepts connections of any mechanism.
type listener interface {
	Addr() string
	Close() error
}

func listenAt(mech, address string) (l listener, accept func() (ipcbench.Channel, error), err error) {
	if mech == "tcp" {
		t, err := tcploop.Listen("127.0.0.1:0", tcploop.Config{})
		if err != nil {
			return nil, nil, err
		}
		return t, func() (ipcbench.Channel, error) { return t.Accept() }, nil
	}
	u, err := unixsock.Listen(unixKindOf(mech), address, unixsock.Config{})
	if err != nil {
		return nil, nil, err
	}
	return u, func() (ipcbench.Channel, error) { return u.Accept() }, nil
}

func unixKindOf(mech string) unixsock.Kind {
	if mech == "unix-seqpacket" {
		return unixsock.SeqPacket
	}
	return unixsock.Stream
}

func dial(mech, address string) (ipcbench.Channel, error) {
	if mech == "tcp" {
		c, err := tcploop.Dial(address, tcploop.Config{})
		return c, explainPorts(err)
	}
	return unixsock.Dial(unixKindOf(mech), address, unixsock.Config{})
}

// explainPorts says what to do when a client has used up its ports.
func explainPorts(err error) error {
	if !errors.Is(err, unix.EADDRNOTAVAIL) {
		return err
	}
	return fmt.Errorf("%w: every port of net.ipv4.ip_local_port_range (%s) is in use or in TIME_WAIT (60 s): widen the range, or run fewer operations (-benchtime)",
		err, setting("/proc/sys/net/ipv4/ip_local_port_range"))
}

func setting(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(text)), "-")
}

// BenchmarkConnect has client and server in two processes on one CPU. The server closes first,
// as one does that has answered: TIME_WAIT is then on its side, where it blocks no port of the client's.
func BenchmarkConnect(b *testing.B) {
	for _, mech := range []string{"unix-stream", "unix-seqpacket", "tcp"} {
		if testing.Short() && mech == "unix-seqpacket" {
			continue
		}
		b.Run(fmt.Sprintf("mech=%s/cpu=same/peer=process/wait=netpoll", mech), func(b *testing.B) {
			o := connectOrder{mech, filepath.Join(b.TempDir(), "socket"), min(b.N/10, 1000) + 1, b.N}
			place := firstCPU(b)
			server := hire(b, peer.Config{Role: "connect-server", CPUs: place}, o)
			var c, s connectReport
			require.NoError(b, server.Recv(&s, limitFor(0)))
			o.Address = s.Address
			client := hire(b, peer.Config{Role: "connect-client", CPUs: place}, o)
			b.ResetTimer()
			require.NoError(b, client.Recv(&c, limitFor(o.N)))
			require.NoError(b, server.Recv(&s, limitFor(0)))
			require.Equal(b, o.Warm+o.N, s.Served)
			b.ReportMetric(float64(c.Took)/float64(o.N), "ns/op")
			reportUsage(b, o.N, c.Usage.Add(s.Usage))
		})
	}
}

func makeConnections(c *peer.Conn) error {
	var o connectOrder
	if err := c.Recv(&o); err != nil {
		return err
	}
	connect := func() (ipcbench.Channel, error) { return dial(o.Mechanism, o.Address) }
	if err := repeatConnect(connect, o.Warm); err != nil {
		return err
	}
	var r connectReport
	var err error
	r.Usage, err = used(func() error {
		began := time.Now()
		err := repeatConnect(connect, o.N)
		r.Took = time.Since(began)
		return err
	})
	if err != nil {
		return err
	}
	return c.Send(r)
}

// repeatConnect counts nothing that has failed: the first error ends it.
func repeatConnect(connect func() (ipcbench.Channel, error), n int) error {
	for i := range n {
		if err := visit(connect); err != nil {
			return fmt.Errorf("connection %d of %d: %w", i+1, n, err)
		}
	}
	return nil
}

// visit makes a connection, sends a byte, gets one, and sees the server close.
func visit(connect func() (ipcbench.Channel, error)) (err error) {
	ch, err := connect()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ch.Close()) }()
	p := []byte("?")
	if _, err := ch.Write(p); err != nil {
		return err
	}
	if err := readMessage(ch, p); err != nil {
		return err
	}
	if string(p) != "!" {
		return fmt.Errorf("%q came back", p)
	}
	if n, err := ch.Read(p); n != 0 || err != io.EOF {
		return fmt.Errorf("%d bytes and %v behind the answer", n, err)
	}
	return nil
}

func serveConnections(c *peer.Conn) error {
	var o connectOrder
	if err := c.Recv(&o); err != nil {
		return err
	}
	l, accept, err := listenAt(o.Mechanism, o.Address)
	if err != nil {
		return err
	}
	defer l.Close()
	if err := c.Send(connectReport{Address: l.Addr()}); err != nil {
		return err
	}
	var r connectReport
	serve := func(n int) error {
		for range n {
			if err := welcome(accept); err != nil {
				return err
			}
			r.Served++
		}
		return nil
	}
	if err := serve(o.Warm); err != nil {
		return err
	}
	if r.Usage, err = used(func() error { return serve(o.N) }); err != nil {
		return err
	}
	return c.Send(r)
}

func welcome(accept func() (ipcbench.Channel, error)) (err error) {
	ch, err := accept()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ch.Close()) }()
	p := make([]byte, 1)
	if err := readMessage(ch, p); err != nil {
		return err
	}
	_, err = ch.Write([]byte("!"))
	return err
}

// 100 ports and the 101st connection: it is a failure that says what to do, and no operation.
func TestPortsUsedUp(t *testing.T) {
	ports := 100
	made := 0
	connect := func() (ipcbench.Channel, error) {
		if made == ports {
			return nil, explainPorts(fmt.Errorf("tcploop: dial: %w", os.NewSyscallError("connect", unix.EADDRNOTAVAIL)))
		}
		made++
		a, b, err := kinds["unix-stream"].pair(ipcbench.Netpoll)
		if err != nil {
			return nil, err
		}
		go welcome(func() (ipcbench.Channel, error) { return b, nil })
		return a, nil
	}
	err := repeatConnect(connect, 101)
	require.ErrorIs(t, err, unix.EADDRNOTAVAIL)
	require.ErrorContains(t, err, "connection 101 of 101: ")
	require.ErrorContains(t, err, "ip_local_port_range")
	require.Equal(t, ports, made)
}
