//go:build linux

package poller

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Operations in any order on a few pipes, against a model of which of them are ready.

const modelPipes = 5

// A modelPipe is the read end of a pipe and what is known of it.
type modelPipe struct {
	r, w  int // w: -1 once closed
	bytes int
	added bool
	in    Interest
	news  bool // for Edge: something has happened since the last event
	spent bool // for OneShot
}

// ready is what Wait has to report of the pipe, 0 for nothing.
func (p *modelPipe) ready() (r Ready) {
	if !p.added || p.spent || p.in&Edge != 0 && !p.news {
		return 0
	}
	if p.bytes > 0 {
		r |= CanRead
	}
	if p.w < 0 {
		r |= HangUp
	}
	return r
}

// A model is the pipes of one Poller. Its report names what differs.
type model struct {
	p       Poller
	pipes   [modelPipes]modelPipe
	choices []Interest
}

func newModel(p Poller, choices []Interest) (*model, error) {
	m := &model{p: p, choices: choices}
	for i := range m.pipes {
		var fds [2]int
		if err := unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
			return nil, err
		}
		m.pipes[i] = modelPipe{r: fds[0], w: fds[1]}
	}
	return m, nil
}

func (m *model) close() {
	for i := range m.pipes {
		unix.Close(m.pipes[i].r)
		m.shut(&m.pipes[i])
	}
}

func (m *model) shut(p *modelPipe) {
	if p.w >= 0 {
		unix.Close(p.w)
		p.w, p.news = -1, true
	}
}

// step does what a byte says, and reports what is not as the model has it.
func (m *model) step(b byte) error {
	p := &m.pipes[int(b>>4)%modelPipes]
	in := m.choices[int(b>>2)%len(m.choices)]
	switch b % 8 {
	case 0, 1:
		if p.w >= 0 && p.bytes < 100 {
			unix.Write(p.w, []byte("x"))
			p.bytes++
			p.news = true
		}
	case 2:
		n, _ := unix.Read(p.r, make([]byte, 1+int(b>>2)%2*200))
		p.bytes -= max(n, 0)
	case 3:
		return m.want(m.p.Add(p.r, in), p.added, unix.EEXIST, p, in, true)
	case 4:
		return m.want(m.p.Modify(p.r, in), !p.added, unix.ENOENT, p, in, true)
	case 5:
		return m.want(m.p.Remove(p.r), !p.added, unix.ENOENT, p, 0, false)
	case 6:
		if b>>5 == 7 { // seldom, as it is for good
			m.shut(p)
		}
	}
	return m.wait()
}

// want: an operation fails where it must, and changes the model where it does not.
func (m *model) want(err error, fails bool, how error, p *modelPipe, in Interest, added bool) error {
	switch {
	case fails && !errors.Is(err, how):
		return fmt.Errorf("error %v, want %v", err, how)
	case !fails && err != nil:
		return err
	case !fails:
		p.in, p.added, p.news, p.spent = in, added, true, false
	}
	return m.wait()
}

// wait compares one Wait with the model: everything that is ready, and nothing else.
func (m *model) wait() error {
	events := make([]Event, modelPipes)
	n, err := m.p.Wait(events, 0)
	if err != nil {
		return err
	}
	got := map[int]Ready{}
	for _, e := range events[:n] {
		if _, twice := got[e.FD]; twice || !m.p.Current(e) {
			return fmt.Errorf("descriptor %d twice, or not current", e.FD)
		}
		got[e.FD] = e.Ready
	}
	for i := range m.pipes {
		p := &m.pipes[i]
		if got[p.r] != p.ready() {
			return fmt.Errorf("pipe %d, %d bytes in it, writer %v, interest %v: reported %v, want %v", i, p.bytes, p.w >= 0, p.in, got[p.r], p.ready())
		}
		if p.ready() != 0 {
			p.news, p.spent = false, p.in&OneShot != 0
		}
		delete(got, p.r)
	}
	if len(got) > 0 {
		return fmt.Errorf("reported %v, which are not registered", got)
	}
	return nil
}

// play runs a sequence of steps on a new Poller.
func play(t testing.TB, kind Kind, spoil func(Poller) Poller, steps []byte) error {
	p, err := New(kind)
	require.NoError(t, err)
	defer p.Close()
	choices := []Interest{Readable}
	if kind == Epoll {
		choices = []Interest{Readable, Readable | Edge, Readable | OneShot, Readable | Edge | OneShot}
	}
	m, err := newModel(spoil(p), choices)
	require.NoError(t, err)
	defer m.close()
	for i, b := range steps {
		if err := m.step(b); err != nil {
			return fmt.Errorf("step %d (%#x): %w", i, b, err)
		}
	}
	return nil
}

func sound(p Poller) Poller { return p }

func someSteps(seed uint64) []byte {
	random := rand.New(rand.NewPCG(seed, 0))
	steps := make([]byte, 300)
	for i := range steps {
		steps[i] = byte(random.Uint32())
	}
	return steps
}

func TestModel(t *testing.T) {
	each(t, func(t *testing.T, kind Kind, _ *poller) {
		for seed := range uint64(20) {
			require.NoError(t, play(t, kind, sound, someSteps(seed)), "seed %d", seed)
		}
	})
}

func FuzzModel(f *testing.F) {
	f.Add(uint8(Epoll), someSteps(1))
	f.Add(uint8(Select), someSteps(2))
	f.Fuzz(func(t *testing.T, kind uint8, steps []byte) {
		k := Kind(kind % 4)
		require.NoError(t, play(t, k, sound, steps[:min(len(steps), 1000)]))
	})
}

// Faults that the model has to find.
type losesAfterModify struct {
	Poller
	lost int
}

func (p *losesAfterModify) Modify(fd int, in Interest) error {
	p.lost = fd
	return p.Poller.Modify(fd, in)
}

func (p *losesAfterModify) Wait(events []Event, timeout time.Duration) (int, error) {
	n, err := p.Poller.Wait(events, timeout)
	for i, e := range events[:n] {
		if e.FD == p.lost {
			p.lost = -1
			copy(events[i:], events[i+1:n])
			return n - 1, err
		}
	}
	return n, err
}

type forgetsRemove struct{ Poller }

func (p forgetsRemove) Remove(int) error { return nil }

func TestModelFindsFaults(t *testing.T) {
	for name, spoil := range map[string]func(Poller) Poller{
		"loses an event after Modify": func(p Poller) Poller { return &losesAfterModify{p, -1} },
		"Remove does nothing":         func(p Poller) Poller { return forgetsRemove{p} },
	} {
		for _, kind := range []Kind{Select, Poll, Epoll} {
			require.Error(t, play(t, kind, spoil, someSteps(3)), name)
		}
	}
}
