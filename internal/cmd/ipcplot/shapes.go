package main

import (
	"image/color"
	"math"

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

// A polygon is a filled marker; its corners are in radii from the middle.
type polygon []vg.Point

var (
	square   = polygon{{X: -.85, Y: -.85}, {X: .85, Y: -.85}, {X: .85, Y: .85}, {X: -.85, Y: .85}}
	triangle = polygon{{X: -1.1, Y: -.75}, {X: 1.1, Y: -.75}, {X: 0, Y: 1.2}}
	wedge    = polygon{{X: -1.1, Y: .75}, {X: 1.1, Y: .75}, {X: 0, Y: -1.2}}
	diamond  = polygon{{X: -1.25, Y: 0}, {X: 0, Y: -1.25}, {X: 1.25, Y: 0}, {X: 0, Y: 1.25}}
	cross    = polygon{{X: 0, Y: .3}, {X: .8, Y: 1.1}, {X: 1.1, Y: .8}, {X: .3, Y: 0}, {X: 1.1, Y: -.8}, {X: .8, Y: -1.1},
		{X: 0, Y: -.3}, {X: -.8, Y: -1.1}, {X: -1.1, Y: -.8}, {X: -.3, Y: 0}, {X: -1.1, Y: .8}, {X: -.8, Y: 1.1}}
)

func (p polygon) path(radius vg.Length, at vg.Point) (path vg.Path) {
	for i, corner := range p {
		pt := at.Add(corner.Scale(radius))
		if i == 0 {
			path.Move(pt)
		} else {
			path.Line(pt)
		}
	}
	path.Close()
	return path
}

func (p polygon) DrawGlyph(c *draw.Canvas, sty draw.GlyphStyle, at vg.Point) {
	c.SetColor(sty.Color)
	c.Fill(p.path(sty.Radius, at))
}

// hollow is a polygon's outline; its inside is white, so that a line does not run through it.
type hollow struct{ polygon }

func (h hollow) DrawGlyph(c *draw.Canvas, sty draw.GlyphStyle, at vg.Point) {
	outline(c, sty, h.path(sty.Radius, at))
}

type ring struct{}

func (ring) DrawGlyph(c *draw.Canvas, sty draw.GlyphStyle, at vg.Point) {
	var p vg.Path
	p.Move(vg.Point{X: at.X + sty.Radius, Y: at.Y})
	p.Arc(at, sty.Radius, 0, 2*math.Pi)
	p.Close()
	outline(c, sty, p)
}

func outline(c *draw.Canvas, sty draw.GlyphStyle, p vg.Path) {
	c.SetColor(color.White)
	c.Fill(p)
	c.SetLineStyle(draw.LineStyle{Color: sty.Color, Width: vg.Points(1.3)})
	c.Stroke(p)
}

// A thumb is a marker in a legend.
type thumb struct{ draw.GlyphStyle }

func (t thumb) Thumbnail(c *draw.Canvas) {
	c.DrawGlyphNoClip(t.GlyphStyle, vg.Point{X: c.Center().X, Y: c.Center().Y})
}
