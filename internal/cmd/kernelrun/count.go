//go:build linux

package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"
)

const (
	stableUnit  = "guest-instructions/op"
	varyingUnit = "varying-guest-instructions/op"
	maxSpread   = 0.005 // of a stable row, from the least sample to the greatest
)

// countedReport makes the results of several boots into results in instructions.
func countedReport(machine string, boots [][]byte) ([]byte, error) {
	var results []*benchfmt.Result
	leftOut := map[string]bool{}
	for i, data := range boots {
		r := benchfmt.NewReader(bytes.NewReader(data), fmt.Sprintf("boot %d", i+1))
		for r.Scan() {
			switch rec := r.Result().(type) {
			case *benchfmt.SyntaxError:
				return nil, rec
			case *benchfmt.Result:
				if !onOneCPU(rec.Name) {
					leftOut[rec.Name.String()] = true
				} else if rec := rec.Clone(); toInstructions(rec) {
					results = append(results, rec)
				}
			}
		}
		if err := r.Err(); err != nil {
			return nil, err
		}
	}
	var out bytes.Buffer
	out.Write(comments(boots[0]))
	fmt.Fprintf(&out, "# kernelrun: %s: instructions of %d boots, not times\n", machine, len(boots))
	if n := len(leftOut); n > 0 {
		fmt.Fprintf(&out, "# kernelrun: %s: %d rows left out, which are neither cpu=same nor of SelfLoop\n", machine, n)
	}
	for _, line := range markVarying(results) {
		fmt.Fprintf(&out, "# kernelrun: %s: varies from boot to boot: %s\n", machine, line)
	}
	for _, unit := range []string{stableUnit, varyingUnit} {
		fmt.Fprintf(&out, "Unit %s better=lower\n", unit)
	}
	w := benchfmt.NewWriter(&out)
	for _, rec := range results {
		if err := w.Write(rec); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// comments are the lines that tell of the machine.
func comments(output []byte) []byte {
	var lines []byte
	for line := range bytes.Lines(output) {
		if bytes.HasPrefix(line, []byte("#")) {
			lines = append(lines, line...)
		}
	}
	return lines
}

// onOneCPU: only there nobody waits for a clock.
func onOneCPU(name benchfmt.Name) bool {
	base, parts := name.Parts()
	return string(base) == "SelfLoop" ||
		slices.ContainsFunc(parts, func(p []byte) bool { return string(p) == "/cpu=same" })
}

// toInstructions replaces a result's time by the count that it is, and drops
// what is derived from times. It returns false if there is no time.
func toInstructions(r *benchfmt.Result) bool {
	values := r.Values
	r.Values = nil
	for _, v := range values {
		switch {
		case v.OrigUnit == "ns/op":
			r.Values = append([]benchfmt.Value{{Value: v.OrigValue, Unit: stableUnit}}, r.Values...)
		case v.Unit == "B/s" || strings.HasSuffix(v.Unit, "sec/op"):
		default:
			r.Values = append(r.Values, v)
		}
	}
	return len(r.Values) > 0 && r.Values[0].Unit == stableUnit
}

// markVarying gives rows whose samples are too far apart the other unit, and says how far.
func markVarying(results []*benchfmt.Result) (lines []string) {
	samples := map[string][]*benchfmt.Result{}
	var rows []string
	for _, r := range results {
		row := r.GetConfig("pkg") + " " + r.Name.String()
		if samples[row] == nil {
			rows = append(rows, row)
		}
		samples[row] = append(samples[row], r)
	}
	for _, row := range rows {
		byValue := func(a, b *benchfmt.Result) int { return int(a.Values[0].Value - b.Values[0].Value) }
		least := slices.MinFunc(samples[row], byValue).Values[0].Value
		most := slices.MaxFunc(samples[row], byValue).Values[0].Value
		if most-least <= maxSpread*least {
			continue
		}
		for _, r := range samples[row] {
			r.Values[0].Unit = varyingUnit
		}
		lines = append(lines, fmt.Sprintf("%s: %.0f to %.0f", strings.TrimSpace(row), least, most))
	}
	return lines
}
