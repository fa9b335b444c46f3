//go:build linux

package workload

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-e1736cc0/ipcbench"
	"github.com/seed-e1736cc0/ipcbench/internal/peer"
)

// Shell pipelines: a source, some cat of the PATH, and a sink, joined by our channels.

func init() {
	peer.Register("pipeline-source", pour)
	peer.Register("pipeline-sink", drainPipeline)
}

// blockSize is what source and sink move at once; it is one operation.
const blockSize = 64 << 10

type pipelineOrder struct {
	Mechanism string
	Blocks    int
}

// BenchmarkPipeline has every stage in a process of its own, which the scheduler places.
// The clock stops when the sink has counted the last byte.
func BenchmarkPipeline(b *testing.B) {
	if _, err := exec.LookPath("cat"); err != nil {
		fmt.Printf("# %s left out: %v\n", b.Name(), err)
		return
	}
	for _, mech := range []string{"pipe", "unix-stream"} {
		for _, stages := range []int{1, 2, 4} {
			if testing.Short() && stages != 2 {
				continue
			}
			b.Run(fmt.Sprintf("mech=%s/stages=%d", mech, stages), func(b *testing.B) {
				b.SetBytes(blockSize)
				p := newPipeline(b, mech, stages)
				o := pipelineOrder{mech, b.N}
				source := hire(b, peer.Config{Role: "pipeline-source", Files: []*os.File{p.in}}, o)
				sink := hire(b, peer.Config{Role: "pipeline-sink", Files: []*os.File{p.out}}, o)
				require.NoError(b, errors.Join(source.Recv(nil, 10*time.Second), sink.Recv(nil, 10*time.Second)))
				b.ResetTimer()
				require.NoError(b, source.Send(struct{}{}))
				var got int64
				require.NoError(b, sink.Recv(&got, limitFor(b.N)))
				b.StopTimer()
				require.NoError(b, source.Recv(nil, limitFor(0)))
				require.Equal(b, int64(b.N)*blockSize, got)
				require.NoError(b, p.wait())
			})
		}
	}
}

// A pipeline is cats between two descriptors.
type pipeline struct {
	in, out *os.File // what the first one reads from, and the last one writes to
	cats    []*exec.Cmd
	ended   chan error
}

func newPipeline(tb testing.TB, mech string, stages int) *pipeline {
	if _, err := exec.LookPath("cat"); err != nil {
		tb.Skip("the machine has no cat: ", err)
	}
	p := &pipeline{ended: make(chan error, stages)}
	tb.Cleanup(func() {
		for _, c := range p.cats {
			c.Process.Kill()
		}
	})
	var from *os.File
	p.in, from = link(tb, mech)
	for range stages {
		to, next := link(tb, mech)
		c := exec.Command("cat")
		c.Stdin, c.Stdout = from, to
		c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		require.NoError(tb, c.Start())
		require.NoError(tb, errors.Join(from.Close(), to.Close()))
		p.cats = append(p.cats, c)
		go func() { p.ended <- c.Wait() }()
		from = next
	}
	p.out = from
	return p
}

// wait returns when all cats have ended, with how.
func (p *pipeline) wait() error {
	var errs []error
	for range p.cats {
		select {
		case err := <-p.ended:
			errs = append(errs, err)
		case <-time.After(10 * time.Second):
			return errors.New("a cat does not end")
		}
	}
	return errors.Join(errs...)
}

// link returns the descriptor at which one stage writes and the next one reads.
func link(tb testing.TB, mech string) (writer, reader *os.File) {
	a, b, err := kinds[mech].pair(ipcbench.Block)
	require.NoError(tb, err)
	to, from := export(tb, a), export(tb, b)
	if len(to) == 1 {
		return to[0], from[0]
	}
	require.NoError(tb, errors.Join(to[0].Close(), from[1].Close())) // a pipe's other direction
	return to[1], from[0]
}

func pour(c *peer.Conn) error {
	var o pipelineOrder
	if err := c.Recv(&o); err != nil {
		return err
	}
	to := c.Files()[0]
	defer to.Close()
	block := bytes.Repeat([]byte("x"), blockSize)
	runtime.LockOSThread()
	if err := errors.Join(c.Send(struct{}{}), c.Recv(nil)); err != nil {
		return err
	}
	for range o.Blocks {
		if _, err := to.Write(block); err != nil {
			return err
		}
	}
	return errors.Join(to.Close(), c.Send(struct{}{}))
}

