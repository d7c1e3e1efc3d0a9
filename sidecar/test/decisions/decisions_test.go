//go:build verify

package decisions

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbooth/internal/figure"
	"kvbooth/sidecar/loadgen/decide"
)

// trials returns the number of trials per cell.
func trials() int {
	if n, err := strconv.Atoi(os.Getenv("DECISIONS_TRIALS")); err == nil {
		return n
	}
	return 1000
}

// cell counts the results of many trials of one world.
type cell struct {
	better, worse, none, over, trade int // decisions about the last arm
	others                           int // trials in which another metric was found to differ
	failsMore                        int
	covered, final                   int
	bias                             float64 // sum of the estimates of trials with a verdict, over the truth
	minutes                          []float64
}

func (c *cell) add(d decide.Decision, seconds, truth float64) {
	c.minutes = append(c.minutes, seconds/60)
	switch d.Verdict {
	case decide.Better:
		if d.Left[0] == 1 {
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

// simulate runs trials of two arms on one world, once with each of the first metrics as the primary one.
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

func percent(n, of int) string { return fmt.Sprintf("%.1f", 100*float64(n)/float64(max(1, of))) }

// most returns the largest plausible number of errors in n trials with an error rate of 5 %: three standard errors
// above.
func most(n int) int { return int(math.Ceil(.05*float64(n) + 3*math.Sqrt(.05*.95*float64(n)))) }

// Equal arms are called different in at most 5 % of trials, with every primary metric and in every other metric. An
// arm that fails its slowest turns is never called better.
func TestEqualArmsAreRarelyCalledDifferent(t *testing.T) {
	t.Parallel()
	for _, w := range []struct {
		name string
		world
		failing bool
	}{
		{"nothing but chance", world{}, false},
		{"restarts scatter by 1 %", world{restart: .01}, false},
		{"restarts scatter by 2 %", world{restart: .02}, false},
		{"restarts scatter by 3 %", world{restart: .03}, false},
		{"restarts scatter by 5 %", world{restart: .05}, false},
		{"restarts of A scatter by 3 %, of B by 6 %", world{restart: .03, rougher: 2}, false},
		{"lanes alike", world{lane: 1e-9}, false},
		{"lanes differ by 3 %", world{lane: .03}, false},
		{"lanes differ by 5 %", world{lane: .05}, false},
		{"lanes differ by 8 %", world{lane: .08}, false},
		{"drift of 3 % a span", world{drift: .03}, false},
		{"4 % slower after a change of arm", world{switched: .04}, false},
		{"4 % slower after A", world{after: .04}, false},
		{"heavy-tailed stalls", world{stalls: true}, false},
		{"B fails its slowest 2 %", world{failing: .02}, true},
		{"B fails its slowest 4.5 %", world{failing: .045}, true},
	} {
		t.Run(w.name, func(t *testing.T) {
			now := simulate(w.world, 5, 0)
			n := len(now[0].minutes)
			line := ""
			for i, c := range now {
				line += fmt.Sprintf("%s %s, ", metrics[i].Name, c.wrong(w.failing, n))
				assert.LessOrEqual(t, c.better, most(n), metrics[i].Name)
				if !w.failing {
					assert.LessOrEqual(t, c.better+c.worse, most(n), metrics[i].Name)
					assert.LessOrEqual(t, c.others, most(n), "beside %s", metrics[i].Name)
				}
			}
			line += fmt.Sprintf("others %s", percent(now[0].others, n))
			figure.Report(t, "%s: %s %% of %d trials called different", w.name, line, n)
		})
	}
}

// wrong formats the share of trials with a difference; if B fails, the shares with B called better and with A.
func (c *cell) wrong(failing bool, n int) string {
	if failing {
		return fmt.Sprintf("%s (A %s)", percent(c.better, n), percent(c.worse, n))
	}
	return percent(c.better+c.worse, n)
}

// For true differences: how many trials decide, when, and how accurate the final estimate and its interval are.
func TestTrueDifferencesAreFound(t *testing.T) {
	t.Parallel()
	for _, effect := range []float64{-.05, -.10, -.14, -.18, -.26, -.33} {
		w := world{effect: []float64{0, math.Log1p(effect)}, restart: .01}
		for primary, c := range simulate(w, 2, w.effect[1]) {
			n := len(c.minutes)
			bias, coverage := c.bias/float64(c.final)/w.effect[1], float64(c.covered)/float64(c.final)
			figure.Report(t, "%+.0f %%, %s: %s %% decided, %s %% wrong, median %.0f min; final estimate %.2f of the truth, "+
				"interval holds it in %.1f %%", 100*effect, metrics[primary].Name, percent(c.better, n), percent(c.worse, n),
				c.median(), bias, 100*coverage)
			if primary == 0 && effect <= -.10 {
				assert.GreaterOrEqual(t, c.better, n*9/10)
				assert.InDelta(t, 1, bias, .1)
				assert.InDelta(t, .95, coverage, .02+2*math.Sqrt(.05*.95/float64(n)))
			}
			assert.LessOrEqual(t, c.worse, most(n)/2)
		}
	}
}

func TestEqualArmsAreCalledEquivalent(t *testing.T) {
	t.Parallel()
	for primary, c := range simulate(world{restart: .01}, 5, 0) {
		figure.Report(t, "equal arms, %s: %s %% end with no difference of 5 %%, median %.0f min",
			metrics[primary].Name, percent(c.none, len(c.minutes)), c.median())
	}
}

// The difference that a trial is predicted to detect is detected.
func TestDetectableDifferenceIsDetected(t *testing.T) {
	t.Parallel()
	known := &decide.Boundaries{}
	variance := 0.
	for i := range 200 {
		variance += decide.Decide(plan(2, 0, known), blocks(world{restart: .01}, 1_000_000+i)).Variance.Value / 200
	}
	difference := -decide.Detectable(plan(2, 0, known), variance, 3*(change+warmUp)+4*length)
	c := simulate(world{restart: .01, effect: []float64{0, difference}}, 1, difference)[0]
	share := float64(c.better) / float64(len(c.minutes))
	figure.Report(t, "predicted to detect %.1f %% in 80 %% of trials within the hour: detected in %.1f %%",
		100*math.Expm1(difference), 100*share)
	assert.InDelta(t, decide.Power, share, .1)
}

// Trials of five arms have at most 28 spans.
func TestBestOfFiveArmsIsFound(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		effect []float64
		span   float64
	}{
		{"five equal arms, spans of 60 s", make([]float64, 5), 60},
		{"five equal arms, spans of 180 s", make([]float64, 5), 180},
		{"one of five better by 10 %, spans of 60 s", []float64{0, 0, 0, math.Log(.9), 0}, 60},
		{"one of five better by 10 %, spans of 120 s", []float64{0, 0, 0, math.Log(.9), 0}, 120},
		{"one of five better by 10 %, spans of 180 s", []float64{0, 0, 0, math.Log(.9), 0}, 180},
		{"one of five better by 18 %, spans of 60 s", []float64{0, 0, 0, math.Log(.82), 0}, 60},
	} {
		p := plan(5, 0, &decide.Boundaries{})
		p.MaxSeconds = 28 * (change + warmUp + test.span)
		found, eliminated, kept, c := 0, 0, 0, &cell{}
		for i := range trials() {
			d, seconds := run(p, world{effect: test.effect, restart: .01, span: test.span}, i)
			c.minutes = append(c.minutes, seconds/60)
			if d.Verdict == decide.Better && d.Best == 3 {
				found++
			}
			if len(d.Left) < 5 {
				eliminated++
			}
			if slices.Contains(d.MayBeBest, 3) {
				kept++
			}
		}
		n := len(c.minutes)
		figure.Report(t, "%s: some arm eliminated in %s %%, the fourth found in %s %%, "+
			"among those that may be best in %s %%, median %.0f min",
			test.name, percent(eliminated, n), percent(found, n), percent(kept, n), c.median())
		if test.effect[3] == 0 {
			assert.LessOrEqual(t, eliminated, most(n))
		}
		assert.GreaterOrEqual(t, kept, n-most(n))
	}
}
