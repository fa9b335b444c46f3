package main

import (
	"fmt"
	"image/color"
	"io"
	"strings"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// A figure is one picture: a title, what is held fixed in it, the plot and a legend at its right.
type figure struct {
	name   string // of its files, without the ending
	title  string
	lines  []string // under the title
	plot   *plot.Plot
	legend plot.Legend
	above  string    // over the y axis: what it shows
	under  []key     // in a line under the title, instead of the legend at the right
	height vg.Length // of the plot with its axes
	// scale sets the axes' scales and ticks, once their range covers the values of all inputs.
	scale func()
	// nominal: the y axis has names, which other inputs need not share.
	nominal bool
}

// A key explains a marker.
type key struct {
	label string
	mark  draw.GlyphStyle
}

const (
	width  = 7.6 * vg.Inch // about what a README shows: text of 10 points is read as 15 pixels
	margin = vg.Length(10)
	gap    = vg.Length(6)
)

func newFigure(name, title string) *figure {
	f := &figure{name: name, title: title, plot: plot.New(), legend: plot.NewLegend(), height: 3.8 * vg.Inch}
	for _, a := range []*plot.Axis{&f.plot.X, &f.plot.Y} {
		restyle(&a.Label.TextStyle, 11, xfont.WeightNormal, black)
		restyle(&a.Tick.Label, 10, xfont.WeightNormal, black)
		a.Label.Padding = 4
		a.Tick.Length = 5
	}
	restyle(&f.legend.TextStyle, 10, xfont.WeightNormal, black)
	f.plot.Y.Tick.Label.YAlign = -0.62 // of the height; gonum's centre is above the middle of the digits
	f.legend.TextStyle.YAlign = -0.2
	f.legend.Top, f.legend.Left = true, true
	f.legend.Padding = 4
	f.legend.ThumbnailWidth = 30
	f.legend.YPosition = draw.PosCenter
	return f
}

func (f *figure) grid(vertical, horizontal bool) {
	g := plotter.NewGrid()
	g.Vertical.Color, g.Horizontal.Color = nil, nil
	if vertical {
		g.Vertical = draw.LineStyle{Color: faint, Width: vg.Points(0.6)}
	}
	if horizontal {
		g.Horizontal = draw.LineStyle{Color: faint, Width: vg.Points(0.6)}
	}
	f.plot.Add(g)
}

// names makes the y axis one of names, the first at the top, a row each.
func (f *figure) names(names []string, row vg.Length) {
	ticks := make([]plot.Tick, len(names))
	for i, n := range names {
		ticks[i] = plot.Tick{Value: -float64(i), Label: n}
	}
	f.nominal = true
	f.plot.Y.Tick.Marker = plot.ConstantTicks(ticks)
	f.plot.Y.Tick.Length, f.plot.Y.Width, f.plot.Y.Padding = 0, 0, 0
	f.plot.Y.Min, f.plot.Y.Max = -float64(len(names))+0.5, 0.5
	f.height = row*vg.Length(len(names)) + 50
}

func (f *figure) say(format string, args ...any) {
	f.lines = append(f.lines, fmt.Sprintf(format, args...))
}

func (f *figure) titleHeight() vg.Length {
	h := 20 + 13*vg.Length(len(f.lines)) + gap
	if len(f.under) > 0 || f.above != "" {
		h += 16
	}
	return h
}

func (f *figure) size() (w, h vg.Length) {
	return width, f.height + f.titleHeight() + 2*margin
}

func (f *figure) draw(c draw.Canvas) {
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path())
	c = draw.Crop(c, margin, -margin, margin, -margin)
	sty := f.plot.Title.TextStyle
	sty.XAlign, sty.YAlign = draw.XLeft, draw.YTop
	restyle(&sty, 14, xfont.WeightBold, black)
	c.FillText(sty, vg.Point{X: c.Min.X, Y: c.Max.Y}, f.title)
	restyle(&sty, 10, xfont.WeightNormal, dark)
	for i, line := range f.lines {
		c.FillText(sty, vg.Point{X: c.Min.X, Y: c.Max.Y - 20 - 13*vg.Length(i)}, line)
	}
	f.explain(c, vg.Point{X: c.Min.X, Y: c.Max.Y - f.titleHeight() + 14})
	body := draw.Crop(c, 0, 0, 0, -f.titleHeight())
	if lw := f.legend.Rectangle(body).Size().X; lw > 0 {
		f.legend.Draw(draw.Crop(body, body.Size().X-lw, 0, 0, -4))
		body = draw.Crop(body, 0, -lw-2*gap, 0, 0)
	}
	f.plot.Draw(body)
}

// explain writes the line between title and plot: what the y axis shows, or the keys.
func (f *figure) explain(c draw.Canvas, at vg.Point) {
	sty := f.legend.TextStyle
	sty.YAlign = draw.YTop
	c.FillText(sty, at, f.above)
	for _, k := range f.under {
		c.DrawGlyphNoClip(k.mark, vg.Point{X: at.X + 4, Y: at.Y - 5})
		c.FillText(sty, vg.Point{X: at.X + 12, Y: at.Y}, k.label)
		at.X += sty.Width(k.label) + 32
	}
}

// writePNG has twice the pixels of a README's column, for sharp text on dense screens.
func (f *figure) writePNG(w io.Writer) error {
	width, height := f.size()
	c := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(200))
	f.draw(draw.New(c))
	_, err := vgimg.PngCanvas{Canvas: c}.WriteTo(w)
	return err
}

// writeSVG names fonts of the same widths beside Liberation Sans, which not every reader has.
func (f *figure) writeSVG(w io.Writer) error {
	c := vgsvg.New(f.size())
	f.draw(draw.New(c))
	var b strings.Builder
	if _, err := c.WriteTo(&b); err != nil {
		return err
	}
	_, err := io.WriteString(w, strings.ReplaceAll(b.String(), "font-family:Liberation Sans;", "font-family:Liberation Sans,Arial,Helvetica,sans-serif;"))
	return err
}

// align gives figures of several inputs the same axes, so that they can be laid side by side.
func align(fs []*figure) {
	first := fs[0].plot
	for _, f := range fs[1:] {
		first.X.Min, first.X.Max = min(first.X.Min, f.plot.X.Min), max(first.X.Max, f.plot.X.Max)
		if !f.nominal {
			first.Y.Min, first.Y.Max = min(first.Y.Min, f.plot.Y.Min), max(first.Y.Max, f.plot.Y.Max)
		}
	}
	x, y := [2]float64{first.X.Min, first.X.Max}, [2]float64{first.Y.Min, first.Y.Max}
	for _, f := range fs {
		f.plot.X.Min, f.plot.X.Max = x[0], x[1]
		if !f.nominal {
			f.plot.Y.Min, f.plot.Y.Max = y[0], y[1]
		}
		f.scale()
	}
}
