package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"
	"golang.org/x/perf/benchproc"
	"golang.org/x/perf/benchunit"
)

// results are the inputs in the order they were given: files, or the kernels of one file.
type results struct {
	inputs []*input
}

// An input is what one file, or one kernel, measured.
type input struct {
	Label string
	Rows  []*row
	Facts []fact // the keys of the file that have one value throughout

	byName map[benchproc.Key]*row
}

type fact struct{ Key, Value string }

// A row is one benchmark and all its samples.
type row struct {
	pkg, full string            // full: its name without "Benchmark" and GOMAXPROCS
	name      string            // Latency
	parts     []string          // mech=pipe, size=1, …
	keys      map[string]string // of parts
	pos       string            // file:line of the first sample

	values map[string][]float64 // by unit, tidied: sec/op, B/s
	units  benchfmt.UnitMetadataMap
	where  benchproc.Key // the machine it was measured on
}

// mixed are the keys in which the samples of a row may not differ: a median over two machines is of neither.
const mixed = "kernel,cpu,goos,goarch,/gomaxprocs"

// A reader sorts results into inputs and rows.
type reader struct {
	filter               *benchproc.Filter
	byInput, byRow, byPC *benchproc.Projection
	inputs               map[benchproc.Key]*input
	facts                map[*input]map[string]string
	order                []*input
	labels               func(benchproc.Key) string
}

// read reads the files, each [label=]path. query is a filter as benchstat has it.
func read(paths []string, query string) (*results, error) {
	rd, err := newReader(paths, query)
	if err != nil {
		return nil, err
	}
	files := benchfmt.Files{Paths: paths, AllowLabels: true}
	found := map[string]bool{}
	var faults []error
	for files.Scan() {
		switch rec := files.Result().(type) {
		case *benchfmt.SyntaxError:
			faults = append(faults, rec)
		case *benchfmt.Result:
			file, _ := rec.Pos()
			found[file] = true
			if err := rd.add(rec, files.Units()); err != nil {
				faults = append(faults, err)
			}
		}
	}
	if err := files.Err(); err != nil {
		return nil, err
	}
	if len(faults) > 0 {
		return nil, summed(faults)
	}
	for _, p := range paths {
		if file := p[strings.Index(p, "=")+1:]; !found[file] {
			return nil, fmt.Errorf("%s: no benchmark results", file)
		}
	}
	return rd.results(query)
}

func newReader(paths []string, query string) (*reader, error) {
	rd := &reader{inputs: map[benchproc.Key]*input{}, facts: map[*input]map[string]string{}}
	var err error
	if rd.filter, err = benchproc.NewFilter(query); err != nil {
		return nil, fmt.Errorf("-filter: %w\n%w", err, errUsage)
	}
	by := ".file"
	if len(paths) == 1 {
		by = "kernel"
	}
	var p benchproc.ProjectionParser
	for _, want := range []struct {
		proj **benchproc.Projection
		expr string
	}{{&rd.byPC, mixed}, {&rd.byRow, "pkg,.fullname"}} {
		if *want.proj, err = p.Parse(want.expr, rd.filter); err != nil {
			return nil, err
		}
	}
	var q benchproc.ProjectionParser // kernel is in byPC as well
	if rd.byInput, err = q.Parse(by, rd.filter); err != nil {
		return nil, err
	}
	rd.labels = func(k benchproc.Key) string {
		if v := k.Get(rd.byInput.Fields()[0]); v != "" {
			return v
		}
		return paths[0]
	}
	return rd, nil
}

// add takes one result; what it keeps of it is copied.
func (rd *reader) add(rec *benchfmt.Result, units benchfmt.UnitMetadataMap) error {
	if ok, err := rd.filter.Apply(rec); !ok {
		return err
	}
	key := rd.byInput.Project(rec)
	in := rd.inputs[key]
	if in == nil {
		in = &input{Label: rd.labels(key), byName: map[benchproc.Key]*row{}}
		rd.inputs[key], rd.facts[in] = in, map[string]string{}
		rd.order = append(rd.order, in)
	}
	rd.note(in, rec)
	k := rd.byRow.Project(rec)
	r := in.byName[k]
	if r == nil {
		r = newRow(rec, units)
		r.where = rd.byPC.Project(rec)
		in.byName[k] = r
		in.Rows = append(in.Rows, r)
	}
	if here := rd.byPC.Project(rec); here != r.where {
		return differs(rec, r, []benchproc.Key{r.where, here})
	}
	return r.add(rec)
}

func differs(rec *benchfmt.Result, r *row, keys []benchproc.Key) error {
	var names []string
	for _, f := range benchproc.NonSingularFields(keys) {
		names = append(names, fmt.Sprintf("%s (%s, %s)", f.Name, cmp.Or(keys[0].Get(f), "none"), cmp.Or(keys[1].Get(f), "none")))
	}
	return fmt.Errorf("%s: Benchmark%s differs from %s in %s: choose one with -filter",
		position(rec), r.full, r.pos, strings.Join(names, ", "))
}

