// Not under the race detector: some of the planted faults are races, and it
// slows everything by an amount that the short limits of hung cases do not allow for.

//go:build linux && !race

package channeltest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-e1736cc0/ipcbench"
	"github.com/seed-e1736cc0/ipcbench/internal/peer"
	"github.com/seed-e1736cc0/ipcbench/pipe"
)

// A faulty end is a memory end, some of whose methods do what they should not. Nil: they do what they should.
type faulty struct {
	*memoryEnd
	read, write, tryRead, tryWrite                 func(p []byte) (int, error)
	close, closeWrite                              func() error
	setDeadline, setReadDeadline, setWriteDeadline func(time.Time) error
	contract                                       func() ipcbench.Contract

	stop    chan struct{}  // closed when the table's row is over: ends what the fault blocks
	release func(f func()) // has f called then
}

func (f *faulty) Read(p []byte) (int, error)     { return or(f.read, f.memoryEnd.Read)(p) }
func (f *faulty) Write(p []byte) (int, error)    { return or(f.write, f.memoryEnd.Write)(p) }
func (f *faulty) TryRead(p []byte) (int, error)  { return or(f.tryRead, f.memoryEnd.TryRead)(p) }
func (f *faulty) TryWrite(p []byte) (int, error) { return or(f.tryWrite, f.memoryEnd.TryWrite)(p) }

func (f *faulty) Close() error {
	if f.close != nil {
		return f.close()
	}
	return f.memoryEnd.Close()
}

func (f *faulty) CloseWrite() error {
	if f.closeWrite != nil {
		return f.closeWrite()
	}
	return f.memoryEnd.CloseWrite()
}

func (f *faulty) SetDeadline(t time.Time) error {
	if f.setDeadline != nil {
		return f.setDeadline(t)
	}
	return errors.Join(f.SetReadDeadline(t), f.SetWriteDeadline(t))
}

func (f *faulty) SetReadDeadline(t time.Time) error {
	if f.setReadDeadline != nil {
		return f.setReadDeadline(t)
	}
	return f.memoryEnd.SetReadDeadline(t)
}

func (f *faulty) SetWriteDeadline(t time.Time) error {
	if f.setWriteDeadline != nil {
		return f.setWriteDeadline(t)
	}
	return f.memoryEnd.SetWriteDeadline(t)
}

func (f *faulty) Contract() ipcbench.Contract {
	if f.contract != nil {
		return f.contract()
	}
	return f.memoryEnd.Contract()
}

// claim changes what the Contract says, and nothing else.
func (f *faulty) claim(change func(c *ipcbench.Contract)) {
	f.contract = func() ipcbench.Contract {
		c := f.memoryEnd.Contract()
		change(&c)
		return c
	}
}

func or(faulty, sound func([]byte) (int, error)) func([]byte) (int, error) {
	if faulty != nil {
		return faulty
	}
	return sound
}

// wedge blocks for ever, which ends with the row.
func (f *faulty) wedge() { <-f.stop }

var errStrange = errors.New("an error that nobody has heard of")

type faultRow struct {
	name  string
	kind  memoryKind
	spoil func(f *faulty)
	fails []string
}

// mechanism has the fault, until its row is over.
func (row faultRow) mechanism(over *rowEnd) Mechanism {
	spoilt := func(e *memoryEnd) ipcbench.Channel {
		f := &faulty{memoryEnd: e, stop: over.stop, release: over.release}
		row.spoil(f)
		return f
	}
	return Mechanism{Name: "memory", Pair: func(ipcbench.Wait) (ipcbench.Channel, ipcbench.Channel, error) {
		a, b := memoryPair(row.kind)
		return spoilt(a), spoilt(b), nil
	}}
}

