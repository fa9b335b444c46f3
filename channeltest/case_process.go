//go:build linux

package channeltest

import (
	"errors"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/seed-e1736cc0/ipcbench"
	"github.com/seed-e1736cc0/ipcbench/internal/peer"
)

// Ends in other hands, and what is left behind.

var processCases = []testCase{
	{"export", tryExport},
	{"killed-peer", tryKilledPeer},
	{"hygiene", tryHygiene},
}

func (t *trial) files(ch ipcbench.Channel) []*os.File {
	e, ok := ch.(ipcbench.Exporter)
	switch {
	case !ok:
		t.skip("%s is no ipcbench.Exporter", t.mech.Name)
	case t.mech.Import == nil:
		t.skip("%s has no Import", t.mech.Name)
	}
	files, err := e.Files()
	t.check(err, "Files")
	return files
}

func tryExport(t *trial) {
	a, b := t.pair()
	twin, err := t.mech.Import(t.files(b), t.wait)
	t.check(err, "Import")
	t.own(twin)
	t.write(a, []byte("to the twin"))
	if got := t.read(twin, 11); string(got) != "to the twin" {
		t.fail("%q arrived", got)
	}
	t.write(twin, []byte("back"))
	if got := t.read(a, 4); string(got) != "back" {
		t.fail("%q came back", got)
	}
	t.close(twin)
	t.write(a, []byte("to the original"))
	if got := t.read(b, 15); string(got) != "to the original" {
		t.fail("after the twin's Close %q arrived", got)
	}
	t.write(b, []byte("back"))
	t.read(a, 4)

	heir, err := t.mech.Import(t.files(b), t.wait)
	t.check(err, "Import")
	t.own(heir)
	t.close(b)
	t.write(a, []byte("to the heir"))
	if got := t.read(heir, 11); string(got) != "to the heir" {
		t.fail("after the original's Close %q arrived", got)
	}
	t.write(heir, []byte("back"))
	t.read(a, 4)
	if _, err := t.mech.Import(nil, t.wait); err == nil {
		t.fail("Import of no files succeeds")
	}
}

const (
	holderRole = "channeltest holder"
	lastWords  = "last words of a process"
)

// conformanceRoles are what the suite's children play.
func conformanceRoles() map[string]peer.Handler {
	return map[string]peer.Handler{holderRole: hold}
}

// hold takes an end over, says its last words, and waits to be killed.
func hold(c *peer.Conn) error {
	var a assignment
	if err := c.Recv(&a); err != nil {
		return err
	}
	m, ok := registered[a.Mechanism]
	if !ok {
		return errors.New("no such mechanism: " + a.Mechanism)
	}
	ch, err := m.Import(c.Files(), a.Wait)
	if err != nil {
		return err
	}
	if _, err := ch.Write([]byte(lastWords)); err != nil {
		return err
	}
	if err := c.Send(struct{}{}); err != nil {
		return err
	}
	return c.Recv(nil) // the end of the parent
}

func tryKilledPeer(t *trial) {
	a, child := t.holder()
	defer child.Close()
	if got := t.read(a, len(lastWords)); string(got) != lastWords {
		t.fail("%q arrived", got)
	}
	t.limitEndless(a)
	pending := begin(func() (int, error) { return a.Read(make([]byte, 10)) })
	child.Kill()
	<-child.Done()
	t.end(pending, "a Read whose peer was killed")
	t.endOfKilled(a, pending)
	t.writeToNobody(a)

	// What a process has written outlives it.
	a, child = t.holder()
	defer child.Close()
	child.Kill()
	<-child.Done()
	if got := t.read(a, len(lastWords)); string(got) != lastWords {
		t.fail("after the writer's death %q arrived", got)
	}
	t.limitEndless(a)
	last := begin(func() (int, error) { return a.Read(make([]byte, 10)) })
	t.end(last, "a Read after the last words")
	t.endOfKilled(a, last)
}

// holder returns an end whose other end is in the hands of a child alone, which has said its last words.
func (t *trial) holder() (ipcbench.Channel, *peer.Peer) {
	a, b := t.pair()
	files := t.files(b)
	defer closeFiles(files)
	if _, ok := registered[t.mech.Name]; !ok {
		t.skip("%s was not given to channeltest.Main", t.mech.Name)
	}
	child, err := peer.Start(peer.Config{Role: holderRole, Files: files})
	t.check(err, "start of a child")
	t.close(b)
	t.step("a child that takes the other end over")
	err = child.Send(assignment{Mechanism: t.mech.Name, Wait: t.wait})
	if err == nil {
		err = child.Recv(&struct{}{}, startLimit)
	}
	if err != nil {
		child.Close()
		t.fail("the child: %v", err)
	}
	return a, child
}

// limitEndless keeps a Read from waiting for an end that the Contract does not promise.
func (t *trial) limitEndless(ch ipcbench.Channel) {
	if !ch.Contract().EndOfStream {
		t.check(t.deadliner(ch).SetReadDeadline(time.Now().Add(50*time.Millisecond)), "SetReadDeadline")
	}
}

func (t *trial) endOfKilled(ch ipcbench.Channel, c *call) {
	switch {
	case !ch.Contract().EndOfStream:
		t.wantIs("a Read whose peer was killed", c.err, os.ErrDeadlineExceeded)
	case c.err != io.EOF && !isGone(c.err):
		t.fail("a Read whose peer was killed returned %d, %v", c.n, c.err)
	}
}

func tryHygiene(t *trial) {
	before, err := openDescriptors()
	t.check(err, "descriptors")
	goroutines := runtime.NumGoroutine()
	for range 10 {
		a, b := t.pair()
		reading := begin(func() (int, error) { return b.Read(make([]byte, 10)) })
		t.write(a, []byte("x"))
		t.end(reading, "Read")
		if e, ok := a.(ipcbench.Exporter); ok {
			files, err := e.Files()
			t.check(err, "Files")
			closeFiles(files)
		}
		if a.Contract().EndOfStream {
			t.check(a.CloseWrite(), "CloseWrite")
		}
		t.close(a)
		t.close(b)
	}
	left := settle(func() []string {
		found := newDescriptors(before)
		if n := runtime.NumGoroutine(); n > goroutines {
			found = append(found, "goroutines")
		}
		return found
	})
	for _, l := range left {
		t.note("left behind: %s", l)
	}
}