// note keeps the facts of an input that have one value throughout.
func (rd *reader) note(in *input, rec *benchfmt.Result) {
	seen := rd.facts[in]
	for _, c := range rec.Config {
		if !c.File || c.Key == "pkg" {
			continue
		}
		if v, ok := seen[c.Key]; !ok {
			seen[c.Key] = string(c.Value)
			in.Facts = append(in.Facts, fact{c.Key, string(c.Value)})
		} else if v != string(c.Value) {
			seen[c.Key] = ""
		}
	}
}

func (rd *reader) results(query string) (*results, error) {
	if len(rd.order) == 0 {
		return nil, fmt.Errorf("no result matches -filter %q", query)
	}
	for _, in := range rd.order {
		var same []fact
		for _, f := range in.Facts {
			if rd.facts[in][f.Key] == f.Value {
				same = append(same, f)
			}
		}
		in.Facts = same
		in.tellApart()
	}
	return &results{rd.order}, nil
}

// tellApart gives rows of one name in several packages the package as a key more.
func (in *input) tellApart() {
	pkgs := map[string]map[string]bool{}
	for _, r := range in.Rows {
		if pkgs[r.full] == nil {
			pkgs[r.full] = map[string]bool{}
		}
		pkgs[r.full][r.pkg] = true
	}
	for _, r := range in.Rows {
		if len(pkgs[r.full]) > 1 {
			base := path.Base(r.pkg)
			r.keys["pkg"] = base
			r.parts = append(r.parts, "pkg="+base)
		}
	}
}

func newRow(rec *benchfmt.Result, units benchfmt.UnitMetadataMap) *row {
	r := &row{keys: map[string]string{}, values: map[string][]float64{}, pos: position(rec), units: units, pkg: rec.GetConfig("pkg")}
	name, parts := rec.Name.Parts()
	r.name, r.full = string(name), string(name)
	for _, p := range parts {
		part := string(p)
		if strings.HasPrefix(part, "-") { // GOMAXPROCS
			continue
		}
		r.full += part
		part = strings.TrimPrefix(part, "/")
		r.parts = append(r.parts, part)
		if k, v, ok := strings.Cut(part, "="); ok {
			r.keys[k] = v
		}
	}
	return r
}

func (r *row) add(rec *benchfmt.Result) error {
	for _, v := range rec.Values {
		written := v
		if v.OrigUnit != "" {
			written = benchfmt.Value{Value: v.OrigValue, Unit: v.OrigUnit}
		}
		_, v.Unit = benchunit.Tidy(v.Value, v.Unit) // benchfmt leaves a 0 in ns
		if !measured(v) {
			return fmt.Errorf("%s: Benchmark%s: %v %s is no measurement", position(rec), r.full, written.Value, written.Unit)
		}
		r.values[v.Unit] = append(r.values[v.Unit], v.Value)
	}
	return nil
}

// measured is false for what cannot have been measured. A fitted slope, in another unit, may be negative.
func measured(v benchfmt.Value) bool {
	switch {
	case math.IsNaN(v.Value), math.IsInf(v.Value, 0):
		return false
	case slices.ContainsFunc(costs, func(c costUnit) bool { return c.unit == v.Unit }):
		return v.Value > 0
	case strings.HasSuffix(v.Unit, "sec/op"), v.Unit == "B/s":
		return v.Value >= 0
	}
	return true
}

func (r *row) has(units ...string) bool {
	for _, u := range units {
		if len(r.values[u]) == 0 {
			return false
		}
	}
	return true
}

// positive is an error if a value cannot stand on a logarithmic axis.
func (r *row) positive(unit string) error {
	for _, v := range r.values[unit] {
		if v == 0 {
			return fmt.Errorf("%s: Benchmark%s: 0 %s cannot be drawn on a logarithmic axis", r.pos, r.full, unit)
		}
	}
	return nil
}

func (r *row) sample(unit string) *benchmath.Sample {
	return benchmath.NewSample(r.values[unit], &benchmath.DefaultThresholds)
}

func (r *row) summary(unit string) benchmath.Summary {
	return r.units.GetAssumption(unit).Summary(r.sample(unit), confidence)
}

func position(rec benchfmt.Record) string {
	file, line := rec.Pos()
	return fmt.Sprintf("%s:%d", file, line)
}

// summed joins the first faults and counts the rest.
func summed(faults []error) error {
	const shown = 10
	if len(faults) > shown {
		faults = append(faults[:shown:shown], fmt.Errorf("and %d faults more", len(faults)-shown))
	}
	return errors.Join(faults...)
}
