//go:build verify

package decisions

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbooth/internal/figure"
	"kvbooth/sidecar/loadgen/decide"
)

const batch = 60 // seconds

// batches are the logarithms of a metric in each minute of a run, whose speed may wander: a standard deviation, with a
// memory of ten minutes.
func batches(w world, metric string, wander float64, trial, minutes int) (all []float64) {
	s := newSpans(w, 2, trial)
	r := s.record(1, 0, float64(minutes)*batch, 1)
	level := wander * s.rng.NormFloat64()
	for minute := range minutes {
		part := r
		part.CountedFrom = warmUp + float64(minute)*batch
		part.Until = part.CountedFrom + batch
		c := counted(part)
		all = append(all, math.Log(c.values(0, 0)[metric])+level)
		memory := math.Exp(-1. / 10)
		level = memory*level + wander*math.Sqrt(1-memory*memory)*s.rng.NormFloat64()
	}
	return all
}

// Live: two targets minute by minute, looked at after every one for an hour. An unchanged system is hardly ever called
// different, whether its speed wanders or not, and a true difference is found soon.
func TestLive(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		metric                  string
		wander, allowed, effect float64
	}{
		{"TTFT mean", 0, 0, 0},
		{"TTFT mean", .01, .01, 0},
		{"TTFT mean", .01, 0, 0},
		{"throughput", 0, 0, 0},
		{"throughput", .01, .01, 0},
		{"throughput", .01, 0, 0},
		{"TTFT mean", .01, .01, -.15},
		{"TTFT mean", .01, .01, -.30},
		{"TTFT mean", .01, .01, -.40},
	} {
		different, minutes := 0, []float64{}
		for i := range trials() {
			a := batches(world{}, test.metric, test.wander, 2*i, 60)
			b := batches(world{effect: []float64{0, math.Log1p(test.effect)}}, test.metric, test.wander, 2*i+1, 60)
			at := math.Inf(1)
			for n := range a {
				a[n] = b[n] - a[n]
				_, in := decide.Sequence(a[:n+1], .05, test.allowed*math.Sqrt2)
				if in[0] > 0 || in[1] < 0 {
					at = float64(n + 1)
					break
				}
			}
			if !math.IsInf(at, 1) {
				different++
			}
			minutes = append(minutes, at)
		}
		slices.Sort(minutes)
		figure.Report(t, "live, %s, speed wanders by %.0f %%, %.0f %% allowed for, %+.0f %%: different within an hour in %s %%, "+
			"median %.0f min", test.metric, 100*test.wander, 100*test.allowed, 100*test.effect, percent(different, trials()), minutes[len(minutes)/2])
		if test.effect == 0 && test.wander == test.allowed {
			assert.LessOrEqual(t, different, most(trials()))
		}
	}
}

// Sweeps: seven levels, three figures, three repeats.
func TestLevels(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(7, 3))
	named := map[bool]int{}
	found := map[bool]int{}
	for range trials() {
		for _, effect := range []float64{0, 2} {
			var p, single []float64
			for range 3 {
				var levels [][2][]float64
				for range 7 {
					var l [2][]float64
					for range 3 {
						l[0], l[1] = append(l[0], rng.NormFloat64()), append(l[1], effect+rng.NormFloat64())
					}
					levels = append(levels, l)
					single = append(single, decide.Levels([][2][]float64{l})[0].P)
				}
				for _, d := range decide.Levels(levels) {
					p = append(p, d.P)
				}
			}
			shown := decide.Holm(p, .05)
			if effect == 0 {
				named[true] += count(slices.Contains(shown, true))
				named[false] += count(slices.Min(single) < .05)
				continue
			}
			for i := range shown {
				found[true] += count(p[i] < .05)
				found[false] += count(single[i] < .05)
			}
		}
	}
	figure.Report(t, "sweeps of equal arms: some level named in %s %% of reports, in %s %% without Holm and pooling; a difference of "+
		"two standard deviations found by one test in %s %%, in %s %% without pooling", percent(named[true], trials()),
		percent(named[false], trials()), percent(found[true], 21*trials()), percent(found[false], 21*trials()))
	assert.LessOrEqual(t, named[true], most(trials()))
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// Capacity: nine levels from 60 to 180 with four spans each, on curves that cross the limit at a known level.
func TestCapacity(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(8, 3))
	for _, slope := range []float64{.0005, .002, .01} { // of log p95 for each conversation
		for _, truth := range []float64{100, 140} {
			covered, estimates, widths := 0, []float64{}, []float64{}
			for range trials() {
				var levels []decide.Excess
				squares := 0.
				for level := 60.; level <= 180; level += 15 {
					sum, values := 0., [4]float64{}
					for i := range values {
						values[i] = slope*(level-truth) + .05*rng.NormFloat64()
						sum += values[i]
					}
					for _, v := range values {
						squares += (v - sum/4) * (v - sum/4)
					}
					levels = append(levels, decide.Excess{Level: level, Mean: sum / 4, Spans: 4})
				}
				s := decide.Capacity(levels, decide.Variance{Value: squares / 27, DF: 27})
				covered += count(s.Interval[0] <= truth && truth <= s.Interval[1])
				estimates = append(estimates, s.Level)
				widths = append(widths, s.Interval[1]-s.Interval[0])
			}
			slices.Sort(estimates)
			slices.Sort(widths)
			n := len(estimates)
			figure.Report(t, "capacity, p95 rises by %s a conversation, truth %.0f: estimates %.0f to %.0f (nine of ten), median %.0f; "+
				"interval holds the truth in %s %%, median width %.0f", fmt.Sprintf("%.2f %%", 100*slope), truth,
				estimates[n/20], estimates[n*19/20], estimates[n/2], percent(covered, n), widths[n/2])
			assert.GreaterOrEqual(t, covered, n-most(n))
		}
	}
}
