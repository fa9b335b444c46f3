//go:build linux

package channeltest

import (
	"os"
	"time"

	"github.com/seed-e1736cc0/ipcbench"
)

var deadlineCases = []testCase{
	{"read-deadline", tryReadDeadline},
	{"write-deadline", tryWriteDeadline},
}

func (t *trial) deadliner(ch ipcbench.Channel) ipcbench.Deadliner {
	d, ok := ch.(ipcbench.Deadliner)
	if !ok {
		t.skip("%s is no ipcbench.Deadliner", t.mech.Name)
	}
	return d
}

var past = time.Unix(1, 0)

func tryReadDeadline(t *trial) {
	a, b := t.pair()
	d := t.deadliner(b)
	read := func() (int, error) { return b.Read(make([]byte, 10)) }

	t.check(d.SetReadDeadline(past), "SetReadDeadline")
	t.step("Read with a deadline in the past")
	n, err := read()
	t.wantLate("a deadline in the past", n, err)
	t.write(b, []byte("the other direction has none"))

	t.write(a, []byte("kept"))
	t.step("Read with a deadline in the past, and data")
	n, err = read()
	t.wantLate("a deadline in the past, and data", n, err)
	t.check(d.SetReadDeadline(time.Time{}), "no deadline")
	if got := t.read(b, 4); string(got) != "kept" {
		t.fail("after a deadline %q arrived", got)
	}

	t.check(d.SetReadDeadline(time.Now().Add(20*time.Millisecond)), "SetReadDeadline")
	t.step("Read with a deadline")
	n, err = read()
	t.wantLate("a deadline that passes", n, err)
	t.tryDeadlinesBesideRead(a, d, read)
}

func (t *trial) tryDeadlinesBesideRead(a ipcbench.Channel, d ipcbench.Deadliner, read func() (int, error)) {
	for _, set := range []func(time.Time) error{d.SetReadDeadline, d.SetDeadline} {
		t.check(set(time.Time{}), "no deadline")
		pending := begin(read)
		t.running(pending, "a Read without a deadline")
		t.step("a deadline set beside a Read")
		t.check(set(past), "a deadline")
		t.end(pending, "a Read whose deadline was set beside it")
		t.wantLate("a deadline set beside the Read", pending.n, pending.err)
	}

	const soon, later = 30 * time.Millisecond, 90 * time.Millisecond
	start := time.Now()
	t.check(d.SetDeadline(start.Add(soon)), "a deadline")
	pending := begin(read)
	t.check(d.SetDeadline(start.Add(later)), "a later deadline")
	inTime := time.Since(start) < soon // else the Read had every right to end
	t.end(pending, "a Read whose deadline was moved")
	t.wantLate("a deadline moved later beside the Read", pending.n, pending.err)
	if took := time.Since(start); inTime && took < later {
		t.fail("a deadline moved to %v beside a Read ended it after %v", later, took)
	}

	t.check(d.SetDeadline(time.Now().Add(time.Hour)), "a deadline far away")
	pending = begin(read)
	t.running(pending, "a Read with a deadline far away")
	t.check(d.SetDeadline(time.Time{}), "no deadline")
	t.running(pending, "a Read whose deadline was taken away")
	t.write(a, []byte("data"))
	t.end(pending, "a Read after its deadlines")
	if pending.n != 4 || pending.err != nil {
		t.fail("a Read after its deadlines returned %d, %v", pending.n, pending.err)
	}
}

// wantLate fails unless a Read has ended by its deadline and read nothing.
func (t *trial) wantLate(what string, n int, err error) {
	if n != 0 {
		t.fail("%s: Read returned %d", what, n)
	}
	t.wantIs(what, err, os.ErrDeadlineExceeded)
}

func tryWriteDeadline(t *trial) {
	a, b := t.pair()
	d := t.deadliner(a)
	size := flowSize(a.Contract())
	at := t.fill(a, 0, size)
	var next [][]byte // made beforehand, so that a Write that can end at once does
	write := func() (int, error) { return overfill(a, next) }
	fill := func() { next = surplus(a.Contract(), at) }
	expect := func(what string, n int, err error) {
		t.wantIs(what, err, os.ErrDeadlineExceeded)
		at += int64(n)
	}

	fill()
	t.check(d.SetWriteDeadline(past), "SetWriteDeadline")
	t.step("Write with a deadline in the past")
	n, err := write()
	expect("a deadline in the past", n, err)

	fill()
	t.check(d.SetWriteDeadline(time.Now().Add(20*time.Millisecond)), "SetWriteDeadline")
	t.step("Write with a deadline")
	n, err = write()
	expect("a deadline that passes", n, err)

	fill()
	t.check(d.SetDeadline(time.Time{}), "no deadline")
	pending := begin(write)
	t.running(pending, "a Write to a full channel")
	t.check(d.SetWriteDeadline(past), "a deadline")
	t.end(pending, "a Write whose deadline was set beside it")
	expect("a deadline set beside the Write", pending.n, pending.err)

	// A long Write of which a part goes through before its deadline.
	read := int64(0)
	if !a.Contract().Boundaries {
		fill()
		t.check(d.SetWriteDeadline(time.Time{}), "no deadline")
		pending := begin(write)
		read = at + 1000 // so that some of it must have been accepted
		t.drain(b, 0, read)
		t.check(d.SetWriteDeadline(past), "a deadline")
		t.end(pending, "a long Write whose deadline was set beside it")
		if pending.err != nil {
			t.wantIs("a long Write", pending.err, os.ErrDeadlineExceeded)
		}
		if at += int64(pending.n); at < read {
			t.fail("a long Write says that %d bytes of it were accepted, and more arrived", pending.n)
		}
	}
	t.drain(b, read, at) // all that was accepted, and nothing else
	t.check(d.SetWriteDeadline(time.Time{}), "no deadline")
	after := begin(func() (int, error) { return a.Write([]byte("after")) })
	if got := t.read(b, 5); string(got) != "after" {
		t.fail("after the deadlines %q arrived", got)
	}
	t.end(after, "a Write after its deadlines")
}
