//go:build linux

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// errHelp: the usage was asked for and printed.
var errHelp = flag.ErrHelp

// A machine is one guest: a kernel and its settings.
type machine struct {
	name   string // of its output file
	kernel string // path of the image
	append string // kernel parameters
	cpus   int
	memory int // MiB
}

// A plan is what the command line asks for.
type plan struct {
	machines []machine
	rounds   int
	outDir   string // "": no files
	timeout  time.Duration
	count    bool   // instructions, not time
	accel    string // kvm or tcg, as qemu has it
	whyTCG   string // why it is not kvm
	triesKVM bool   // kvm is a try: nobody has asked for it
	binary   string
	args     []string
}

const (
	minMemory = 128 // MiB: a kernel and a test binary do not fit less
	maxCPUs   = 255 // more need another interrupt controller, -machine q35,kernel-irqchip=split
)

// parse reads the command line. Flags of a machine before the first -kernel are defaults.
func parse(args []string, output io.Writer) (*plan, error) {
	p := &plan{}
	defaults := machine{cpus: min(2, runtime.NumCPU()), memory: 1024}
	current := func() *machine {
		if n := len(p.machines); n > 0 {
			return &p.machines[n-1]
		}
		return &defaults
	}
	f := flag.NewFlagSet("kernelrun", flag.ContinueOnError)
	f.SetOutput(output)
	f.Usage = func() {
		fmt.Fprintln(output, "usage: kernelrun -kernel=[name=]vmlinuz [flags] binary.test [arguments]")
		f.PrintDefaults()
	}
	f.Func("kernel", "add a machine with this kernel `image`; name=image names it", func(s string) error {
		p.machines = append(p.machines, named(defaults, s))
		return nil
	})
	f.Func("append", "kernel `parameters` of the last machine, or of all if before -kernel; adds up", func(s string) error {
		current().append = strings.TrimSpace(current().append + " " + s)
		return nil
	})
	f.Func("cpus", fmt.Sprintf("`number` of CPUs of the last machine, or of all (default %d)", defaults.cpus),
		number(1, maxCPUs, func(n int) { current().cpus = n }))
	f.Func("memory", fmt.Sprintf("memory in `MiB` of the last machine, or of all (default %d)", defaults.memory),
		number(minMemory, 1<<20, func(n int) { current().memory = n }))
	f.StringVar(&p.outDir, "o", "", "`folder` for an output file of each machine, appended to")
	f.IntVar(&p.rounds, "rounds", 0, "run the binary this `often` on each machine, in turn (default 1, with -count-instructions 3)")
	f.DurationVar(&p.timeout, "timeout", 20*time.Minute, "time limit of one run")
	f.BoolVar(&p.count, "count-instructions", false, "count the guest's instructions instead of its time")
	f.StringVar(&p.accel, "accel", "", "kvm or tcg, which is emulation (default kvm where it works)")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		p.binary, p.args = f.Arg(0), f.Args()[1:]
	}
	return p, p.complete()
}

// named understands [name=]image.
func named(m machine, s string) machine {
	name, image, found := strings.Cut(s, "=")
	if !found || strings.Contains(name, "/") {
		name, image = strings.TrimPrefix(filepath.Base(s), "vmlinuz-"), s
	}
	m.name, m.kernel = name, image
	return m
}

func number(least, most int, set func(int)) func(string) error {
	return func(s string) error {
		var n int
		if _, err := fmt.Sscanf(s+"\n", "%d\n", &n); err != nil || n < least || n > most {
			return fmt.Errorf("want a number from %d to %d", least, most)
		}
		set(n)
		return nil
	}
}

// complete fills in what depends on other flags, and refuses what contradicts itself.
func (p *plan) complete() error {
	if p.rounds == 0 {
		p.rounds = 1
		if p.count {
			p.rounds = 3
		}
	}
	switch {
	case len(p.machines) == 0:
		return errors.New("no -kernel")
	case p.binary == "":
		return errors.New("no test binary")
	case p.rounds < 1:
		return fmt.Errorf("-rounds=%d: want at least 1", p.rounds)
	case p.timeout <= 0:
		return fmt.Errorf("-timeout=%v: want a time above 0", p.timeout)
	case p.accel != "" && p.accel != "kvm" && p.accel != "tcg":
		return fmt.Errorf("-accel=%s: want kvm or tcg", p.accel)
	case p.count && p.accel == "kvm":
		return errors.New("-count-instructions needs emulation, not -accel=kvm")
	case p.count && p.rounds < 2:
		return errors.New("-count-instructions with one round cannot tell which rows are stable: want -rounds=2 or more")
	}
	seen := map[string]bool{}
	for i := range p.machines {
		m := &p.machines[i]
		if m.name == "" || m.name == "." || m.name == ".." || strings.Contains(m.name, "/") {
			return fmt.Errorf("-kernel=%s: no name for it, use -kernel=name=image", m.kernel)
		}
		if seen[m.name] {
			return fmt.Errorf("two machines are called %s, use -kernel=name=image", m.name)
		}
		seen[m.name] = true
		if p.count {
			m.cpus = 1 // the clock counts the instructions of all CPUs
		}
	}
	return nil
}
