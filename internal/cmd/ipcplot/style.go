package main

import (
	"image/color"
	"slices"
	"strings"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// The palette is Okabe and Ito's, which people with any colour vision can tell apart
// (https://jfly.uni-koeln.de/color/), with grey for its yellow, which is lost on white.
// No line is told by colour alone: each has a marker of its own as well, and a dash pattern.
var (
	black      = color.RGBA{0x00, 0x00, 0x00, 0xff}
	orange     = color.RGBA{0xe6, 0x9f, 0x00, 0xff}
	skyBlue    = color.RGBA{0x56, 0xb4, 0xe9, 0xff}
	green      = color.RGBA{0x00, 0x9e, 0x73, 0xff}
	blue       = color.RGBA{0x00, 0x72, 0xb2, 0xff}
	vermillion = color.RGBA{0xd5, 0x5e, 0x00, 0xff}
	purple     = color.RGBA{0xcc, 0x79, 0xa7, 0xff}
	grey       = color.RGBA{0x80, 0x80, 0x80, 0xff}
	faint      = color.RGBA{0xdd, 0xdd, 0xdd, 0xff}
	dark       = color.RGBA{0x44, 0x44, 0x44, 0xff}

	palette = []color.Color{blue, vermillion, green, black, orange, purple, skyBlue, grey}
	shapes  = []draw.GlyphDrawer{draw.CircleGlyph{}, square, triangle, ring{}, diamond, wedge, hollow{square}, hollow{triangle}}
	dashes  = [][]vg.Length{nil, {6, 2}, {2, 2}, {6, 2, 2, 2}, {9, 3}, {3, 3}, {9, 2, 2, 2}, {1, 2}}
)

// known gives a mechanism or a wait the same style in every picture and run; others take the free places.
var known = [][]string{
	{"pipe", "pipe-packet", "fifo", "unix-stream", "unix-dgram", "unix-seqpacket", "tcp", "tcp6"},
	{"select", "poll", "epoll-level", "epoll-edge", "epoll-oneshot", "runtime", "select-wide"},
	{"kernel", "block (thread)", "netpoll", "netpoll (goroutine)", "spin", "adaptive"},
}

type style struct {
	color color.Color
	shape draw.GlyphDrawer
	dash  []vg.Length
}

func (s style) glyph() draw.GlyphStyle {
	return draw.GlyphStyle{Color: s.color, Shape: s.shape, Radius: vg.Points(3.5)}
}

func (s style) line() draw.LineStyle {
	return draw.LineStyle{Color: s.color, Width: vg.Points(1.4), Dashes: s.dash}
}

// styles gives each label a style that no other of them has. Variants of a mechanism, as "tcp bbr"
// and "tcp reno", share its colour.
func styles(labels []string) map[string]style {
	all, taken, variants := map[string]style{}, map[int]bool{}, map[int]int{}
	for _, l := range labels {
		if i := place(l); i >= 0 {
			taken[i] = true
		}
	}
	next := 0
	for _, l := range labels {
		i := place(l)
		if i < 0 {
			for taken[next] {
				next++
			}
			taken[next] = true
			i = next
		}
		shape := i + i/len(shapes) + 3*variants[i]
		variants[i]++
		all[l] = style{palette[i%len(palette)], shapes[shape%len(shapes)], dashes[shape%len(dashes)]}
	}
	return all
}

// place finds a label, or its first word, among the known ones.
func place(label string) int {
	first, _, _ := strings.Cut(label, " ")
	for _, want := range []string{label, first} {
		for _, names := range known {
			if i := slices.Index(names, want); i >= 0 {
				return i
			}
		}
	}
	return -1
}

func sans(size vg.Length, weight xfont.Weight) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Weight: weight, Size: size}
}

func restyle(s *text.Style, size vg.Length, weight xfont.Weight, c color.Color) {
	s.Font, s.Color = sans(size, weight), c
}
