//go:build linux

package channeltest

import (
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/seed-e1736cc0/ipcbench"
)

// A memory channel is the reference that the faulty ones are made of: it keeps
// every promise, in all waits alike, and has deadlines and TryRead and TryWrite.

// memoryKind is what its Contract says.
type memoryKind int

const (
	stream   memoryKind = iota
	messages            // with Boundaries and an end, as a seqpacket
	endless             // with Boundaries and no end, as a datagram
)

const (
	memoryBytes    = 1 << 16
	memoryMessages = 64
	memoryLongest  = 4096
)

// A memoryQueue is one direction.
type memoryQueue struct {
	sync.Mutex
	changed sync.Cond
	kind    memoryKind
	data    []byte
	lengths []int // of the messages in data
	ended   bool  // no more will be written
	gone    bool  // no more will be read
}

func newMemoryQueue(kind memoryKind) *memoryQueue {
	q := &memoryQueue{kind: kind, data: make([]byte, 0, memoryBytes), lengths: make([]int, 0, memoryMessages)}
	q.changed.L = q
	return q
}

// take moves what a Read gets; ok reports that there was something.
func (q *memoryQueue) take(p []byte) (n int, err error, ok bool) {
	if q.kind == stream {
		n = copy(p, q.data)
		q.drop(n)
		return n, nil, n > 0
	}
	if len(q.lengths) == 0 {
		return 0, nil, false
	}
	size := q.lengths[0]
	q.lengths = append(q.lengths[:0], q.lengths[1:]...)
	n = copy(p, q.data[:size])
	q.drop(size)
	if n < size {
		err = ipcbench.ErrTruncated
	}
	return n, err, true
}

func (q *memoryQueue) drop(n int) {
	q.data = append(q.data[:0], q.data[n:]...)
	q.changed.Broadcast()
}

// put takes what there is room for; ok reports that it took something.
func (q *memoryQueue) put(p []byte) (n int, ok bool) {
	room := cap(q.data) - len(q.data)
	if q.kind == stream {
		n = min(len(p), room)
		ok = n > 0
	} else if ok = len(p) <= room && len(q.lengths) < cap(q.lengths); ok {
		n = len(p)
		q.lengths = append(q.lengths, n)
	}
	q.data = append(q.data, p[:n]...)
	if ok {
		q.changed.Broadcast()
	}
	return n, ok
}

// A memoryEnd is an end of two queues.
type memoryEnd struct {
	kind    memoryKind
	in, out *memoryQueue
	first   bool       // of the pair: decides the order in which the queues are locked
	writing sync.Mutex // held for a whole Write: they do not interleave

	closed      bool // guarded by in's and out's lock: set with both, read with either
	writeClosed bool // guarded by out
	readLimit   time.Time
	writeLimit  time.Time
}

func memoryPair(kind memoryKind) (a, b *memoryEnd) {
	there, back := newMemoryQueue(kind), newMemoryQueue(kind)
	return &memoryEnd{kind: kind, first: true, in: back, out: there}, &memoryEnd{kind: kind, in: there, out: back}
}

// tryReading is one attempt at a Read.
func (e *memoryEnd) tryReading(p []byte) (n int, err error, ok bool) {
	if e.closed {
		return 0, os.ErrClosed, true
	}
	if e.kind == stream && len(p) == 0 {
		return 0, nil, true
	}
	if n, err, ok = e.in.take(p); ok {
		return n, err, true
	}
	if e.in.ended && e.kind != endless {
		return 0, io.EOF, true
	}
	return 0, nil, false
}

func (e *memoryEnd) Read(p []byte) (int, error) {
	e.in.Lock()
	defer e.in.Unlock()
	for {
		if !e.closed && passed(e.readLimit) {
			return 0, os.ErrDeadlineExceeded
		}
		if n, err, ok := e.tryReading(p); ok {
			return n, err
		}
		e.in.changed.Wait()
	}
}

func (e *memoryEnd) TryRead(p []byte) (int, error) {
	e.in.Lock()
	defer e.in.Unlock()
	if n, err, ok := e.tryReading(p); ok {
		return n, err
	}
	return 0, ipcbench.ErrWouldBlock
}

