package main

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"math"
	"regexp"
	"strings"
	"sync"
	"unicode"
)

// kinds are the pictures of one input, and the rows that each needs.
var kinds = []struct {
	draw  func(*input) ([]*figure, error)
	needs string
}{
	{readiness, "readiness against descriptors: no row Wait/mech=…/fds=…/ready=1 with ns/op (package poller)"},
	{throughput, "throughput against size: no row Throughput/mech=…/size=… with MB/s"},
	{roundTrip, "round trips: no row Latency/mech=…/size=1 with ns/op"},
	{tail, "percentiles: no row Tail/mech=… with p50-ns/op, p99-ns/op, p99.9-ns/op and max-ns/op"},
	{cost, "cost split: no row Latency/mech=…/size=1 with user-ns/op and sys-ns/op"},
}

// A report is the page and its pictures.
type report struct {
	Inputs      []*input
	Sections    []*section
	Comparisons []*comparison
	LeftOut     []string
}

// A section is one kind of picture, of each input.
type section struct{ Pictures []*picture }

// A comparison is an input against the first.
type comparison struct {
	Old, New string
	Picture  *picture
	Rows     []tableRow
	Missing  string // what only one of the two has
}

// A tableRow is a change in words.
type tableRow struct {
	Name, Old, New, Change, Interval, Verdict, Test string
	Significant                                     bool
}

// A picture is a figure with its files.
type picture struct {
	fig   *figure
	Name  string
	Alt   string
	Data  template.URL // the SVG as data: URL
	Width int          // in CSS pixels

	svg, png []byte
}

type file struct {
	name string
	data []byte
}

func newReport(res *results) (*report, error) {
	rep := &report{Inputs: res.inputs}
	names := slugs(res.inputs)
	for _, kind := range kinds {
		if err := rep.draw(kind.draw, kind.needs, names); err != nil {
			return nil, err
		}
	}
	for i, in := range res.inputs[1:] {
		if err := rep.compare(res.inputs[0], in, i); err != nil {
			return nil, err
		}
	}
	if len(rep.pictures()) == 0 {
		return nil, fmt.Errorf("no picture can be drawn of these results:\n%s", strings.Join(rep.LeftOut, "\n"))
	}
	return rep, nil
}

// draw makes one kind of picture of each input, those of one name on the same axes.
func (rep *report) draw(kind func(*input) ([]*figure, error), needs string, names []string) error {
	byName := map[string][]*figure{}
	var order []string
	for i, in := range rep.Inputs {
		fs, err := kind(in)
		if err != nil {
			return err
		}
		if len(fs) == 0 {
			rep.LeftOut = append(rep.LeftOut, in.of(len(rep.Inputs))+needs)
		}
		for _, f := range fs {
			if byName[f.name] == nil {
				order = append(order, f.name)
			}
			byName[f.name] = append(byName[f.name], f)
			if m := in.machine(); m != "" {
				f.say("%s", m)
			}
			if len(rep.Inputs) > 1 {
				f.title += ": " + in.Label
				f.name += "-" + names[i]
			}
		}
	}
	for _, name := range order {
		align(byName[name])
		s := &section{}
		for _, f := range byName[name] {
			s.Pictures = append(s.Pictures, newPicture(f))
		}
		rep.Sections = append(rep.Sections, s)
	}
	return nil
}

// machine says where the input was measured, as far as its file does.
func (in *input) machine() string {
	var words []string
	for _, f := range in.Facts {
		switch f.Key {
		case "kernel":
			words = append([]string{"Linux " + f.Value}, words...)
		case "cpu":
			words = append(words, f.Value)
		}
	}
	return strings.Join(words, ", ")
}

// of names the input where there are several.
func (in *input) of(inputs int) string {
	if inputs == 1 {
		return ""
	}
	return in.Label + ": "
}

// compare adds what changed from old to new, the i-th after the first.
func (rep *report) compare(old, new *input, i int) error {
	all := changes(old, new)
	name := "changes"
	if i > 0 {
		name = fmt.Sprintf("changes-%d", i+1)
	}
	f, err := changesFigure(name, old, new, all)
	if err != nil {
		return err
	}
	if f == nil {
		rep.LeftOut = append(rep.LeftOut, fmt.Sprintf("changes from %s to %s: no row with ns/op is in both", old.Label, new.Label))
		return nil
	}
	rep.Comparisons = append(rep.Comparisons, &comparison{
		Old: old.Label, New: new.Label, Picture: newPicture(f), Rows: table(all), Missing: missing(old, new),
	})
	return nil
}

