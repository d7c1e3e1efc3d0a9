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

var (
	kv         = api.ModeState{Mode: api.ModeKV, Speculation: api.SpeculationOff}
	roundRobin = api.ModeState{Mode: api.ModeRoundRobin, Speculation: api.SpeculationOff}
)

// refused checks that an error names a field, and returns what that field allows.
func refused(t *testing.T, field string, err error) (allowed string) {
	t.Helper()
	var refused *api.FieldError
	require.ErrorAs(t, err, &refused, field)
	assert.Equal(t, field, refused.Field)
	return refused.Allowed
}

func newTrial(t *testing.T, change func(*Plan)) *Trial {
	t.Helper()
	p := DefaultPlan(roundRobin, kv, 4)
	if change != nil {
		change(&p)
	}
	trial, err := New(p)
	require.NoError(t, err)
	return trial
}

// recording is a span in which turns of 10 s follow on each other on four places,
// with TTFTs around a median.
func recording(rng *rand.Rand, median, seconds float64) Recording {
	r := Recording{CountedFrom: 50, Until: 50 + seconds}
	for place := range 4 {
		for at := float64(place); at < r.Until; at += 10 {
			r.Turns = append(r.Turns, Turn{
				Sent: at, FirstToken: at + median*math.Exp(.1*rng.NormFloat64()), Ended: at + 10,
				OutputTokens: 101, PromptTokens: 1000, CachedTokens: 900, HasCached: true,
			})
		}
	}
	for range int(r.Until) {
		r.Tokens = append(r.Tokens, 40)
	}
	return r
}

// drive runs a trial in which B's TTFT is a multiple of A's, to its end or for so many spans.
func drive(t *testing.T, trial *Trial, times float64, spans int) []Span {
	t.Helper()
	var all []Span
	for len(all) < spans {
		s, ok := trial.Next()
		if !ok {
			break
		}
		all = append(all, s)
		median := .4
		if s.Mode == trial.Plan.B && s.Mode != trial.Plan.A {
			median *= times
		}
		r := recording(rand.New(rand.NewPCG(s.Seed, uint64(s.Number))), median, s.Seconds)
		require.NoError(t, trial.Add(Result{Number: s.Number, Elapsed: r.Until + 5, Recording: r}))
	}
	return all
}

// The arms of a pair share their draws and no other pair has them; two pairs after each
// other are ABBA or BAAB; the first span is the pilot.
func TestOrder(t *testing.T) {
	firsts := map[Arm]int{}
	for seed := range uint64(40) {
		trial := newTrial(t, func(p *Plan) { p.Seed, p.Primary, p.Smallest = seed, Throughput, .001 })
		spans := drive(t, trial, 1, 9)
		require.Len(t, spans, 9)
		assert.Equal(t, ArmPilot, spans[0].Arm)
		assert.Zero(t, spans[0].WarmUp)
		assert.Equal(t, 4, spans[1].WarmUp)
		assert.Equal(t, 4, spans[0].Midway, "the pilot's, too")
		assert.Equal(t, 4, spans[1].Midway)
		seeds := map[uint64]bool{spans[0].Seed: true}
		for i := 1; i < 9; i += 4 {
			block := spans[i : i+4]
			assert.NotEqual(t, block[0].Arm, block[1].Arm)
			assert.Equal(t, block[1].Arm, block[2].Arm)
			assert.Equal(t, block[0].Arm, block[3].Arm)
			for j := 0; j < 4; j += 2 {
				assert.Equal(t, block[j].Seed, block[j+1].Seed)
				assert.False(t, seeds[block[j].Seed], "a seed comes again")
				seeds[block[j].Seed] = true
			}
			firsts[block[0].Arm]++
		}
	}
	assert.InDelta(t, 40, firsts[ArmA], 15, "either order comes about as often")
	assert.Equal(t, 80, firsts[ArmA]+firsts[ArmB])
}

func TestPilotRunsInTheModeThatFollows(t *testing.T) {
	for seed := range uint64(10) {
		spans := drive(t, newTrial(t, func(p *Plan) { p.Seed = seed }), .5, 2)
		assert.Equal(t, spans[1].Mode, spans[0].Mode)
	}
}

