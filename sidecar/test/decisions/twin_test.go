//go:build verify

package decisions

import (
	"math"
	"slices"
	"testing"
	"time"

	"kvbooth/sidecar/loadgen/proof"
	"kvbooth/sidecar/loadgen/workload"
	"kvbooth/sidecar/test/montecarlo"
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
				ttft := drawTTFT(state, s.rng)
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
	montecarlo.Run(t, "twin", montecarlo.Each("%v",
		wandering{0, 0}, wandering{.01, 0}, wandering{0, -.05}, wandering{.01, -.05}, wandering{0, -.15},
		wandering{.01, -.15}, wandering{0, -.30}, wandering{.01, -.30},
	), func(t *testing.T, of wandering, r *montecarlo.Results) {
		for i := range trials() {
			p, next, first := proof.NewPairs(60, 4), began.Add(time.Minute), map[string]float64{}
			for _, turn := range pairedTurns(of.world(), i) {
				for ; !next.After(turn.Ended) && !next.After(began.Add(time.Hour)); next = next.Add(time.Minute) {
					for _, d := range p.Differences() {
						in := d.API().Interval
						if _, known := first[string(d.Metric)]; !known && in != nil && (in[0] > 0 || in[1] < 0) {
							first[string(d.Metric)] = next.Sub(began).Minutes()
						}
					}
				}
				p.Add(turn)
			}
			countFound(r, first, proof.PairedMetrics)
		}
		if of.effect == 0 {
			r.Cell("any").AtMost(t, "different", montecarlo.Most(trials()))
		}
	})
}
