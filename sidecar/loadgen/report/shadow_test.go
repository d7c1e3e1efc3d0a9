package report

import (
	"kvbooth/sidecar/loadgen/shadow"
)

// replayed is the report on a replay with a curve, in which something is wrong with the trace and with both models.
func replayed() *Shadow {
	point := func(workers, blocks int, hit float64) ShadowPoint {
		return ShadowPoint{Workers: workers, Blocks: blocks, Hit: map[string]float64{
			string(shadow.RoundRobin): hit, string(shadow.Best): 2 * hit,
		}}
	}
	return &Shadow{
		Program: "1.4.0",
		Trace: ShadowTrace{
			File: "trace.jsonl", Form: "mooncake", Requests: 80, Seconds: 400, Arrivals: 380, Lines: 83, Unused: 3,
			Notes: []string{"line 7: no timestamp"}, Disordered: 2, Cut: true,
		},
		Assumptions: []string{"Assumed: 25ms per output token."},
		Setting:     ShadowSetting{Workers: 2, Blocks: 100, BlockTokens: 512},
		Policies: []ShadowPolicy{
			{Policy: "round_robin", Requests: 80, HitRatio: .21, PrefillTokens: 80896, Spread: new(1.5), Crowded: 4},
			{Policy: "best", Requests: 80, HitRatio: .42, PrefillTokens: 59392},
		},
		Account:    &ShadowAccount{Requests: 80, MeasuredRatio: .36, ModeledRatio: .31, Error: .05},
		Choices:    &ShadowChoices{Turns: 40, Agreed: 30, Tied: 4, Clear: 20, Agreement: .9, Coverage: .5},
		ByCapacity: []ShadowPoint{point(2, 50, .1), point(2, 100, .21)},
		ByWorkers:  []ShadowPoint{point(1, 100, .2), point(2, 100, .21)},
	}
}
