package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"
)

// A row is one result in both halves.
type row struct {
	name    string
	medians [2]float64 // ns/op
	p       float64
	differs bool
}

// change is how far the second half's median is from the first's, as a share of it.
func (r row) change() float64 { return r.medians[1]/r.medians[0] - 1 }

// compare finds the rows of two halves, in order of their names.
func compare(a, b []byte) (rows []row, err error) {
	samples := [2]map[string][]float64{}
	for i, text := range [][]byte{a, b} {
		if samples[i], err = read(text); err != nil {
			return nil, err
		}
	}
	for name, first := range samples[0] {
		second, ok := samples[1][name]
		if !ok {
			return nil, fmt.Errorf("%s: in one half only", name)
		}
		rows = append(rows, newRow(name, first, second))
	}
	if len(rows) == 0 {
		return nil, errors.New("no result has ns/op")
	}
	slices.SortFunc(rows, func(x, y row) int { return strings.Compare(x.name, y.name) })
	return rows, nil
}

func newRow(name string, first, second []float64) row {
	s := [2]*benchmath.Sample{benchmath.NewSample(first, &benchmath.DefaultThresholds), benchmath.NewSample(second, &benchmath.DefaultThresholds)}
	test := benchmath.AssumeNothing.Compare(s[0], s[1])
	r := row{name: name, p: test.P, differs: test.P < test.Alpha}
	for i := range s {
		r.medians[i] = benchmath.AssumeNothing.Summary(s[i], 0.95).Center
	}
	return r
}

// read returns the ns/op of each result, by name.
func read(text []byte) (map[string][]float64, error) {
	samples := map[string][]float64{}
	r := benchfmt.NewReader(bytes.NewReader(text), "output")
	for r.Scan() {
		switch rec := r.Result().(type) {
		case *benchfmt.SyntaxError:
			return nil, rec
		case *benchfmt.Result:
			if seconds, ok := rec.Value("sec/op"); ok {
				samples[rec.Name.String()] = append(samples[rec.Name.String()], seconds*1e9)
			}
		}
	}
	return samples, r.Err()
}

func report(w io.Writer, rows []row) {
	same, largest := 0, 0.0
	for _, r := range rows {
		if r.differs {
			fmt.Fprintf(w, "%s  %.0f ns  %.0f ns  %+.2f%%  p=%.3f\n", r.name, r.medians[0], r.medians[1], 100*r.change(), r.p)
			continue
		}
		same++
		largest = max(largest, math.Abs(r.change()))
	}
	fmt.Fprintf(w, "%d of %d rows (%.1f %%) do not differ; the largest difference of their medians is %.2f %%\n",
		same, len(rows), 100*float64(same)/float64(len(rows)), 100*largest)
}