// faults are what the suite has to find. Each names every case that fails by it
// and no other may. The first is the guard; the others need what is broken too.
var faults = []faultRow{
	{"nothing wrong with a stream", stream, func(*faulty) {}, nil},
	{"nothing wrong with messages", messages, func(*faulty) {}, nil},
	{"nothing wrong without an end", endless, func(*faulty) {}, nil},

	// What arrives.
	{"drops the last byte of long Writes", stream, dropsLast, []string{"bulk", "atomic"}},
	{"reorders what is read", stream, reorders, []string{"bulk", "atomic"}},
	{"merges short messages", messages, merges, []string{"three-writes", "bulk"}},
	{"splits messages", messages, splits, []string{"three-writes"}},
	{"interleaves Writes", stream, interleaves, []string{"atomic"}},
	{"sends a message twice", messages, doubles, []string{"three-writes"}},
	{"a Read holds up a Write", stream, halfDuplex, []string{"bulk"}},
	{"truncates silently", messages, truncatesSilently, []string{"short-buffer"}},
	{"keeps the rest of a message", messages, keepsRest, []string{"short-buffer", "allocation"}},
	{"sends a part of a message that is too long", messages, sendsPart, []string{"boundaries"}},
	{"an unknown error for a message that is too long", messages, strangeTooLong, []string{"boundaries"}},
	{"an empty message is the end", messages, emptyIsEnd, []string{"empty"}},
	{"loses empty messages", messages, losesEmpty, []string{"empty"}},
	{"an empty Write to a stream fails", stream, emptyFails, []string{"empty"}},

	// Being full, and not waiting.
	{"loses what does not fit", stream, losesOverflow, []string{"back-pressure", "try-write", "write-deadline"}},
	{"loses messages that do not fit", messages, losesOverflow, []string{"back-pressure", "try-write"}},
	{"is never full", messages, neverFull, []string{"back-pressure", "try-write", "close-write", "gone-reader", "write-deadline"}},
	{"TryRead waits", messages, tryReadWaits, []string{"try-read", "allocation"}},
	{"TryRead says nothing with another error", messages, strangeTryRead, []string{"try-read", "allocation"}},
	{"TryRead finds no end", stream, tryReadWithoutEnd, []string{"try-read"}},
	{"TryWrite waits", stream, tryWriteWaits, []string{"try-write", "back-pressure", "close-write", "gone-reader", "write-deadline"}},
	{"TryWrite takes a part and says all", stream, tryWriteLies, []string{"try-write", "back-pressure", "write-deadline"}},
	{"TryWrite takes a part of a message", messages, tryWriteParts, []string{"try-write", "back-pressure", "close-write", "gone-reader", "write-deadline"}},
	{"allocates in Read", messages, func(f *faulty) { f.read = wasteful(f.memoryEnd.Read) }, []string{"allocation"}},
	{"allocates in Write", messages, func(f *faulty) { f.write = wasteful(f.memoryEnd.Write) }, []string{"allocation"}},
	{"allocates in TryRead", messages, func(f *faulty) { f.tryRead = wasteful(f.memoryEnd.TryRead) }, []string{"allocation"}},

	// Ends.
	{"ends early", stream, endsEarly, []string{"bulk", "atomic"}},
	{"never ends", stream, neverEnds, []string{"end", "half-close", "try-read"}},
	{"ends once", stream, endsOnce, []string{"end", "half-close", "try-read"}},
	{"wraps the end", stream, wrapsEnd, []string{"end", "half-close", "try-read"}},
	{"ends where there is no end", endless, endsAnyway, []string{"no-end"}},
	{"CloseWrite does nothing", stream, closeWriteNothing, []string{"half-close", "close-write"}},
	{"CloseWrite ends both directions", stream, closeWriteBoth, []string{"half-close"}},
	{"CloseWrite drops what is on its way", stream, closeWriteDrops, []string{"half-close"}},
	{"CloseWrite does not end a Write under way", stream, closeWriteWaits, []string{"close-write"}},
	{"CloseWrite without an end succeeds", endless, closeWriteNothing, []string{"no-end"}},
	{"Close drops what is on its way", stream, closeDrops, []string{"end"}},
	{"Write to nobody succeeds", stream, writesToNobody, []string{"gone-reader"}},
	{"Write to nobody fails strangely", stream, strangeToNobody, []string{"gone-reader"}},
	{"Write to nobody waits once it waits", stream, waitsForNobody, []string{"gone-reader"}},

	// Close.
	{"blocks for ever in Close", stream, closeBlocks, closing},
	{"Close does not end a Read", stream, closeLeavesRead, []string{"close-read", "allocation"}},
	{"Close does not end a Write", stream, closeLeavesWrite, []string{"close-write"}},
	{"Close again succeeds", stream, closesAgain, []string{"closed"}},
	{"reads after Close", stream, readsAfterClose, []string{"closed"}},
	{"leaks a descriptor", stream, leaksDescriptor, []string{"hygiene"}},
	{"leaks a goroutine", stream, leaksGoroutine, []string{"hygiene"}},

	// Deadlines.
	{"ignores deadlines of Read", stream, func(f *faulty) { f.setReadDeadline = ignored }, []string{"read-deadline"}},
	{"ignores deadlines of Write", stream, func(f *faulty) { f.setWriteDeadline = ignored }, []string{"write-deadline"}},
	{"SetDeadline is for Read alone", stream, setDeadlineReads, []string{"write-deadline"}},
	{"SetReadDeadline is for Write too", stream, setReadDeadlineBoth, []string{"read-deadline"}},
	{"keeps a deadline that was taken away", stream, keepsDeadline, []string{"read-deadline"}},
	{"a deadline is for later calls only", stream, deadlineForLater, []string{"read-deadline"}},
	{"a deadline is not moved later", stream, deadlineStays, []string{"read-deadline"}},
	{"a deadline loses what it met", stream, deadlineLoses, []string{"read-deadline"}},
	{"a Write that meets its deadline says nothing was accepted", stream, deadlineDenies, []string{"write-deadline"}},

	// Contracts that are not kept.
	{"claims another name", stream, func(f *faulty) { f.claim(func(c *ipcbench.Contract) { c.Mechanism = "other" }) }, []string{"contract"}},
	{"claims Boundaries", stream, func(f *faulty) {
		f.claim(func(c *ipcbench.Contract) { c.Boundaries, c.MaxMessage = true, memoryLongest })
	}, []string{"three-writes", "bulk", "boundaries", "short-buffer", "empty", "back-pressure", "atomic", "try-write", "close-write", "gone-reader", "write-deadline"}},
	{"claims a stream", messages, func(f *faulty) {
		f.claim(func(c *ipcbench.Contract) { c.Boundaries, c.MaxMessage = false, 0 })
	}, []string{"bulk", "back-pressure", "atomic", "try-write", "close-write", "gone-reader", "write-deadline"}},
	{"claims an end", endless, func(f *faulty) { f.claim(func(c *ipcbench.Contract) { c.EndOfStream = true }) }, []string{"end", "try-read", "half-close", "close-write", "hygiene"}},
	{"claims no end", messages, func(f *faulty) { f.claim(func(c *ipcbench.Contract) { c.EndOfStream = false }) }, []string{"no-end"}},
	{"claims longer messages", messages, func(f *faulty) { f.claim(func(c *ipcbench.Contract) { c.MaxMessage++ }) }, []string{"boundaries", "bulk"}},
	{"claims shorter messages", messages, func(f *faulty) { f.claim(func(c *ipcbench.Contract) { c.MaxMessage-- }) }, []string{"boundaries"}},
	{"claims a longest message of a stream", stream, func(f *faulty) { f.claim(func(c *ipcbench.Contract) { c.MaxMessage = 1 }) }, []string{"contract"}},
	{"claims otherwise after Close", stream, func(f *faulty) {
		f.claim(func(c *ipcbench.Contract) { c.Files = f.closed })
	}, []string{"contract"}},
	{"claims otherwise at the other end", stream, func(f *faulty) {
		f.claim(func(c *ipcbench.Contract) { c.Files = f.first })
	}, []string{"contract"}},
}

