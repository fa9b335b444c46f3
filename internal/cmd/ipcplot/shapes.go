package main

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// A rule is a faint line across the plot at y.
type rule struct{ y float64 }

func (r rule) Plot(c draw.Canvas, p *plot.Plot) {
	_, y := p.Transforms(&c)
	c.StrokeLine2(draw.LineStyle{Color: faint, Width: vg.Points(0.6)}, c.Min.X, y(r.y), c.Max.X, y(r.y))
}

// A post is a line from the bottom of the plot to its top at x.
type post struct{ x float64 }

func (p post) Plot(c draw.Canvas, plt *plot.Plot) {
	x, _ := plt.Transforms(&c)
	c.StrokeLine2(draw.LineStyle{Color: dark, Width: vg.Points(1)}, x(p.x), c.Min.Y, x(p.x), c.Max.Y)
}

// A thumb is a marker in a legend.
type thumb struct{ draw.GlyphStyle }

func (t thumb) Thumbnail(c *draw.Canvas) {
	c.DrawGlyphNoClip(t.GlyphStyle, vg.Point{X: c.Center().X, Y: c.Center().Y})
}
