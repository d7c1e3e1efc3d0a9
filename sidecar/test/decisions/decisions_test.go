//go:build verify

package decisions

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kvbooth/sidecar/loadgen/decide"
	"kvbooth/sidecar/loadgen/proof"
)

// trials is how many there are to a cell.
func trials() int {
	if n, err := strconv.Atoi(os.Getenv("DECISIONS_TRIALS")); err == nil {
		return n
	}
	return 1000
}

// cell is what many trials of one world came to.
type cell struct {
	better, worse, none, over, trade int // of the last arm
	others                           int // trials in which some other metric was shown to differ
	failsMore                        int
	covered, final                   int
	bias                             float64 // sum of the estimates of trials with a verdict, over the truth
	minutes                          []float64
}

func (c *cell) add(d decide.Decision, seconds, truth float64) {
	c.minutes = append(c.minutes, seconds/60)
	switch d.Verdict {
	case decide.Better:
		if d.Best == 1 {
			c.better++
		} else {
			c.worse++
		}
	case decide.NoDifference:
		c.none++
	case decide.TradeOff:
		c.trade++
	default:
		c.over++
	}
	shown := false
	for _, o := range d.Others {
		shown = shown || o.Shown != 0
	}
	if shown {
		c.others++
	}
	if len(d.FailsMore) > 0 {
		c.failsMore++
	}
	if d.Verdict != decide.TimeOver && d.Final != nil {
		c.final++
		c.bias += d.Final.Estimate
		if d.Final.Interval[0] <= truth && truth <= d.Final.Interval[1] {
			c.covered++
		}
	}
}

func (c *cell) median() float64 {
	slices.Sort(c.minutes)
	return c.minutes[len(c.minutes)/2]
}

// simulate runs trials of two arms on one world, with each of the first metrics deciding.
func simulate(w world, primaries int, truth float64) []*cell {
	cells, known := make([]*cell, primaries), make([]decide.Boundaries, primaries)
	for i := range trials() {
		all := blocks(w, i)
		for primary := range primaries {
			if cells[primary] == nil {
				cells[primary] = &cell{}
			}
			d := decide.Decide(plan(2, primary, &known[primary]), all)
			cells[primary].add(d, taken(all, d.Looks[len(d.Looks)-1].Blocks), truth)
		}
	}
	return cells
}

type old struct {
	decided, aBetter, none int
	others, wrong          int
	minutes                []float64
	estimate               float64
}

func simulateBefore(t *testing.T, w world, primary proof.Metric, n int) *old {
	t.Helper()
	o := &old{}
	for i := range n {
		s := before(t, w, primary, i)
		o.minutes = append(o.minutes, s.Used/60)
		switch s.Verdict {
		case proof.BBetter:
			o.decided++
			o.estimate += math.Log1p(s.Primary.Difference)
		case proof.ABetter:
			o.aBetter++
		case proof.NoDifference:
			o.none++
		}
		shown := false
		for _, d := range s.Others {
			shown = shown || d.Outcome == proof.ABetter || d.Outcome == proof.BBetter
		}
		if shown {
			o.others++
		}
	}
	slices.Sort(o.minutes)
	return o
}

func percent(n, of int) string { return fmt.Sprintf("%.1f", 100*float64(n)/float64(max(1, of))) }

