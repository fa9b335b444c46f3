package main

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
)

// A logAxis has its ends on 1, 2 or 5 times a power of ten. There is no zero on it to start from.
func logAxis(a *plot.Axis, unit string) {
	a.Scale = plot.LogScale{}
	a.Min, a.Max = roundDown(a.Min), roundUp(a.Max)
	a.Tick.Marker = plot.TickerFunc(func(lo, hi float64) []plot.Tick { return logTicks(lo, hi, unit) })
}

// fromZero makes lengths on the axis proportional to the values: it starts at 0.
func fromZero(a *plot.Axis, unit string) {
	a.Min = 0
	a.Max *= 1.03
	a.Tick.Marker = plot.TickerFunc(func(_, hi float64) (ticks []plot.Tick) {
		step := roundDown(hi / 4) // 4 to 10 ticks; gonum's own are 2 or 3
		for i := 0; float64(i)*step <= hi; i++ {
			ticks = append(ticks, plot.Tick{Value: float64(i) * step, Label: quantity(float64(i)*step, unit)})
		}
		return ticks
	})
}

// wide is the spread from which a linear axis would press the small values together.
const wide = 20

// fitted is an axis from zero, or a logarithmic one if the values are far apart.
func fitted(a *plot.Axis, unit string) (logarithmic bool) {
	if a.Min > 0 && a.Max/a.Min > wide {
		logAxis(a, unit)
		return true
	}
	fromZero(a, unit)
	return false
}

func logTicks(lo, hi float64, unit string) (ticks []plot.Tick) {
	steps := []float64{1}
	if hi/lo <= 1000 {
		steps = []float64{1, 2, 5}
	}
	for e := math.Floor(math.Log10(lo)); e <= math.Ceil(math.Log10(hi)); e++ {
		for m := 1.0; m < 10; m++ {
			t := plot.Tick{Value: m * math.Pow(10, e)}
			if t.Value < lo*0.999 || t.Value > hi*1.001 {
				continue
			}
			for _, s := range steps {
				if s == m {
					t.Label = quantity(t.Value, unit)
				}
			}
			ticks = append(ticks, t)
		}
	}
	return ticks
}

func roundDown(v float64) float64 {
	p := math.Pow(10, math.Floor(math.Log10(v)))
	switch m := v / p; {
	case m >= 5:
		return 5 * p
	case m >= 2:
		return 2 * p
	}
	return p
}

func roundUp(v float64) float64 {
	r := roundDown(v)
	switch {
	case r*1.0001 >= v:
		return r
	case roundDown(r*2.0001) > r: // 1 to 2, 5 to 10
		return r * 2
	}
	return r * 2.5 // 2 to 5
}

// quantity is a value in SI units, as short as it can be: 500 ns, 2 GB/s.
func quantity(v float64, unit string) string {
	switch {
	case v == 0:
		return "0"
	case unit == "":
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	scale, prefix := 1.0, ""
	for _, p := range []struct {
		scale  float64
		prefix string
	}{{1e-9, "n"}, {1e-6, "µ"}, {1e-3, "m"}, {1, ""}, {1e3, "k"}, {1e6, "M"}, {1e9, "G"}} {
		if v >= p.scale*0.9999 {
			scale, prefix = p.scale, p.prefix
		}
	}
	return strings.TrimSpace(fmt.Sprintf("%.4g %s%s", v/scale, prefix, unit))
}

var sizeRe = regexp.MustCompile(`^(\d+)([KMG]iB)?$`)

// sizeOf reads a size as benchmarks are named: 64, 4KiB, 1MiB.
func sizeOf(size string) (float64, bool) {
	m := sizeRe.FindStringSubmatch(size)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseFloat(m[1], 64)
	shift := map[string]float64{"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}[m[2]]
	return n * shift, err == nil && n > 0
}

// sizeAxis is logarithmic, with ticks where there are values, written as in the benchmarks' names.
func sizeAxis(a *plot.Axis, sizes map[float64]string) {
	var ticks []plot.Tick
	for x, text := range sizes {
		ticks = append(ticks, plot.Tick{Value: x, Label: text})
	}
	a.Scale = plot.LogScale{}
	a.Min, a.Max = a.Min/1.3, a.Max*1.3
	a.Tick.Marker = plot.ConstantTicks(ticks)
}