// closing are the cases that call Close themselves.
var closing = []string{"contract", "end", "gone-reader", "try-read", "closed", "close-write", "close-read", "allocation", "hygiene"}

func dropsLast(f *faulty) {
	f.write = func(p []byte) (int, error) {
		if len(p) > 20_000 && len(p) < 60_000 {
			n, err := f.memoryEnd.Write(p[:len(p)-1])
			return n + 1, err
		}
		return f.memoryEnd.Write(p)
	}
}

// reorders exchanges the halves of a long Read, once.
func reorders(f *faulty) {
	read, done := 0, false
	f.read = func(p []byte) (int, error) {
		n, err := f.memoryEnd.Read(p)
		if read += n; read > 3<<20 && n > 100 && !done {
			done = true
			half := slices.Clone(p[:n/2])
			copy(p, p[n/2:n])
			copy(p[n-n/2:], half)
		}
		return n, err
	}
}

func merges(f *faulty) {
	f.read = func(p []byte) (int, error) {
		n, err := f.memoryEnd.Read(p)
		if n != 3 || err != nil {
			return n, err
		}
		m, err := f.memoryEnd.TryRead(p[n:])
		if errors.Is(err, ipcbench.ErrWouldBlock) {
			err = nil
		}
		return n + m, err
	}
}

