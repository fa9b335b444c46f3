//go:build linux

package workload

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"

	"github.com/seed-e1736cc0/ipcbench/internal/peer"
	"github.com/seed-e1736cc0/ipcbench/tcploop"
)

// The servers: one of our own on a maintained library for the protocol, and redis-server itself.

func init() { peer.Register("redis-embedded", embedRedis) }

// A redisServer listens in both ways. Ports are counted for each address of a server, so it has several.
type redisServer struct {
	TCP  []string
	Unix string
}

// addresses of a server on one port of several addresses of the loopback network.
func addresses(port int) (all []string) {
	for i := 1; i <= 8; i++ {
		all = append(all, fmt.Sprintf("127.0.0.%d:%d", i, port))
	}
	return all
}

func (s redisServer) at(mech string) []string {
	if mech == "tcp" {
		return s.TCP
	}
	return []string{s.Unix}
}

// ask asks over a connection of its own.
func (s redisServer) ask(args ...string) (redcon.RESP, error) {
	ch, err := tcploop.Dial(s.TCP[0], tcploop.Config{Timeout: 5 * time.Second})
	if err != nil {
		return redcon.RESP{}, err
	}
	defer ch.Close()
	if err := ch.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return redcon.RESP{}, err
	}
	return (&conversation{ch: ch}).ask(args...)
}

// embedded starts the server of our own.
func embedded(tb testing.TB) redisServer {
	s := redisServer{Unix: filepath.Join(tb.TempDir(), "socket")}
	require.NoError(tb, hire(tb, peer.Config{Role: "redis-embedded"}, s).Recv(&s, 10*time.Second))
	return s
}

func embedRedis(c *peer.Conn) error {
	var s redisServer
	if err := c.Recv(&s); err != nil {
		return err
	}
	listeners, err := s.listen()
	if err != nil {
		return err
	}
	kept := &store{values: map[string]int64{}}
	for _, l := range listeners {
		go redcon.Serve(l, kept.handle, nil, nil)
	}
	if err := c.Send(s); err != nil {
		return err
	}
	if err := c.Recv(nil); err != io.EOF {
		return err
	}
	return nil
}

// listen opens one port on all addresses of the server, and the unix socket.
func (s *redisServer) listen() (all []net.Listener, err error) {
	first, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s.TCP = addresses(first.Addr().(*net.TCPAddr).Port)
	all = append(all, first)
	for _, at := range s.TCP[1:] {
		l, err := net.Listen("tcp", at)
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	l, err := net.Listen("unix", s.Unix)
	return append(all, l), err
}

// A store counts.
type store struct {
	mu     sync.Mutex
	values map[string]int64
}

func (s *store) handle(conn redcon.Conn, cmd redcon.Command) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch name := strings.ToUpper(string(cmd.Args[0])); {
	case name == "INCR" && len(cmd.Args) == 2:
		s.values[string(cmd.Args[1])]++
		conn.WriteInt64(s.values[string(cmd.Args[1])])
	case name == "DEL" && len(cmd.Args) == 2:
		delete(s.values, string(cmd.Args[1]))
		conn.WriteInt(1)
	case name == "GET" && len(cmd.Args) == 2:
		conn.WriteBulkString(strconv.FormatInt(s.values[string(cmd.Args[1])], 10))
	default:
		conn.WriteError("ERR unknown command " + strconv.Quote(name))
	}
}

// redisBinary is the redis-server of IPCBENCH_REDIS_SERVER, or else of PATH.
func redisBinary() (string, error) {
	if path := os.Getenv("IPCBENCH_REDIS_SERVER"); path != "" {
		return exec.LookPath(path)
	}
	return exec.LookPath("redis-server")
}

// realRedis starts a redis-server that keeps nothing, and stops it at the end of tb.
func realRedis(tb testing.TB, path string) redisServer {
	var err error
	for range 5 { // somebody may take the port between our looking and its binding
		var s redisServer
		if s, err = tryRedis(tb, path); err == nil {
			return s
		}
	}
	require.NoError(tb, err)
	return redisServer{}
}

func tryRedis(tb testing.TB, path string) (redisServer, error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	port := free.Addr().(*net.TCPAddr).Port
	require.NoError(tb, free.Close())
	dir := tb.TempDir()
	s := redisServer{addresses(port), filepath.Join(dir, "socket")}
	var hosts []string
	for _, at := range s.TCP {
		host, _, _ := net.SplitHostPort(at)
		hosts = append(hosts, host)
	}
	args := append([]string{"--port", strconv.Itoa(port), "--unixsocket", s.Unix, "--dir", dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no", "--logfile", filepath.Join(dir, "log"), "--bind"}, hosts...)
	cmd := exec.Command(path, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return s, err
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	tb.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-exited:
		case <-time.After(5 * time.Second):
			cmd.Process.Kill()
			<-exited
		}
	})
	return s, s.await(exited, filepath.Join(dir, "log"))
}

// await returns once the server answers.
func (s redisServer) await(exited chan error, log string) error {
	deadline := time.Now().Add(10 * time.Second)
	for {
		_, err := s.ask("PING")
		if err == nil {
			return nil
		}
		select {
		case state := <-exited:
			exited <- state
			text, _ := os.ReadFile(log)
			return fmt.Errorf("redis-server has ended: %v\n%s", state, text)
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return errors.Join(errors.New("redis-server does not answer"), err)
		}
	}
}

// incrTime is what the server says that an INCR has taken it, in nanoseconds.
func (s redisServer) incrTime() (perCall float64, calls int, err error) {
	r, err := s.ask("INFO", "commandstats")
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(r.Data)) {
		rest, ok := strings.CutPrefix(line, "cmdstat_incr:")
		if !ok {
			continue
		}
		var usec int64
		if _, err := fmt.Sscanf(rest, "calls=%d,usec=%d,", &calls, &usec); err != nil {
			return 0, 0, fmt.Errorf("INFO commandstats: %q: %w", line, err)
		}
		return float64(usec) * 1000 / float64(calls), calls, nil
	}
	return 0, 0, fmt.Errorf("INFO commandstats without INCR: %q", r.Data)
}
