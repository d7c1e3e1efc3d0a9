//go:build verify

package decisions

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbooth/internal/figure"
	"kvbooth/sidecar/loadgen/decide"
	"kvbooth/sidecar/test/montecarlo"
)

// trials returns the number of trials per case.
func trials() int {
	if n, err := strconv.Atoi(os.Getenv("DECISIONS_TRIALS")); err == nil {
		return n
	}
	return 1000
}

// several returns the number of trials per case of more than two arms.
func several() int { return min(trials(), 400) }

// target draws the blocks of a trial of two arms.
type target interface {
	blocks(trial int) []decide.Block
}

// draws are the blocks of many trials.
type draws struct {
	trials [][]decide.Block
	slots  bool // of a switchback
}

// drawn draws all trials.
func drawn(from target) (d draws) {
	_, d.slots = from.(flow)
	for i := range trials() {
		d.trials = append(d.trials, from.blocks(i))
	}
	return d
}

// earlier is the number of trials before the one that is decided, where that has a prior.
const earlier = 4

const withPrior = ", with a prior"

// priorsOf returns the priors of trial i, by trials of which each has as many others before it; nil without any.
func priorsOf(before []map[string]decide.Variance, i int) map[string]decide.Variance {
	if before == nil {
		return nil
	}
	priors := map[string]decide.Variance{}
	for _, m := range metrics {
		var all []decide.Variance
		for k := 1; k <= earlier; k++ {
			all = append(all, before[(i+k)%len(before)][m.Name])
		}
		priors[m.Name] = decide.Moderate(all)
	}
	return priors
}

// decideEach decides all trials once with each of the first metrics as the primary one, and returns a cell for each,
// whose name ends with how. before are trials that the priors are taken from, which may be none.
func decideEach(
	r *montecarlo.Results, how string, primaries int, truth float64, all, before draws,
) (cells []*montecarlo.Cell) {
	known := &decide.Boundaries{}
	for primary := range primaries {
		c := r.Cell(metrics[primary].Name + how)
		cells = append(cells, c)
		p := plan(2, primary, known)
		p.Switchback = all.slots
		var variances []map[string]decide.Variance
		for _, trial := range before.trials {
			d := decide.Decide(p, trial)
			variances = append(variances, decide.Variances(p, trial[:d.Looks[len(d.Looks)-1].Blocks], false))
		}
		for i, trial := range all.trials {
			p.Priors = priorsOf(variances, i)
			d := decide.Decide(p, trial)
			count(c, d, truth)
			c.Sample("minutes", taken(trial, d.Looks[len(d.Looks)-1].Blocks)/60)
		}
	}
	return cells
}

// count counts the decision of a trial of two arms.
func count(c *montecarlo.Cell, d decide.Decision, truth float64) {
	better := d.Verdict == decide.Better
	c.Count("called different", better)
	c.Count("A better", better && d.Left[0] == 0)
	c.Count("B better", better && d.Left[0] == 1)
	c.Count("no difference of 5 %", d.Verdict == decide.NoDifference)
	c.Count("others", slices.ContainsFunc(d.Others, func(o decide.Comparison) bool { return o.Shown != 0 }))
	if d.Verdict.Over() && d.Verdict != decide.TimeOver && d.Final != nil && truth != 0 {
		c.Mean("final estimate / truth", d.Final.Estimate/truth)
		c.Count(montecarlo.Covers, d.Final.Interval[0] <= truth && truth <= d.Final.Interval[1])
	}
}

