package proof

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbooth/sidecar/api"
)

func difference(m Metric, by, low, high float64, outcome Verdict) api.TrialDifference {
	d := api.TrialDifference{Metric: string(m), A: .643, B: .643 * (1 + by), Difference: by, Interval: [2]float64{low, high}, Outcome: string(outcome), Basis: string(BasisSections)}
	if m.Share() {
		d.A, d.B = .87, .87+by
	}
	return d
}

// tried is a trial as it stands.
func tried(v Verdict, primary *api.TrialDifference, others ...api.TrialDifference) api.Sweep {
	s := swept(api.SweepTrial, 120)
	s.Request.Repeats, s.Request.Order, s.Request.WarmUp, s.Request.Snapshots, s.Request.MaxSeconds = nil, nil, nil, nil, new(3600.)
	s.Progress.Of = nil
	s.Trial = &api.TrialState{Verdict: string(v), Pairs: 2, Primary: primary, Others: others}
	if v == Running {
		s.State = api.SweepRunning
	}
	return s
}

func TestWordsOfATrial(t *testing.T) {
	lower := difference(TTFT95, -.194, -.232, -.151, BBetter)
	higher := difference(TTFT95, 2.858, 1.9, 4.1, ABetter)
	open := difference(TTFT95, -.08, -.2, .05, Running)
	goodput := difference(Goodput, .12, .08, .16, BBetter)
	for name, c := range map[string]struct {
		sweep api.Sweep
		want  []string
	}{
		"B better":            {tried(BBetter, &lower), []string{"KV-aware is better than Round-robin at 120 conversations: TTFT p95 19.4 % lower (15.1 to 23.2 %)."}},
		"B better by a share": {tried(BBetter, &goodput), []string{"KV-aware is better than Round-robin at 120 conversations: goodput 12.0 points higher (8.0 to 16.0 points)."}},
		"A better":            {tried(ABetter, &higher), []string{"Round-robin is better than KV-aware at 120 conversations: TTFT p95 of KV-aware is 285.8 % higher (190.0 to 410.0 %)."}},
		"no difference": {tried(NoDifference, new(difference(TTFT95, -.008, -.021, .005, NoDifference))), []string{
			"No difference of 5 % or more between KV-aware and Round-robin at 120 conversations: TTFT p95 of KV-aware is 0.8 % lower (2.1 % lower to 0.5 % higher).",
		}},
		"time over":          {tried(TimeOver, &open), []string{"Undecided after 60 minutes at 120 conversations: TTFT p95 of KV-aware is 8.0 % lower (20.0 % lower to 5.0 % higher)."}},
		"time over, no pair": {tried(TimeOver, nil), []string{"Undecided after 60 minutes: no pair of spans was measured."}},
		"running":            {tried(Running, &open), []string{"Undecided so far, after 2 pairs at 120 conversations: TTFT p95 of KV-aware is 8.0 % lower (20.0 % lower to 5.0 % higher).", "Still running, with 18 spans measured: this can still change."}},
		"running out of time": {func() api.Sweep {
			s := tried(Running, &open)
			s.Progress.Beyond = true
			return s
		}(), []string{
			"Undecided so far, after 2 pairs at 120 conversations: TTFT p95 of KV-aware is 8.0 % lower (20.0 % lower to 5.0 % higher).",
			"At the current rate, it will run out of time undecided.", "Still running, with 18 spans measured: this can still change.",
		}},
		"running, no pair yet": {tried(Running, nil), []string{"No results yet: no pair of spans is complete."}},
		"trade-offs of B": {tried(BBetter, &lower,
			difference(TPOT95, .04, .01, .07, ABetter), difference(Throughput, .06, .04, .08, BBetter), difference(HitRate, .091, .08, .1, BBetter),
			difference(TTFT50, .01, -.02, .03, NoDifference), difference(Goodput, .02, -.1, .1, Running)), []string{
			"KV-aware is better than Round-robin at 120 conversations: TTFT p95 19.4 % lower (15.1 to 23.2 %).",
			"Trade-off, worse under KV-aware: TPOT p95 is 4.0 % higher (1.0 to 7.0 %).",
			"Also better under KV-aware: throughput is 6.0 % higher (4.0 to 8.0 %); KV cache hit rate is 9.1 points higher (8.0 to 10.0 points).",
			"No difference of interest in TTFT p50.", "Not decided: goodput.", oneEvidence,
		}},
		"trade-offs of A": {tried(ABetter, &higher, difference(Throughput, .25, .1, .6, BBetter), difference(HitRate, .05, .03, .07, BBetter), difference(TPOT95, .25, .25, .25, ABetter)), []string{
			"Round-robin is better than KV-aware at 120 conversations: TTFT p95 of KV-aware is 285.8 % higher (190.0 to 410.0 %).",
			"Trade-off, worse under Round-robin: throughput is 20.0 % lower (9.1 to 37.5 %); KV cache hit rate is 5.0 points lower (3.0 to 7.0 points).",
			"Also better under Round-robin: TPOT p95 is 20.0 % lower (20.0 to 20.0 %).", oneEvidence,
		}},
		"others of neither": {tried(TimeOver, &open, difference(Goodput, -.02, -.03, -.01, ABetter)), []string{
			"Undecided after 60 minutes at 120 conversations: TTFT p95 of KV-aware is 8.0 % lower (20.0 % lower to 5.0 % higher).",
			"Worse under KV-aware: goodput is 2.0 points lower (1.0 to 3.0 points).",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, Words(&c.sweep))
			r := NewSweepReport(c.sweep)
			assert.Equal(t, c.want, r.Words)
			selfContained(t, written(t, r, api.ReportHTML))
		})
	}
}