// A span lasts five median latencies, however short the plan has them.
func TestLengthOfSpans(t *testing.T) {
	trial := newTrial(t, func(p *Plan) { p.Seconds = 20 })
	s, _ := trial.Next()
	assert.InDelta(t, 20, s.Seconds, 0)
	assert.InDelta(t, 50, s.Least(10), 1e-9)
	short := recording(rand.New(rand.NewPCG(1, 1)), .4, 40)
	refused(t, "until", trial.Add(Result{Elapsed: 100, Recording: short}))
	assert.Empty(t, trial.Done, "what is refused changes nothing")
	require.NoError(t, trial.Add(Result{Elapsed: 100, Recording: recording(rand.New(rand.NewPCG(1, 1)), .4, 50)}))
	s, _ = trial.Next()
	assert.InDelta(t, 80, s.Seconds, 1e-9, "and is planned for eight")
}

func TestDecides(t *testing.T) {
	for name, test := range map[string]struct {
		times float64
		want  Verdict
	}{"less": {.7, BBetter}, "more": {1.4, ABetter}} {
		t.Run(name, func(t *testing.T) {
			trial := newTrial(t, nil)
			drive(t, trial, test.times, 100)
			s := trial.State()
			assert.Equal(t, test.want, s.Verdict)
			assert.InDelta(t, test.times-1, s.Primary.Difference, .1)
			assert.Less(t, s.Primary.Interval[0], test.times-1)
			assert.Greater(t, s.Primary.Interval[1], test.times-1)
			assert.Len(t, s.Others, 5)
			assert.Nil(t, s.Left, "it is over")
			assert.InDelta(t, s.Primary.B/s.Primary.A-1, s.Primary.Difference, 1e-9)
			_, more := trial.Next()
			assert.False(t, more)
			assert.Error(t, trial.Add(Result{Number: 3, Elapsed: 1, Recording: recording(rand.New(rand.NewPCG(1, 1)), .4, 60)}))
		})
	}
}

// Throughput is the same to the token in both arms: only the allowance for restarts is left of
// the interval, and the smallest difference of interest is excluded.
func TestExcludesTheSmallestDifference(t *testing.T) {
	trial := newTrial(t, func(p *Plan) { p.Primary = Throughput })
	drive(t, trial, .7, 100)
	s := trial.State()
	assert.Equal(t, NoDifference, s.Verdict)
	assert.InDelta(t, 0, s.Primary.Difference, 1e-9)
	assert.Greater(t, s.Primary.Interval[1], .01)
	assert.Less(t, s.Primary.Interval[1], .05)
	for _, o := range s.Others {
		if o.Metric == TTFT50 {
			assert.Equal(t, BBetter, o.Outcome, "a trade-off is named beside the primary metric")
		}
	}
}

// It stops before a pair that would take longer than there is, and not within a pair.
func TestTimeOver(t *testing.T) {
	trial := newTrial(t, func(p *Plan) { p.MaxTime, p.Primary, p.Smallest = 800, Throughput, .001 })
	spans := drive(t, trial, 1, 100)
	s := trial.State()
	assert.Equal(t, TimeOver, s.Verdict)
	assert.Len(t, spans, 5, "a pilot of 115 s and spans of 135 s, of which two go together")
	assert.Equal(t, 2, s.Pairs)
	assert.InDelta(t, 115+4*135, s.Used, 1e-9)
}

func TestTimeLeft(t *testing.T) {
	trial := newTrial(t, func(p *Plan) { p.B = p.A })
	assert.Nil(t, trial.State().Left, "nothing is known before the pilot")
	drive(t, trial, 1, 1)
	s := trial.State()
	require.NotNil(t, s.Left)
	assert.InDelta(t, .1, s.Left.Difference, 1e-9)
	assert.GreaterOrEqual(t, s.Left.Seconds, 230., "a pair at least")
	drive(t, trial, 1, 2)
	after := trial.State()
	require.NotNil(t, after.Left)
	assert.InDelta(t, after.Primary.Difference, after.Left.Difference, 1e-9)
}

// What is written and read goes on as if nothing had happened.
func TestResumes(t *testing.T) {
	whole := newTrial(t, nil)
	want := drive(t, whole, .93, 100)
	parts := newTrial(t, nil)
	var got []Span
	for {
		data, err := json.Marshal(parts)
		require.NoError(t, err)
		parts = new(Trial)
		require.NoError(t, json.Unmarshal(data, parts))
		one := drive(t, parts, .93, 1)
		if len(one) == 0 {
			break
		}
		got = append(got, one...)
	}
	assert.Equal(t, want, got)
	assert.Equal(t, whole.State(), parts.State())
	assert.Greater(t, len(want), 4, "it must take some pairs to show anything")
}

