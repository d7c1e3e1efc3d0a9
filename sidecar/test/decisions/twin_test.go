//go:build verify

package decisions

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"kvbooth/internal/figure"
	"kvbooth/sidecar/loadgen/proof"
	"kvbooth/sidecar/loadgen/workload"
)

// pairedTurns draws an hour of turns that two lanes have in common, in the order of their ends: 60 conversations with
// four turns of 25 s on each lane. The load of a lane's workers changes every half minute.
func pairedTurns(w world, trial int) (all []proof.PairedTurn) {
	s := newSpans(w, 2, trial)
	const conversations, turns, each, step = 60, 4, 25., 5.
	var busy [2][]float64
	var slow [2][]float64
	for lane := range busy {
		slow[lane] = s.wanders(hour + turns*each)
		busy[lane] = make([]float64, int((hour+turns*each)/step)+2)
		for i := range busy[lane] {
			if busy[lane][i] = .4 * s.rng.NormFloat64(); i > 0 {
				busy[lane][i] = .85*busy[lane][i-1] + .2*s.rng.NormFloat64()
			}
		}
	}
	for k := 0; ; k++ {
		at := float64(k) / conversations * turns * each
		if at > hour {
			break
		}
		for number := range turns {
			tokens := tokens * math.Exp(.3*s.rng.NormFloat64()) // the same on both lanes
			t := proof.PairedTurn{Conversation: int64(k), Number: number + 1}
			begins, ends := at+float64(number)*each, 0.
			for lane := range t.Sides {
				state := busy[lane][int(begins/step)]
				ttft := .22 * math.Exp(.3*s.rng.NormFloat64())
				if s.rng.Float64() < .14*math.Exp(state) {
					ttft += .25 * s.rng.ExpFloat64()
				}
				speed := slow[lane][int(begins/60)]
				ttft *= math.Exp(s.effectOf(lane) + speed)
				tpot := perToken * math.Exp(.1*s.rng.NormFloat64()+.02*state+speed)
				t.Sides[lane] = workload.Outcome{
					TTFT: ttft, TPOT: tpot, Latency: ttft + tpot*tokens,
					PromptTokens: 4000, CachedTokens: int(4000 * min(1, .9+.02*s.rng.NormFloat64())), HasCached: true,
				}
				ends = max(ends, begins+t.Sides[lane].Latency)
			}
			t.Ended = began.Add(seconds(ends))
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b proof.PairedTurn) int { return a.Ended.Compare(b.Ended) })
	return all
}

// Two lanes are compared every minute for an hour. No interval excludes 0 unless the lanes differ, whether their speeds
// wander or not.
func TestTwinIntervalsExcludeZeroOnlyForDifferences(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ wander, effect float64 }{
		{0, 0}, {.01, 0}, {0, -.05}, {.01, -.05}, {0, -.15}, {.01, -.15}, {0, -.30}, {.01, -.30},
	} {
		w := world{wander: test.wander, effect: []float64{0, math.Log1p(test.effect)}}
		some, excluded, minutes := 0, map[proof.Metric]int{}, []float64{}
		for i := range trials() {
			p, next, first := proof.NewPairs(60), began.Add(time.Minute), map[proof.Metric]float64{}
			for _, turn := range pairedTurns(w, i) {
				for ; !next.After(turn.Ended) && !next.After(began.Add(time.Hour)); next = next.Add(time.Minute) {
					for _, d := range p.Differences() {
						in := d.API().Interval
						if _, known := first[d.Metric]; !known && in != nil && (in[0] > 0 || in[1] < 0) {
							first[d.Metric] = next.Sub(began).Minutes()
						}
					}
				}
				p.Add(turn)
			}
			some += count(len(first) > 0)
			for m := range first {
				excluded[m]++
			}
			at, ok := first[proof.TTFTMean]
			if !ok {
				at = math.Inf(1)
			}
			minutes = append(minutes, at)
		}
		slices.Sort(minutes)
		line := ""
		for _, m := range proof.PairedMetrics {
			line += fmt.Sprintf(", %s in %s %%", m, percent(excluded[m], trials()))
		}
		figure.Report(t, "twin, each speed wanders by %.0f %%, TTFT %+.0f %%: some interval leaves out 0 within an "+
			"hour in %s %%%s; that of mean TTFT after %.0f min (median)",
			100*test.wander, 100*test.effect, percent(some, trials()), line, minutes[trials()/2])
		if test.effect == 0 {
			assert.LessOrEqual(t, some, most(trials()))
		}
	}
}