// Equal arms.
func TestEqualArms(t *testing.T) {
	worlds := []struct {
		name string
		world
	}{
		{"as is", world{}},
		{"restarts 1 %", world{restart: .01}},
		{"restarts 2 %", world{restart: .02}},
		{"restarts 3 %", world{restart: .03}},
		{"restarts 5 %", world{restart: .05}},
		{"restarts 3 %, one arm three times", world{restart: .03, rougher: 3}},
		{"lanes 3 %", world{lane: .03}},
		{"lanes 5 %", world{lane: .05}},
		{"lanes 8 %", world{lane: .08}},
		{"drift 3 %", world{drift: .03}},
		{"after a change 4 %", world{switched: .04}},
		{"after the first arm 4 %", world{after: .04}},
		{"stalls", world{stalls: true}},
		{"fails its slowest 2 %", world{failing: .02}},
		{"fails its slowest 4.5 %", world{failing: .045}},
	}
	for _, w := range worlds {
		if only := os.Getenv("ONLY"); only != "" && !strings.Contains(w.name, only) {
			continue
		}
		line := ""
		for primary, c := range simulate(w.world, 5, 0) {
			n := len(c.minutes)
			line += fmt.Sprintf(" | %s: B %s A %s = %s o %s f %s, %.0f", metrics[primary].Name,
				percent(c.better, n), percent(c.worse, n), percent(c.none, n), percent(c.others, n), percent(c.failsMore, n), c.median())
		}
		t.Logf("%-30s%s", w.name, line)
	}
}

// The method before, on the same worlds.
func TestEqualArmsBefore(t *testing.T) {
	for _, w := range []world{
		{}, {restart: .01}, {restart: .02}, {restart: .03}, {restart: .05},
		{lane: .03}, {lane: .05}, {lane: .08}, {drift: .03}, {switched: .04}, {after: .04}, {stalls: true},
		{failing: .02}, {failing: .045},
	} {
		line := ""
		for _, m := range []proof.Metric{proof.TTFT95, proof.TTFT50, proof.TPOT95, proof.Throughput} {
			o := simulateBefore(t, w, m, trials())
			line += fmt.Sprintf(" | %s: B %s A %s = %s o %s", m, percent(o.decided, trials()), percent(o.aBetter, trials()), percent(o.none, trials()), percent(o.others, trials()))
		}
		t.Logf("%+v%s", w, line)
	}
}

func TestPower(t *testing.T) {
	for _, restart := range []float64{0, .01, .03} {
		for _, effect := range []float64{-.05, -.10, -.14, -.18, -.26, -.33} {
			w := world{effect: []float64{0, math.Log1p(effect)}, restart: restart}
			line := ""
			for primary, c := range simulate(w, 2, w.effect[1]) {
				n := len(c.minutes)
				line += fmt.Sprintf(" | %s: decided %s wrong %s = %s in %.0f, covered %s, bias %.2f", metrics[primary].Name,
					percent(c.better, n), percent(c.worse, n), percent(c.none, n), c.median(), percent(c.covered, c.final), c.bias/float64(c.final)/w.effect[1])
			}
			t.Logf("restart %.2f, %+.0f %%%s", restart, 100*effect, line)
		}
	}
}

func TestPowerLong(t *testing.T) {
	for _, span := range []float64{90, 120, 150} {
		for _, effect := range []float64{-.14, -.18} {
			w := world{effect: []float64{0, math.Log1p(effect)}, span: span}
			line := ""
			for primary, c := range simulate(w, 2, w.effect[1]) {
				n := len(c.minutes)
				line += fmt.Sprintf(" | %s: decided %s wrong %s = %s in %.0f, covered %s, bias %.2f", metrics[primary].Name,
					percent(c.better, n), percent(c.worse, n), percent(c.none, n), c.median(), percent(c.covered, c.final), c.bias/float64(c.final)/w.effect[1])
			}
			t.Logf("span %.0f, %+.0f %%%s", span, 100*effect, line)
		}
	}
}

func TestPowerBefore(t *testing.T) {
	for _, effect := range []float64{-.10, -.14, -.18, -.26, -.33} {
		w := world{effect: []float64{0, math.Log1p(effect)}}
		o := simulateBefore(t, w, proof.TTFT95, trials())
		t.Logf("%+.0f %%: decided %s in %.0f, bias %.2f", 100*effect, percent(o.decided, trials()), o.minutes[len(o.minutes)/2], o.estimate/float64(o.decided)/w.effect[1])
	}
}
