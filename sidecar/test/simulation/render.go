//go:build unix

package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"image/color"
	"math"
	"strings"
	"text/template"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/closedloop"
	"kvbooth/sidecar/sim/study"
)

// The written files.
const (
	document      = "simulation.md"
	crossingChart = "simulation-crossover.svg"
	grownChart    = "simulation-crossover-openings.svg"
	costChart     = "simulation-cost.svg"
)

//go:embed simulation.md.tmpl
var text string

// render renders the files by name. Equal results give equal bytes.
func render(r results) (map[string][]byte, error) {
	files := map[string][]byte{}
	for name, draw := range map[string]func(results) ([]byte, error){
		crossingChart: func(r results) ([]byte, error) { return drawCrossing(r.Scales, "ten openings at every scale") },
		grownChart:    func(r results) ([]byte, error) { return drawCrossing(r.Grown, "openings grow with the workers") },
		costChart:     drawCost, document: write,
	} {
		drawn, err := draw(r)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		files[name] = drawn
	}
	return files, nil
}

// family has the text's figures of the workload at all scales.
type family struct {
	Chart string
	Rows  []row
	Trend string
	Why   string // of the largest scale
}

// row is the text's row of a number of workers.
type row struct {
	Workers         int
	Crossing, Total string
}

func familyOf(chart string, scales []scale) family {
	f := family{Chart: chart, Trend: trend(scales)}
	for _, s := range scales {
		each, total := crossing(s)
		f.Rows = append(f.Rows, row{Workers: s.Workers, Crossing: each, Total: total})
	}
	loads := loadsOf(scales)
	at := max(len(loads)-2, 0)
	f.Why = because(scales[len(scales)-1], at, loads[at])
	return f
}

// write renders the document.
func write(r results) ([]byte, error) {
	p, err := sim.LoadProfile(r.Profile)
	if err != nil {
		return nil, err
	}
	t, err := template.New(document).Funcs(template.FuncMap{"count": api.Count[int]}).Parse(text)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, map[string]any{
		"Profile": p, "Stale": hash(p) != r.Hash, "Runs": len(r.Scales[0].Points[0].Runs), "Cost": costChart,
		"Cores": r.Cores,
		"Fixed": familyOf(crossingChart, r.Scales), "Grown": familyOf(grownChart, r.Grown),
		"Costs": r.Costs, "CostLoad": costLoad, "Presets": study.Presets(p),
		"Crowd":  math.Round(100 * (closedloop.CrowdedFactor - 1)),
		"Length": closedloop.LevelDuration.Seconds(),
	})
	return out.Bytes(), err
}

// loadsOf returns the loads per worker, which are equal at all scales.
func loadsOf(scales []scale) (loads []int) {
	for _, p := range scales[0].Points {
		if p.Mode == api.ModeKV {
			loads = append(loads, p.Level.Conversations()/scales[0].Workers)
		}
	}
	return loads
}

// sides returns the curves of a scale's modes.
func sides(s scale) (kv, roundRobin study.Curve) {
	curves := study.Curves(s.Points)
	return curves[0], curves[1]
}

// crossings returns the crossings of the curves of TTFT p95 above which kv is slower, from low concurrencies to high
// ones; nil if there are none.
func crossings(s scale) (up []study.Crossing) {
	kv, rr := sides(s)
	for _, x := range study.Crossings(kv, rr, closedloop.TTFT95) {
		if x.Above > 0 {
			up = append(up, x)
		}
	}
	return up
}

// crossing describes the crossings in two cells: per worker, with the range over the runs, and in total.
func crossing(s scale) (each, total string) {
	n := float64(s.Workers)
	var eaches, totals []string
	for _, x := range crossings(s) {
		eaches = append(eaches, fmt.Sprintf("%.0f (%.0f to %.0f)", x.At/n, x.Low/n, x.High/n))
		totals = append(totals, api.Number(x.At, 0))
	}
	if len(eaches) == 0 {
		return "none shown", "–"
	}
	return strings.Join(eaches, ", "), strings.Join(totals, ", ")
}

