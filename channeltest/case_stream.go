//go:build linux

package channeltest

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/seed-e1736cc0/ipcbench"
)

// What arrives: all of it, in order, whole.

var streamCases = []testCase{
	{"contract", tryContract},
	{"bulk", tryBulk},
	{"three-writes", tryThreeWrites},
}

func tryContract(t *trial) {
	a, b := t.pair()
	c := a.Contract()
	if c != b.Contract() {
		t.note("the ends differ: %+v and %+v", c, b.Contract())
	}
	if c.Mechanism != t.mech.Name {
		t.note("Mechanism is %q, want %q", c.Mechanism, t.mech.Name)
	}
	if c.Boundaries != (c.MaxMessage > 0) || c.MaxMessage < 0 || c.AtomicWrite < 0 {
		t.note("Boundaries %v with MaxMessage %d and AtomicWrite %d", c.Boundaries, c.MaxMessage, c.AtomicWrite)
	}
	t.close(a)
	if after := a.Contract(); after != c {
		t.note("after Close the Contract is %+v, before %+v", after, c)
	}
}

// block is what bulk data are made of: position p holds block[p % len(block)].
// Its length is prime, so that a piece that is lost or moved cannot go unseen.
var block = func() []byte {
	const prime = 65521
	random := rand.NewChaCha8([32]byte{'i', 'p', 'c'})
	b := make([]byte, prime, 2*prime)
	random.Read(b)
	return append(b, b...)
}()

// piece returns what lies at a position, as much of n bytes as a block holds.
func piece(position int64, n int) []byte {
	at := int(position % int64(len(block)/2))
	return block[at:min(at+n, len(block))]
}

// bulkBytes is how much goes each way.
func bulkBytes() int64 {
	if testing.Short() || raceEnabled {
		return 4 << 20
	}
	return 32 << 20
}

func tryBulk(t *trial) {
	a, b := t.pair()
	total := bulkBytes()
	t.step("%d bytes in both directions at once", total)
	results := make(chan error, 4)
	for _, way := range [][2]ipcbench.Channel{{a, b}, {b, a}} {
		go func() { results <- sendBulk(way[0], total) }()
		go func() { results <- receiveBulk(way[1], total) }()
	}
	for range 4 {
		t.check(<-results, "bulk")
	}
}

// sizes yields odd lengths, the same ones to both sides.
func sizes(c ipcbench.Contract) func() int {
	random := rand.New(rand.NewPCG(1, 2))
	most := 60_000
	if c.Boundaries {
		most = min(most, c.MaxMessage)
	}
	return func() int {
		n := 1 + random.IntN(most)
		if n > 5 && random.IntN(8) == 0 {
			n = 1 + n%5
		}
		return n
	}
}

func sendBulk(ch ipcbench.Channel, total int64) error {
	next := sizes(ch.Contract())
	for at := int64(0); at < total; {
		p := piece(at, int(min(int64(next()), total-at)))
		n, err := ch.Write(p)
		if err != nil || n != len(p) {
			return errors.Join(errors.New("Write"), err)
		}
		at += int64(n)
	}
	return nil
}

func receiveBulk(ch ipcbench.Channel, total int64) error {
	c := ch.Contract()
	next := sizes(c)
	buf := make([]byte, 70_000)
	for at := int64(0); at < total; {
		want := int(min(int64(next()), total-at))
		room := buf
		if !c.Boundaries {
			room = buf[:min(want+7, len(buf))] // another rhythm than the writer's
		}
		n, err := ch.Read(room)
		switch {
		case err != nil:
			return errors.Join(errors.New("Read"), err)
		case c.Boundaries && n != want:
			return errors.New("a message of another length than was sent")
		case !bytes.Equal(room[:n], piece(at, n)):
			return errors.New("other bytes than were sent, or in another order")
		}
		at += int64(n)
	}
	return nil
}

func tryThreeWrites(t *trial) {
	a, b := t.pair()
	texts := []string{"AAA", "BB", "CCCC"}
	written := begin(func() (int, error) { // an unbuffered channel needs its reader at the same time
		for _, text := range texts {
			if _, err := a.Write([]byte(text)); err != nil {
				return 0, err
			}
		}
		return 0, nil
	})
	buf := make([]byte, 100)
	if b.Contract().Boundaries {
		t.end(written, "three Writes")
		for _, text := range texts {
			t.step("Read of one of three messages")
			n, err := b.Read(buf)
			t.check(err, "Read")
			if string(buf[:n]) != text {
				t.fail("Read returned %q, want %q", buf[:n], text)
			}
		}
		return
	}
	if got := string(t.read(b, 9)); got != "AAABBCCCC" {
		t.fail("Reads returned %q", got)
	}
	t.end(written, "three Writes")
	if nb, ok := b.(ipcbench.NonBlocking); ok {
		_, err := nb.TryRead(buf)
		t.wantIs("TryRead after all was read", err, ipcbench.ErrWouldBlock)
	}
}

// readEnd expects the end of the stream, and that it stays.
func (t *trial) readEnd(ch ipcbench.Channel) {
	for range 3 {
		t.step("Read at the end of the stream")
		if n, err := ch.Read(make([]byte, 10)); n != 0 || err != io.EOF {
			t.fail("Read at the end returned %d, %v, want 0, io.EOF", n, err)
		}
	}
}

func isClosed(err error) bool { return errors.Is(err, os.ErrClosed) }
