package proof

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// grows is a TTFT p95 in seconds that reaches the SLO of 600 ms at one concurrency, and e
// times it so many conversations later.
func grows(capacity, by float64) func(int) float64 {
	return func(concurrency int) float64 { return .6 * math.Exp((float64(concurrency)-capacity)/by) }
}

// always is a TTFT p95 that load does not change.
func always(seconds float64) func(int) float64 { return func(int) float64 { return seconds } }

// defaultCapacity scans the range of the booths' slider for six hours at most.
func defaultCapacity(modes ...api.ModeState) CapacityPlan {
	return CapacityPlan{
		Modes: modes, Levels: api.LevelsOf(60, 90, 120, 150, 180), Resolution: 8, Seconds: 60, MaxTime: 6 * 3600,
		SLO: api.SLO{TTFT: .6, TPOT: .06}, Seed: 1,
	}
}

func newCapacity(t *testing.T, change func(*CapacityPlan)) *Capacity {
	t.Helper()
	p := defaultCapacity(roundRobin, kv)
	p.SLO.TPOT = .2 // turns of these recordings have 0.1
	if change != nil {
		change(&p)
	}
	c, err := NewCapacity(p)
	require.NoError(t, err)
	return c
}

// served is the result of a span whose TTFT p95 is that of its mode's curve.
func served(s Span, a, b func(int) float64) Result {
	p95 := a
	if s.Mode == kv {
		p95 = b
	}
	// 1.645 standard deviations of 0.1 lie between the median and p95.
	r := recording(rand.New(rand.NewPCG(s.Seed, uint64(s.Mode.Mode[0]))), p95(s.Level.Conversations())/math.Exp(.1645),
		max(s.Seconds, 600))
	return Result{Elapsed: r.Until + 5, Recording: r}
}

// search runs a search to its end, or for so many spans.
func search(t *testing.T, c *Capacity, result func(Span) Result, spans int) (all []Span) {
	t.Helper()
	for len(all) < spans {
		s, ok := c.Next()
		if !ok {
			break
		}
		all = append(all, s)
		c.Add(result(s))
	}
	return all
}

const many = 1000

func TestCapacity(t *testing.T) {
	level := func(n int) *int { return &n }
	type want struct {
		level *int
		above bool
	}
	for name, test := range map[string]struct {
		a, b     func(int) float64 // TTFT p95 under round-robin and under kv
		wantA    want
		wantB    want
		crossing *int
		below    string
	}{
		"all three lie in the range": {grows(96, 100), grows(128, 50), want{level(96), false}, want{
			level(128), false,
		}, level(160), "b"},
		"the first mode is better below": {grows(128, 50), grows(96, 100), want{level(128), false}, want{
			level(96), false,
		}, level(160), "a"},
		"the lowest level misses": {grows(40, 100), grows(100, 100), want{level(0), false}, want{
			level(100), false,
		}, nil, "b"},
		"the highest level meets": {grows(100, 100), grows(300, 100), want{level(100), false}, want{
			level(180), true,
		}, nil, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCapacity(t, func(p *CapacityPlan) { p.MaxTime = maxTrial })
			spans := search(t, c, func(s Span) Result { return served(s, test.a, test.b) }, many)
			assert.Equal(t, CapacityDecided, c.Over())
			assert.Less(t, len(spans), 120)
			s := c.State()
			require.Len(t, s.Modes, 2)
			for i, want := range []want{test.wantA, test.wantB} {
				got := s.Modes[i]
				require.NotNil(t, got.Level)
				assert.Equal(t, c.Plan.Modes[i], got.Mode)
				assert.InDelta(t, *want.level, got.Level.Value, 4)
				assert.LessOrEqual(t, got.Interval[0].Conversations(), *want.level)
				assert.GreaterOrEqual(t, got.Interval[1].Conversations(), *want.level)
				assert.Equal(t, want.above, got.Above)
				assert.Empty(t, got.Isolated)
			}
			require.NotNil(t, s.Crossing)
			assert.Equal(t, test.below, s.Crossing.Below)
			assert.Equal(t, test.crossing == nil, s.Crossing.Above)
			if test.crossing == nil {
				assert.Nil(t, s.Crossing.Level)
				assert.Equal(t, [2]api.Level{api.AtConversations(180), api.AtConversations(180)}, *s.Crossing.Interval)
				return
			}
			require.NotNil(t, s.Crossing.Level)
			assert.InDelta(t, *test.crossing, s.Crossing.Level.Value, 6)
			assert.Less(t, s.Crossing.Interval[1].Value-s.Crossing.Interval[0].Value, 31.)
			assert.LessOrEqual(t, s.Crossing.Interval[0].Conversations(), *test.crossing)
			assert.GreaterOrEqual(t, s.Crossing.Interval[1].Conversations(), *test.crossing)
		})
	}
}