func splits(f *faulty) {
	f.write = func(p []byte) (int, error) {
		if len(p) != 4 || p[0] != 'C' {
			return f.memoryEnd.Write(p)
		}
		n, _ := f.memoryEnd.Write(p[:2])
		m, err := f.memoryEnd.Write(p[2:])
		return n + m, err
	}
}

func doubles(f *faulty) {
	f.write = func(p []byte) (int, error) {
		if string(p) == "BB" {
			f.memoryEnd.Write(p)
		}
		return f.memoryEnd.Write(p)
	}
}

func interleaves(f *faulty) {
	f.write = func(p []byte) (int, error) {
		n, err := f.memoryEnd.Write(p[:len(p)/2])
		if err != nil {
			return n, err
		}
		m, err := f.memoryEnd.Write(p[len(p)/2:])
		return n + m, err
	}
}

// halfDuplex holds one lock over a Read or a Write, as a wrapper with a mutex does.
func halfDuplex(f *faulty) {
	lock := make(chan struct{}, 1)
	held := func(call func([]byte) (int, error)) func([]byte) (int, error) {
		return func(p []byte) (int, error) {
			select {
			case lock <- struct{}{}:
				defer func() { <-lock }()
			case <-f.stop:
			}
			return call(p)
		}
	}
	f.read, f.write = held(f.memoryEnd.Read), held(f.memoryEnd.Write)
}

func truncatesSilently(f *faulty) {
	silent := func(read func([]byte) (int, error)) func([]byte) (int, error) {
		return func(p []byte) (int, error) {
			n, err := read(p)
			if err == ipcbench.ErrTruncated {
				err = nil
			}
			return n, err
		}
	}
	f.read, f.tryRead = silent(f.memoryEnd.Read), silent(f.memoryEnd.TryRead)
}

func keepsRest(f *faulty) {
	var rest []byte
	f.read = func(p []byte) (int, error) {
		if len(rest) > 0 {
			n := copy(p, rest)
			rest = rest[n:]
			return n, nil
		}
		whole := make([]byte, memoryLongest)
		n, err := f.memoryEnd.Read(whole)
		m := copy(p, whole[:n])
		if m < n && err == nil {
			rest, err = whole[m:n], ipcbench.ErrTruncated
		}
		return m, err
	}
}

func sendsPart(f *faulty) {
	f.write = func(p []byte) (int, error) {
		if len(p) > memoryLongest {
			f.memoryEnd.Write(p[:memoryLongest])
			return 0, ipcbench.ErrMessageTooLong
		}
		return f.memoryEnd.Write(p)
	}
}

func strangeTooLong(f *faulty) {
	f.write = func(p []byte) (int, error) { return strangely(ipcbench.ErrMessageTooLong)(f.memoryEnd.Write(p)) }
}

// strangely replaces an error.
func strangely(known error) func(int, error) (int, error) {
	return func(n int, err error) (int, error) {
		if errors.Is(err, known) {
			err = errStrange
		}
		return n, err
	}
}

func emptyIsEnd(f *faulty) {
	f.read = func(p []byte) (int, error) {
		n, err := f.memoryEnd.Read(p)
		if n == 0 && err == nil {
			err = io.EOF
		}
		return n, err
	}
}

