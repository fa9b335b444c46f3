//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// rounds are the runs of a plan, and where their output goes.
type rounds struct {
	plan           *plan
	archive        *os.File
	stdout, stderr io.Writer
	counted        map[string][][]byte // with -count-instructions: by machine, the output of each run
}

// run returns the first exit status that is not 0.
func (r *rounds) run(ctx context.Context) (status int, err error) {
	r.counted = map[string][][]byte{}
	for round := range r.plan.rounds {
		for _, m := range inTurn(r.plan.machines, round) {
			s, err := r.once(ctx, m, round)
			if err != nil {
				return 0, fmt.Errorf("%s: %w", m.name, err)
			}
			if status == 0 {
				status = s
			}
		}
	}
	if !r.plan.count || status != 0 {
		return status, nil
	}
	for _, m := range r.plan.machines {
		report, err := countedReport(m.name, r.counted[m.name])
		if err == nil {
			_, err = r.stdout.Write(report)
		}
		if err == nil {
			err = r.keep(m, report)
		}
		if err != nil {
			return 0, fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return 0, nil
}

// inTurn is the order of a round; every second one goes backwards.
func inTurn(machines []machine, round int) []machine {
	order := slices.Clone(machines)
	if round%2 == 1 {
		slices.Reverse(order)
	}
	return order
}

// once is one run on one machine.
func (r *rounds) once(ctx context.Context, m machine, round int) (status int, err error) {
	var kept bytes.Buffer
	out := io.MultiWriter(r.stdout, &kept)
	if r.plan.count {
		out = &kept // its times are none: nobody is to see them
	}
	hello := func(release string) {
		fmt.Fprintf(out, "# kernelrun: %s: Linux %s, round %d of %d, %s\n", m.name, release, round+1, r.plan.rounds, r.plan.manner())
	}
	status, err = r.plan.runOn(ctx, m, r.archive, hello, out, r.stderr, r.stdout)
	if err != nil {
		return 0, err
	}
	if !r.plan.count {
		return status, r.keep(m, kept.Bytes())
	}
	r.counted[m.name] = append(r.counted[m.name], kept.Bytes())
	if status != 0 {
		_, err = r.stderr.Write(kept.Bytes())
	}
	return status, err
}

// manner says what a run's times are worth.
func (p *plan) manner() string {
	switch {
	case p.count:
		return "instructions counted"
	case p.accel == "kvm":
		return "KVM"
	}
	return "emulated (" + p.whyTCG + "): behaviour is to be trusted, times say nothing"
}

// keep appends a run to the machine's file in one write, as several runs may do so at a time.
func (r *rounds) keep(m machine, data []byte) error {
	if r.plan.outDir == "" {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(r.plan.outDir, m.name+".txt"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}