// The scan takes every level once in every mode; the k-th spans of a level hold the same
// conversations in both modes, and no others do.
func TestCapacityScansFirst(t *testing.T) {
	c := newCapacity(t, nil)
	spans := search(t, c, func(s Span) Result { return served(s, grows(96, 100), grows(128, 50)) }, many)
	type at struct {
		level int
		mode  api.Mode
	}
	counts, seeds := map[at]int{}, map[uint64]at{}
	for i, s := range spans {
		assert.Equal(t, i, s.Number)
		assert.Equal(t, s.Level.Conversations(), s.WarmUp)
		assert.Equal(t, s.Level.Conversations(), s.Midway, "the start is ramped, as a trial's")
		if i < 10 {
			assert.Equal(t, c.Plan.Levels[i/2], s.Level)
			assert.Zero(t, counts[at{s.Level.Conversations(), s.Mode.Mode}])
		}
		key := at{s.Level.Conversations(), s.Mode.Mode}
		k := counts[key]
		counts[key]++
		if other, ok := seeds[s.Seed]; ok {
			assert.Equal(t, s.Level.Conversations(), other.level)
			assert.NotEqual(t, s.Mode.Mode, other.mode)
			assert.GreaterOrEqual(t, counts[other], k+1)
		}
		seeds[s.Seed] = key
	}
	most := 0
	for key, n := range counts {
		assert.LessOrEqual(t, n, maxRepeats, "%v", key)
		most = max(most, n)
	}
	assert.Equal(t, 1, counts[at{60, api.ModeKV}], "what is plain is measured once")
	assert.Greater(t, most, 1, "what decides is measured again")
}

// A level is judged by its own scatter where the scatter grows with the load.
func TestCapacityScatterGrows(t *testing.T) {
	var r row
	for i, scatter := range []float64{.005, .0125, .03, .08, .2} {
		l := level{at: api.AtConversations(60 + 30*i), spans: 4, excess: [][]float64{nil}, late: [][2]float64{{}}}
		for _, side := range []float64{-1, 1, -.5, .5} {
			l.excess[0] = append(l.excess[0], -.03+scatter*side)
		}
		r = append(r, l)
	}
	assert.Equal(t, []int{-1, -1, 0, 0, 0}, r.certain(0))
	a, ok := r.answer()
	assert.True(t, ok)
	assert.InDelta(t, 180, a.Level, 0)
	assert.GreaterOrEqual(t, a.Interval[0], 90., "the scatter at 180 does not count below")
}

// Levels that pass above one that fails are named, and do not count.
func TestCapacityNamesIsolatedPasses(t *testing.T) {
	recorded := func(concurrency int) float64 {
		switch {
		case concurrency < 80:
			return .9
		case concurrency < 160:
			return .4
		}
		return .9
	}
	c := newCapacity(t, nil)
	search(t, c, func(s Span) Result { return served(s, recorded, always(.3)) }, many)
	s := c.State().Modes[0]
	assert.Zero(t, *s.Level)
	assert.Equal(t, [2]api.Level{api.AtConversations(0), api.AtConversations(60)}, *s.Interval)
	assert.False(t, s.Above)
	assert.Subset(t, []api.Level(s.Isolated), api.LevelsOf(90, 120, 150))
	assert.Equal(t, misses, s.Tested[0].Verdict)
	assert.Equal(t, misses, s.Tested[len(s.Tested)-1].Verdict)
}