// The load generator's own errors widen the interval to the side on which an arm's true value may lie, of TPOT to
// both; a verdict that they could change is none.
func TestErrorsWidenTheInterval(t *testing.T) {
	with := func(e float64, arm Arm) *Trial {
		trial := newTrial(t, nil)
		drive(t, trial, .7, 3)
		for i := range trial.Done {
			d := &trial.Done[i]
			for _, m := range []Metric{TTFT95, TPOT95} {
				if s := d.Metrics[m]; d.Arm == arm {
					s.Error = e
					d.Metrics[m] = s
				}
			}
		}
		return trial
	}
	interval := func(trial *Trial, m Metric) [2]float64 { return trial.difference(m, trial.pairs(), alpha).Interval }
	for _, m := range []Metric{TTFT95, TPOT95} {
		before := interval(with(0, ArmA), m)
		ofA, ofB := interval(with(.1, ArmA), m), interval(with(.1, ArmB), m)
		assert.InDelta(t, math.Log1p(before[1])+.1, math.Log1p(ofA[1]), 1e-9, m)
		assert.InDelta(t, math.Log1p(before[0])-.1, math.Log1p(ofB[0]), 1e-9, m)
		assert.Equal(t, m == TTFT95, ofA[0] == before[0], m)
		assert.Equal(t, m == TTFT95, ofB[1] == before[1], m)
	}
	assert.Equal(t, BBetter, with(0, ArmA).State().Verdict)
	assert.Equal(t, BBetter, with(.5, ArmB).State().Verdict, "B may only be better still")
	assert.Equal(t, Running, with(.5, ArmA).State().Verdict)
}

// What a result says of its errors is kept with the metric, on the scale of differences.
func TestErrorOfASpan(t *testing.T) {
	trial := newTrial(t, nil)
	r := recording(rand.New(rand.NewPCG(1, 1)), .4, 60)
	require.NoError(t, trial.Add(Result{Elapsed: 100, Recording: r, Errors: map[Metric]float64{TTFT50: .04, TTFT95: 9}}))
	m := trial.Done[0].Metrics
	assert.InDelta(t, -math.Log1p(-.04/math.Exp(m[TTFT50].Whole)), m[TTFT50].Error, 1e-9)
	assert.InDelta(t, math.Ln2, m[TTFT95].Error, 1e-9, "half of it at most")
	assert.Zero(t, m[TPOT95].Error)
}

// A spoiled span is repeated once, with its draws; spoiled again, its pair is left out.
func TestSpoiledSpans(t *testing.T) {
	trial := newTrial(t, nil)
	drive(t, trial, .93, 1)
	first, _ := trial.Next()
	require.NoError(t, trial.Add(Result{Number: 1, Elapsed: 10, Spoiled: "12 % errors"}))
	assert.Equal(t, "12 % errors", trial.Spoiled())
	again, _ := trial.Next()
	assert.Equal(t, 2, again.Attempt)
	again.Attempt = 1
	assert.Equal(t, first, again)
	drive(t, trial, .93, 2)
	assert.Equal(t, 1, trial.State().Pairs)
	assert.Empty(t, trial.Spoiled())

	drive(t, trial, .93, 1) // the first of the second pair
	for range 2 {
		s, _ := trial.Next()
		require.NoError(t, trial.Add(Result{Number: s.Number, Elapsed: 10, Spoiled: "client is the bottleneck"}))
	}
	s, _ := trial.Next()
	assert.Equal(t, 5, s.Number, "the third pair")
	state := trial.State()
	assert.Equal(t, 1, state.Pairs)
	assert.Equal(t, 3, state.Spoiled)
}

// A span without a first token in some section says nothing of TTFT.
func TestSpanWithoutPrimaryMetricIsSpoiled(t *testing.T) {
	trial := newTrial(t, nil)
	r := recording(rand.New(rand.NewPCG(1, 1)), .4, 60)
	for i := range r.Turns {
		if r.Turns[i].Sent > 70 && r.Turns[i].Sent < 95 {
			r.Turns[i].Failed = true
		}
	}
	require.NoError(t, trial.Add(Result{Elapsed: 100, Recording: r}))
	assert.Equal(t, 1, trial.State().Spoiled)
	s, _ := trial.Next()
	assert.Equal(t, 0, s.Number)
}