func losesEmpty(f *faulty) {
	f.write = func(p []byte) (int, error) {
		if len(p) == 0 && !f.isClosed() {
			return 0, nil
		}
		return f.memoryEnd.Write(p)
	}
}

func (f *faulty) isClosed() bool {
	f.in.Lock()
	defer f.in.Unlock()
	return f.closed
}

func emptyFails(f *faulty) {
	f.write = func(p []byte) (int, error) {
		if len(p) == 0 {
			return 0, ipcbench.ErrEmptyMessage
		}
		return f.memoryEnd.Write(p)
	}
}

// losesOverflow: of a Write that has to wait for room only the first byte gets through.
func losesOverflow(f *faulty) {
	f.write = func(p []byte) (int, error) {
		if len(p) != 1000 && len(p) != 2*memoryBytes { // what surplus gives, and not what other cases pass on
			return f.memoryEnd.Write(p)
		}
		n, err := f.memoryEnd.TryWrite(p)
		switch {
		case errors.Is(err, ipcbench.ErrWouldBlock):
			if n, err = f.memoryEnd.Write(p[:1]); n == 1 {
				n = len(p)
			}
		case err == nil && n < len(p):
			n = len(p)
		}
		return n, err
	}
}

func neverFull(f *faulty) {
	f.tryWrite = func(p []byte) (int, error) {
		n, err := f.memoryEnd.TryWrite(p)
		if errors.Is(err, ipcbench.ErrWouldBlock) {
			return len(p), nil
		}
		return n, err
	}
}

func tryReadWaits(f *faulty)  { f.tryRead = f.memoryEnd.Read }
func tryWriteWaits(f *faulty) { f.tryWrite = f.memoryEnd.Write }

func strangeTryRead(f *faulty) {
	f.tryRead = func(p []byte) (int, error) { return strangely(ipcbench.ErrWouldBlock)(f.memoryEnd.TryRead(p)) }
}

func tryReadWithoutEnd(f *faulty) {
	f.tryRead = func(p []byte) (int, error) {
		n, err := f.memoryEnd.TryRead(p)
		if err == io.EOF {
			err = ipcbench.ErrWouldBlock
		}
		return n, err
	}
}

func tryWriteLies(f *faulty) {
	f.tryWrite = func(p []byte) (int, error) {
		n, err := f.memoryEnd.TryWrite(p)
		if n > 0 {
			n = len(p)
		}
		return n, err
	}
}

func tryWriteParts(f *faulty) {
	f.tryWrite = func(p []byte) (int, error) {
		if len(p) > 100 && len(p) <= memoryLongest {
			p = p[:len(p)-1]
		}
		return f.memoryEnd.TryWrite(p)
	}
}

var garbage []byte

func wasteful(call func([]byte) (int, error)) func([]byte) (int, error) {
	return func(p []byte) (int, error) {
		garbage = make([]byte, 10)
		return call(p)
	}
}

func endsEarly(f *faulty) {
	read := 0
	f.read = func(p []byte) (int, error) {
		if read > 3<<20 {
			return 0, io.EOF
		}
		n, err := f.memoryEnd.Read(p)
		read += n
		return n, err
	}
}

func neverEnds(f *faulty) {
	f.read = func(p []byte) (int, error) {
		n, err := f.memoryEnd.Read(p)
		if err == io.EOF {
			f.wedge()
		}
		return n, err
	}
}

// endsOnce forgets that the end was read, and waits for more.
func endsOnce(f *faulty) {
	ended := false
	f.read = func(p []byte) (int, error) {
		if ended {
			f.wedge()
		}
		n, err := f.memoryEnd.Read(p)
		ended = err == io.EOF
		return n, err
	}
}

func wrapsEnd(f *faulty) {
	f.read = func(p []byte) (int, error) {
		n, err := f.memoryEnd.Read(p)
		if err == io.EOF {
			err = fmt.Errorf("memory: read: %w", err)
		}
		return n, err
	}
}

