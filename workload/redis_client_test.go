//go:build linux

package workload

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/tidwall/redcon"

	"github.com/seed-e1736cc0/ipcbench"
	"github.com/seed-e1736cc0/ipcbench/internal/meter"
	"github.com/seed-e1736cc0/ipcbench/internal/peer"
)

// The client's side of Redis: bytes as the article sent them, and every reply looked at.

func init() { peer.Register("redis-client", incrementAll) }

const incrFoo = "*2\r\n$4\r\nincr\r\n$3\r\nfoo\r\n"

// A conversation with a server takes replies one by one, however the stream is cut.
type conversation struct {
	ch  io.ReadWriter
	buf []byte
}

// mostReply bounds what is read for one reply: nothing that is asked here is longer.
const mostReply = 64 << 10

var errNoReply = errors.New("bytes that are no reply")

// reply returns the next reply, valid until the next call. An error that the server replies is an error.
func (c *conversation) reply() (redcon.RESP, error) {
	for {
		n, r := redcon.ReadNextRESP(c.buf)
		if n > 0 {
			c.buf = c.buf[n:]
			if r.Type == redcon.Error {
				return r, fmt.Errorf("the server replied %q", r.Data)
			}
			return r, nil
		}
		if len(c.buf) >= mostReply || len(c.buf) > 0 && !isReply(c.buf[0]) {
			return r, fmt.Errorf("%w: %.20q", errNoReply, c.buf)
		}
		at := len(c.buf)
		c.buf = append(c.buf, make([]byte, 512)...)
		m, err := c.ch.Read(c.buf[at:])
		c.buf = c.buf[:at+m]
		if err != nil && m == 0 {
			if err == io.EOF && at > 0 {
				err = io.ErrUnexpectedEOF
			}
			return r, err
		}
	}
}

func isReply(b byte) bool {
	switch redcon.Type(b) {
	case redcon.Integer, redcon.String, redcon.Bulk, redcon.Array, redcon.Error:
		return true
	}
	return false
}

// ask sends a command in one write.
func (c *conversation) ask(args ...string) (redcon.RESP, error) {
	p := redcon.AppendArray(nil, len(args))
	for _, a := range args {
		p = redcon.AppendBulkString(p, a)
	}
	if _, err := c.ch.Write(p); err != nil {
		return redcon.RESP{}, err
	}
	return c.reply()
}

// errAmbiguous: the command was sent and nobody knows whether it was carried out. It is never sent again.
var errAmbiguous = errors.New("no reply to a command that was sent")

func (c *conversation) increment() error {
	if n, err := c.ch.Write([]byte(incrFoo)); err != nil {
		if n == 0 {
			return err
		}
		return errors.Join(errAmbiguous, err)
	}
	r, err := c.reply()
	switch {
	case err != nil && r.Type != redcon.Error:
		return errors.Join(errAmbiguous, err)
	case err != nil:
		return err
	case r.Type != redcon.Integer || r.Int() < 1:
		return fmt.Errorf("%w to INCR: %q", errNoReply, r.Raw)
	}
	return nil
}

type redisOrder struct {
	Mechanism  string
	Addresses  []string // taken in turn, since each has TIME_WAITs of its own
	Each       bool     // a connection for each command
	Clients, N int
}

type redisReport struct {
	Took      time.Duration
	Usage     meter.Usage
	Done      int // commands with a good reply
	Ambiguous int
	Problem   string
}

func incrementAll(c *peer.Conn) error {
	var o redisOrder
	if err := c.Recv(&o); err != nil {
		return err
	}
	var r redisReport
	var mu sync.Mutex
	note := func(done int, err error) {
		mu.Lock()
		defer mu.Unlock()
		r.Done += done
		if errors.Is(err, errAmbiguous) {
			r.Ambiguous++
		}
		if err != nil {
			r.Problem = err.Error()
		}
	}
	usage, err := used(func() error {
		began := time.Now()
		var all sync.WaitGroup
		for i := range o.Clients {
			all.Go(func() { note(o.client(i)) })
		}
		all.Wait()
		r.Took = time.Since(began)
		return nil
	})
	if err != nil {
		return err
	}
	r.Usage = usage
	return c.Send(r)
}

// client is one of several: it sends its share of the commands, and ends with the first that fails.
func (o redisOrder) client(i int) (done int, err error) {
	share := o.N / o.Clients
	if i < o.N%o.Clients {
		share++
	}
	if !o.Each {
		return o.talk(i, share)
	}
	for ; done < share; done++ {
		if _, err := o.talk(i+done, 1); err != nil {
			return done, err
		}
	}
	return done, nil
}

// talk sends n commands over a connection of their own.
func (o redisOrder) talk(i, n int) (done int, err error) {
	if n == 0 {
		return 0, nil
	}
	ch, err := dial(o.Mechanism, o.Addresses[i%len(o.Addresses)])
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, ch.Close()) }()
	if err := ch.(ipcbench.Deadliner).SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return 0, err
	}
	c := conversation{ch: ch}
	for ; done < n; done++ {
		if err := c.increment(); err != nil {
			return done, err
		}
	}
	return done, nil
}
