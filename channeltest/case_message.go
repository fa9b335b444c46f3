//go:build linux

package channeltest

import (
	"bytes"
	"errors"
	"syscall"

	"github.com/seed-e1736cc0/ipcbench"
)

// Where a message begins and ends.

var messageCases = []testCase{
	{"boundaries", tryBoundaries},
	{"short-buffer", tryShortBuffer},
	{"empty", tryEmpty},
}

func (t *trial) messages() (a, b ipcbench.Channel, c ipcbench.Contract) {
	a, b = t.pair()
	if c = a.Contract(); !c.Boundaries {
		t.skip("%s has no boundaries", t.mech.Name)
	}
	return a, b, c
}

func message(n int) []byte { return bytes.Repeat([]byte("0123456789abcdef!"), n/17+1)[:n] }

func tryBoundaries(t *trial) {
	a, b, c := t.messages()
	for _, n := range []int{1, 2, c.MaxMessage, c.MaxMessage - 1, 1} {
		sent := begin(func() (int, error) { return a.Write(message(n)) })
		if got := t.read(b, n); !bytes.Equal(got, message(n)) {
			t.fail("a message of %d bytes arrived with other content", n)
		}
		t.end(sent, "Write")
		t.check(sent.err, "Write of %d bytes", n)
	}
	for _, n := range []int{c.MaxMessage + 1, 2*c.MaxMessage + 1} {
		t.step("Write of %d bytes, above MaxMessage", n)
		sent, err := a.Write(make([]byte, n))
		t.wantIs("Write above MaxMessage", err, ipcbench.ErrMessageTooLong, syscall.EMSGSIZE)
		if sent != 0 {
			t.fail("Write above MaxMessage accepted %d bytes", sent)
		}
		if nb, ok := a.(ipcbench.NonBlocking); ok {
			_, err := nb.TryWrite(make([]byte, n))
			t.wantIs("TryWrite above MaxMessage", err, ipcbench.ErrMessageTooLong, syscall.EMSGSIZE)
		}
	}
	t.write(a, []byte("next"))
	if got := t.read(b, 4); string(got) != "next" {
		t.fail("after a message that was too long %q arrived", got)
	}
}

func tryShortBuffer(t *trial) {
	a, b, _ := t.messages()
	reads := map[string]func([]byte) (int, error){"Read": b.Read}
	if nb, ok := b.(ipcbench.NonBlocking); ok {
		reads["TryRead"] = nb.TryRead
	}
	for name, read := range reads {
		for _, room := range []int{3, 1, 0} {
			t.write(a, []byte("truncated"))
			t.write(a, []byte("whole"))
			t.step("%s into %d bytes", name, room)
			p := make([]byte, room)
			n, err := read(p)
			t.wantIs(name+" into a short buffer", err, ipcbench.ErrTruncated)
			if n != room || string(p) != "truncated"[:room] {
				t.fail("%s into %d bytes returned %d, %q", name, room, n, p)
			}
			if got := t.read(b, 5); string(got) != "whole" {
				t.fail("after a truncated message %q arrived", got)
			}
		}
	}
}

// tryEmpty: on a stream nothing happens; a message is carried or refused, and never taken for the end.
func tryEmpty(t *trial) {
	a, b := t.pair()
	write := func(name string, f func([]byte) (int, error), p []byte) {
		t.step("%s of nothing", name)
		n, err := f(p)
		if n != 0 || err != nil && !errors.Is(err, ipcbench.ErrEmptyMessage) {
			t.fail("%s of nothing returned %d, %v", name, n, err)
		}
		if !a.Contract().Boundaries {
			t.check(err, "%s of nothing", name)
			return
		}
		if err == nil {
			t.step("Read of an empty message")
			n, err := b.Read(make([]byte, 10))
			if n != 0 || err != nil {
				t.fail("Read of an empty message returned %d, %v", n, err)
			}
		}
	}
	write("Write", a.Write, nil)
	write("Write", a.Write, []byte{})
	if nb, ok := a.(ipcbench.NonBlocking); ok {
		write("TryWrite", nb.TryWrite, nil)
	}
	if !a.Contract().Boundaries {
		t.step("Read into nothing")
		n, err := b.Read(nil)
		if n != 0 || err != nil {
			t.fail("Read into nothing returned %d, %v", n, err)
		}
	}
	sent := begin(func() (int, error) { return a.Write([]byte("x")) })
	if got := t.read(b, 1); got[0] != 'x' {
		t.fail("after an empty Write %q arrived", got)
	}
	t.end(sent, "Write")
}