// endsAnyway: the peer's Close is read as an end that the Contract does not have.
func endsAnyway(f *faulty) {
	f.read = func(p []byte) (int, error) {
		f.in.Lock()
		ended := f.in.ended && len(f.in.lengths) == 0 && !f.closed
		f.in.Unlock()
		if ended {
			return 0, io.EOF
		}
		return f.memoryEnd.Read(p)
	}
}

func closeWriteNothing(f *faulty) {
	f.closeWrite = func() error {
		if f.isClosed() {
			return os.ErrClosed
		}
		return nil
	}
}

func closeWriteBoth(f *faulty) {
	f.closeWrite = func() error {
		err := f.memoryEnd.CloseWrite()
		f.in.Lock()
		defer f.in.Unlock()
		f.in.ended = true
		f.in.changed.Broadcast()
		return err
	}
}

func closeWriteDrops(f *faulty) {
	f.closeWrite = func() error {
		f.drop()
		return f.memoryEnd.CloseWrite()
	}
}

// drop loses what is on its way.
func (f *faulty) drop() {
	f.out.Lock()
	defer f.out.Unlock()
	f.out.data, f.out.lengths = f.out.data[:0], f.out.lengths[:0]
}

// closeWriteWaits has CloseWrite take its turn behind the Write under way.
func closeWriteWaits(f *faulty) {
	f.closeWrite = func() error {
		f.writing.Lock()
		defer f.writing.Unlock()
		return f.memoryEnd.CloseWrite()
	}
}

func closeDrops(f *faulty) {
	f.close = func() error {
		f.drop()
		return f.memoryEnd.Close()
	}
}

func (f *faulty) withoutReader() bool {
	f.out.Lock()
	defer f.out.Unlock()
	return f.out.gone && !f.closed
}

func writesToNobody(f *faulty) {
	f.write = func(p []byte) (int, error) {
		n, err := f.memoryEnd.Write(p)
		if err != nil && f.withoutReader() {
			return len(p), nil
		}
		return n, err
	}
}

func strangeToNobody(f *faulty) {
	f.write = func(p []byte) (int, error) {
		n, err := f.memoryEnd.Write(p)
		if err != nil && f.withoutReader() {
			err = errStrange
		}
		return n, err
	}
}

// waitsForNobody: whoever waits for room is not told that nobody will make any.
func waitsForNobody(f *faulty) {
	f.write = func(p []byte) (int, error) {
		if f.withoutReader() {
			return f.memoryEnd.Write(p)
		}
		n, err := f.memoryEnd.Write(p)
		if err != nil && f.withoutReader() {
			f.wedge()
		}
		return n, err
	}
}

func closeBlocks(f *faulty) {
	f.close = func() error {
		f.memoryEnd.Close()
		f.wedge()
		return nil
	}
}

func closeLeavesRead(f *faulty) {
	f.read = func(p []byte) (int, error) {
		if f.isClosed() {
			return 0, os.ErrClosed
		}
		n, err := f.memoryEnd.Read(p)
		if err == os.ErrClosed {
			f.wedge()
		}
		return n, err
	}
}

func closeLeavesWrite(f *faulty) {
	f.write = func(p []byte) (int, error) {
		if f.isClosed() {
			return 0, os.ErrClosed
		}
		n, err := f.memoryEnd.Write(p)
		if err == os.ErrClosed && f.isClosed() {
			f.wedge()
		}
		return n, err
	}
}

func closesAgain(f *faulty) {
	f.close = func() error {
		f.memoryEnd.Close()
		return nil
	}
}

func readsAfterClose(f *faulty) {
	f.tryRead = func(p []byte) (int, error) {
		n, err := f.memoryEnd.TryRead(p)
		if err == os.ErrClosed {
			err = io.EOF
		}
		return n, err
	}
}

func leaksDescriptor(f *faulty) {
	f.close = func() error {
		file, err := os.Open(os.DevNull)
		if err != nil {
			return err
		}
		f.release(func() { file.Close() })
		return f.memoryEnd.Close()
	}
}

func leaksGoroutine(f *faulty) {
	f.close = func() error {
		go f.wedge()
		return f.memoryEnd.Close()
	}
}

func ignored(time.Time) error { return nil }

func setDeadlineReads(f *faulty) { f.setDeadline = f.memoryEnd.SetReadDeadline }

