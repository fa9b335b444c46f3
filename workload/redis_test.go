//go:build linux

package workload

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"

	"github.com/seed-e1736cc0/ipcbench/internal/peer"
)

// BenchmarkRedisINCR sends INCR foo from a process with one client or twenty, with a connection for each command
// or one for all. server=redis is the redis-server of IPCBENCH_REDIS_SERVER or of PATH, started here and stopped at the end. user-ns/op
// and sys-ns/op are the client's, server-ns/op is what redis-server says of itself.
func BenchmarkRedisINCR(b *testing.B) {
	own := embedded(b)
	redisRows(b, own, "embedded")
	path, err := redisBinary()
	if err != nil {
		fmt.Printf("# %s: server=redis left out: %v\n", b.Name(), err)
		return
	}
	redisRows(b, realRedis(b, path), "redis")
}

func redisRows(b *testing.B, s redisServer, name string) {
	for _, mech := range []string{"tcp", "unix-stream"} {
		for _, conn := range []string{"each", "kept"} {
			for _, clients := range []int{1, 20} {
				if testing.Short() && (clients > 1 || conn == "kept") {
					continue
				}
				b.Run(fmt.Sprintf("mech=%s/conn=%s/clients=%d/server=%s", mech, conn, clients, name), func(b *testing.B) {
					increments(b, s, redisOrder{mech, s.at(mech), conn == "each", clients, b.N}, name == "redis")
				})
			}
		}
	}
}

func increments(b *testing.B, s redisServer, o redisOrder, keepsStats bool) {
	_, err := s.ask("DEL", "foo")
	require.NoError(b, err)
	if keepsStats {
		_, err := s.ask("CONFIG", "RESETSTAT")
		require.NoError(b, err)
	}
	b.ResetTimer()
	client := hire(b, peer.Config{Role: "redis-client"}, o)
	var r redisReport
	require.NoError(b, client.Recv(&r, limitFor(o.N)))
	b.StopTimer()
	require.NoError(b, s.reconcile(r, o.N))
	b.ReportMetric(float64(r.Took)/float64(o.N), "ns/op")
	b.ReportMetric(float64(r.Usage.User)/float64(o.N), "user-ns/op")
	b.ReportMetric(float64(r.Usage.Sys)/float64(o.N), "sys-ns/op")
	if keepsStats {
		perCall, calls, err := s.incrTime()
		require.NoError(b, err)
		require.Equal(b, o.N, calls)
		b.ReportMetric(perCall, "server-ns/op")
	}
}

// reconcile compares what the clients say with what the server has counted. A command without a
// reply may have been carried out or not, and fails the run either way.
func (s redisServer) reconcile(r redisReport, want int) error {
	got, err := s.ask("GET", "foo")
	if err != nil {
		return err
	}
	counted := int(got.Int())
	switch {
	case counted < r.Done || counted > r.Done+r.Ambiguous:
		return fmt.Errorf("the server has counted %d, the clients %d and %d without a reply: %s", counted, r.Done, r.Ambiguous, r.Problem)
	case r.Problem != "":
		return fmt.Errorf("%d of %d commands, %d without a reply: %s", r.Done, want, r.Ambiguous, r.Problem)
	case counted != want:
		return fmt.Errorf("%d commands, want %d", counted, want)
	}
	return nil
}

// A reply is the same however the stream is cut, and several in one read are several.
func TestReplies(t *testing.T) {
	stream := ":12\r\n:-3\r\n+OK\r\n$5\r\na\r\nbc\r\n:0\r\n"
	for name, r := range map[string]io.Reader{
		"whole": strings.NewReader(stream), "bytes": iotest.OneByteReader(strings.NewReader(stream)), "halves": iotest.HalfReader(strings.NewReader(stream)),
	} {
		c := conversation{ch: struct {
			io.Reader
			io.Writer
		}{r, io.Discard}}
		for _, want := range []string{"12", "-3", "OK", "a\r\nbc", "0"} {
			got, err := c.reply()
			require.NoError(t, err, name)
			require.Equal(t, want, string(got.Data), name)
		}
		_, err := c.reply()
		require.Equal(t, io.EOF, err, name)
	}
}

func TestBadReplies(t *testing.T) {
	for stream, want := range map[string]string{
		"-ERR no\r\n": `the server replied "ERR no"`,
		"rubbish\r\n": "bytes that are no reply",
		":1":          "unexpected EOF",
		"$70000\r\n" + strings.Repeat("x", 70_000): "bytes that are no reply",
	} {
		c := conversation{ch: struct {
			io.Reader
			io.Writer
		}{strings.NewReader(stream), io.Discard}}
		_, err := c.reply()
		require.ErrorContains(t, err, want)
	}
}

func FuzzReplies(f *testing.F) {
	f.Add([]byte(":12\r\n"))
	f.Add([]byte("*2\r\n$3\r\nfoo\r\n:1\r\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		c := conversation{ch: struct {
			io.Reader
			io.Writer
		}{iotest.OneByteReader(strings.NewReader(string(stream))), io.Discard}}
		for range len(stream) + 1 {
			if _, err := c.reply(); err != nil && err != io.EOF {
				return
			}
		}
	})
}

// losing is a server that carries out every command and, from one on, closes without a reply.
func losing(t *testing.T, replies int64) redisServer {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	kept := &store{values: map[string]int64{}}
	var asked atomic.Int64
	go redcon.Serve(l, func(conn redcon.Conn, cmd redcon.Command) {
		if string(cmd.Args[0]) == "incr" && asked.Add(1) > replies {
			kept.mu.Lock()
			kept.values["foo"]++
			kept.mu.Unlock()
			conn.Close()
			return
		}
		kept.handle(conn, cmd)
	}, nil, nil)
	return redisServer{TCP: []string{l.Addr().String()}}
}

// A reply that is lost behind its command is told, counted, and never asked for again.
func TestLostReply(t *testing.T) {
	for _, each := range []bool{false, true} {
		s := losing(t, 5)
		client := hire(t, peer.Config{Role: "redis-client"}, redisOrder{"tcp", s.TCP, each, 2, 20})
		var r redisReport
		require.NoError(t, client.Recv(&r, 10*time.Second))
		require.Equal(t, 5, r.Done)
		require.Equal(t, 2, r.Ambiguous, "one of each client")
		require.ErrorContains(t, s.reconcile(r, 20), "5 of 20 commands, 2 without a reply")
		r.Ambiguous = 0
		require.ErrorContains(t, s.reconcile(r, 20), "the server has counted 7, the clients 5")
	}
}

// A server that dies in the middle ends the clients within seconds.
func TestRedisKilled(t *testing.T) {
	server := start(t, peer.Config{Role: "redis-embedded"}, redisServer{Unix: t.TempDir() + "/socket"})
	var s redisServer
	require.NoError(t, server.Recv(&s, 10*time.Second))
	var clients []*peer.Peer
	for _, mech := range []string{"tcp", "unix-stream"} {
		clients = append(clients, hire(t, peer.Config{Role: "redis-client"}, redisOrder{mech, s.at(mech), false, 4, 1 << 30}))
	}
	for n := int64(0); n < 100; { // both are at work
		got, err := s.ask("GET", "foo")
		require.NoError(t, err)
		n = got.Int()
	}
	server.Kill()
	require.NoError(t, server.Close())
	for _, client := range clients {
		var r redisReport
		require.NoError(t, client.Recv(&r, 10*time.Second))
		require.NotEmpty(t, r.Problem)
	}
}