func TestRefusals(t *testing.T) {
	for field, change := range map[string]func(*Plan){
		"a.mode":      func(p *Plan) { p.A.Mode = "random" },
		"b.mode":      func(p *Plan) { p.B.Mode = api.ModeUnknown },
		"concurrency": func(p *Plan) { p.Concurrency = 0 },
		"primary":     func(p *Plan) { p.Primary = "ttft" },
		"smallest":    func(p *Plan) { p.Smallest = math.NaN() },
		"seconds":     func(p *Plan) { p.Seconds = 0 },
		"max_time":    func(p *Plan) { p.MaxTime = math.Inf(1) },
		"slo.ttft":    func(p *Plan) { p.SLO.TTFT = 0 },
		"slo.tpot":    func(p *Plan) { p.SLO.TPOT = -1 },
	} {
		p := DefaultPlan(roundRobin, kv, 60)
		change(&p)
		_, err := New(p)
		refused(t, field, err)
	}
	for field, change := range map[string]func(*Result){
		"number":       func(r *Result) { r.Number = 1 },
		"elapsed":      func(r *Result) { r.Elapsed = math.NaN() },
		"counted_from": func(r *Result) { r.CountedFrom = math.NaN() },
		"until":        func(r *Result) { r.Until = r.CountedFrom },
		"tokens":       func(r *Result) { r.Tokens = r.Tokens[1:] },
	} {
		trial := newTrial(t, nil)
		r := Result{Elapsed: 100, Recording: recording(rand.New(rand.NewPCG(1, 1)), .4, 60)}
		change(&r)
		refused(t, field, trial.Add(r))
		assert.Empty(t, trial.Done)
	}
}

// The error of all looks together is α.
func TestLooksSpendAlpha(t *testing.T) {
	spent := 0.
	for k := 1.; k < 1e6; k++ {
		spent += alpha / (k * (k + 1))
	}
	assert.InDelta(t, alpha, spent, 1e-6)
	assert.InDelta(t, 1, half(1, 1e9, 1, .6346)/1, 1e-3, "half of .6346 is what lies outside of one standard deviation")
	assert.InDelta(t, 3.182, student(.05, 3), 1e-3)
}

// Pairs that scatter far beyond their sections are judged by their scatter.
func TestPairsOverruleSections(t *testing.T) {
	section := func(whole float64) Sectioned {
		return Sectioned{Whole: whole, Sections: []float64{whole - .02, whole + .02, whole - .02, whole + .02, whole}}
	}
	of := func(b ...float64) look {
		var all []pair
		for _, v := range b {
			all = append(all, pair{&Done{Metrics: map[Metric]Sectioned{TTFT95: section(0)}}, &Done{Metrics: map[Metric]Sectioned{TTFT95: section(v)}}})
		}
		l, ok := lookAt(TTFT95, all)
		require.True(t, ok)
		return l
	}
	inside := 2 * (4 * .02 * .02 / 4 / 5)
	one := of(.1)
	assert.InDelta(t, inside+2*restart*restart, one.variance, 1e-12)
	assert.InDelta(t, 8, one.df, 1e-9)
	assert.InDelta(t, .1, one.b-one.a, 1e-12)
	calm := of(.1, .11, .105)
	assert.InDelta(t, one.variance, calm.variance, 1e-12)
	assert.InDelta(t, 24, calm.df, 1e-9)
	assert.Equal(t, BasisSections, calm.basis)
	wild := of(.1, .3, -.1)
	assert.InDelta(t, .04, wild.variance, 1e-12)
	assert.InDelta(t, 2, wild.df, 1e-9)
	assert.Equal(t, BasisPairs, wild.basis)
}

// Sections that follow their neighbours inflate the variance; those that make up for
// each other do not shrink it.
func TestInflation(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	series := func(r float64) (all []Sectioned) {
		for range 60 {
			s, v := Sectioned{}, rng.NormFloat64()/math.Sqrt(1-r*r)
			for range 12 {
				s.Sections = append(s.Sections, v)
				v = r*v + rng.NormFloat64()
			}
			all = append(all, s)
		}
		return all
	}
	assert.InDelta(t, .4, correlation(series(.4)), .08)
	assert.InDelta(t, (1+.4)/(1-.4), inflation(series(.4)), .6)
	assert.InDelta(t, 1, inflation(series(-.4)), 0)
	assert.InDelta(t, 1, inflation([]Sectioned{{Sections: []float64{1, 1, 1, 1, 1}}}), 0)
}
