//go:build linux

package channeltest

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/seed-e1736cc0/ipcbench"
	"github.com/seed-e1736cc0/ipcbench/internal/cpu"
)

// A plan is the rows of one benchmark, and in words what the machine or a mechanism cannot give.
type plan struct {
	rows    []row
	leftOut []string
}

func newPlan(m measure, mechs []Mechanism) (*plan, error) {
	seats, lacking, err := cpu.Here()
	if err != nil {
		return nil, err
	}
	p := &plan{}
	explainPlaces.Do(func() { p.leftOut = lacking })
	for _, mech := range mechs {
		o, err := p.offers(m, mech)
		if err != nil {
			p.leftOut = append(p.leftOut, fmt.Sprintf("mech=%s: %v", mech.Name, err))
			continue
		}
		for _, r := range candidates(m, mech, chosenMatrix(), seats, o.sizes) {
			r.framed = m == messaging && !o.boundaries
			if o.ways[r.way] && r.batch <= o.batch {
				p.rows = append(p.rows, r)
			}
		}
	}
	return p, nil
}

// An offer is what a mechanism has: the sizes that its messages may have, the
// ways in which it can be measured, and how many messages can be gathered.
type offer struct {
	sizes      []int
	ways       map[way]bool
	boundaries bool
	batch      int
}

// offers finds out what a mechanism has. What it lacks is added to leftOut by name.
func (p *plan) offers(m measure, mech Mechanism) (*offer, error) {
	o := &offer{ways: map[way]bool{}, batch: maxBatch}
	var contract *ipcbench.Contract
	exports, plain := false, false
	lacks := map[ipcbench.Wait]error{}
	for _, w := range ipcbench.Waits() {
		a, b, err := mech.Pair(w)
		if err != nil {
			lacks[w] = err
			continue
		}
		c := a.Contract()
		contract = &c
		_, exports = a.(ipcbench.Exporter)
		if c.Boundaries && !isSocket(a) {
			o.batch = 1 // no sendmmsg
		}
		plain = isPlain(a, b)
		a.Close()
		b.Close()
	}
	if contract == nil {
		return nil, lacks[ipcbench.Netpoll]
	}
	o.boundaries = contract.Boundaries
	for _, s := range everySize[m] {
		if contract.MaxMessage == 0 || s <= contract.MaxMessage {
			o.sizes = append(o.sizes, s)
		}
	}
	if len(o.sizes) == 0 {
		return nil, fmt.Errorf("its longest message has %d bytes: %w", contract.MaxMessage, errors.ErrUnsupported)
	}
	_, known := registered[mech.Name]
	outside := exports && known && mech.Import != nil
	if !outside && m != boundaries {
		p.leftOut = append(p.leftOut, fmt.Sprintf("mech=%s/peer=process: needs Mechanism.Import, an ipcbench.Exporter, and the mechanism given to Main", mech.Name))
	}
	for _, w := range append(everyWay, processEpoll) {
		o.ways[w] = lacks[w.wait] == nil && (outside || w.peer != asProcess) && (plain || !w.kernel)
	}
	if !plain && m != boundaries {
		p.leftOut = append(p.leftOut, fmt.Sprintf("mech=%s/wait=kernel: what it writes is not what its descriptors carry", mech.Name))
	}
	for _, w := range ipcbench.Waits() {
		if err := lacks[w]; err != nil {
			p.leftOut = append(p.leftOut, fmt.Sprintf("mech=%s/wait=%v: %v", mech.Name, w, err))
		}
	}
	if m == messaging && o.batch == 1 {
		p.leftOut = append(p.leftOut, fmt.Sprintf("mech=%s/batch=%d: sendmmsg(2) is for sockets", mech.Name, maxBatch))
	}
	return o, nil
}

// isPlain reports whether b's descriptor carries what a writes and nothing else, so that bare system
// calls can take their place. It spoils the pair.
func isPlain(a, b ipcbench.Channel) bool {
	d, ok := b.(ipcbench.Descriptors)
	if !ok {
		return false
	}
	sent, got := []byte("as it is"), make([]byte, 100)
	if _, err := a.Write(sent); err != nil {
		return false
	}
	ready := []unix.PollFd{{Fd: int32(d.ReadFD()), Events: unix.POLLIN}}
	if n, err := unix.Poll(ready, 1000); n != 1 || err != nil {
		return false
	}
	n, err := unix.Read(d.ReadFD(), got)
	return err == nil && bytes.Equal(got[:n], sent)
}

func isSocket(ch ipcbench.Channel) bool {
	d, ok := ch.(ipcbench.Descriptors)
	if !ok {
		return false
	}
	_, err := unix.GetsockoptInt(d.WriteFD(), unix.SOL_SOCKET, unix.SO_TYPE)
	return err == nil
}

// explainPlaces: what the machine lacks is the same in all benchmarks, and is said once.
var explainPlaces sync.Once

// explain prints what is left out, as lines that benchstat skips. Only a benchmark that has
// sub-benchmarks may print, between them: in one that is measured it would tear the result's line apart.
func (p *plan) explain(b *testing.B) {
	for _, text := range p.leftOut {
		fmt.Printf("# %s: %s\n", b.Name(), text)
	}
}