// looked is a trial with two metrics beside the deciding one and both of its looks.
func looked() api.Sweep {
	s := tried(BBetter, new(difference(TTFT95, -.194, -.232, -.151, BBetter)),
		difference(Goodput, .02, -.1, .1, Running), difference(Throughput, .06, .04, .08, BBetter))
	s.Rows = crossed().Rows[2:4]
	s.Spans = []api.SweepSpan{{Number: 0, Attempt: 1, Arm: "pilot", Mode: kv, Concurrency: 120, Cold: "nonce"}}
	s.Trial.Boundaries = [2]float64{-.047619, .05}
	s.Trial.Looks = []api.TrialLook{
		{Pairs: 1, Difference: -.25, Interval: [2]float64{-.6, .4}},
		{Pairs: 2, Difference: -.194, Interval: [2]float64{-.232, -.151}},
	}
	return s
}

func capacity(crossing *api.Crossing, modes ...api.ModeCapacity) api.Sweep {
	s := swept(api.SweepCapacity, 60, 180)
	s.Request.Resolution = new(5)
	s.Capacity = &api.Capacity{Modes: modes, Crossing: crossing}
	return s
}

func modeCapacity(m api.ModeState, level, low, high int) api.ModeCapacity {
	return api.ModeCapacity{
		Mode: m, Level: &level, Interval: &[2]int{low, high},
		Tested: []api.LevelTest{{Concurrency: level, Spans: 3, Verdict: "meets"}},
	}
}

// searched is a capacity search with everything that its table can tell.
func searched() api.Sweep {
	isolated, unsure := modeCapacity(roundRobin, 96, 90, 100), modeCapacity(kv, 0, 0, 28)
	isolated.Isolated, unsure.Above = []int{130}, true
	unsure.Tested = []api.LevelTest{{Concurrency: 14, Spans: 8, Verdict: "open"}, {Concurrency: 28, Spans: 3, Verdict: "misses"}}
	above := modeCapacity(kv, 180, 180, 180)
	above.Above, above.Interval = true, nil
	return capacity(&api.Crossing{Level: new(148), Interval: &[2]int{140, 160}, Below: "b"}, isolated, above, unsure)
}

func TestWordsOfACapacitySearch(t *testing.T) {
	mode := modeCapacity
	isolated := mode(roundRobin, 96, 90, 100)
	isolated.Isolated = []int{130}
	above := mode(kv, 180, 180, 180)
	above.Above, above.Interval = true, nil
	unsure := mode(kv, 0, 0, 28)
	unsure.Tested = []api.LevelTest{{Concurrency: 14, Spans: 8, Verdict: "open"}, {Concurrency: 28, Spans: 3, Verdict: "misses"}}
	openAbove := mode(kv, 137, 90, 180)
	openAbove.Above = true
	running := capacity(nil, mode(kv, 120, 60, 180), api.ModeCapacity{Mode: roundRobin})
	running.State = api.SweepRunning
	for name, c := range map[string]struct {
		sweep api.Sweep
		want  []string
	}{
		"found": {capacity(&api.Crossing{Level: new(148), Interval: &[2]int{140, 160}, Below: "b"}, mode(roundRobin, 96, 90, 100), mode(kv, 128, 120, 135)), []string{
			"KV-aware sustains 128 conversations within the SLOs (120 to 135), Round-robin 96 (90 to 100); they cross at 148 (140 to 160).",
			"Below the crossing, TTFT p95 is lower under KV-aware.",
		}},
		"isolated": {capacity(nil, isolated, above), []string{
			"KV-aware sustains at least 180 conversations within the SLOs, Round-robin 96 (90 to 100).",
			"Above a level that misses the SLOs, Round-robin still meets them at 130.",
		}},
		"none":    {capacity(nil, mode(roundRobin, 0, 0, 60), mode(kv, 128, 120, 135)), []string{"KV-aware sustains 128 conversations within the SLOs (120 to 135), Round-robin none, not even at the lowest level (0 to 60)."}},
		"neither": {capacity(nil, mode(kv, 0, 0, 60)), []string{"KV-aware does not meet the SLOs even at the lowest level (0 to 60)."}},
		"unsure":  {capacity(nil, unsure), []string{"KV-aware probably misses the SLOs even at 14 conversations, the lowest level (0 to 28)."}},
		"both":    {capacity(nil, mode(roundRobin, 96, 90, 100), unsure), []string{"Round-robin sustains 96 conversations within the SLOs (90 to 100), KV-aware probably misses the SLOs even at 14 conversations, the lowest level (0 to 28)."}},
		"open": {capacity(&api.Crossing{Level: new(167), Interval: &[2]int{150, 180}, Above: true, Below: "a"}, openAbove, isolated), []string{
			"KV-aware sustains 137 conversations within the SLOs (90 to 180 or more), Round-robin 96 (90 to 100); they cross at 167 (150 to 180 or more).",
			"Below the crossing, TTFT p95 is lower under KV-aware.",
			"Above a level that misses the SLOs, Round-robin still meets them at 130.",
		}},
		"running": {running, []string{"KV-aware sustains 120 conversations within the SLOs (60 to 180), what Round-robin sustains is not known yet.", "Still running, with 18 of 18 spans measured: this can still change."}},
		"nothing": {capacity(nil), []string{"Nothing was measured: no span that counts has ended."}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, Words(&c.sweep))
			selfContained(t, written(t, NewSweepReport(c.sweep), api.ReportHTML))
		})
	}
}

