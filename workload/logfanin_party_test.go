//go:build linux

package workload

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-e1736cc0/ipcbench"
	"github.com/seed-e1736cc0/ipcbench/framing"
	"github.com/seed-e1736cc0/ipcbench/internal/meter"
	"github.com/seed-e1736cc0/ipcbench/internal/peer"
	"github.com/seed-e1736cc0/ipcbench/pipe"
	"github.com/seed-e1736cc0/ipcbench/poller"
	"github.com/seed-e1736cc0/ipcbench/unixsock"
)

// The parties of a log collection, in processes of their own.

func init() {
	peer.Register("log-reader", readLogs)
	peer.Register("log-writer", writeLogs)
}

// slowReader is how long a slow reader takes for a record.
const slowReader = 10 * time.Microsecond

var recordFormat = framing.LengthPrefix(4, binary.BigEndian, 1000)

// A record says whose it is and which, and the last one how many there were. It counts
// what was accepted, so that a gap is a loss.
type record struct {
	writer, number, last uint64
}

func (r record) put(p []byte) {
	binary.BigEndian.PutUint64(p, r.writer)
	binary.BigEndian.PutUint64(p[8:], r.number)
	binary.BigEndian.PutUint64(p[16:], r.last)
}

func parse(p []byte) record {
	return record{binary.BigEndian.Uint64(p), binary.BigEndian.Uint64(p[8:]), binary.BigEndian.Uint64(p[16:])}
}

func writeLogs(c *peer.Conn) error {
	var o logOrder
	if err := c.Recv(&o); err != nil {
		return err
	}
	ch, err := o.connect(c)
	if err != nil {
		return err
	}
	defer ch.Close()
	runtime.LockOSThread() // it blocks in the kernel
	if err := errors.Join(c.Send(struct{}{}), c.Recv(nil)); err != nil {
		return err
	}
	var r logReport
	usage, err := used(func() (err error) { r, err = o.write(ch); return err })
	if err != nil {
		return err
	}
	r.Usage = usage
	return c.Send(r)
}

func (o logOrder) connect(c *peer.Conn) (ipcbench.Channel, error) {
	switch o.Mechanism {
	case "pipe":
		return pipe.FromFiles(c.Files(), pipe.Config{Wait: ipcbench.Block})
	case "unix-dgram":
		return unixsock.Dial(unixsock.Dgram, o.Path, unixsock.Config{Wait: ipcbench.Block})
	case "unix-seqpacket":
		return unixsock.Dial(unixsock.SeqPacket, o.Path, unixsock.Config{Wait: ipcbench.Block})
	}
	ch, err := unixsock.Dial(unixsock.Stream, o.Path, unixsock.Config{Wait: ipcbench.Block})
	if err != nil {
		return nil, err
	}
	return framing.New(ch, recordFormat), nil
}

func (o logOrder) write(ch ipcbench.Channel) (r logReport, err error) {
	write := ch.Write
	if o.Drop {
		write = ch.(ipcbench.NonBlocking).TryWrite
	}
	var took []int64
	if o.Slow {
		took = make([]int64, 0, o.Records)
	}
	p := make([]byte, recordSize)
	for range o.Records {
		record{writer: uint64(o.Writer), number: uint64(r.Accepted)}.put(p)
		began := time.Time{}
		if o.Slow {
			began = time.Now()
		}
		_, err := write(p)
		switch {
		case err == nil:
			r.Accepted++
		case o.Drop && errors.Is(err, ipcbench.ErrWouldBlock):
			r.Dropped++
		default:
			return r, fmt.Errorf("writer %d, record %d: %w", o.Writer, r.Accepted, err)
		}
		if o.Slow {
			took = append(took, int64(time.Since(began)))
		}
	}
	record{writer: uint64(o.Writer), number: uint64(r.Accepted), last: 1}.put(p)
	if _, err := ch.Write(p); err != nil {
		return r, fmt.Errorf("writer %d, last record: %w", o.Writer, err)
	}
	r.P99 = meter.NewTail(took).P99
	return r, nil
}