// TPOT p95 alone can end it.
func TestCapacityHoldsBothSLOs(t *testing.T) {
	c := newCapacity(t, func(p *CapacityPlan) { p.Modes, p.SLO.TPOT = p.Modes[:1], .05 })
	search(t, c, func(s Span) Result { return served(s, always(.3), nil) }, many)
	s := c.State()
	assert.Zero(t, *s.Modes[0].Level)
	assert.Equal(t, [2]api.Level{api.AtConversations(0), api.AtConversations(60)}, *s.Modes[0].Interval)
	assert.Nil(t, s.Crossing, "there is but one mode")
}

// A level misses an SLO only by more than the load generator's own error, and meets it whatever that is; of TPOT, it
// must meet it by more than that, too.
func TestCapacityAllowsForErrors(t *testing.T) {
	for name, row := range map[string]struct {
		ttft, tpotSLO float64
		errors        map[Metric]float64
		want          string
	}{
		"missed":                   {.7, 1, nil, misses},
		"missed by more than it":   {.7, 1, map[Metric]float64{TTFT95: .02}, misses},
		"missed by less than it":   {.7, 1, map[Metric]float64{TTFT95: .2}, Open},
		"met":                      {.5, 1, map[Metric]float64{TTFT95: .2}, meets},
		"TPOT met by less than it": {.5, .15, map[Metric]float64{TPOT95: .09}, Open},
		"TPOT met by more than it": {.5, 1, map[Metric]float64{TPOT95: .01}, meets},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCapacity(t, func(p *CapacityPlan) { p.Modes, p.SLO.TPOT = p.Modes[:1], row.tpotSLO })
			search(t, c, func(s Span) Result {
				r := served(s, always(row.ttft), nil)
				r.Errors = row.errors
				return r
			}, many)
			assert.Equal(t, row.want, c.State().Modes[0].Tested[0].Verdict)
		})
	}
}

// What lies at the threshold itself seems to meet it, is certain either way at no level, and
// given up after [maxRepeats] spans.
func TestCapacityTooCloseToCall(t *testing.T) {
	c := newCapacity(t, func(p *CapacityPlan) { p.Modes, p.MaxTime = p.Modes[:1], maxTrial })
	spans := search(t, c, func(s Span) Result {
		r := served(s, always(.6), nil)
		for i := range r.Turns { // exactly 0.6, whatever the draws
			r.Turns[i].TTFT = .6
		}
		return r
	}, many)
	s := c.State().Modes[0]
	assert.Equal(t, CapacityDecided, c.Over())
	assert.Len(t, spans, 5*maxRepeats)
	assert.Equal(t, api.AtConversations(180), *s.Level)
	assert.Equal(t, [2]api.Level{api.AtConversations(0), api.AtConversations(180)}, *s.Interval)
	assert.True(t, s.Above)
	for _, l := range s.Tested {
		assert.Equal(t, Open, l.Verdict)
	}
}

// No span is begun that would take longer than there is; what is known then stays.
func TestCapacityTimeOver(t *testing.T) {
	c := newCapacity(t, func(p *CapacityPlan) { p.MaxTime = 4000 })
	spans := search(t, c, func(s Span) Result { return served(s, grows(96, 100), grows(128, 50)) }, many)
	assert.Equal(t, CapacityTimeOver, c.Over())
	assert.Len(t, spans, 6, "each takes 655 s")
	s := c.State()
	assert.Nil(t, s.Modes[0].Level, "the scan is not through")
	assert.Nil(t, s.Modes[0].Interval)
	assert.Len(t, s.Modes[0].Tested, 3)
	assert.Nil(t, s.Crossing)
}

