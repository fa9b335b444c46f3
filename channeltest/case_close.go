//go:build linux

package channeltest

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/seed-e1736cc0/ipcbench"
)

// How a conversation ends, and what an end does to calls under way.

var closeCases = []testCase{
	{"half-close", tryHalfClose},
	{"end", tryEnd},
	{"no-end", tryNoEnd},
	{"close-read", tryCloseRead},
	{"close-write", tryCloseWrite},
	{"closed", tryClosed},
	{"gone-reader", tryGoneReader},
}

func (t *trial) ends() (a, b ipcbench.Channel) {
	a, b = t.pair()
	if !a.Contract().EndOfStream {
		t.skip("%s has no end of stream", t.mech.Name)
	}
	return a, b
}

func tryHalfClose(t *trial) {
	a, b := t.ends()
	last := begin(func() (int, error) { return a.Write([]byte("last words")) })
	if got := t.read(b, 10); string(got) != "last words" {
		t.fail("before the end %q arrived", got)
	}
	t.end(last, "Write")
	if _, ok := a.(ipcbench.NonBlocking); ok { // it holds what nobody has read
		t.write(a, []byte("on its way"))
		t.step("CloseWrite")
		t.check(a.CloseWrite(), "CloseWrite")
		if got := t.read(b, 10); string(got) != "on its way" {
			t.fail("after CloseWrite %q arrived", got)
		}
	} else {
		t.check(a.CloseWrite(), "CloseWrite")
	}
	t.readEnd(b)
	_, err := a.Write([]byte("x"))
	t.wantIs("Write after CloseWrite", err, os.ErrClosed)
	var got []byte
	waiting := begin(func() (n int, err error) {
		got, err = readN(a, 9)
		return len(got), err
	})
	t.running(waiting, "a Read after the same end's CloseWrite")
	back := begin(func() (int, error) { return b.Write([]byte("other way")) })
	t.end(waiting, "Read the other way")
	t.check(waiting.err, "Read the other way")
	if string(got) != "other way" {
		t.fail("the other way %q arrived", got)
	}
	t.end(back, "Write the other way")
	t.check(back.err, "Write the other way")
	t.check(b.CloseWrite(), "CloseWrite the other way")
	t.readEnd(a)
}

func tryEnd(t *trial) {
	a, b := t.ends()
	pending := begin(func() (int, error) { return b.Read(make([]byte, 10)) })
	t.step("Close")
	t.close(a)
	t.end(pending, "a Read whose peer has closed")
	if pending.n != 0 || pending.err != io.EOF {
		t.fail("a Read whose peer has closed returned %d, %v", pending.n, pending.err)
	}
	t.readEnd(b)
	if _, ok := b.(ipcbench.NonBlocking); !ok {
		return
	}
	a, b = t.pair()
	t.write(a, []byte("last words"))
	t.close(a)
	if got := t.read(b, 10); string(got) != "last words" {
		t.fail("before the end %q arrived", got)
	}
	t.readEnd(b)
}

func tryNoEnd(t *trial) {
	a, b := t.pair()
	if a.Contract().EndOfStream {
		t.skip("%s has an end of stream", t.mech.Name)
	}
	t.wantIs("CloseWrite", a.CloseWrite(), ipcbench.ErrNoEndOfStream, errors.ErrUnsupported)
	t.write(a, []byte("still here")) // CloseWrite has changed nothing
	t.close(a)
	if got := t.read(b, 10); string(got) != "still here" {
		t.fail("%q arrived", got)
	}
	d, ok := b.(ipcbench.Deadliner)
	if !ok {
		return // nothing else could end the Read
	}
	t.check(d.SetReadDeadline(time.Now().Add(30*time.Millisecond)), "SetReadDeadline")
	t.step("Read from a peer that has closed")
	n, err := b.Read(make([]byte, 10))
	if n != 0 {
		t.fail("Read from a peer that has closed returned %d", n)
	}
	t.wantIs("Read from a peer that has closed", err, os.ErrDeadlineExceeded)
}

