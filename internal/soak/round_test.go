//go:build linux

package soak

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/seed-e1736cc0/ipcbench"
)

// A round is one conversation over one connection.

// A plan is what one side says, in both processes the same by its seed.
type plan struct {
	Seed   uint64
	Stream bool
	Max    int // of a message
	Count  int // of messages, or of writes
}

// chunk returns the next length and where its content lies.
func (p plan) chunk(r *rand.Rand) (n, at int) {
	most := p.Max
	if p.Stream {
		most = 70_000
	}
	switch r.IntN(4) {
	case 0:
		most = min(most, 10)
	case 1:
		most = min(most, 1000)
	case 2:
		most = min(most, 10_000)
	}
	return 1 + r.IntN(most), r.IntN(len(noise) - 100_000)
}

func (p plan) random() *rand.Rand { return rand.New(rand.NewPCG(p.Seed, 1)) }

// noise is content; none of it looks like the delimiter.
var noise = func() []byte {
	r := rand.New(rand.NewPCG(0, 0))
	p := make([]byte, 1<<18)
	for i := range p {
		p[i] = byte(r.IntN(250))
	}
	return p
}()

// say writes all of the plan, with deadlines that are too short now and then. It returns how many bytes were accepted.
func say(ch ipcbench.Channel, p plan, moods *rand.Rand) (accepted int64, err error) {
	r := p.random()
	for range p.Count {
		n, at := p.chunk(r)
		rest := noise[at : at+n]
		for len(rest) > 0 {
			k, err := push(ch, rest, moods)
			accepted += int64(k)
			rest = rest[k:]
			if err != nil {
				return accepted, err
			}
		}
	}
	return accepted, nil
}

// push writes in one way or another; being full or late is no error.
func push(ch ipcbench.Channel, p []byte, moods *rand.Rand) (n int, err error) {
	switch moods.IntN(4) {
	case 0:
		n, err = ch.(ipcbench.NonBlocking).TryWrite(p)
	case 1:
		d := ch.(ipcbench.Deadliner)
		if err := d.SetWriteDeadline(soon(moods)); err != nil {
			return 0, err
		}
		n, err = ch.Write(p)
		if err := d.SetWriteDeadline(time.Time{}); err != nil {
			return n, err
		}
	default:
		n, err = ch.Write(p)
	}
	if errors.Is(err, ipcbench.ErrWouldBlock) || errors.Is(err, os.ErrDeadlineExceeded) {
		runtime.Gosched()
		err = nil
	}
	return n, err
}

func soon(moods *rand.Rand) time.Time {
	return time.Now().Add(time.Duration(moods.IntN(2000)-200) * time.Microsecond)
}

// hear reads all of the plan, or what there is of it before an error, and compares.
func hear(ch ipcbench.Channel, p plan, moods *rand.Rand) (got int64, err error) {
	r := p.random()
	buf := make([]byte, 100_000)
	for i := range p.Count {
		n, at := p.chunk(r)
		for want := noise[at : at+n]; len(want) > 0; {
			room := buf
			if p.Stream {
				room = buf[:1+moods.IntN(len(want))]
			}
			k, err := pull(ch, room, moods)
			if err != nil {
				return got, err
			}
			if k > len(want) || !bytes.Equal(room[:k], want[:k]) || !p.Stream && k > 0 && k != len(want) {
				return got, fmt.Errorf("write %d of %d bytes: %w: %d bytes", i, n, errOther, k)
			}
			got += int64(k)
			want = want[k:]
		}
	}
	return got, nil
}

var errOther = errors.New("others arrived than were sent")