func setReadDeadlineBoth(f *faulty) { f.setReadDeadline = f.memoryEnd.SetDeadline }

func keepsDeadline(f *faulty) {
	f.setReadDeadline = func(t time.Time) error {
		if t.IsZero() && !f.isClosed() {
			return nil
		}
		return f.memoryEnd.SetReadDeadline(t)
	}
}

func deadlineForLater(f *faulty) {
	f.setReadDeadline = func(t time.Time) error {
		f.in.Lock()
		defer f.in.Unlock()
		if f.closed {
			return os.ErrClosed
		}
		f.readLimit = t // and nobody who waits is told
		if time.Until(t) > 0 {
			time.AfterFunc(time.Until(t), f.in.changed.Broadcast)
		}
		return nil
	}
}

func deadlineStays(f *faulty) {
	var limit time.Time
	f.setReadDeadline = func(t time.Time) error {
		if time.Until(limit) > 0 && t.After(limit) {
			return nil
		}
		limit = t
		return f.memoryEnd.SetReadDeadline(t)
	}
}

// deadlineLoses reads first and looks at the clock later.
func deadlineLoses(f *faulty) {
	f.read = func(p []byte) (int, error) {
		n, err := f.memoryEnd.Read(p)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			f.memoryEnd.TryRead(p)
		}
		return n, err
	}
}

func deadlineDenies(f *faulty) {
	f.write = func(p []byte) (int, error) {
		n, err := f.memoryEnd.Write(p)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			n = 0
		}
		return n, err
	}
}

// alone are the cases that look at the whole process. The others mind nobody
// beside them, and most of their time is spent waiting for what never comes.
func alone(c testCase) bool  { return c.name == "allocation" || c.name == "hygiene" }
func beside(c testCase) bool { return !alone(c) && !random(c) }

// random finds much of what the others guard against, by chance.
func random(c testCase) bool { return c.name == "random" }

// TestFaults and TestFaultsAlone try the whole suite on each of the faults.
func TestFaults(t *testing.T)      { tryFaults(t, beside, (*testing.T).Parallel) }
func TestFaultsAlone(t *testing.T) { tryFaults(t, alone, func(*testing.T) {}) }

// TestFaultsAtRandom: what random has to find by itself, and what nothing else does.
func TestFaultsAtRandom(t *testing.T) {
	shortenPromptly(t, time.Second)
	found := []string{"random"}
	for _, row := range []faultRow{
		{"nothing wrong with a stream", stream, func(*faulty) {}, nil},
		{"nothing wrong with messages", messages, func(*faulty) {}, nil},
		{"nothing wrong without an end", endless, func(*faulty) {}, nil},
		{"truncates silently", messages, truncatesSilently, found},
		{"keeps the rest of a message", messages, keepsRest, found},
		{"loses empty messages", messages, losesEmpty, found},
		{"TryWrite takes a part and says all", stream, tryWriteLies, found},
		{"sends a part of a message that is too long", messages, sendsPart, found},
		{"CloseWrite drops what is on its way", stream, closeWriteDrops, found},
		{"CloseWrite without an end succeeds", endless, closeWriteNothing, found},
		{"exchanges messages behind one that was cut", messages, exchangesBehindCut, found},
	} {
		t.Run(row.name, func(t *testing.T) {
			over := &rowEnd{stop: make(chan struct{})}
			defer over.end()
			require.Equal(t, row.fails, failing(t, row.mechanism(over), random, row.fails))
		})
	}
	over := &rowEnd{stop: make(chan struct{})}
	defer over.end()
	exchanges := faultRow{"", messages, exchangesBehindCut, nil}.mechanism(over)
	require.Empty(t, failing(t, exchanges, beside, nil), "nothing else finds it")
}