func readLogs(c *peer.Conn) error {
	var o logOrder
	if err := c.Recv(&o); err != nil {
		return err
	}
	t := newTally(o)
	read, ready, err := o.receiver(c, t)
	if err != nil {
		return err
	}
	if err := errors.Join(c.Send(struct{}{}), ready(), c.Recv(nil)); err != nil {
		return err
	}
	usage, err := used(func() error {
		for t.open > 0 {
			if err := read(); err != nil {
				return fmt.Errorf("after %d records, with %d writers open: %w", t.received, t.open, err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.Send(logReport{Received: t.received, Usage: usage})
}

// A tally checks that each writer's records come once and in order.
type tally struct {
	next     []uint64
	ended    []bool
	open     int // writers whose last record has not come
	received int
	slow     bool
}

func newTally(o logOrder) *tally {
	return &tally{make([]uint64, o.Writers), make([]bool, o.Writers), o.Writers, 0, o.Slow}
}

func (t *tally) take(p []byte) error {
	if len(p) != recordSize {
		return fmt.Errorf("a record of %d bytes, want %d", len(p), recordSize)
	}
	r := parse(p)
	switch {
	case r.writer >= uint64(len(t.next)) || t.ended[r.writer]:
		return fmt.Errorf("a record of writer %d, who is none", r.writer)
	case r.number != t.next[r.writer]:
		return fmt.Errorf("record %d of writer %d, want %d", r.number, r.writer, t.next[r.writer])
	case r.last != 0:
		t.ended[r.writer] = true
		t.open--
		return nil
	}
	t.next[r.writer]++
	t.received++
	if t.slow {
		for began := time.Now(); time.Since(began) < slowReader; {
		}
	}
	return nil
}

// receiver opens the reader's end. read takes what is there, waiting for something; ready returns once all writers are connected.
func (o logOrder) receiver(c *peer.Conn, t *tally) (read, ready func() error, err error) {
	nothing := func() error { return nil }
	switch o.Mechanism {
	case "pipe":
		ch, err := pipe.FromFiles(c.Files(), pipe.Config{Wait: ipcbench.Block})
		return cutRecords(ch, t), nothing, err
	case "unix-dgram":
		ch, err := unixsock.Bind(o.Path, unixsock.Config{Wait: ipcbench.Block})
		return oneRecord(ch, t), nothing, err
	}
	kind := unixsock.Stream
	if o.Mechanism == "unix-seqpacket" {
		kind = unixsock.SeqPacket
	}
	l, err := unixsock.Listen(kind, o.Path, unixsock.Config{Wait: ipcbench.Spin}) // non-blocking, for a poller of one's own
	if err != nil {
		return nil, nil, err
	}
	p, err := poller.New(poller.Epoll)
	s := &logServer{l, p, map[int]ipcbench.Channel{}, t, make([]poller.Event, 16), make([]byte, 2*recordSize)}
	return s.read, func() error { return s.accept(o.Writers) }, err
}

// oneRecord reads datagrams: each is a record.
func oneRecord(ch ipcbench.Channel, t *tally) func() error {
	p := make([]byte, 2*recordSize)
	return func() error {
		n, err := ch.Read(p)
		if err != nil {
			return err
		}
		return t.take(p[:n])
	}
}

// cutRecords reads a pipe that all writers share. A write of up to PIPE_BUF bytes is not split, so records follow
// each other whole.
func cutRecords(ch ipcbench.Channel, t *tally) func() error {
	buf, have := make([]byte, 64<<10), 0
	return func() error {
		n, err := ch.Read(buf[have:])
		if err == io.EOF {
			return io.ErrUnexpectedEOF // its writers say when they have done
		}
		if err != nil {
			return err
		}
		have += n
		at := 0
		for ; have-at >= recordSize; at += recordSize {
			if err := t.take(buf[at : at+recordSize]); err != nil {
				return err
			}
		}
		have = copy(buf, buf[at:have])
		return nil
	}
}

// A logServer has a connection for each writer, and waits for all of them.
type logServer struct {
	l      *unixsock.Listener
	poller poller.Poller
	conns  map[int]ipcbench.Channel // by descriptor
	tally  *tally
	events []poller.Event
	buf    []byte
}

func (s *logServer) accept(writers int) error {
	for range writers {
		ch, err := s.l.Accept()
		if err != nil {
			return err
		}
		var conn ipcbench.Channel = ch
		if !ch.Contract().Boundaries {
			conn = framing.New(ch, recordFormat)
		}
		s.conns[ch.ReadFD()] = conn
		if err := s.poller.Add(ch.ReadFD(), poller.Readable); err != nil {
			return err
		}
	}
	return nil
}

func (s *logServer) read() error {
	n, err := s.poller.Wait(s.events, -1)
	if err != nil {
		return err
	}
	for _, e := range s.events[:n] {
		if err := s.drain(e.FD); err != nil {
			return err
		}
	}
	return nil
}

// drain takes all that has come from a writer: a framed channel reads ahead, and its descriptor does not show that.
func (s *logServer) drain(fd int) error {
	ch := s.conns[fd]
	for {
		n, err := ch.(ipcbench.NonBlocking).TryRead(s.buf)
		switch {
		case errors.Is(err, ipcbench.ErrWouldBlock):
			return nil
		case err == io.EOF:
			return s.remove(fd)
		case err != nil:
			return err
		}
		if err := s.tally.take(s.buf[:n]); err != nil {
			return err
		}
	}
}

// remove forgets a writer that has closed, and has said so before.
func (s *logServer) remove(fd int) error {
	err := errors.Join(s.poller.Remove(fd), s.conns[fd].Close())
	delete(s.conns, fd)
	if err == nil && len(s.conns) < s.tally.open {
		return io.ErrUnexpectedEOF
	}
	return err
}

// The tally fails for what is lost, doubled, out of order or not a record.
func TestTally(t *testing.T) {
	send := func(records ...record) (err error) {
		tally := newTally(logOrder{Writers: 2})
		p := make([]byte, recordSize)
		for _, r := range records {
			r.put(p)
			if err := tally.take(p); err != nil {
				return err
			}
		}
		return nil
	}
	require.NoError(t, send(record{0, 0, 0}, record{1, 0, 0}, record{0, 1, 0}, record{0, 2, 1}))
	require.ErrorContains(t, send(record{0, 0, 0}, record{0, 2, 0}), "record 2 of writer 0, want 1")
	require.ErrorContains(t, send(record{0, 0, 0}, record{0, 0, 0}), "record 0 of writer 0, want 1")
	require.ErrorContains(t, send(record{1, 0, 0}, record{1, 2, 1}), "record 2 of writer 1, want 1", "the last ones are lost")
	require.ErrorContains(t, send(record{1, 0, 1}, record{1, 0, 0}), "who is none")
	require.ErrorContains(t, send(record{2, 0, 0}), "who is none")
	require.ErrorContains(t, newTally(logOrder{}).take(make([]byte, 119)), "119 bytes")
}