func drainPipeline(c *peer.Conn) error {
	var o pipelineOrder
	if err := c.Recv(&o); err != nil {
		return err
	}
	from := c.Files()[0]
	defer from.Close()
	block := make([]byte, blockSize)
	runtime.LockOSThread()
	if err := c.Send(struct{}{}); err != nil {
		return err
	}
	want := int64(o.Blocks) * blockSize
	var got int64
	for got < want {
		n, err := from.Read(block)
		if got += int64(n); err != nil {
			return fmt.Errorf("after %d of %d bytes: %w", got, want, err)
		}
	}
	if err := c.Send(got); err != nil {
		return err
	}
	if n, err := from.Read(block); n != 0 || err != io.EOF {
		return fmt.Errorf("%d bytes and %v behind the last one", n, err)
	}
	return nil
}

// A consumer that stands still stops the producer, after no more than all buffers hold; when it goes on, nothing is lost.
func TestBackPressureThroughPipeline(t *testing.T) {
	const stages, most = 2, 3*(1<<20) + 2*(1<<20) // three channels and what two cats hold, with room to spare
	for _, mech := range []string{"pipe", "unix-stream"} {
		t.Run(mech, func(t *testing.T) {
			p := newPipeline(t, mech, stages)
			in, out := nonBlocking(t, p.in), nonBlocking(t, p.out)
			sent := 0
			next := func() []byte { return pattern(sent, 4096) }
			for still := time.Now(); time.Since(still) < 100*time.Millisecond; {
				require.NoError(t, in.SetWriteDeadline(time.Now().Add(10*time.Millisecond)))
				n, err := in.Write(next())
				if sent += n; n > 0 {
					still = time.Now()
				}
				if err != nil {
					require.ErrorIs(t, err, os.ErrDeadlineExceeded)
				}
				require.LessOrEqual(t, sent, most, "the producer goes on")
			}
			require.NoError(t, in.Close())
			require.NoError(t, out.SetReadDeadline(time.Now().Add(10*time.Second)))
			got, err := io.ReadAll(out)
			require.NoError(t, err)
			require.Equal(t, sent, len(got))
			require.True(t, bytes.Equal(pattern(0, sent), got))
			require.NoError(t, errors.Join(out.Close(), p.wait()))
		})
	}
}

// nonBlocking has a file wait in the runtime's poller, so that deadlines work.
func nonBlocking(t *testing.T, f *os.File) *os.File {
	fd, err := syscall.Dup(int(f.Fd()))
	require.NoError(t, err)
	syscall.CloseOnExec(fd)
	require.NoError(t, errors.Join(f.Close(), syscall.SetNonblock(fd, true)))
	return os.NewFile(uintptr(fd), "")
}

// pattern is what lies at a position, n bytes.
func pattern(at, n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte((at + i) * 7 >> 3)
	}
	return p
}

// A stage that dies ends the pipeline at both sides.
func TestPipelineKilled(t *testing.T) {
	for _, mech := range []string{"pipe", "unix-stream"} {
		t.Run(mech, func(t *testing.T) {
			p := newPipeline(t, mech, 3)
			o := pipelineOrder{mech, 1 << 40 / blockSize}
			source := start(t, peer.Config{Role: "pipeline-source", Files: []*os.File{p.in}}, o)
			sink := start(t, peer.Config{Role: "pipeline-sink", Files: []*os.File{p.out}}, o)
			require.NoError(t, errors.Join(source.Recv(nil, 10*time.Second), sink.Recv(nil, 10*time.Second), source.Send(struct{}{})))
			require.NoError(t, p.cats[1].Process.Kill())
			var failed *peer.HandlerError
			require.ErrorAs(t, source.Recv(nil, 10*time.Second), &failed)
			require.ErrorAs(t, sink.Recv(nil, 10*time.Second), &failed)
			require.ErrorContains(t, failed, "EOF")
			require.Error(t, errors.Join(source.Close(), sink.Close()))
			require.ErrorContains(t, p.wait(), "signal: killed")
		})
	}
}
