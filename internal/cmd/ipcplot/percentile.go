package main

import (
	"image/color"
	"slices"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// percentiles of BenchmarkTail, from the middle of the distribution to its end.
var percentiles = []struct {
	unit, label string
	shape       draw.GlyphDrawer
}{
	{"p50-sec/op", "50 %", draw.CircleGlyph{}},
	{"p99-sec/op", "99 %", square},
	{"p99.9-sec/op", "99.9 %", triangle},
	{"max-sec/op", "longest", cross},
}

// tail draws the percentiles of round trips by mechanism and load, a picture for each place of the second party.
func tail(in *input) (fs []*figure, err error) {
	var units []string
	for _, p := range percentiles {
		units = append(units, p.unit)
	}
	cpus, by := split(in.where("Tail", nil, units...), "cpu")
	for _, cpu := range cpus {
		rows, wait := prefer(by[cpu], "wait", "kernel")
		rows, peer := prefer(rows, "peer", "process")
		rows, size := prefer(rows, "size", "1")
		f := newFigure("percentiles"+suffix(cpu), "Percentiles of the round trip")
		f.say("%s, size=%s, wait=%s, peer=%s. Medians of the runs' percentiles.", sentence(placeWords(cpu)), size, wait, peer)
		loads, byLoad := split(rows, "load")
		mechs, _ := groups(rows, mechLoad, nil)
		f.names(mechs, max(vg.Length(14*len(loads)), 24))
		f.grid(true, false)
		f.separate(len(mechs))
		for i, load := range loads {
			dodge := (float64(len(loads)-1)/2 - float64(i)) * 0.8 / float64(len(loads))
			if err := f.spread(load, byLoad[load], mechs, dodge, palette[i%len(palette)]); err != nil {
				return nil, err
			}
		}
		for _, p := range percentiles {
			f.legend.Add(p.label, thumb{draw.GlyphStyle{Color: dark, Radius: 3.5, Shape: p.shape}})
		}
		f.scale = func() { logAxis(&f.plot.X, "s") }
		f.plot.X.Label.Text = "time of a round trip (logarithmic)"
		fs = append(fs, f)
	}
	return fs, nil
}

func mechLoad(r *row) string { return r.label("size", "cpu", "peer", "wait", "load") }

// spread adds a line a mechanism, from the middle of the distribution to its end, with a marker for each percentile.
func (f *figure) spread(load string, rows []*row, mechs []string, dodge float64, c color.Color) error {
	line := draw.LineStyle{Color: c, Width: vg.Points(1.2)}
	for _, r := range rows {
		y := dodge - float64(slices.Index(mechs, mechLoad(r)))
		var xys plotter.XYs
		for _, p := range percentiles {
			if err := r.positive(p.unit); err != nil {
				return err
			}
			xys = append(xys, plotter.XY{X: r.summary(p.unit).Center, Y: y})
		}
		l, marks, err := plotter.NewLinePoints(xys)
		if err != nil {
			return err
		}
		l.LineStyle = line
		marks.GlyphStyleFunc = func(i int) draw.GlyphStyle {
			return draw.GlyphStyle{Color: c, Radius: vg.Points(3.5), Shape: percentiles[i].shape}
		}
		f.plot.Add(l, marks)
	}
	f.legend.Add("load="+load, &plotter.Line{LineStyle: line})
	return nil
}