// pull reads in one way or another; nothing there, or late, is 0 and no error.
func pull(ch ipcbench.Channel, p []byte, moods *rand.Rand) (n int, err error) {
	switch moods.IntN(4) {
	case 0:
		n, err = ch.(ipcbench.NonBlocking).TryRead(p)
	case 1:
		d := ch.(ipcbench.Deadliner)
		if err := d.SetReadDeadline(soon(moods)); err != nil {
			return 0, err
		}
		n, err = ch.Read(p)
		if err := d.SetReadDeadline(time.Time{}); err != nil {
			return n, err
		}
	default:
		n, err = ch.Read(p)
	}
	if errors.Is(err, ipcbench.ErrWouldBlock) || errors.Is(err, os.ErrDeadlineExceeded) {
		runtime.Gosched()
		err = nil
	}
	return n, err
}

// A tally is what all rounds together have moved.
type tally struct {
	sync.Mutex
	rounds, cut int
	bytes       int64
	byMechanism map[string]int
}

func (t *tally) add(name string, bytes int64, cut bool) {
	t.Lock()
	defer t.Unlock()
	t.rounds++
	t.bytes += bytes
	t.byMechanism[name]++
	if cut {
		t.cut++
	}
}

// endings: what may end a conversation that is cut short, by a Close or by a death.
func isEnding(err error) bool {
	for _, e := range []error{io.EOF, io.ErrUnexpectedEOF, os.ErrClosed, syscall.EPIPE, syscall.ECONNRESET, syscall.ECONNREFUSED, syscall.ENOTCONN} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func plans(c ipcbench.Contract, r *rand.Rand) [2]plan {
	count := 1 + r.IntN(200)
	p := plan{Stream: !c.Boundaries, Max: min(c.MaxMessage, 90_000), Count: count}
	q := p
	p.Seed, q.Seed = r.Uint64(), r.Uint64()
	return [2]plan{p, q}
}

// converse has both ends say and hear at once, from four goroutines. With cut, one end is closed in the middle.
func converse(a, b ipcbench.Channel, r *rand.Rand, cut bool) (moved int64, err error) {
	ends, says := [2]ipcbench.Channel{a, b}, plans(a.Contract(), r)
	var sent, got [2]int64
	errs := make([]error, 4)
	var all sync.WaitGroup
	for i := range ends {
		moods, others := rand.New(rand.NewPCG(r.Uint64(), 0)), rand.New(rand.NewPCG(r.Uint64(), 0))
		all.Go(func() {
			if sent[i], errs[i] = say(ends[i], says[i], moods); errs[i] == nil && ends[i].Contract().EndOfStream {
				errs[i] = ends[i].CloseWrite()
			}
		})
		all.Go(func() {
			if got[i], errs[2+i] = hear(ends[i], says[1-i], others); errs[2+i] == nil {
				errs[2+i] = hearEnd(ends[i])
			}
		})
	}
	closed := make(chan struct{})
	if cut {
		victim := ends[r.IntN(2)]
		time.AfterFunc(time.Duration(r.IntN(3000))*time.Microsecond, func() {
			victim.Close()
			// A datagram's peer is told nothing: it hears of the end from who closed it.
			if !victim.Contract().EndOfStream {
				ends[0].Close()
				ends[1].Close()
			}
			close(closed)
		})
	}
	all.Wait()
	if cut {
		<-closed
	}
	for i := range ends {
		ends[i].Close()
	}
	for _, e := range errs {
		if e != nil && !(cut && isEnding(e)) {
			err = errors.Join(err, e)
		}
	}
	for i := range got {
		if err == nil && (got[i] > sent[1-i] || !cut && got[i] != sent[1-i]) {
			err = fmt.Errorf("%d bytes arrived, %d were accepted", got[i], sent[1-i])
		}
	}
	return got[0] + got[1], err
}

// hearEnd reads the end of a stream, where there is one.
func hearEnd(ch ipcbench.Channel) error {
	if !ch.Contract().EndOfStream {
		return nil
	}
	n, err := ch.Read(make([]byte, 10))
	switch {
	case n != 0:
		return fmt.Errorf("%d bytes behind the last one: %v", n, err)
	case err != io.EOF:
		return fmt.Errorf("at the end: %w", err)
	}
	return nil
}