// exchangesBehindCut has the two messages behind one that was cut come the wrong way round.
func exchangesBehindCut(f *faulty) {
	var held [][]byte
	f.read = func(p []byte) (int, error) {
		if len(held) > 0 {
			m := held[0]
			held = held[1:]
			if n := copy(p, m); n < len(m) {
				return n, ipcbench.ErrTruncated
			}
			return len(m), nil
		}
		n, err := f.memoryEnd.Read(p)
		for err == ipcbench.ErrTruncated && len(held) < 2 {
			m := make([]byte, memoryLongest)
			k, nothing := f.memoryEnd.TryRead(m)
			if nothing != nil {
				break
			}
			held = append(held, m[:k])
		}
		slices.Reverse(held)
		return n, err
	}
}

func tryFaults(t *testing.T, which func(testCase) bool, how func(*testing.T)) {
	for _, row := range faults {
		t.Run(row.name, func(t *testing.T) {
			how(t)
			over := &rowEnd{stop: make(chan struct{})}
			defer over.end()
			m := row.mechanism(over)
			var want []string
			for _, c := range cases {
				if which(c) && slices.Contains(row.fails, c.name) {
					want = append(want, c.name)
				}
			}
			require.ElementsMatch(t, want, failing(t, m, which, want))
		})
	}
}

// A case that should fail may hang and need not take long over it. One that
// should not has time, so that a busy machine is not taken for a fault; nor is hygiene hurried, which gives
// what is left two seconds to go.
func limitOf(c testCase, fails []string) time.Duration {
	if slices.Contains(fails, c.name) && !(c.name == "hygiene" && len(fails) == 1) {
		return 500 * time.Millisecond
	}
	return 30 * time.Second
}

// failing runs the cases and names those that fail.
func failing(t *testing.T, m Mechanism, which func(testCase) bool, expected []string) (names []string) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, c := range cases {
		if !which(c) {
			continue
		}
		if alone(c) {
			all.Wait()
		}
		all.Go(func() {
			if v := try(c, m, ipcbench.Netpoll, limitOf(c, expected)); len(v.failures) > 0 {
				mu.Lock()
				defer mu.Unlock()
				names = append(names, c.name)
				t.Logf("%s: %v", c.name, v.failures)
			}
		})
		if alone(c) {
			all.Wait()
		}
	}
	all.Wait()
	return names
}

// shortenPromptly is for the rest of the test. Calls that were given up come
// back once their row is over and still look at it, so its end waits for them.
func shortenPromptly(t *testing.T, d time.Duration) {
	goroutines := runtime.NumGoroutine()
	was := promptly
	promptly = d
	t.Cleanup(func() {
		require.Empty(t, settle(func() (left []string) {
			if n := runtime.NumGoroutine() - goroutines; n > 0 {
				left = append(left, fmt.Sprintf("%d goroutines", n))
			}
			return left
		}))
		promptly = was
	})
}

// A rowEnd keeps what a fault has left behind until its row is over.
type rowEnd struct {
	stop chan struct{}
	mu   sync.Mutex
	left []func()
}

func (r *rowEnd) release(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = append(r.left, f)
}

func (r *rowEnd) end() {
	close(r.stop)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.left {
		f()
	}
}

// hoarder is a pipe whose Files keeps a duplicate, as a parent does that never
// closes its copy of the child's end: the child's death is then no end.
type hoarder struct {
	*pipe.Channel
	release func(func())
}

func (h *hoarder) Files() ([]*os.File, error) {
	kept, err := h.Channel.Files()
	if err != nil {
		return nil, err
	}
	h.release(func() { closeFiles(kept) })
	return h.Channel.Files()
}

func TestFaultOfDescriptors(t *testing.T) {
	// The first child brings a goroutine that starts all later ones and stays.
	first, err := peer.Start(peer.Config{Role: holderRole})
	require.NoError(t, err)
	require.NoError(t, first.Close())
	shortenPromptly(t, time.Second)
	over := &rowEnd{stop: make(chan struct{})}
	defer over.end()
	m := pipes
	m.Pair = func(w ipcbench.Wait) (ipcbench.Channel, ipcbench.Channel, error) {
		a, b, err := pipe.Pair(pipe.Config{Wait: w})
		if err != nil {
			return nil, nil, err
		}
		return &hoarder{a, over.release}, &hoarder{b, over.release}, nil
	}
	require.Equal(t, []string{"killed-peer"}, failing(t, m, beside, nil))
}
