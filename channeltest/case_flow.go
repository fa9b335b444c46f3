//go:build linux

package channeltest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"testing"

	"github.com/seed-e1736cc0/ipcbench"
)

// What happens when the channel is full or empty, and when several write at once.

var flowCases = []testCase{
	{"back-pressure", tryBackPressure},
	{"atomic", tryAtomic},
	{"try-read", tryTryRead},
	{"try-write", tryTryWrite},
	{"allocation", tryAllocation},
}

// nonBlocking skips the case where a channel never says that it would wait.
func (t *trial) nonBlocking(ch ipcbench.Channel) ipcbench.NonBlocking {
	nb, ok := ch.(ipcbench.NonBlocking)
	if !ok {
		t.skip("%s is no ipcbench.NonBlocking", t.mech.Name)
	}
	return nb
}

// fullAfter is more than any channel should hold, in bytes.
const fullAfter = 1 << 30

// fill writes pieces of bulk data until nothing more is taken, and says how much was.
func (t *trial) fill(ch ipcbench.Channel, from int64, size int) (at int64) {
	nb := t.nonBlocking(ch)
	t.step("TryWrite until full")
	for at = from; at < fullAfter; {
		n, err := nb.TryWrite(piece(at, size))
		if errors.Is(err, ipcbench.ErrWouldBlock) {
			if n != 0 || !errors.Is(err, syscall.EAGAIN) {
				t.fail("TryWrite at a full channel returned %d, %v, want 0 and EAGAIN", n, err)
			}
			return at
		}
		t.check(err, "TryWrite")
		if n < 1 || n > size || ch.Contract().Boundaries && n != len(piece(at, size)) {
			t.fail("TryWrite of %d bytes returned %d and no error", size, n)
		}
		at += int64(n)
	}
	t.fail("TryWrite takes more than %d bytes that nobody reads", fullAfter)
	return at
}

// drain reads bulk data up to a position and compares.
func (t *trial) drain(ch ipcbench.Channel, from, to int64) {
	buf := make([]byte, 65_000)
	stream := !ch.Contract().Boundaries
	for at := from; at < to; {
		t.step("Read at byte %d of %d that were accepted", at, to)
		room := buf
		if stream { // a Write that waits may follow
			room = buf[:min(int64(len(buf)), to-at)]
		}
		n, err := ch.Read(room)
		t.check(err, "Read at byte %d of %d that were accepted", at, to)
		if at+int64(n) > to || !bytes.Equal(buf[:n], piece(at, n)) {
			t.fail("at byte %d of %d others arrived than were accepted", at, to)
		}
		at += int64(n)
	}
}

// flowSize is the length of the writes that fill a channel.
func flowSize(c ipcbench.Contract) int {
	if c.Boundaries {
		return min(1000, c.MaxMessage)
	}
	return 1000
}

// surplus is bulk data from a position on that a channel which has just refused more cannot take: in one Write on
// a stream, in messages otherwise. It is more than the channel holds, because a stream, tcp above all, makes room
// afterwards, as it moves what it holds from one end's buffer to the other's, and has it also where it carries messages.
func surplus(c ipcbench.Contract, at int64) (writes [][]byte) {
	end := 2*at + 1<<16
	var p []byte
	for at < end {
		next := piece(at, int(min(int64(flowSize(c)), end-at)))
		at += int64(len(next))
		if c.Boundaries {
			writes = append(writes, next)
		} else {
			p = append(p, next...)
		}
	}
	if !c.Boundaries {
		writes = [][]byte{p}
	}
	return writes
}

// overfill writes a surplus, as far as it gets, and returns how many bytes were accepted.
func overfill(ch ipcbench.Channel, writes [][]byte) (n int, err error) {
	for _, p := range writes {
		m, err := ch.Write(p)
		n += m
		switch {
		case err != nil && m > 0 && ch.Contract().Boundaries:
			return n, fmt.Errorf("%d of %d bytes of a message were accepted: %w", m, len(p), errPart)
		case err != nil:
			return n, err
		}
	}
	return n, nil
}

var errPart = errors.New("a part of a message")

