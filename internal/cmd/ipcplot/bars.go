package main

import (
	"slices"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// roundTrip draws the round trip of one byte by mechanism and wait, a picture for each place of the second party.
func roundTrip(in *input) (fs []*figure, err error) {
	cpus, by := split(in.where("Latency", []string{"size=1"}, "sec/op"), "cpu")
	for _, cpu := range cpus {
		rows := by[cpu]
		f := newFigure("roundtrip"+suffix(cpu), "Round trip of one byte")
		f.say("%s. %s", sentence(placeWords(cpu)), samples(rows, "sec/op"))
		waits, byWait := groups(rows, (*row).waitLabel, known[2])
		mechs, _ := groups(rows, mechOf, nil)
		f.names(mechs, max(vg.Length(9*len(waits)), 22))
		f.grid(true, false)
		f.separate(len(mechs))
		look := styles(waits)
		for i, w := range waits {
			dodge := (float64(len(waits)-1)/2 - float64(i)) * 0.8 / float64(len(waits))
			if err := f.dots(w, byWait[w], mechs, dodge, look[w]); err != nil {
				return nil, err
			}
		}
		f.scale = func() { f.timeAxis("time of a round trip") }
		fs = append(fs, f)
	}
	return fs, nil
}

func mechOf(r *row) string { return r.label("size", "cpu", "peer", "wait") }

// groups sorts rows by a label: the labels in the order of first, then of appearance.
func groups(rows []*row, label func(*row) string, first []string) (labels []string, by map[string][]*row) {
	by = map[string][]*row{}
	for _, r := range rows {
		l := label(r)
		if by[l] == nil {
			labels = append(labels, l)
		}
		by[l] = append(by[l], r)
	}
	rank := func(l string) int {
		if i := slices.Index(first, l); i >= 0 {
			return i
		}
		return len(first)
	}
	slices.SortStableFunc(labels, func(a, b string) int { return rank(a) - rank(b) })
	return labels, by
}

// timeAxis is the x axis of times: from zero, or logarithmic, and says so.
func (f *figure) timeAxis(label string) {
	f.plot.X.Label.Text = label
	if fitted(&f.plot.X, "s") {
		f.plot.X.Label.Text += " (logarithmic)"
	}
}

// separate draws a line between the rows of a nominal axis.
func (f *figure) separate(rows int) {
	for i := 1; i < rows; i++ {
		f.plot.Add(rule{y: 0.5 - float64(i)})
	}
}

// dots adds a marker with its interval for each row, at the place of its mechanism.
func (f *figure) dots(label string, rows []*row, mechs []string, dodge float64, look style) error {
	var xys, at plotter.XYs
	var errs plotter.XErrors
	for _, r := range rows {
		if err := r.positive("sec/op"); err != nil {
			return err
		}
		s := r.summary("sec/op")
		xys = append(xys, plotter.XY{X: s.Center, Y: dodge - float64(slices.Index(mechs, mechOf(r)))})
		if bounded(s) {
			at = append(at, xys[len(xys)-1])
			errs = append(errs, struct{ Low, High float64 }{s.Center - s.Lo, s.Hi - s.Center})
		}
	}
	if len(at) > 0 {
		bars, err := plotter.NewXErrorBars(struct {
			plotter.XYs
			plotter.XErrors
		}{at, errs})
		if err != nil {
			return err
		}
		bars.LineStyle.Color, bars.LineStyle.Width, bars.CapWidth = look.color, vg.Points(1.2), vg.Points(5)
		f.plot.Add(bars)
	}
	marks, err := plotter.NewScatter(xys)
	if err != nil {
		return err
	}
	marks.GlyphStyle = look.glyph()
	f.plot.Add(marks)
	f.legend.Add(label, marks)
	return nil
}

// cost draws the CPU time of a round trip, both parties together, in user and in kernel mode.
func cost(in *input) (fs []*figure, err error) {
	cpus, by := split(in.where("Latency", []string{"size=1"}, "user-sec/op", "sys-sec/op"), "cpu")
	for _, cpu := range cpus {
		rows, peer := prefer(by[cpu], "peer", "process")
		_, byMech := groups(rows, mechOf, nil)
		mechs, _ := groups(rows, mechOf, nil)
		f := newFigure("cost"+suffix(cpu), "CPU time of a round trip of one byte, user and system")
		f.say("%s, peer=%s. Both parties' time together; medians of each.", sentence(placeWords(cpu)), peer)
		var names []string
		var user, sys plotter.Values
		for _, m := range mechs {
			f.plot.Add(rule{y: 0.5 - float64(len(names))})
			waits, byWait := groups(byMech[m], (*row).waitLabel, known[2])
			for _, w := range waits {
				names = append(names, m+" · "+w)
				user = append(user, byWait[w][0].summary("user-sec/op").Center)
				sys = append(sys, byWait[w][0].summary("sys-sec/op").Center)
			}
		}
		f.names(names, 16)
		f.grid(true, false)
		if err := f.stack(user, sys); err != nil {
			return nil, err
		}
		f.plot.X.Label.Text = "CPU time of a round trip"
		f.scale = func() { fromZero(&f.plot.X, "s") }
		fs = append(fs, f)
	}
	return fs, nil
}

// stack adds a bar a row: system time from zero, user time on it. Its order is from the top, as names has it.
func (f *figure) stack(user, sys plotter.Values) error {
	slices.Reverse(user)
	slices.Reverse(sys)
	bar := func(v plotter.Values) (*plotter.BarChart, error) {
		b, err := plotter.NewBarChart(v, 11)
		if err != nil {
			return nil, err
		}
		b.Horizontal = true
		b.XMin = -float64(len(v) - 1)
		b.LineStyle = draw.LineStyle{Color: black, Width: vg.Points(0.5)}
		return b, nil
	}
	s, err := bar(sys)
	if err != nil {
		return err
	}
	u, err := bar(user)
	if err != nil {
		return err
	}
	u.StackOn(s)
	s.Color, u.Color = blue, orange
	lo, hi := f.plot.Y.Min, f.plot.Y.Max
	f.plot.Add(s, u)
	f.plot.Y.Min, f.plot.Y.Max = lo, hi
	f.legend.Add("system", s)
	f.legend.Add("user", u)
	return nil
}