// Equal arms are called different in at most 5 % of trials, with every primary metric and in every other metric,
// whatever else changes the speed. An arm that fails its slowest turns is never called better.
//
// A swing that is in the same phase in each block of one order and in the opposite one in each block of the other
// favors one arm, and the spans of two blocks do not show it. Every order has such a swing; one of three quarters of a
// block comes close. What earlier trials showed of the scatter has the swing in it.
func TestEqualArmsAreRarelyCalledDifferent(t *testing.T) {
	t.Parallel()
	montecarlo.Run(t, "equal arms", map[string]target{
		"nothing but chance":                                    world{},
		"restarts scatter by 1 %":                               world{restart: .01},
		"restarts scatter by 2 %":                               world{restart: .02},
		"restarts scatter by 3 %":                               world{restart: .03},
		"restarts scatter by 5 %":                               world{restart: .05},
		"restarts of A scatter by 3 %, of B by 6 %":             world{restart: .03, rougher: 2},
		"lanes alike":                                           world{lane: 1e-9},
		"lanes differ by 3 %":                                   world{lane: .03},
		"lanes differ by 5 %":                                   world{lane: .05},
		"lanes differ by 8 %":                                   world{lane: .08},
		"drift of 3 % a span":                                   world{drift: .03},
		"4 % slower after a change of arm":                      world{switched: .04},
		"4 % slower after A":                                    world{after: .04},
		"heavy-tailed stalls":                                   world{stalls: true},
		"a swing of 5 % of three quarters of a block":           world{sine: .05, period: 3},
		"a swing of 5 % as long as a block":                     world{sine: .05, period: 4},
		"a swing of 5 % of five quarters of a block":            world{sine: .05, period: 5},
		"B fails its slowest 2 %":                               world{failing: .02},
		"B fails its slowest 4.5 %":                             world{failing: .045},
		"switchback, nothing but chance":                        flow{},
		"switchback, slots scatter by 2 % under A, 6 % under B": flow{rough: [2]float64{.02, .06}},
		"switchback, random walk of 3 % a slot":                 flow{walk: .03},
		"switchback, drift of 1 % a slot":                       flow{world: world{drift: .01}},
		"switchback, swing of 5 %, period of 2 slots":           flow{sine: .05, period: 2},
		"switchback, swing of 5 %, period of 3 slots":           flow{sine: .05, period: 3},
		"switchback, swing of 5 %, period of 4 slots":           flow{sine: .05, period: 4},
		"switchback, swing of 5 %, period of 5 slots":           flow{sine: .05, period: 5},
		"switchback, load swings by 15 % with a memory of 30 s": flow{world: world{swing: .15}},
		"switchback, speed wanders by 2 %":                      flow{world: world{wander: .02}},
		"switchback, 10 % slower at a change of arm":            flow{lag: .1},
		"switchback, heavy-tailed stalls":                       flow{world: world{stalls: true}},
	}, func(t *testing.T, of target, r *montecarlo.Results) {
		all := drawn(of)
		n, cells := trials(), decideEach(r, "", 5, 0, all, draws{})
		w, inBlocks := of.(world)
		if inBlocks {
			if w.period == 3 {
				cells = nil // nothing is required of it without a prior
			}
			cells = append(cells, decideEach(r, withPrior, 5, 0, all, all)...)
		}
		for _, c := range cells {
			c.AtMost(t, "B better", montecarlo.Most(n))
			if w.failing > 0 {
				continue
			}
			c.AtMost(t, "called different", montecarlo.Most(n))
			if inBlocks {
				c.AtMost(t, "others", montecarlo.Most(n))
			}
		}
	})
}

// A prior of trials that scatter a third as much, such as those of another arm, is dropped where the blocks contradict
// it, which does not undo all of its harm.
func TestPriorOfQuieterArms(t *testing.T) {
	t.Parallel()
	montecarlo.Run(t, "restarts scatter by 3 %, in the earlier trials", montecarlo.Each("by %g", .01),
		func(t *testing.T, scatter float64, r *montecarlo.Results) {
			all := drawn(world{restart: .03})
			for _, c := range decideEach(r, "", 5, 0, all, drawn(world{restart: scatter})) {
				c.AtMost(t, "called different", trials()*15/100)
			}
		})
}

// For true differences: how many trials decide, when, and how accurate the final estimate and its interval are. A
// switchback finds them in fewer minutes than a trial on cold caches.
func TestTrueDifferencesAreFound(t *testing.T) {
	t.Parallel()
	montecarlo.Run(t, "true difference", montecarlo.Each("%g", -.05, -.10, -.14, -.18, -.26, -.33),
		func(t *testing.T, effect float64, r *montecarlo.Results) {
			w := world{effect: []float64{0, math.Log1p(effect)}, restart: .01}
			all, n := drawn(w), trials()
			for _, cells := range [][]*montecarlo.Cell{
				decideEach(r, "", 2, w.effect[1], all, draws{}), decideEach(r, withPrior, 2, w.effect[1], all, all),
			} {
				if c := cells[0]; effect <= -.14 {
					c.AtLeast(t, "B better", n*9/10)
					assert.InDelta(t, 1, c.Average("final estimate / truth"), .1)
					assert.GreaterOrEqual(t, c.Average(montecarlo.Covers), .93-2*math.Sqrt(.05*.95/float64(n)))
				}
				for _, c := range cells {
					c.AtMost(t, "A better", montecarlo.Most(n)/2)
				}
			}
			f := flow{world: world{effect: w.effect}, rough: [2]float64{.01, .01}}
			c := decideEach(r, ", switchback", 2, w.effect[1], drawn(f), draws{})[0]
			if effect <= -.1 {
				c.AtLeast(t, "B better", n*9/10+1)
				c.AtMost(t, "A better", 0)
			}
		})
}