func TestCapacitySecondsLeft(t *testing.T) {
	c := newCapacity(t, func(p *CapacityPlan) { p.MaxTime = maxTrial })
	assert.Equal(t, Left{Most: new(float64(maxTrial))}, c.Left(), "nothing else is known before the first span")
	result := func(s Span) Result { return served(s, grows(96, 100), grows(128, 50)) }
	search(t, c, result, 1)
	left := *c.Left().Seconds
	assert.GreaterOrEqual(t, left, 9*655., "the scan at least")
	rest := search(t, c, result, many)
	assert.InDelta(t, float64(len(rest))*655, left, .6*float64(len(rest))*655)
	assert.Zero(t, *c.Left().Seconds)

	c = newCapacity(t, func(p *CapacityPlan) { p.MaxTime = 1000 })
	search(t, c, result, 1)
	assert.LessOrEqual(t, *c.Left().Seconds, 345., "no more than there is")
}

// What is written and read goes on as if nothing had happened.
func TestCapacityResumes(t *testing.T) {
	result := func(s Span) Result { return served(s, grows(96, 100), grows(128, 50)) }
	whole := newCapacity(t, nil)
	want := search(t, whole, result, many)
	parts := newCapacity(t, nil)
	var got []Span
	for {
		data, err := json.Marshal(parts)
		require.NoError(t, err)
		parts = new(Capacity)
		require.NoError(t, json.Unmarshal(data, parts))
		one := search(t, parts, result, 1)
		if len(one) == 0 {
			break
		}
		got = append(got, one...)
	}
	assert.Equal(t, want, got)
	assert.Equal(t, whole.State(), parts.State())
}

// A spoiled span is repeated once, with its draws; spoiled again, its level gets no more
// in that mode.
func TestCapacitySpoiledSpans(t *testing.T) {
	c := newCapacity(t, nil)
	result := func(s Span) Result {
		if s.Mode == kv && s.Level == api.AtConversations(120) {
			return Result{Elapsed: 10, Spoiled: "12 % errors"}
		}
		return served(s, grows(96, 100), grows(160, 50))
	}
	spans := search(t, c, result, many)
	var spoiled []Span
	for _, s := range spans {
		if s.Mode == kv && s.Level == api.AtConversations(120) {
			spoiled = append(spoiled, s)
		}
	}
	require.Len(t, spoiled, 2)
	assert.Equal(t, 2, spoiled[1].Attempt)
	spoiled[1].Attempt = 1
	assert.Equal(t, spoiled[0], spoiled[1])
	s := c.State()
	assert.InDelta(t, 160, s.Modes[1].Level.Value, 4)
	assert.LessOrEqual(t, s.Modes[1].Interval[0].Value, 160.)
	assert.GreaterOrEqual(t, s.Modes[1].Interval[1].Value, 160.)
	assert.Contains(t, s.Modes[1].Tested, api.LevelTest{Level: api.AtConversations(120), Verdict: Open})
}

// A mode of which nothing could be measured has no capacity; the other has its own.
func TestCapacityOfASpoiledMode(t *testing.T) {
	c := newCapacity(t, nil)
	search(t, c, func(s Span) Result {
		if s.Mode == kv {
			return Result{Elapsed: 10, Spoiled: "the target is gone"}
		}
		return served(s, grows(96, 100), nil)
	}, many)
	assert.Equal(t, CapacityDecided, c.Over())
	s := c.State()
	assert.InDelta(t, 96, s.Modes[0].Level.Value, 4)
	assert.Nil(t, s.Modes[1].Level)
	assert.Nil(t, s.Modes[1].Interval)
	assert.Len(t, s.Modes[1].Tested, 5)
	assert.Nil(t, s.Crossing)
}

// A span is spoiled if one of its sections lacks a metric of the SLOs.
func TestCapacitySpanWithoutTPOT(t *testing.T) {
	c := newCapacity(t, nil)
	s, _ := c.Next()
	r := served(s, always(.3), always(.3))
	for i := range r.Turns {
		r.Turns[i].TPOT = 0
	}
	assert.Contains(t, c.Add(r), "tpot_p95")
	again, _ := c.Next()
	assert.Equal(t, 2, again.Attempt)
}

func TestCapacityRefusals(t *testing.T) {
	p := defaultCapacity(roundRobin, kv)
	p.MaxTime = p.Seconds - 1
	_, err := NewCapacity(p)
	assert.Equal(t, "span to 604800", refused(t, "max_time", err))
}