// One span spoiled after the other is said in front, and an operator who paused it is no cause.
func TestWordsOfAnUnfinishedTrial(t *testing.T) {
	s := tried(Running, nil)
	s.Spans = []api.SweepSpan{{Arm: "pilot"}, {Number: 1, Spoiled: "12 of 40 turns failed"}}
	s.Progress.Spans = 1
	assert.Equal(t, []string{"No results yet: no pair of spans is complete."}, Words(&s))
	s.Spans = append(s.Spans, api.SweepSpan{Number: 1, Attempt: 2, Spoiled: "the load generator itself was late; give it more CPU"})
	assert.Equal(t, []string{
		"No results yet: no pair of spans is complete.",
		"The latest 2 spans do not count, the last one because: the load generator itself was late; give it more CPU.",
	}, Words(&s))
	s.State, s.Reason, s.Cause = api.SweepPaused, "by ann, who stopped the workload", api.CauseOperator
	assert.Equal(t, "Paused by ann, who stopped the workload, with 1 span measured.", Words(&s)[1])
	s.Reason, s.Cause = "the target failed in a span twice", api.CauseTarget
	assert.Equal(t, "Paused, with 1 span measured: the target failed in a span twice.", Words(&s)[1])
}

// Modes that differ in speculation alone are told apart.
func TestWordsTellModesApart(t *testing.T) {
	s := tried(BBetter, new(difference(TTFT95, -.194, -.232, -.151, BBetter)))
	s.Request.Modes = []api.ModeState{kv, {Mode: api.ModeKV, Speculation: api.SpeculationEagle3}}
	assert.Equal(t, "KV-aware with speculation EAGLE-3 is better than KV-aware with speculation off at 120 conversations: TTFT p95 19.4 % lower (15.1 to 23.2 %).", Words(&s)[0])
}

// How often each mode of a sweep was on either of two lanes is said, level by level.
func TestWordsOfASweepOnTwoLanes(t *testing.T) {
	of := func(spans ...api.SweepSpan) string {
		s := crossed()
		s.Spans = spans
		all := Words(&s)
		return all[len(all)-1]
	}
	both := func(level int, kvOn string) []api.SweepSpan {
		other := map[string]string{api.DefaultLane: api.TwinLane, api.TwinLane: api.DefaultLane}[kvOn]
		return []api.SweepSpan{{Concurrency: level, Mode: kv, Lane: kvOn}, {Concurrency: level, Mode: roundRobin, Lane: other}}
	}
	first := slices.Concat(both(60, api.DefaultLane), both(60, api.TwinLane))
	assert.Equal(t, "Both modes ran at the same time on two targets, swapped in 1 of 2 pairs: other differences between the targets cancel out.", of(first...))
	assert.Equal(t, "Both modes ran at the same time on two targets, KV-aware on that of lane twin in 2 of 3 pairs, not equally often at every level: other differences between the targets do not cancel out completely.",
		of(append(first, both(120, api.TwinLane)...)...))
	assert.Equal(t, "Both modes ran at the same time on two targets, KV-aware always on the one of lane main: other differences between the targets are part of the result.",
		of(slices.Concat(both(60, api.DefaultLane), both(120, api.DefaultLane))...))
	spoiled := both(120, api.TwinLane)
	spoiled[0].Spoiled, spoiled[1].Spoiled = "a", "b"
	assert.Contains(t, of(append(first, spoiled...)...), "in 1 of 2 pairs")
	assert.NotContains(t, of(), "at the same time")
}