func total(writes [][]byte) (n int64) {
	for _, p := range writes {
		n += int64(len(p))
	}
	return n
}

func tryBackPressure(t *trial) {
	a, b := t.pair()
	at := t.fill(a, 0, flowSize(a.Contract()))
	next := surplus(a.Contract(), at)
	blocked := begin(func() (int, error) { return overfill(a, next) })
	t.running(blocked, "a Write to a full channel")
	t.drain(b, 0, at+total(next))
	t.end(blocked, "a Write to a channel that has been drained")
	t.check(blocked.err, "Write")
	if !a.Contract().Boundaries {
		// A Write that is longer than the channel holds passes through it.
		const long = 60_000
		big := begin(func() (int, error) {
			for i := range int64(40) {
				if n, err := a.Write(piece(i*long, long)); err != nil {
					return n, err
				}
			}
			return 0, nil
		})
		for i := range int64(40) {
			p := piece(i*long, long)
			got := t.read(b, len(p))
			if !bytes.Equal(got, p) {
				t.fail("a long Write arrived with other content")
			}
		}
		t.end(big, "long Writes")
		t.check(big.err, "long Writes")
	}
}

// tryAtomic has several goroutines write records that say who wrote them, how
// long they are, and which one they are.
func tryAtomic(t *trial) {
	a, b := t.pair()
	c := a.Contract()
	const writers, records = 4, 150
	length := func(writer, i int) int {
		n := 12 + (writer*7919+i*104729)%200_000
		if c.Boundaries {
			n = 12 + n%(min(c.MaxMessage, 50_000)-11)
		}
		return n
	}
	t.step("Writes of %d goroutines at once", writers)
	var all sync.WaitGroup
	errs := make(chan error, writers)
	for w := range writers {
		all.Go(func() {
			for i := range records {
				if _, err := a.Write(record(w, i, length(w, i))); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	var next [writers]int
	for range writers * records {
		p, err := readRecord(b, c.Boundaries)
		select {
		case e := <-errs:
			t.fail("Write: %v", e)
		default:
		}
		t.check(err, "a record")
		w := int(binary.BigEndian.Uint32(p[4:]))
		if w >= writers || !bytes.Equal(p, record(w, next[w], length(w, next[w]))) {
			t.fail("Writes have interleaved")
		}
		next[w]++
	}
	all.Wait()
}

// record is what a writer of tryAtomic writes as its i-th: n, the writer and i, and bytes that know their writer and place.
func record(writer, i, n int) []byte {
	p := make([]byte, n)
	for at := range p {
		p[at] = byte(writer) + byte(at>>8) ^ byte(at)
	}
	binary.BigEndian.PutUint32(p, uint32(n))
	binary.BigEndian.PutUint32(p[4:], uint32(writer))
	binary.BigEndian.PutUint32(p[8:], uint32(i))
	return p
}

func readRecord(ch ipcbench.Channel, whole bool) ([]byte, error) {
	if whole {
		p := make([]byte, 60_000)
		n, err := ch.Read(p)
		if err == nil && (n < 12 || int(binary.BigEndian.Uint32(p)) != n) {
			err = errors.New("the records of several Writes have interleaved")
		}
		return p[:n], err
	}
	head, err := readN(ch, 12)
	if err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint32(head))
	if n < 12 || n > 1<<20 {
		return nil, errors.New("the records of several Writes have interleaved")
	}
	rest, err := readN(ch, n-12)
	return append(head, rest...), err
}

func readN(ch ipcbench.Channel, n int) ([]byte, error) {
	p := make([]byte, n)
	for got := 0; got < n; {
		m, err := ch.Read(p[got:])
		if err != nil {
			return nil, err
		}
		got += m
	}
	return p, nil
}

func tryTryRead(t *trial) {
	a, b := t.pair()
	nb := t.nonBlocking(b)
	buf := make([]byte, 10)
	empty := func() {
		t.step("TryRead of an empty channel")
		n, err := nb.TryRead(buf)
		t.wantIs("TryRead of an empty channel", err, ipcbench.ErrWouldBlock, syscall.EAGAIN)
		if n != 0 {
			t.fail("TryRead of an empty channel returned %d", n)
		}
	}
	empty()
	for range 3 {
		t.write(a, []byte("now"))
		t.step("TryRead")
		// A message may take a moment to cross even one machine (tcp).
		n, err := nb.TryRead(buf)
		for tries := 0; errors.Is(err, ipcbench.ErrWouldBlock) && tries < 1e6; tries++ {
			n, err = nb.TryRead(buf)
		}
		t.check(err, "TryRead")
		if string(buf[:n]) != "now" {
			t.fail("TryRead returned %q", buf[:n])
		}
	}
	empty()
	pending := begin(func() (int, error) { return b.Read(make([]byte, 10)) })
	empty() // beside a Read that waits for the same bytes
	t.write(a, []byte("x"))
	t.end(pending, "a Read beside TryRead")
	t.check(pending.err, "a Read beside TryRead")
	if a.Contract().EndOfStream {
		t.close(a)
		t.readEnd(b)
		if n, err := nb.TryRead(buf); n != 0 || err != io.EOF {
			t.fail("TryRead at the end returned %d, %v", n, err)
		}
	}
}

func tryTryWrite(t *trial) {
	var a, b ipcbench.Channel
	var at int64
	var next [][]byte
	var pending *call
	// A stream below may make room between two messages, and take a part of another one: that is the same again.
	for tries := 20; ; tries-- {
		a, b = t.pair()
		at = t.fill(a, 0, flowSize(a.Contract()))
		next = surplus(a.Contract(), at)
		pending = begin(func() (int, error) { return overfill(a, next) })
		t.step("TryWrite beside a Write that waits")
		n, err := t.nonBlocking(a).TryWrite(piece(0, flowSize(a.Contract())))
		if n == 0 && errors.Is(err, ipcbench.ErrWouldBlock) {
			break
		}
		if tries == 0 || !a.Contract().Boundaries || err != nil {
			t.fail("TryWrite at a full channel, beside a Write, returned %d, %v", n, err)
		}
	}
	c := a.Contract()
	rest := at + total(next)
	t.drain(b, 0, rest)
	t.end(pending, "the Write beside TryWrite")
	t.check(pending.err, "the Write beside TryWrite")
	if c.Boundaries {
		return
	}
	// Room for a part: it is taken, and what remains goes on where it ended.
	full := t.fill(a, rest, 50_000)
	t.drain(b, rest, full)
	end := t.fill(a, full, 60_000)
	t.drain(b, full, end)
}

func tryAllocation(t *trial) {
	if raceEnabled {
		t.skip("the race detector allocates")
	}
	a, b := t.pair()
	p, q := []byte("12345678"), make([]byte, 100)
	var failed error
	note := func(_ int, err error) {
		if err != nil && !errors.Is(err, ipcbench.ErrWouldBlock) {
			failed = err
		}
	}
	held := begin(func() (int, error) { // what is measured may wait for a reader
		for {
			if n, err := b.Read(q); err != nil {
				return n, err
			}
		}
	})
	t.step("Writes that are counted")
	if n := testing.AllocsPerRun(200, func() { note(a.Write(p)) }); n > 0 {
		t.note("a Write and its Read make %v allocations", n)
	}
	t.close(b)
	t.close(a)
	t.end(held, "Read after Close")
	t.check(failed, "Write")

	a, b = t.pair()
	na, nb := t.nonBlocking(a), t.nonBlocking(b)
	t.step("Writes, each with its Read, that are counted")
	if n := testing.AllocsPerRun(200, func() { // above, Reads may have lagged behind, or taken several Writes at once
		note(a.Write(p))
		note(b.Read(q))
	}); n > 0 {
		t.note("a Write and a Read make %v allocations", n)
	}
	t.step("TryWrites and TryReads that are counted")
	if n := testing.AllocsPerRun(200, func() {
		note(nb.TryRead(q))
		note(na.TryWrite(p))
		note(nb.TryRead(q))
	}); n > 0 {
		t.note("TryWrite and TryRead make %v allocations", n)
	}
	t.check(failed, "TryWrite and TryRead")
}