func missing(old, new *input) string {
	only := func(a, b *input) (n int) {
		for k := range a.byName {
			if b.byName[k] == nil {
				n++
			}
		}
		return n
	}
	o, n := only(old, new), only(new, old)
	if o+n == 0 {
		return ""
	}
	return fmt.Sprintf("Not compared: %d rows are in %s only, %d in %s only.", o, old.Label, n, new.Label)
}

func (rep *report) pictures() (all []*picture) {
	for _, c := range rep.Comparisons {
		all = append(all, c.Picture)
	}
	for _, s := range rep.Sections {
		all = append(all, s.Pictures...)
	}
	return all
}

// render draws the pictures, each in a goroutine: compressing them takes the longest.
func (rep *report) render() error {
	all := rep.pictures()
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, p := range all {
		wg.Go(func() { errs[i] = p.render() })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func newPicture(f *figure) *picture {
	w, _ := f.size()
	return &picture{fig: f, Name: f.name, Alt: f.title + ". " + strings.Join(f.lines, " "), Width: int(w.Points() * 4 / 3)}
}

func (p *picture) render() error {
	var svg, png bytes.Buffer
	if err := p.fig.writeSVG(&svg); err != nil {
		return err
	}
	if err := p.fig.writePNG(&png); err != nil {
		return err
	}
	p.svg, p.png = svg.Bytes(), png.Bytes()
	p.Data = template.URL("data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(p.svg))
	return nil
}

//go:embed report.html
var pageText string

var page = template.Must(template.New("report").Parse(pageText))

// files draws the pictures, and returns the page and them by name.
func (rep *report) files() (all []file, err error) {
	if err := rep.render(); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := page.Execute(&b, rep); err != nil {
		return nil, err
	}
	all = append(all, file{"report.html", b.Bytes()})
	for _, p := range rep.pictures() {
		all = append(all, file{p.Name + ".svg", p.svg}, file{p.Name + ".png", p.png})
	}
	return all, nil
}

func table(all []change) (rows []tableRow) {
	for _, c := range all {
		rows = append(rows, tableRow{
			Name: c.old.full, Old: value(c.old, c.unit), New: value(c.new, c.unit), Change: percent(c.ratio),
			Interval: intervalText(c), Verdict: verdict(c), Test: c.test.String(), Significant: c.significant,
		})
	}
	return rows
}

func value(r *row, unit string) string {
	v := r.summary(unit).Center
	if unit == "sec/op" {
		return quantity(v, "s")
	}
	return fmt.Sprintf("%.0f", v)
}

func verdict(c change) string {
	for _, v := range verdicts {
		if v.is(c) {
			return v.label
		}
	}
	return ""
}

func intervalText(c change) string {
	if c.lo == 0 || math.IsInf(c.hi, 1) {
		return "too few samples"
	}
	return percent(c.lo) + " … " + percent(c.hi)
}

var unfit = regexp.MustCompile(`[^A-Za-z0-9._]+`)

// slug is text as a part of a file's name.
func slug(text string) string {
	return strings.Trim(unfit.ReplaceAllString(text, "-"), "-.")
}

// slugs are the inputs' names in file names: short, and no two the same.
func slugs(inputs []*input) (names []string) {
	taken := map[string]bool{}
	for i, in := range inputs {
		label := in.Label[strings.LastIndex(in.Label, "/")+1:]
		s := slug(strings.TrimSuffix(label, ".txt"))
		if s == "" || taken[s] {
			s = strings.TrimLeft(fmt.Sprintf("%s-%d", s, i+1), "-")
		}
		taken[s] = true
		names = append(names, s)
	}
	return names
}

// sentence begins with a capital.
func sentence(s string) string {
	r := []rune(s)
	if len(r) > 0 {
		r[0] = unicode.ToUpper(r[0])
	}
	return string(r)
}
