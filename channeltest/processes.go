//go:build linux

package channeltest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/seed-e1736cc0/ipcbench"
	"github.com/seed-e1736cc0/ipcbench/internal/meter"
	"github.com/seed-e1736cc0/ipcbench/internal/peer"
)

const partyRole = "channeltest party"

// An assignment tells a child process which part it plays.
type assignment struct {
	Mechanism string
	Measure   measure
	Size      int
	Wait      ipcbench.Wait
	Kernel    bool // bare system calls
	Batch     int
	Rate      int
	First     bool
}

// An order makes both parties begin.
type order struct{ N int }

// playParty is a party's life in a child process. It has one thread that
// matters, locked unless it parks in the runtime's poller, and waits for orders in a blocking
// read, so that nothing else runs beside what is measured.
func playParty(c *peer.Conn) error {
	var a assignment
	if err := c.Recv(&a); err != nil {
		return err
	}
	if a.Kernel || a.Wait == ipcbench.Block || a.Wait == ipcbench.Spin {
		runtime.LockOSThread()
	}
	debug.SetGCPercent(-1)
	p, err := a.party(c.Files())
	if err != nil {
		return err
	}
	if err := c.Send(struct{}{}); err != nil {
		return err
	}
	for {
		var o order
		if err := c.Recv(&o); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		r, err := p.run(a.Measure, a.First, o.N)
		if err != nil {
			return err
		}
		if err := c.Send(r); err != nil {
			return err
		}
	}
}

func (a assignment) party(files []*os.File) (*party, error) {
	m, ok := registered[a.Mechanism]
	if !ok {
		return nil, fmt.Errorf("mechanism %q is not one that Main was given", a.Mechanism)
	}
	ends := 1
	if a.Measure.alone() {
		ends = 2
	}
	wires := make([]wire, 2)
	for i := range ends {
		share := len(files) / ends
		ch, err := m.Import(files[i*share:(i+1)*share], a.Wait)
		if err != nil {
			return nil, err
		}
		if wires[i], err = a.wire(ch); err != nil {
			return nil, err
		}
	}
	p, err := newParty(wires[0], wires[1], a.Size, meter.OfProcess)
	if err != nil {
		return nil, err
	}
	p.rate = a.Rate
	return p, nil
}

func (a assignment) wire(ch ipcbench.Channel) (wire, error) {
	switch {
	case a.Measure == messaging:
		return newCourier(ch, a.Size, a.Batch)
	case a.Kernel:
		return throughKernel(ch)
	}
	return throughChannel(ch), nil
}

// processes is a session whose parties are children of the test process, which only supervises.
type processes struct{ peers []*peer.Peer }

func openProcesses(r row) (s session, err error) {
	a, b, err := r.mech.Pair(r.wait)
	if err != nil {
		return nil, err
	}
	defer func() {
		a.Close()
		b.Close()
	}()
	var ends [][]*os.File
	for _, ch := range []ipcbench.Channel{a, b} {
		files, err := ch.(ipcbench.Exporter).Files()
		if err != nil {
			return nil, err
		}
		defer closeFiles(files)
		ends = append(ends, files)
	}
	if r.measure.alone() {
		ends = [][]*os.File{append(ends[0], ends[1]...)}
	}
	p := &processes{}
	for i, files := range ends {
		if err := p.add(r, i, files); err != nil {
			return nil, errors.Join(err, p.close())
		}
	}
	return p, nil
}

func (p *processes) add(r row, i int, files []*os.File) error {
	child, err := peer.Start(peer.Config{
		Role:  partyRole,
		Files: files,
		CPUs:  []int{r.cpu(i)},
		Env:   r.environment(),
	})
	if err != nil {
		return err
	}
	p.peers = append(p.peers, child)
	err = child.Send(assignment{r.mech.Name, r.measure, r.size, r.wait, r.kernel, r.batch, r.rate, i == 0})
	if err != nil {
		return err
	}
	return child.Recv(&struct{}{}, startLimit)
}

func (p *processes) run(n int, limit time.Duration) ([]report, error) {
	reports := make([]report, len(p.peers))
	ended := make(chan error, len(p.peers))
	// The second party first: it is to be waiting when the first one starts.
	for i := len(p.peers) - 1; i >= 0; i-- {
		go func() {
			err := p.peers[i].Send(order{n})
			if err == nil {
				err = p.peers[i].Recv(&reports[i], limit)
			}
			if err != nil {
				err = fmt.Errorf("party %d: %w", i+1, err)
			}
			ended <- err
		}()
	}
	return reports, collect(ended, len(p.peers), graceLimit, func() {
		for _, child := range p.peers {
			child.Kill()
		}
	})
}

func (p *processes) close() error {
	var errs []error
	for _, child := range p.peers {
		errs = append(errs, child.Close())
	}
	return errors.Join(errs...)
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
