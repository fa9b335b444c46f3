package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// readiness draws what one wait costs against the number of descriptors watched.
func readiness(in *input) ([]*figure, error) {
	rows := in.where("Wait", []string{"ready=1"}, "sec/op")
	f := newFigure("readiness", "Waiting for one ready descriptor among many")
	f.plot.X.Label.Text = "descriptors watched"
	f.above = "time of one wait"
	return lines(f, rows, "fds", "sec/op", "s")
}

// throughput draws the rate against the size of a write, a picture for each place of the second party.
func throughput(in *input) (fs []*figure, err error) {
	cpus, by := split(in.where("Throughput", nil, "B/s"), "cpu")
	for _, cpu := range cpus {
		rows, wait := prefer(by[cpu], "wait", "kernel")
		rows, peer := prefer(rows, "peer", "process")
		f := newFigure("throughput"+suffix(cpu), "Throughput one way by size of a write")
		f.plot.X.Label.Text = "bytes a write"
		f.above = "bytes a second"
		f.say("%s, wait=%s, peer=%s. Points of one size stand side by side.", sentence(placeWords(cpu)), wait, peer)
		more, err := lines(f, rows, "size", "B/s", "B/s")
		if err != nil {
			return nil, err
		}
		fs = append(fs, more...)
	}
	return fs, nil
}

// A point is a row at a number.
type point struct {
	x   float64
	row *row
}

// A bundle are the lines of a figure by label.
type bundle struct {
	labels []string // in order of appearance
	by     map[string][]point
	rows   []*row
	ticks  map[float64]string // the numbers as the rows write them
}

// collect sorts the rows that have the key into lines.
func collect(rows []*row, key, unit string) (bundle, error) {
	b := bundle{by: map[string][]point{}, ticks: map[float64]string{}}
	for _, r := range rows {
		text, ok := r.keys[key]
		if !ok {
			continue
		}
		x, ok := sizeOf(text)
		if !ok {
			return b, fmt.Errorf("%s: Benchmark%s: %s=%s is no number such as 64 or 4KiB", r.pos, r.full, key, text)
		}
		if err := r.positive(unit); err != nil {
			return b, err
		}
		l := r.label(key, "cpu", "wait", "peer", "ready")
		if b.by[l] == nil {
			b.labels = append(b.labels, l)
		}
		b.by[l] = append(b.by[l], point{x, r})
		b.ticks[x] = text
		b.rows = append(b.rows, r)
	}
	return b, nil
}

// lines draws the rows on two logarithmic axes, a line for each label. There is no figure without rows.
func lines(f *figure, rows []*row, key, unit, show string) ([]*figure, error) {
	b, err := collect(rows, key, unit)
	if err != nil || len(b.rows) == 0 {
		return nil, err
	}
	f.say("%s", samples(b.rows, unit))
	f.grid(true, true)
	if key == "size" {
		aside(b.labels, b.by)
	}
	look := styles(b.labels)
	for _, l := range byHeight(b.labels, b.by, unit) {
		if err := f.line(l, b.by[l], unit, look[l]); err != nil {
			return nil, err
		}
	}
	f.scale = func() {
		logAxis(&f.plot.Y, show)
		if key == "size" {
			sizeAxis(&f.plot.X, b.ticks)
		} else {
			logAxis(&f.plot.X, "")
		}
	}
	return []*figure{f}, nil
}

// aside moves the lines' points of one size a little apart, since many meet at 64 KiB: together by an eighth of the axis.
func aside(labels []string, by map[string][]point) {
	lo, hi := math.Inf(1), 0.0
	for _, ps := range by {
		for _, p := range ps {
			lo, hi = min(lo, p.x), max(hi, p.x)
		}
	}
	apart := max(1.5, math.Pow(hi/lo, 1./8))
	for i, l := range labels {
		for j := range by[l] {
			by[l][j].x *= math.Pow(apart, (float64(i)+0.5)/float64(len(labels))-0.5)
		}
	}
}

// byHeight sorts labels as their lines end at the right, so that the legend follows the picture.
func byHeight(labels []string, by map[string][]point, unit string) []string {
	end := func(l string) (x, y float64) {
		ps := by[l]
		slices.SortFunc(ps, func(a, b point) int { return cmp.Compare(a.x, b.x) })
		last := ps[len(ps)-1]
		return last.x, last.row.summary(unit).Center
	}
	sorted := slices.Clone(labels)
	slices.SortStableFunc(sorted, func(a, b string) int {
		_, ya := end(a)
		_, yb := end(b)
		return cmp.Compare(yb, ya)
	})
	return sorted
}

// line adds one line with markers and the intervals that are bounded.
func (f *figure) line(label string, ps []point, unit string, look style) error {
	var xys, at plotter.XYs
	var errs plotter.YErrors
	for _, p := range ps {
		s := p.row.summary(unit)
		xys = append(xys, plotter.XY{X: p.x, Y: s.Center})
		if bounded(s) {
			at = append(at, xys[len(xys)-1])
			errs = append(errs, struct{ Low, High float64 }{s.Center - s.Lo, s.Hi - s.Center})
		}
	}
	l, marks, err := plotter.NewLinePoints(xys)
	if err != nil {
		return err
	}
	l.LineStyle, marks.GlyphStyle = look.line(), look.glyph()
	f.plot.Add(l)
	if len(at) > 0 {
		bars, err := plotter.NewYErrorBars(struct {
			plotter.XYs
			plotter.YErrors
		}{at, errs})
		if err != nil {
			return err
		}
		bars.LineStyle.Color, bars.LineStyle.Width, bars.CapWidth = look.color, vg.Points(1), vg.Points(6)
		f.plot.Add(bars)
	}
	f.plot.Add(marks)
	f.legend.Add(label, l, marks)
	return nil
}