// ratioCurve returns kv's TTFT p95 as a multiple of round-robin's, by load.
func ratioCurve(s scale) (xys plotter.XYs) {
	kv, rr := sides(s)
	for i := range kv.Points {
		a, b := kv.Points[i].Mean(), rr.Points[i].Mean()
		xys = append(xys, plotter.XY{X: kv.Points[i].Level.Value / float64(s.Workers), Y: a.TTFT95 / b.TTFT95})
	}
	return xys
}

// because describes a scale at a load.
func because(s scale, at, load int) string {
	kv, rr := sides(s)
	a, b := kv.Points[at].Mean(), rr.Points[at].Mean()
	return fmt.Sprintf("With %d workers at %d conversations each, under kv and under round-robin: TTFT p95 %.2f and %.2f "+
		"s; the longest wait in a queue %.1f and %.1f s; a full batch in %.0f and %.0f %% of the seconds; %.0f and %.0f "+
		"%% of the first turns at the busiest worker; %.0f and %.0f %% of the prompt tokens recomputed.",
		s.Workers, load, a.TTFT95, b.TTFT95, a.LargestQueue, b.LargestQueue,
		100*a.Full, 100*b.Full, 100*a.Herding, 100*b.Herding, 100*a.Twice, 100*b.Twice)
}

// trend describes whether the crossing moves with the number of workers, by the first and the last scale.
func trend(scales []scale) string {
	first, last := scales[0], scales[len(scales)-1]
	a, b := crossings(first), crossings(last)
	from, to := fmt.Sprintf("%d workers", first.Workers), fmt.Sprintf("%d", last.Workers)
	switch {
	case len(a) == 0 && len(b) == 0:
		return fmt.Sprintf("Neither with %s nor with %s do the curves cross at these loads.", from, to)
	case len(a) == 0:
		return fmt.Sprintf(
			"With %s no crossing shows at these loads, with %s one does: it comes sooner with more workers.", from, to)
	case len(b) == 0:
		return fmt.Sprintf(
			"With %s the curves cross, with %s no crossing shows at these loads: it comes later with more workers.", from, to)
	}
	x, y := a[len(a)-1], b[len(b)-1]
	n, m := float64(first.Workers), float64(last.Workers)
	numbers := fmt.Sprintf(
		"from %.0f conversations for each worker (%.0f to %.0f) with %s to %.0f (%.0f to %.0f) with %s", x.At/n, x.Low/n,
		x.High/n, from, y.At/m, y.Low/m, y.High/m, to)
	switch {
	case y.Low/m > x.High/n:
		return "With more workers the crossing moves to higher loads: " + numbers + "."
	case y.High/m < x.Low/n:
		return "With more workers the crossing moves to lower loads, not to higher ones: " + numbers + "."
	}
	return "The crossing does not move beyond the spread of the runs: " + numbers + "."
}

// Sizes and colors of the charts. The colors are Okabe and Ito's, which are distinguishable with most kinds of color
// blindness.
const (
	width  = 7.2 * vg.Inch
	height = 4.2 * vg.Inch
)

var colors = []color.Color{
	color.RGBA{0x00, 0x72, 0xb2, 0xff},
	color.RGBA{0xd5, 0x5e, 0x00, 0xff},
	color.RGBA{0x00, 0x9e, 0x73, 0xff},
	color.RGBA{0xcc, 0x79, 0xa7, 0xff},
	color.RGBA{0xe6, 0x9f, 0x00, 0xff},
}

// newChart returns an empty chart.
func newChart(title, x, y string) *plot.Plot {
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	plotter.DefaultFont = plot.DefaultFont
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.Padding, p.X.Padding, p.Y.Padding = vg.Points(8), vg.Points(4), vg.Points(4)
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.XOffs, p.Legend.YOffs, p.Legend.Padding = vg.Points(10), vg.Points(-6), vg.Points(2)
	p.Title.TextStyle.Font.Size, p.Legend.TextStyle.Font.Size = 12, 10
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{0xe0}, color.Gray{0xe0}
	p.Add(grid)
	return p
}

