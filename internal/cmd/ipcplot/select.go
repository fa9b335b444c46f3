package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchmath"
)

// where are the rows of a benchmark whose keys have these values ("size=1") and that have the units.
func (in *input) where(name string, parts []string, units ...string) (rows []*row) {
	for _, r := range in.Rows {
		ok := r.name == name && r.has(units...)
		for _, p := range parts {
			ok = ok && slices.Contains(r.parts, p)
		}
		if ok {
			rows = append(rows, r)
		}
	}
	return rows
}

// split sorts rows by the value of a key, in order of appearance.
func split(rows []*row, key string) (values []string, by map[string][]*row) {
	by = map[string][]*row{}
	for _, r := range rows {
		v := r.keys[key]
		if by[v] == nil {
			values = append(values, v)
		}
		by[v] = append(by[v], r)
	}
	return values, by
}

// prefer keeps the rows with that value of the key if there are any, else those with the first value there is.
func prefer(rows []*row, key, value string) ([]*row, string) {
	values, by := split(rows, key)
	if by[value] == nil && len(values) > 0 {
		value = values[0]
	}
	return by[value], value
}

// label is the row's mechanism and what else tells it apart, without the keys that the picture shows otherwise.
func (r *row) label(except ...string) string {
	words := []string{r.keys["mech"]}
	for _, p := range r.parts {
		k, v, _ := strings.Cut(p, "=")
		if k != "mech" && !slices.Contains(except, k) {
			words = append(words, v)
		}
	}
	return strings.TrimSpace(strings.Join(words, " "))
}

// waitLabel names a wait, and the kind of peer where it is not a process.
func (r *row) waitLabel() string {
	if p := r.keys["peer"]; p != "" && p != "process" {
		return fmt.Sprintf("%s (%s)", r.keys["wait"], p)
	}
	return r.keys["wait"]
}

// places says in words where the second party runs, seen from the first.
var places = map[string]string{
	"same":   "both parties on one CPU",
	"smt":    "on two hyper-threads of one core",
	"llc":    "on two cores that share a last-level cache",
	"node":   "on two cores of one NUMA node",
	"remote": "on two NUMA nodes",
}

func placeWords(cpu string) string {
	if words, ok := places[cpu]; ok {
		return words
	}
	return "cpu=" + cpu
}

// suffix is the end of a picture's name for one value of a key.
func suffix(value string) string {
	if value == "" {
		return ""
	}
	return "-" + slug(value)
}

// samples says how many there are behind each median, and what the bars are.
func samples(rows []*row, unit string) string {
	lo, hi := math.MaxInt, 0
	finite := true
	for _, r := range rows {
		n := len(r.values[unit])
		lo, hi = min(lo, n), max(hi, n)
		finite = finite && bounded(r.summary(unit))
	}
	n := fmt.Sprintf("of %d samples", lo)
	switch {
	case hi == 1:
		return "One sample each, so there is no interval."
	case lo != hi:
		n = fmt.Sprintf("of %d to %d samples", lo, hi)
	}
	if !finite {
		return "Medians " + n + "; no interval where there are fewer than 6."
	}
	return "Medians " + n + ", bars are 95 % confidence intervals."
}

func bounded(s benchmath.Summary) bool {
	return !math.IsInf(s.Lo, 0) && !math.IsInf(s.Hi, 0)
}