// tryWriting is one attempt at a Write.
func (e *memoryEnd) tryWriting(p []byte) (n int, err error, ok bool) {
	switch {
	case e.closed || e.writeClosed:
		return 0, os.ErrClosed, true
	case e.kind == stream && len(p) == 0:
		return 0, nil, true
	case e.kind != stream && len(p) > memoryLongest:
		return 0, ipcbench.ErrMessageTooLong, true
	case e.out.gone && e.kind == endless:
		return 0, syscall.ECONNREFUSED, true
	case e.out.gone:
		return 0, syscall.EPIPE, true
	}
	n, ok = e.out.put(p)
	return n, nil, ok
}

func (e *memoryEnd) Write(p []byte) (n int, err error) {
	e.writing.Lock()
	defer e.writing.Unlock()
	e.out.Lock()
	defer e.out.Unlock()
	for {
		if !e.closed && !e.writeClosed && passed(e.writeLimit) {
			return n, os.ErrDeadlineExceeded
		}
		m, err, ok := e.tryWriting(p[n:])
		if n += m; ok && (err != nil || n == len(p)) {
			return n, err
		}
		if !ok {
			e.out.changed.Wait()
		}
	}
}

func (e *memoryEnd) TryWrite(p []byte) (int, error) {
	if !e.writing.TryLock() {
		return 0, ipcbench.ErrWouldBlock
	}
	defer e.writing.Unlock()
	e.out.Lock()
	defer e.out.Unlock()
	if n, err, ok := e.tryWriting(p); ok {
		return n, err
	}
	return 0, ipcbench.ErrWouldBlock
}

func (e *memoryEnd) CloseWrite() error {
	e.out.Lock()
	defer e.out.Unlock()
	switch {
	case e.closed || e.writeClosed:
		return os.ErrClosed
	case e.kind == endless:
		return ipcbench.ErrNoEndOfStream
	}
	e.writeClosed, e.out.ended = true, true
	e.out.changed.Broadcast()
	return nil
}

func (e *memoryEnd) Close() error {
	first, second := e.queues()
	first.Lock()
	defer first.Unlock()
	second.Lock()
	defer second.Unlock()
	if e.closed {
		return os.ErrClosed
	}
	e.closed, e.in.gone, e.out.ended = true, true, true
	e.in.changed.Broadcast()
	e.out.changed.Broadcast()
	return nil
}

// queues returns both in the order in which they are locked, the same at both ends.
func (e *memoryEnd) queues() (first, second *memoryQueue) {
	if e.first {
		return e.out, e.in
	}
	return e.in, e.out
}

func (e *memoryEnd) Contract() ipcbench.Contract {
	c := ipcbench.Contract{Mechanism: "memory", EndOfStream: e.kind != endless}
	if e.kind != stream {
		c.Boundaries, c.MaxMessage, c.AtomicWrite = true, memoryLongest, memoryLongest
	}
	return c
}

func passed(limit time.Time) bool { return !limit.IsZero() && !time.Now().Before(limit) }

func (e *memoryEnd) SetReadDeadline(t time.Time) error {
	return e.setDeadline(t, e.in, &e.readLimit)
}

func (e *memoryEnd) SetWriteDeadline(t time.Time) error {
	return e.setDeadline(t, e.out, &e.writeLimit)
}

func (e *memoryEnd) SetDeadline(t time.Time) error {
	if err := e.SetReadDeadline(t); err != nil {
		return err
	}
	return e.SetWriteDeadline(t)
}

func (e *memoryEnd) setDeadline(t time.Time, q *memoryQueue, limit *time.Time) error {
	q.Lock()
	defer q.Unlock()
	if e.closed {
		return os.ErrClosed
	}
	*limit = t
	q.changed.Broadcast()
	if !t.IsZero() {
		time.AfterFunc(time.Until(t), func() { // a timer whose deadline was moved wakes nobody for good
			q.Lock()
			defer q.Unlock()
			q.changed.Broadcast()
		})
	}
	return nil
}
