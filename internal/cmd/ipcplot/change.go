package main

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"golang.org/x/perf/benchmath"
)

// confidence of every interval; 1-confidence is the level of every test.
const confidence = 0.95

// A change is how a row's cost differs between two inputs.
type change struct {
	old, new    *row
	unit        string
	ratio       float64 // new/old of the medians, as benchstat has it
	lo, hi      float64 // confidence interval of the ratio; 0 and +Inf if there are too few samples
	significant bool
	test        benchmath.Comparison
}

type costUnit struct{ unit, label string }

// costs are the units compared, less is better: a row's first of them.
var costs = []costUnit{
	{"sec/op", "time per operation"},
	{"guest-instructions/op", "guest instructions per operation"},
}

// changes compares the rows that both inputs have, sorted from the largest gain to the largest loss.
func changes(old, new *input) (all []change) {
	for key, o := range old.byName {
		n := new.byName[key]
		if n == nil {
			continue
		}
		for _, c := range costs {
			if o.has(c.unit) && n.has(c.unit) {
				all = append(all, compare(o, n, c.unit))
				break
			}
		}
	}
	slices.SortFunc(all, byRatio)
	return all
}

func byRatio(a, b change) int {
	return cmp.Or(cmp.Compare(a.ratio, b.ratio), cmp.Compare(a.old.full, b.old.full), cmp.Compare(a.old.pkg, b.old.pkg))
}

func compare(o, n *row, unit string) change {
	assume := o.units.GetAssumption(unit)
	os, ns := o.summary(unit), n.summary(unit)
	ch := change{old: o, new: n, unit: unit, ratio: ns.Center / os.Center}
	ch.test = assume.Compare(o.sample(unit), n.sample(unit))
	ch.significant = ch.test.P <= ch.test.Alpha
	if assume == benchmath.AssumeExact { // no test: a difference larger than the spread is one
		ch.lo, ch.hi = ns.Lo/os.Hi, ns.Hi/os.Lo
		ch.significant = ch.lo > 1 || ch.hi < 1
		return ch
	}
	ch.lo, ch.hi = interval(o.values[unit], n.values[unit])
	ch.lo, ch.hi = min(ch.lo, ch.ratio), max(ch.hi, ch.ratio)
	return ch
}

// interval returns the ratios new/old that benchmath's U test does not reject: its
// confidence interval, by inversion of the test (Hodges and Lehmann 1963; Bauer 1972). So it
// leaves 1 out exactly where the test finds a difference.
func interval(old, new []float64) (lo, hi float64) {
	var ratios []float64 // the test changes its mind at these only
	for _, o := range old {
		for _, n := range new {
			ratios = append(ratios, n/o)
		}
	}
	slices.Sort(ratios)
	between := func(i int) float64 { return math.Sqrt(ratios[i-1] * ratios[i]) }
	last := len(ratios) - 1
	low := 1 + sort.Search(last, func(i int) bool { return !rejected(old, new, between(i+1)) })
	high := sort.Search(last, func(i int) bool { return i+1 >= low && rejected(old, new, between(i+1)) })
	lo, hi = 0, math.Inf(1)
	if rejected(old, new, ratios[0]/2) {
		lo = ratios[low-1]
	}
	if rejected(old, new, ratios[last]*2) {
		hi = ratios[high]
	}
	return lo, hi
}

// rejected tells whether the samples differ by another factor than ratio.
func rejected(old, new []float64, ratio float64) bool {
	scaled := make([]float64, len(old))
	for i, o := range old {
		scaled[i] = o * ratio
	}
	s := func(v []float64) *benchmath.Sample { return benchmath.NewSample(v, &benchmath.DefaultThresholds) }
	c := benchmath.AssumeNothing.Compare(s(scaled), s(slices.Clone(new)))
	return c.P <= c.Alpha
}
