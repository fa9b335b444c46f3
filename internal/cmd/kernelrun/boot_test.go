//go:build linux

package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func fakeRounds(t *testing.T, p *plan) (*rounds, *bytes.Buffer, *bytes.Buffer) {
	archive, err := os.CreateTemp(t.TempDir(), "archive")
	require.NoError(t, err)
	t.Cleanup(func() { archive.Close() })
	if p.machines == nil {
		p.machines = []machine{{name: "k"}}
	}
	p.rounds, p.accel, p.whyTCG = max(p.rounds, 1), "tcg", "a test"
	if p.timeout == 0 {
		p.timeout = time.Minute
	}
	var out, errOut bytes.Buffer
	return &rounds{plan: p, archive: archive, stdout: &out, stderr: &errOut}, &out, &errOut
}

func TestRun(t *testing.T) {
	fake(t, "run")
	r, out, errOut := fakeRounds(t, &plan{outDir: t.TempDir()})
	status, err := r.run(t.Context())
	require.NoError(t, err)
	require.Equal(t, 7, status)
	require.Equal(t, "# kernelrun: k: Linux 9.9, round 1 of 1, emulated (a test): behaviour is to be trusted, times say nothing\nout\r\n\x00", out.String())
	require.Equal(t, "err\n", errOut.String())
	kept, err := os.ReadFile(filepath.Join(r.plan.outDir, "k.txt"))
	require.NoError(t, err)
	require.Equal(t, out.String(), string(kept))
}

func TestRoundsInterleave(t *testing.T) {
	fake(t, "run")
	r, out, _ := fakeRounds(t, &plan{outDir: t.TempDir(), rounds: 3, machines: []machine{{name: "a"}, {name: "b"}}})
	_, err := r.run(t.Context())
	require.NoError(t, err)
	var order []string
	for line := range strings.Lines(out.String()) {
		if _, rest, found := strings.Cut(line, "# kernelrun: "); found {
			order = append(order, rest[:1])
		}
	}
	require.Equal(t, "abbaab", strings.Join(order, ""))
	for _, name := range []string{"a", "b"} {
		kept, err := os.ReadFile(filepath.Join(r.plan.outDir, name+".txt"))
		require.NoError(t, err)
		require.Equal(t, 3, strings.Count(string(kept), "out\r\n"))
		require.Equal(t, 3, strings.Count(string(kept), "# kernelrun: "+name))
	}
}

func TestPanicIsTriedAgain(t *testing.T) {
	fake(t, "panic once")
	r, out, _ := fakeRounds(t, &plan{})
	status, err := r.run(t.Context())
	require.NoError(t, err)
	require.Equal(t, 7, status)
	require.Len(t, startedPIDs(), 2)
	require.Contains(t, out.String(), "# kernelrun: k: boot 1 of at most 5 failed ([ 1.0] Kernel panic - not syncing: of fright); booting again\n")
}

// KVM may make a machine and yet start no kernel.
func TestHangInKVM(t *testing.T) {
	was := kvmLimit
	kvmLimit = 200 * time.Millisecond
	t.Cleanup(func() { kvmLimit = was })
	fake(t, "hang once")
	r, out, _ := fakeRounds(t, &plan{rounds: 2})
	r.plan.accel, r.plan.triesKVM = "kvm", true
	status, err := r.run(t.Context())
	require.NoError(t, err)
	require.Equal(t, 7, status)
	require.Len(t, startedPIDs(), 3, "one try, and two rounds")
	require.Contains(t, out.String(), "# kernelrun: k: not started by KVM within 200ms; emulated from here on, and at once with -accel=tcg\n")
	require.Contains(t, out.String(), "emulated (no KVM: k did not start in it)")
}

func TestTrouble(t *testing.T) {
	for _, c := range []struct {
		mode   string
		boots  int
		causes []string
	}{
		{"panic", maxBoots, []string{"k: 5 boots: the kernel ended before the test binary was started", "\tchatter\n\t[ 1.0] Kernel panic", "\t[ 1.1] the end"}},
		{"die", 1, []string{"k: the guest ended while the test binary ran", "\t[ 1.1] the end"}},
		{"complain", 1, []string{"exit status 1", "could not load kernel", "\t[ 1.1] the end"}},
		{"no set-up", 1, []string{"guest: mount /dev: no such device"}},
		{"hang", 1, []string{"no end after 1s", "\t[ 1.1] the end"}},
	} {
		t.Run(c.mode, func(t *testing.T) {
			fake(t, c.mode)
			p := &plan{outDir: t.TempDir()}
			if c.mode == "hang" {
				p.timeout = time.Second
			}
			r, _, _ := fakeRounds(t, p)
			_, err := r.run(t.Context())
			for _, cause := range c.causes {
				require.ErrorContains(t, err, cause)
			}
			require.LessOrEqual(t, strings.Count(err.Error(), "\n"), 2+2*tailLines)
			require.Len(t, startedPIDs(), c.boots)
			for _, pid := range startedPIDs() {
				gone(t, pid)
			}
			left, err := os.ReadDir(p.outDir)
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

// A guest that says its last word and does not power off is no failure.
func TestStaysOn(t *testing.T) {
	fake(t, "stay")
	r, _, _ := fakeRounds(t, &plan{})
	status, err := r.run(t.Context())
	require.NoError(t, err)
	require.Equal(t, 7, status)
	gone(t, startedPIDs()[0])
}

func TestInterrupted(t *testing.T) {
	fake(t, "hang")
	r, _, _ := fakeRounds(t, &plan{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { _, err := r.run(ctx); ended <- err }()
	require.Eventually(t, func() bool { return len(startedPIDs()) == 1 }, time.Minute, 5*time.Millisecond)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	gone(t, startedPIDs()[0])
}

func TestOutputThatCannotBeWritten(t *testing.T) {
	fake(t, "run")
	r, _, _ := fakeRounds(t, &plan{})
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer full.Close()
	r.stderr = full
	_, err = r.run(t.Context())
	require.ErrorContains(t, err, "no space left on device")
}

func TestTryKVM(t *testing.T) {
	if f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0); err != nil {
		t.Skip("no KVM:", err)
	} else {
		f.Close()
	}
	fake(t, "complain")
	require.ErrorContains(t, tryKVM(t.Context()), "could not load kernel")
	p := &plan{}
	p.chooseAccel(t.Context())
	require.Equal(t, "tcg", p.accel)
	require.Contains(t, p.manner(), "emulated (no KVM: exit status 1")
}

func TestWire(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	sender := newWire(w)
	text := bytes.Repeat([]byte("a\r\n\x00\x03\xff"), 20_000)
	go func() {
		defer w.Close()
		stream{sender, stdout}.Write(text)
		sender.send(message{Kind: exited, Status: 3})
	}()
	var got []message
	require.NoError(t, receive(r, func(m message) error { got = append(got, m); return nil }))
	require.Equal(t, []message{{Kind: stdout, Data: text}, {Kind: exited, Status: 3}}, got)
	require.ErrorIs(t, receive(strings.NewReader(""), nil), io.EOF)
}

func TestTail(t *testing.T) {
	var last tail
	for range 10_000 {
		last.Write([]byte("line\r\n"))
	}
	last.Write([]byte("bad \xff byte"))
	require.Less(t, len(last.data), 3*tailBytes)
	quoted := last.quote("console")
	require.Equal(t, tailLines+1, strings.Count(quoted, "\n"))
	require.True(t, strings.HasSuffix(quoted, "\tline\n\tbad ? byte"), "%q", quoted)
	require.Equal(t, "\nconsole: silent", (&tail{}).quote("console"))
}