// add draws a line with points.
func add(p *plot.Plot, name string, xys plotter.XYs, of color.Color) error {
	line, points, err := plotter.NewLinePoints(xys)
	if err != nil {
		return err
	}
	line.Color, points.Color, line.Width = of, of, vg.Points(1.8)
	points.GlyphStyle.Radius = vg.Points(2.6)
	p.Add(line, points)
	if name != "" {
		p.Legend.Add(name, line)
	}
	return nil
}

func svg(p *plot.Plot) ([]byte, error) {
	w, err := p.WriterTo(width, height, "svg")
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	_, err = w.WriteTo(&out)
	return out.Bytes(), err
}

// drawCrossing draws kv's TTFT p95 divided by round-robin's, a line for each scale.
func drawCrossing(scales []scale, which string) ([]byte, error) {
	p := newChart("Simulated: TTFT p95 under kv as a multiple of round-robin's, "+which, "conversations for each worker",
		"kv / round-robin, logarithmic")
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, ratioTicks
	low, high := 1., 1.
	for i, s := range scales {
		xys := ratioCurve(s)
		for _, xy := range xys {
			low, high = min(low, xy.Y), max(high, xy.Y)
		}
		if err := add(p, fmt.Sprintf("%d workers", s.Workers), xys, colors[i%len(colors)]); err != nil {
			return nil, err
		}
	}
	loads := loadsOf(scales)
	var ticks plot.ConstantTicks
	for _, load := range loads {
		ticks = append(ticks, plot.Tick{Value: float64(load), Label: fmt.Sprint(load)})
	}
	p.X.Tick.Marker = ticks
	even, err := plotter.NewLine(plotter.XYs{{X: float64(loads[0]), Y: 1}, {X: float64(loads[len(loads)-1]), Y: 1}})
	if err != nil {
		return nil, err
	}
	even.Dashes, even.Color = []vg.Length{vg.Points(5), vg.Points(4)}, color.Gray{0x60}
	p.Add(even)
	p.Legend.Add("equal: above, kv is slower", even)
	p.Y.Min, p.Y.Max = low/1.1, high*1.1
	return svg(p)
}

// ratioTicks are round multiples and shares.
var ratioTicks = plot.TickerFunc(func(low, high float64) (ticks []plot.Tick) {
	for _, v := range []float64{.1, .2, .3, .5, .7, 1, 1.5, 2, 3, 5, 7, 10, 20, 30, 50, 100} {
		if v >= low && v <= high {
			ticks = append(ticks, plot.Tick{Value: v, Label: fmt.Sprint(v)})
		}
	}
	return ticks
})

// drawCost draws the time of a run over its tokens.
func drawCost(r results) ([]byte, error) {
	p := newChart("What a simulation costs", "simulated output tokens, millions, logarithmic", "CPU seconds, logarithmic")
	p.X.Scale, p.X.Tick.Marker, p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, decades, plot.LogScale{}, decades
	var xys plotter.XYs
	var labels plotter.XYLabels
	for _, c := range r.Costs {
		xy := plotter.XY{X: float64(c.Tokens) / 1e6, Y: max(c.CPUSeconds, .001)}
		xys = append(xys, xy)
		labels.XYs, labels.Labels = append(labels.XYs, xy), append(labels.Labels, fmt.Sprintf("  %d workers", c.Workers))
	}
	if err := add(p, "", xys, colors[0]); err != nil {
		return nil, err
	}
	words, err := plotter.NewLabels(labels)
	if err != nil {
		return nil, err
	}
	words.Offset = vg.Point{X: vg.Points(2), Y: vg.Points(-12)}
	p.Add(words)
	last := xys[len(xys)-1]
	p.X.Min, p.X.Max = xys[0].X/1.5, last.X*4
	p.Y.Min, p.Y.Max = xys[0].Y/1.5, last.Y*2
	return svg(p)
}

// decades are 1, 2 and 5 times the powers of ten.
var decades = plot.TickerFunc(func(low, high float64) (ticks []plot.Tick) {
	for power := math.Floor(math.Log10(low)); power <= math.Ceil(math.Log10(high)); power++ {
		for _, m := range []float64{1, 2, 5} {
			if v := m * math.Pow(10, power); v >= low && v <= high {
				ticks = append(ticks, plot.Tick{Value: v, Label: fmt.Sprintf("%.4g", v)})
			}
		}
	}
	return ticks
})
