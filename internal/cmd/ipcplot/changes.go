package main

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// longest is how many changes a picture shows; the page has a table of all.
const longest = 40

// verdicts are how a change is drawn: told by shape and filling as well as by colour.
var verdicts = []struct {
	label string
	is    func(change) bool
	color color.Color
	shape draw.GlyphDrawer
}{
	{"less, significant", func(c change) bool { return c.significant && c.ratio < 1 }, blue, triangle},
	{"more, significant", func(c change) bool { return c.significant && c.ratio >= 1 }, vermillion, square},
	{"not significant", func(c change) bool { return !c.significant }, grey, ring{}},
}

// changesFigure draws what changed from one input to another, sorted, with intervals.
func changesFigure(name string, old, new *input, all []change) (*figure, error) {
	if len(all) == 0 {
		return nil, nil
	}
	f := newFigure(name, fmt.Sprintf("Change from %s to %s", old.Label, new.Label))
	shown, significant := foremost(all)
	f.say("%d rows are in both, %d changed significantly (U test, α = %.2g); by chance alone about %.0f would.",
		len(all), significant, 1-confidence, float64(len(all))*(1-confidence))
	if len(shown) < len(all) {
		f.say("Shown: the %d of the largest change, significant ones first. The page has all.", len(shown))
	}
	f.say("Points are the ratio of medians, bars its 95 %% confidence interval.")
	names := make([]string, len(shown))
	for i, c := range shown {
		names[i] = c.old.short()
	}
	f.names(names, 14)
	f.plot.Y.Tick.Label.Font.Size = 9
	f.grid(true, false)
	f.plot.Add(post{1})
	if err := f.verdicts(shown); err != nil {
		return nil, err
	}
	f.plot.X.Label.Text = "change of " + unitsOf(shown) + " (left: less)"
	ratioAxis(&f.plot.X)
	return f, nil
}

// foremost picks the changes for a picture, sorted as they were, and counts the significant ones of all.
func foremost(all []change) (shown []change, significant int) {
	shown = slices.Clone(all)
	weight := func(c change) float64 {
		w := math.Abs(math.Log(c.ratio))
		if c.significant {
			w += 1e6
		}
		return w
	}
	for _, c := range all {
		if c.significant {
			significant++
		}
	}
	slices.SortStableFunc(shown, func(a, b change) int {
		if weight(a) > weight(b) {
			return -1
		}
		return 1
	})
	shown = shown[:min(longest, len(shown))]
	slices.SortFunc(shown, byRatio)
	return shown, significant
}

func unitsOf(cs []change) string {
	var labels []string
	for _, u := range costs {
		if slices.ContainsFunc(cs, func(c change) bool { return c.unit == u.unit }) {
			labels = append(labels, u.label)
		}
	}
	return strings.Join(labels, " or ")
}

// short is the row's name without the keys whose values speak for themselves.
func (r *row) short() string {
	words := []string{r.name}
	for _, p := range r.parts {
		if k, v, ok := strings.Cut(p, "="); ok && (k == "mech" || k == "cpu" || k == "peer" || k == "wait") {
			p = v
		}
		words = append(words, p)
	}
	return strings.Join(words, " ")
}

// verdicts adds the changes, each kind with its marker. What has no bound ends at the plot's edge.
func (f *figure) verdicts(shown []change) error {
	lo, hi := bounds(shown)
	f.plot.X.Min, f.plot.X.Max = lo, hi
	for _, v := range verdicts {
		var xys plotter.XYs
		var errs plotter.XErrors
		for i, c := range shown {
			if v.is(c) {
				xys = append(xys, plotter.XY{X: c.ratio, Y: -float64(i)})
				errs = append(errs, struct{ Low, High float64 }{c.ratio - max(c.lo, lo), min(c.hi, hi) - c.ratio})
			}
		}
		if len(xys) == 0 {
			continue
		}
		bars, err := plotter.NewXErrorBars(struct {
			plotter.XYs
			plotter.XErrors
		}{xys, errs})
		if err != nil {
			return err
		}
		bars.LineStyle.Color, bars.LineStyle.Width, bars.CapWidth = v.color, vg.Points(1.2), vg.Points(5)
		marks, err := plotter.NewScatter(xys)
		if err != nil {
			return err
		}
		marks.GlyphStyle = draw.GlyphStyle{Color: v.color, Radius: vg.Points(3.5), Shape: v.shape}
		f.plot.Add(bars, marks)
		f.under = append(f.under, key{v.label, marks.GlyphStyle})
	}
	return nil
}

// bounds is the range of the ratios and of those intervals that have an end.
func bounds(cs []change) (lo, hi float64) {
	lo, hi = 1/1.05, 1.05
	for _, c := range cs {
		lo, hi = min(lo, c.ratio), max(hi, c.ratio)
		if c.lo > 0 {
			lo = min(lo, c.lo)
		}
		if !math.IsInf(c.hi, 0) {
			hi = max(hi, c.hi)
		}
	}
	return lo, hi
}

// ratioAxis is logarithmic, so that half and double are equally far from no change, and labelled in per cent.
func ratioAxis(a *plot.Axis) {
	a.Scale = plot.LogScale{}
	a.Min, a.Max = a.Min/1.02, a.Max*1.02
	a.Tick.Marker = plot.TickerFunc(ratioTicks)
}

// room is the part of the axis that a label takes.
const room = 0.12

// ratioTicks picks, of the steps that people read easily, the finest that leave room for their labels.
func ratioTicks(lo, hi float64) (ticks []plot.Tick) {
	for _, steps := range [][]float64{
		{0.9, 0.92, 0.94, 0.96, 0.98, 1, 1.02, 1.04, 1.06, 1.08, 1.1},
		{0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1, 1.05, 1.1, 1.15, 1.2, 1.3},
		{0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 1.75, 2},
		{0.25, 0.35, 0.5, 0.65, 0.8, 1, 1.25, 1.5, 2, 3, 4},
		{0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10},
		{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100},
		{0.0001, 0.001, 0.01, 0.1, 1, 10, 100, 1000, 10000},
	} {
		ticks = nil
		roomy, last := true, 0.0
		for _, s := range steps {
			if s >= lo && s <= hi {
				roomy = roomy && math.Log(s/last) >= room*math.Log(hi/lo)
				ticks, last = append(ticks, plot.Tick{Value: s, Label: percent(s)}), s
			}
		}
		if roomy && steps[0] <= lo && steps[len(steps)-1] >= hi {
			break
		}
	}
	return ticks
}

func percent(ratio float64) string {
	switch {
	case math.IsInf(ratio, 1):
		return "∞"
	case ratio >= 10:
		return fmt.Sprintf("×%.4g", ratio)
	case math.Abs(ratio-1) < 1e-9:
		return "0"
	}
	return strings.Replace(fmt.Sprintf("%+.3g %%", (ratio-1)*100), "-", "−", 1)
}
