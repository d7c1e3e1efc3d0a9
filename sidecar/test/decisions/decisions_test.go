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

// trialsOf runs all trials of two arms on a world.
func trialsOf(w world) (all [][]decide.Block) {
	for i := range trials() {
		all = append(all, blocks(w, i))
	}
	return all
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

// simulate decides trials of two arms once with each of the first metrics as the primary one. before are trials that
// its priors are taken from; nil: none.
func simulate(all, before [][]decide.Block, primaries int, truth float64) []*cell {
	cells, known := make([]*cell, primaries), &decide.Boundaries{}
	for primary := range primaries {
		cells[primary] = &cell{}
		p := plan(2, primary, known)
		var variances []map[string]decide.Variance
		for _, trial := range before {
			d := decide.Decide(p, trial)
			variances = append(variances, decide.Variances(p, trial[:d.Looks[len(d.Looks)-1].Blocks], false))
		}
		for i, trial := range all {
			p.Priors = priorsOf(variances, i)
			d := decide.Decide(p, trial)
			cells[primary].add(d, taken(trial, d.Looks[len(d.Looks)-1].Blocks), truth)
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
		{"a swing of 5 % as long as a block", world{sine: .05, period: 4}, false},
		{"a swing of 5 % of five quarters of a block", world{sine: .05, period: 5}, false},
		{"B fails its slowest 2 %", world{failing: .02}, true},
		{"B fails its slowest 4.5 %", world{failing: .045}, true},
	} {
		t.Run(w.name, func(t *testing.T) {
			all := trialsOf(w.world)
			reportErrors(t, w.name, simulate(all, nil, 5, 0), w.failing)
			reportErrors(t, w.name+withPrior, simulate(all, all, 5, 0), w.failing)
		})
	}
}

// A swing that is in the same phase in each block of one order and in the opposite one in each block of the other
// favors one arm, and the spans of two blocks do not show it. Every order has such a swing; one of three quarters of a
// block comes close. What earlier trials showed of the scatter has the swing in it.
func TestSwingThatTheOrderDoesNotCancel(t *testing.T) {
	t.Parallel()
	all := trialsOf(world{sine: .05, period: 3})
	cells, n, line := simulate(all, nil, 5, 0), trials(), ""
	for i, c := range cells {
		line += fmt.Sprintf("%s %s, ", metrics[i].Name, c.wrong(false, n))
	}
	figure.Report(t, "a swing of 5 %% of three quarters of a block: %sothers %s %% of %d trials called different", line,
		percent(cells[0].others, n), n)
	reportErrors(t, "a swing of 5 % of three quarters of a block"+withPrior, simulate(all, all, 5, 0), false)
}

// reportErrors reports how often trials of equal arms find a difference. If the last arm fails, it may be called worse.
func reportErrors(t *testing.T, name string, cells []*cell, failing bool) {
	t.Helper()
	n := len(cells[0].minutes)
	line := ""
	for i, c := range cells {
		line += fmt.Sprintf("%s %s, ", metrics[i].Name, c.wrong(failing, n))
		assert.LessOrEqual(t, c.better, most(n), metrics[i].Name)
		if !failing {
			assert.LessOrEqual(t, c.better+c.worse, most(n), metrics[i].Name)
			assert.LessOrEqual(t, c.others, most(n), "beside %s", metrics[i].Name)
		}
	}
	line += fmt.Sprintf("others %s", percent(cells[0].others, n))
	figure.Report(t, "%s: %s %% of %d trials called different", name, line, n)
}

// wrong formats the share of trials with a difference; if B fails, the shares with B called better and with A.
func (c *cell) wrong(failing bool, n int) string {
	if failing {
		return fmt.Sprintf("%s (A %s)", percent(c.better, n), percent(c.worse, n))
	}
	return percent(c.better+c.worse, n)
}

// A prior of trials that scatter a third as much, such as those of another arm, is dropped where the blocks contradict
// it, which does not undo all of its harm.
func TestPriorOfQuieterArms(t *testing.T) {
	t.Parallel()
	cells := simulate(trialsOf(world{restart: .03}), trialsOf(world{restart: .01}), 5, 0)
	n, line := len(cells[0].minutes), ""
	for i, c := range cells {
		line += fmt.Sprintf("; %s %s", metrics[i].Name, c.wrong(false, n))
		assert.LessOrEqual(t, c.better+c.worse, n*15/100, metrics[i].Name)
	}
	figure.Report(t, "restarts scatter by 3 %%, in the earlier trials by 1 %%: %% of %d trials called different%s",
		n, line)
}

// For true differences: how many trials decide, when, and how accurate the final estimate and its interval are.
func TestTrueDifferencesAreFound(t *testing.T) {
	t.Parallel()
	for _, effect := range []float64{-.05, -.10, -.14, -.18, -.26, -.33} {
		w := world{effect: []float64{0, math.Log1p(effect)}, restart: .01}
		all := trialsOf(w)
		for _, before := range [][][]decide.Block{nil, all} {
			name := ""
			if before != nil {
				name = withPrior
			}
			for primary, c := range simulate(all, before, 2, w.effect[1]) {
				n := len(c.minutes)
				bias, coverage := c.bias/float64(c.final)/w.effect[1], float64(c.covered)/float64(c.final)
				figure.Report(t, "%+.0f %%, %s%s: %s %% decided, %s %% wrong, median %.0f min; final estimate %.2f of "+
					"the truth, interval holds it in %.1f %%", 100*effect, metrics[primary].Name, name, percent(c.better, n),
					percent(c.worse, n), c.median(), bias, 100*coverage)
				if primary == 0 && effect <= -.14 {
					assert.GreaterOrEqual(t, c.better, n*9/10)
					assert.InDelta(t, 1, bias, .1)
					assert.GreaterOrEqual(t, coverage, .93-2*math.Sqrt(.05*.95/float64(n)))
				}
				assert.LessOrEqual(t, c.worse, most(n)/2)
			}
		}
	}
}

func TestEqualArmsAreCalledEquivalent(t *testing.T) {
	t.Parallel()
	for primary, c := range simulate(trialsOf(world{restart: .01}), nil, 5, 0) {
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
		p := plan(2, 0, known)
		variance += decide.Variances(p, blocks(world{restart: .01}, 1_000_000+i), false)[metrics[0].Name].Value / 200
	}
	difference := -decide.Detectable(plan(2, 0, known), variance, 4*quarter)
	c := simulate(trialsOf(world{restart: .01, effect: []float64{0, difference}}), nil, 1, difference)[0]
	share := float64(c.better) / float64(len(c.minutes))
	figure.Report(t, "predicted to detect %.1f %% in 80 %% of trials within the hour: detected in %.1f %%",
		100*math.Expm1(difference), 100*share)
	assert.InDelta(t, decide.Power, share, .1)
}

// One of three arms that is better by 15 % is found within an hour and a half, one of five within two hours. Trials of
// equal arms find a difference in at most 5 % of cases, for either question.
func TestBestOfSeveralArmsIsFound(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		arms       int
		better     float64 // share by which the last arm but one is better
		span       float64
		limit      float64
		wholeOrder bool
		least      float64 // share of trials that find it
	}{
		{3, 0, length, hour, false, 0},
		{3, 0, length, 1.5 * hour, true, 0},
		{5, 0, length, 1.5 * hour, false, 0},
		{5, 0, length, 2 * hour, true, 0},
		{3, .15, length, hour, false, 0},
		{3, .15, length, 1.5 * hour, true, .9},
		{5, .10, length, 1.5 * hour, false, 0},
		{5, .15, length, 1.5 * hour, false, 0},
		{5, .20, length, 1.5 * hour, false, .9},
		{5, .10, length, 2 * hour, false, 0},
		{5, .15, length, 2 * hour, false, .9},
		{5, .15, length, 2 * hour, true, 0},
		{5, .10, 180, 2.5 * hour, false, 0},
	} {
		name := fmt.Sprintf("%d equal arms", test.arms)
		if test.better > 0 {
			name = fmt.Sprintf("one of %d arms better by %.0f %%", test.arms, 100*test.better)
		}
		if test.wholeOrder {
			name += ", whole order"
		}
		t.Run(fmt.Sprintf("%s, spans of %.0f s, %.0f minutes", name, test.span, test.limit/60), func(t *testing.T) {
			t.Parallel()
			good := test.arms - 2
			w := world{effect: make([]float64, test.arms), restart: .01, span: test.span}
			w.effect[good] = math.Log1p(-test.better)
			p := plan(test.arms, 0, &decide.Boundaries{})
			p.MaxSeconds, p.WholeOrder = test.limit, test.wholeOrder
			var variances []map[string]decide.Variance
			for _, prior := range []string{"", withPrior} {
				named, found, wrong, kept, c := 0, 0, 0, 0, &cell{}
				before := slices.Clone(variances)
				for i := range several() {
					p.Priors = priorsOf(before, i)
					d, blocks := run(p, w, i)
					seconds := taken(blocks, len(blocks))
					variances = append(variances, decide.Variances(p, blocks, false))
					c.minutes = append(c.minutes, seconds/60)
					if d.Verdict == decide.Better {
						named++
					}
					if right, mistaken := shown(d, good, test.better > 0); mistaken {
						wrong++
					} else if right {
						found++
					}
					if slices.Contains(d.MayBeBest, good) {
						kept++
					}
				}
				n, median := len(c.minutes), c.median()
				figure.Report(t, "%s, spans of %.0f s, %.0f minutes at most%s: a best one named in %s %%, the right one better "+
					"than all others in %s %%, some pair wrong in %s %%, an equal or the right one among those that may be best "+
					"in %s %%; median %.0f min, nine of ten by %.0f", name, test.span, test.limit/60, prior, percent(named, n),
					percent(found, n), percent(wrong, n), percent(kept, n), median, c.minutes[n*9/10])
				assert.LessOrEqual(t, wrong, most(n))
				assert.GreaterOrEqual(t, kept, n-most(n))
				assert.GreaterOrEqual(t, float64(found), test.least*float64(n))
			}
		})
	}
}

// several returns the number of trials per cell of more than two arms.
func several() int { return min(trials(), 400) }

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