func tryCloseRead(t *trial) {
	for range 5 {
		a, _ := t.pair()
		reads := []*call{}
		for range 2 { // one waits for bytes, the other for the first
			reads = append(reads, begin(func() (int, error) { return a.Read(make([]byte, 10)) }))
		}
		t.step("Close beside Reads")
		closing := begin(func() (int, error) { return 0, a.Close() })
		t.end(closing, "Close beside Reads")
		t.check(closing.err, "Close")
		for _, r := range reads {
			t.end(r, "a Read on a channel that was closed")
			t.wantIs("a Read on a channel that was closed", r.err, os.ErrClosed)
		}
	}
}

func tryCloseWrite(t *trial) {
	for _, half := range []bool{false, true} {
		for range 3 {
			a, _ := t.pair()
			if half && !a.Contract().EndOfStream {
				return
			}
			at := int64(0)
			if _, ok := a.(ipcbench.NonBlocking); ok {
				at = t.fill(a, 0, flowSize(a.Contract()))
			}
			next := surplus(a.Contract(), at)
			write := begin(func() (int, error) { return overfill(a, next) })
			t.running(write, "a Write that nobody reads")
			end, name := a.Close, "Close"
			if half {
				end, name = a.CloseWrite, "CloseWrite"
			}
			closing := begin(func() (int, error) { return 0, end() })
			t.end(closing, name+" beside a Write")
			t.check(closing.err, "%s", name)
			t.end(write, "a Write on a channel that was closed")
			t.wantIs("a Write on a channel that was closed", write.err, os.ErrClosed)
		}
	}
}

func tryClosed(t *trial) {
	a, _ := t.pair()
	t.step("Close")
	t.close(a)
	p := []byte("x")
	calls := map[string]func() error{
		"Close":      a.Close,
		"CloseWrite": a.CloseWrite,
		"Read":       func() error { _, err := a.Read(p); return err },
		"Write":      func() error { _, err := a.Write(p); return err },
	}
	if nb, ok := a.(ipcbench.NonBlocking); ok {
		calls["TryRead"] = func() error { _, err := nb.TryRead(p); return err }
		calls["TryWrite"] = func() error { _, err := nb.TryWrite(p); return err }
	}
	if d, ok := a.(ipcbench.Deadliner); ok {
		calls["SetDeadline"] = func() error { return d.SetDeadline(time.Time{}) }
	}
	if e, ok := a.(ipcbench.Exporter); ok {
		calls["Files"] = func() error { _, err := e.Files(); return err }
	}
	for name, f := range calls {
		t.step("%s after Close", name)
		if err := f(); !isClosed(err) {
			t.note("%s after Close: error %v, want os.ErrClosed", name, err)
		}
	}
	if d, ok := a.(ipcbench.Descriptors); ok && (d.ReadFD() != -1 || d.WriteFD() != -1) {
		t.note("descriptors after Close: %d and %d, want -1", d.ReadFD(), d.WriteFD())
	}
}

// isGone: what a Write reports whose reader has gone.
func isGone(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.ECONNREFUSED)
}

// writeToNobody writes until it fails: what was sent before the peer's end was
// noticed counts as accepted.
func (t *trial) writeToNobody(ch ipcbench.Channel) {
	for range 10_000 {
		t.step("Write without a reader")
		if _, err := ch.Write([]byte("anybody?")); err != nil {
			if !isGone(err) {
				t.fail("Write without a reader: error %v, want EPIPE, ECONNRESET or ECONNREFUSED", err)
			}
			return
		}
	}
	t.fail("Writes without a reader succeed")
}

func tryGoneReader(t *trial) {
	a, b := t.pair()
	t.close(b)
	t.writeToNobody(a)
	if _, ok := a.(ipcbench.NonBlocking); !ok {
		return
	}
	// The same for a Write that was waiting for room.
	a, b = t.pair()
	at := t.fill(a, 0, flowSize(a.Contract()))
	next := surplus(a.Contract(), at)
	blocked := begin(func() (int, error) { return overfill(a, next) })
	t.running(blocked, "a Write to a full channel")
	t.close(b)
	t.end(blocked, "a Write whose reader has closed")
	if !isGone(blocked.err) {
		t.fail("a Write whose reader has closed: error %v, want EPIPE, ECONNRESET or ECONNREFUSED", blocked.err)
	}
}