// The difference that a trial is predicted to detect is detected.
func TestDetectableDifferenceIsDetected(t *testing.T) {
	t.Parallel()
	p, variance := plan(2, 0, &decide.Boundaries{}), 0.
	for i := range 200 {
		variance += decide.Variances(p, world{restart: .01}.blocks(1_000_000+i), false)[metrics[0].Name].Value / 200
	}
	difference := -decide.Detectable(p, variance, 4*quarter)
	w := world{restart: .01, effect: []float64{0, difference}}
	share := decideEach(&montecarlo.Results{}, "", 1, difference, drawn(w), draws{})[0].Average("B better")
	figure.Headline(t, "%.1f %% detected in %.1f %% of trials, predicted 80 %%", 100*math.Expm1(difference), 100*share)
	assert.InDelta(t, decide.Power, share, .1)
}

// severalArms are equal arms but for the last but one.
type severalArms struct {
	arms       int
	better     float64 // share by which that arm is better
	span       float64
	limit      float64
	wholeOrder bool
	least      float64 // share of trials that find it
}

// String describes the arms and the limits of a trial.
func (s severalArms) String() string {
	name := fmt.Sprintf("%d arms, one better by %.0f %%, spans of %.0f s, %.0f minutes at most", s.arms, 100*s.better,
		cmp.Or(s.span, length), s.limit/60)
	if s.wholeOrder {
		name += ", whole order"
	}
	return name
}

// One of three arms that is better by 15 % is found within an hour and a half, one of five within two hours. Trials of
// equal arms find a difference in at most 5 % of cases, for either question.
func TestBestOfSeveralArmsIsFound(t *testing.T) {
	t.Parallel()
	montecarlo.Run(t, "several arms", montecarlo.Each("%v",
		severalArms{3, 0, length, hour, false, 0},
		severalArms{3, 0, length, 1.5 * hour, true, 0},
		severalArms{5, 0, length, 1.5 * hour, false, 0},
		severalArms{5, 0, length, 2 * hour, true, 0},
		severalArms{3, .15, length, hour, false, 0},
		severalArms{3, .15, length, 1.5 * hour, true, .9},
		severalArms{5, .10, length, 1.5 * hour, false, 0},
		severalArms{5, .15, length, 1.5 * hour, false, 0},
		severalArms{5, .20, length, 1.5 * hour, false, .9},
		severalArms{5, .10, length, 2 * hour, false, 0},
		severalArms{5, .15, length, 2 * hour, false, .9},
		severalArms{5, .15, length, 2 * hour, true, 0},
		severalArms{5, .10, 180, 2.5 * hour, false, 0},
	), func(t *testing.T, s severalArms, r *montecarlo.Results) {
		good, n := s.arms-2, several()
		w := world{effect: make([]float64, s.arms), restart: .01, span: s.span}
		w.effect[good] = math.Log1p(-s.better)
		p := plan(s.arms, 0, &decide.Boundaries{})
		p.MaxSeconds, p.WholeOrder = s.limit, s.wholeOrder
		var variances, before []map[string]decide.Variance
		for _, prior := range []string{"no prior", "with a prior"} {
			c := r.Cell(prior)
			for i := range n {
				p.Priors = priorsOf(before, i)
				d, blocks := run(p, w, i)
				variances = append(variances, decide.Variances(p, blocks, false))
				right, mistaken := shown(d, good, s.better > 0)
				c.Count("a best one named", d.Verdict == decide.Better)
				c.Count("the right one better than all others", right && !mistaken)
				c.Count("some pair wrong", mistaken)
				c.Count("an equal or the right one may be best", slices.Contains(d.MayBeBest, good))
				c.Sample("minutes", taken(blocks, len(blocks))/60)
			}
			before = slices.Clone(variances)
			c.AtMost(t, "some pair wrong", montecarlo.Most(n))
			c.AtLeast(t, "an equal or the right one may be best", n-montecarlo.Most(n))
			c.AtLeast(t, "the right one better than all others", int(math.Ceil(s.least*float64(n))))
		}
	})
}

// shown reports whether an arm is shown to be better than each other one, and whether some pair is shown to differ that
// does not, or the wrong way round.
func shown(d decide.Decision, good int, differs bool) (right, wrong bool) {
	better := 0
	for i := range d.Primary {
		switch winner, _, ok := d.Primary[i].Better(); {
		case !ok:
		case differs && winner == good:
			better++
		default:
			wrong = true
		}
	}
	return better == len(d.LeftAfter)-1, wrong
}
