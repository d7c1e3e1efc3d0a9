package proof

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/decide"
	"kvbooth/sidecar/loadgen/workload"
)

var (
	kv         = api.ModeState{Mode: api.ModeKV, Speculation: api.SpeculationOff}
	roundRobin = api.ModeState{Mode: api.ModeRoundRobin, Speculation: api.SpeculationOff}

	leastLoaded = api.ModeState{Mode: api.ModeLeastLoaded, Speculation: api.SpeculationOff}
)

// refused checks that an error names a field, and returns what that field allows.
func refused(t *testing.T, field string, err error) (allowed string) {
	t.Helper()
	var refused *api.FieldError
	require.ErrorAs(t, err, &refused, field)
	assert.Equal(t, field, refused.Field)
	return refused.Allowed
}

// defaultPlan compares the mean TTFT for an hour at most, with 5 % as the smallest difference of interest.
func defaultPlan(a, b api.ModeState, concurrency int) Plan {
	return Plan{
		A: a, B: b, Level: api.AtConversations(concurrency), Primary: MeanTTFT, Smallest: .05, Seconds: 60, MaxTime: 3600,
		SLO: api.SLO{TTFT: .6, TPOT: .06}, Seed: 1,
	}
}

func newTrial(t *testing.T, change func(*Plan)) *Trial {
	t.Helper()
	p := defaultPlan(roundRobin, kv, 4)
	if change != nil {
		change(&p)
	}
	trial, err := New(p)
	require.NoError(t, err)
	return trial
}

func seconds(v float64) time.Duration { return time.Duration(v * float64(time.Second)) }

// fail lets a turn end in an error some seconds after it was sent, without a token.
func fail(u *workload.Outcome, after float64) {
	u.Status, u.Ended, u.TTFT = api.TurnError, u.Sent+seconds(after), math.NaN()
}

// recording is a span in which turns of 10 s follow on each other on four places,
// with TTFTs around a median.
func recording(rng *rand.Rand, median, counted float64) Recording {
	r := Recording{CountedFrom: 50, Until: 50 + counted}
	for place := range 4 {
		for at := float64(place); at < r.Until; at += 10 {
			ttft := median * math.Exp(.1*rng.NormFloat64())
			r.Turns = append(r.Turns, workload.Outcome{
				Status: api.TurnOK, Sent: seconds(at), TTFT: ttft, Latency: 10, TPOT: (10 - ttft) / 100,
				OutputTokens: 101, Usage: true, FinishReason: "length", PromptTokens: 1000, CachedTokens: 900, HasCached: true,
			})
		}
	}
	for range int(r.Until) {
		r.Tokens = append(r.Tokens, 40)
	}
	return r
}

// ran is what a trial of which B's TTFT is a multiple of A's measures when it runs a span. Runs scatter by 1 %.
func (t *Trial) ran(s Span, times float64) Result {
	rng := rand.New(rand.NewPCG(s.Seed, uint64(s.Number)))
	median := .4 * math.Exp(.01*rng.NormFloat64())
	if s.Arm == ArmB {
		median *= times
	}
	r := recording(rng, median, s.Seconds)
	return Result{Elapsed: r.Until + 5, Recording: r}
}

// drive runs a trial to its end or for so many spans, which change can change before they are added.
func drive(t *testing.T, trial *Trial, times float64, spans int, change ...func(Span, *Result)) []Span {
	t.Helper()
	var all []Span
	for len(all) < spans {
		s, ok := trial.Next()
		if !ok {
			break
		}
		at := []Span{s}
		if beside, ok := trial.Beside(); ok {
			at = append(at, beside)
		}
		for _, s := range at {
			r := trial.ran(s, times)
			for _, c := range change {
				c(s, &r)
			}
			trial.Add(r)
		}
		all = append(all, at...)
	}
	return all
}

// scattered lets the throughput of spans scatter.
func scattered(s Span, r *Result) { r.Tokens[int(r.CountedFrom)] += float64(s.Number * 1237 % 100) }

// A block is ABBA or BAAB, with its middle as one span of double length; all of it has the same conversations. The
// first span of the trial follows one of its own arm that does not count.
func TestBlocksInTurns(t *testing.T) {
	first := map[Arm]int{}
	for seed := range uint64(8) {
		trial := newTrial(t, func(p *Plan) { p.Seed, p.Primary, p.Smallest, p.MaxTime = seed, Throughput, .001, 2500 })
		spans := drive(t, trial, 1, 12, scattered)
		seeds := map[uint64]bool{}
		for i := 0; i < 12; i += 3 {
			b := spans[i : i+3]
			assert.Equal(t, []Arm{b[0].Arm, b[0].Arm}, []Arm{b[2].Arm, b[0].Arm})
			assert.NotEqual(t, b[0].Arm, b[1].Arm)
			assert.Equal(t, []uint64{b[0].Seed, b[0].Seed}, []uint64{b[1].Seed, b[2].Seed})
			assert.InDelta(t, 2*b[0].Seconds, b[1].Seconds, 1e-9)
			seeds[b[0].Seed] = true
			for place, s := range b {
				assert.Equal(t, []int{i + place, 4, 4}, []int{s.Number, s.WarmUp, s.Midway})
			}
		}
		assert.Len(t, seeds, 4, "each block has conversations of its own")
		assert.Equal(t, []float64{1, 0, 0, 1}, []float64{spans[0].RunIn, spans[1].RunIn, spans[2].RunIn, spans[3].RunIn})
		first[spans[0].Arm]++
	}
	assert.Len(t, first, 2, "the seed draws the order")
}

// Together, each arm runs once on either target within a block, unless these keep their modes.
func TestBlocksTogether(t *testing.T) {
	for _, keeps := range []bool{false, true} {
		trial := newTrial(t, func(p *Plan) { p.Together, p.KeepsLanes, p.MaxTime = true, keeps, 5000 })
		spans := drive(t, trial, .5, 8)
		require.Len(t, spans, 8)
		for i := 0; i < 8; i += 4 {
			b := spans[i : i+4]
			assert.Equal(t, []Arm{b[1].Arm, b[0].Arm}, []Arm{b[2].Arm, b[3].Arm}, "changed over")
			assert.NotEqual(t, b[0].Arm, b[1].Arm)
		}
		assert.InDelta(t, map[bool]float64{false: -.5, true: 0}[keeps], trial.Blocks[0].Spans[0].At, 0)
		assert.Equal(t, keeps, trial.State().KeepsLanes)
	}
}

// A span counts for three median latencies, as far as they are known before, however short the plan has them.
func TestLengthOfSpans(t *testing.T) {
	trial := newTrial(t, func(p *Plan) { p.Seconds = 20 })
	s, _ := trial.Next()
	assert.InDelta(t, 20, s.Seconds, 0)
	assert.InDelta(t, 30, s.Least(10), 1e-9)
	drive(t, trial, 1, 1)
	s, _ = trial.Next()
	assert.InDelta(t, 60, s.Seconds, 1e-9, "twice three of 10 s")
}

func TestDecides(t *testing.T) {
	for name, test := range map[string]struct {
		times   float64
		primary Metric
		want    Verdict
	}{
		"less": {.7, MeanTTFT, BBetter}, "more": {1.4, TTFT95, ABetter}, "the same": {.7, Throughput, NoDifference},
	} {
		t.Run(name, func(t *testing.T) {
			trial := newTrial(t, func(p *Plan) { p.Primary = test.primary })
			drive(t, trial, test.times, 3)
			assert.Equal(t, string(Running), trial.State().Verdict)
			assert.Nil(t, trial.State().Primary, "no look before two blocks")
			if test.primary == MeanTTFT {
				assert.InDelta(t, .02, trial.State().Detectable.Difference, .02, "by the turns of the first block")
			}
			left := trial.Left()
			assert.Nil(t, left.Seconds, "no estimate before a look")
			assert.Positive(t, *left.Least)
			assert.Less(t, *left.Least, *left.Most)
			drive(t, trial, test.times, 100)
			s := trial.State()
			require.Equal(t, string(test.want), s.Verdict)
			truth := test.times - 1
			if test.primary == Throughput {
				truth = 0
			}
			assert.InDelta(t, truth, s.Primary.Difference, .1)
			assert.InDelta(t, truth, s.Final.Difference, .1)
			assert.LessOrEqual(t, s.Final.Interval[0], s.Final.Interval[1])
			assert.Len(t, s.Others, len(Metrics)-1)
			assert.Len(t, s.Spans, 3*s.Blocks)
			for _, d := range append(s.Others, *s.Primary) {
				m := Metric(d.Metric)
				between := d.B - d.A
				if !m.Share() {
					between = d.B/d.A - 1
				}
				assert.InDelta(t, d.Difference, between, 1e-9, "%s: the values have the difference beside them", m)
				notWorse := len(d.NotWorse) == 2
				assert.Equal(t, notWorse, d.Outcome == string(NoDifference))
				if notWorse && !m.Share() {
					assert.Greater(t, d.Interval[0], 1/1.05-1, "%s: the interval shows what is concluded", m)
					assert.Less(t, d.Interval[1], .05, m)
				}
			}
			assert.Equal(t, len(s.Looks)+1, s.Blocks)
			assert.Equal(t, s.Primary.Interval, s.Looks[len(s.Looks)-1].Interval)
			assert.Positive(t, s.Variances[string(test.primary)].DegreesOfFreedom)
			for _, o := range s.Others {
				switch Metric(o.Metric) {
				case TTFT50:
					assert.Equal(t, map[bool]string{true: string(BBetter), false: string(ABetter)}[test.times < 1], o.Outcome)
				case Throughput:
					assert.Equal(t, []api.TrialArm{"a", "b"}, o.NotWorse)
				}
			}
			_, more := trial.Next()
			assert.False(t, more)
			assert.Zero(t, trial.Left())
		})
	}
}

// From turn 2 on, first turns do not count; where there are no others, nothing is decided.
func TestDecidesByLaterTurns(t *testing.T) {
	for turns, want := range map[int]Verdict{3: BBetter, 1: TimeOver} {
		trial := newTrial(t, func(p *Plan) { p.Primary = LaterTTFT95 })
		drive(t, trial, .7, 100, func(s Span, r *Result) {
			for i := range r.Turns {
				u := &r.Turns[i]
				u.Number = 1 + i%turns
				if u.Number == 1 && s.Arm == ArmB {
					u.TTFT += 2
				}
			}
		})
		s := trial.State()
		require.Equal(t, string(want), s.Verdict)
		if want == BBetter {
			assert.InDelta(t, -.3, s.Primary.Difference, .1)
			assert.Len(t, s.Others, len(Metrics))
		}
	}
	other := newTrial(t, nil)
	drive(t, other, .7, 100)
	assert.Zero(t, other.Variances()[string(LaterTTFT95)].Value, "of a trial that another metric decided")
}

// Where two blocks do not fit, it ends after the first; else before a block that would take longer than there is.
func TestTimeOver(t *testing.T) {
	for limit, blocks := range map[float64]int{600: 1, 1400: 3} { // a block takes 3 × 55 + 4 × 60 s
		trial := newTrial(t, func(p *Plan) { p.MaxTime, p.Primary, p.Smallest = limit, Throughput, .001 })
		assert.Len(t, drive(t, trial, 1, 100, scattered), 3*blocks)
		s := trial.State()
		assert.Equal(t, string(TimeOver), s.Verdict)
		assert.Equal(t, blocks, s.Blocks)
		assert.InDelta(t, 405, s.BlockSeconds, 1e-9)
	}
}

// What is written and read goes on as if nothing had happened.
func TestResumes(t *testing.T) {
	for _, together := range []bool{false, true} {
		change := func(p *Plan) { p.Together = together }
		whole := newTrial(t, change)
		want := drive(t, whole, .97, 100)
		parts := newTrial(t, change)
		var got []Span
		for {
			data, err := json.Marshal(parts)
			require.NoError(t, err)
			parts = new(Trial)
			require.NoError(t, json.Unmarshal(data, parts))
			one := drive(t, parts, .97, 1)
			if len(one) == 0 {
				break
			}
			got = append(got, one...)
		}
		assert.Equal(t, want, got)
		assert.Equal(t, whole.State(), parts.State())
	}
}

// Of four arms B is the best, and A and C are alike. A trial for the best ends when B is better than the others. One
// for the whole order goes on with the arms whose pairs are undecided. Either resumes from its JSON.
func TestSeveralArms(t *testing.T) {
	slower := func(s Span, r *Result) {
		by := map[Arm]float64{"c": 1.001, "d": 1.2}[s.Arm]
		for i := range r.Turns {
			if u := &r.Turns[i]; by > 0 {
				u.TTFT *= by
			}
		}
	}
	other := api.ModeState{Arm: "mine", Mode: api.ModeUnknown, Speculation: api.SpeculationNotRecorded}
	for question, want := range map[api.TrialQuestion]Verdict{"": Best, api.QuestionBest: Best, api.QuestionOrder: Order} {
		change := func(p *Plan) {
			p.More, p.Question, p.MaxTime = []api.ModeState{leastLoaded, other}, question, 8000
		}
		trial := newTrial(t, change)
		before := trial.State().Ranking
		assert.Equal(t, api.TrialPlace{
			Arm: "d", Mode: other, Place: [2]int{1, 4}, MayBeBest: true,
		}, before.Places[3], "before the first look each may be the best")
		assert.Empty(t, before.Pairs)
		whole := newTrial(t, change)
		all := drive(t, whole, .7, 100, slower)
		var got []Span
		for one := []Span{{}}; len(one) > 0; got = append(got, one...) {
			data, err := json.Marshal(trial)
			require.NoError(t, err)
			trial = new(Trial)
			require.NoError(t, json.Unmarshal(data, trial))
			one = drive(t, trial, .7, 1, slower)
		}
		assert.Equal(t, all, got)
		for i, s := range got {
			assert.Equal(t, i, s.Number)
		}
		s := trial.State()
		assert.Equal(t, whole.State(), s)
		assert.Equal(t, string(want), s.Verdict)
		assert.Nil(t, s.Failures)
		assert.Nil(t, s.Final)
		r := s.Ranking
		require.Len(t, r.Places, 4)
		require.Len(t, r.Pairs, 6)
		first, last := r.Places[0], r.Places[3]
		assert.Equal(t, []any{api.TrialArm("b"), kv, [2]int{1, 1}, true},
			[]any{first.Arm, first.Mode, first.Place, first.MayBeBest})
		assert.Equal(t, []any{api.TrialArm("d"), other, false}, []any{last.Arm, last.Mode, last.MayBeBest})
		assert.InDelta(t, .28, *first.Mean, .02)
		assert.InDelta(t, .48, *last.Mean, .03)
		assert.Equal(t, s.Primary, &r.Pairs[0].Primary, "the best against the runner-up")
		assert.Equal(t, string(BBetter), s.Primary.Outcome)
		assert.Len(t, s.Others, len(Metrics)-1)
		assert.NotNil(t, last.LeftAfter)
		if want != Order {
			assert.Nil(t, first.LeftAfter)
			continue
		}
		assert.Equal(t, [2]int{4, 4}, last.Place)
		assert.Equal(t, [2]int{2, 3}, r.Places[1].Place)
		require.Len(t, r.Groups, 1)
		assert.ElementsMatch(t, []api.TrialArm{"a", "c"}, r.Groups[0].Arms)
		assert.Less(t, *first.LeftAfter, s.Blocks, "the pairs of the best are decided before that of A and C")
		assert.Less(t, len(trial.Blocks[s.Blocks-1].Spans), 4)
	}
	assert.Equal(t, [][]int{{0, 1}, {1, 2, 3}}, groups(5, func(i, j int) bool {
		return max(i, j) < 4 && (min(i, j) > 0 || i+j == 1)
	}), "the largest sets, which may overlap")
}

// An arm that fails its slowest turns does not look fast, and one that is faster and fails more is no better.
func TestFailuresAreObservations(t *testing.T) {
	fails := func(above float64) func(Span, *Result) {
		return func(s Span, r *Result) {
			for i := range r.Turns {
				if u := &r.Turns[i]; s.Arm == ArmB && u.TTFT > above {
					fail(u, u.TTFT)
				}
			}
		}
	}
	trial := newTrial(t, nil)
	drive(t, trial, 1, 3, fails(.45))
	b := trial.Blocks[0].Spans
	of := func(arm int, m Metric) (all []float64) {
		for _, s := range b {
			if s.Arm == arm {
				all = append(all, s.Values[string(m)])
			}
		}
		return all
	}
	f := trial.State().Failures
	assert.Zero(t, f.A.Failed)
	assert.InDelta(t, .1, float64(f.B.Failed)/float64(f.B.Ended), .08)
	for _, m := range []Metric{MeanTTFT, TTFT95, TPOT95} {
		assert.GreaterOrEqual(t, of(1, m)[0], .98*of(0, m)[0], m)
	}
	drive(t, trial, 1, 100, fails(.45))
	assert.NotEqual(t, string(BBetter), trial.State().Verdict)

	trial = newTrial(t, nil)
	drive(t, trial, .5, 100, fails(.22))
	assert.Equal(t, string(TradeOff), trial.State().Verdict)
	assert.Equal(t, api.TrialArmB, trial.State().Failures.More)
	for _, d := range append(trial.State().Others, *trial.State().Primary) {
		assert.NotEqual(t, string(BBetter), d.Outcome, "an arm that fails more is better in nothing: %s", d.Metric)
	}
	assert.Equal(t, string(TradeOff), trial.State().Primary.Outcome)

	refuses := func(every int, arms ...Arm) func(Span, *Result) {
		return func(s Span, r *Result) {
			for i := range r.Turns {
				if u := &r.Turns[i]; slices.Contains(arms, s.Arm) && i%every == 0 {
					fail(u, .01)
				}
			}
		}
	}
	trial = newTrial(t, func(p *Plan) { p.Primary = Throughput })
	drive(t, trial, 1, 100, refuses(10, ArmB))
	assert.Equal(t, string(BFailsMore), trial.State().Verdict)
	assert.Equal(t, string(NoDifference), trial.State().Primary.Outcome)
	f = trial.State().Failures
	assert.InDelta(t, .1, f.Difference, .05)
	require.NotNil(t, f.Interval)
	assert.Positive(t, f.Interval[0])

	for _, alike := range []bool{false, true} {
		trial = newTrial(t, nil)
		arms := []Arm{ArmA, ArmB}
		if !alike {
			arms = arms[1:]
		}
		drive(t, trial, .9, 6, refuses(2, arms...))
		s := trial.State()
		assert.Equal(t, alike, s.Succeeded)
		i := slices.IndexFunc(trial.Blocks[1].Spans, func(s decide.Span) bool { return s.Arm == 1 })
		b := trial.Blocks[1].Spans[i].Values[string(MeanTTFT)]
		assert.Equal(t, alike, s.Spans[3+i].Value < b, "%v of %v with refused turns", s.Spans[3+i].Value, b)
	}

	r := Recording{CountedFrom: 1, Until: 9, Turns: []workload.Outcome{
		{Sent: 2 * time.Second, TTFT: math.NaN()}, {Sent: 3 * time.Second, TTFT: 1},
	}}
	r.GiveUp()
	whole, _ := r.cut(1, api.SLO{})
	assert.InDelta(t, 7-1e-9, whole.waits[0], 1e-9, "a target that answers nothing fails what waits")
	assert.Equal(t, []float64{1}, whole.times[api.TimeTTFT])
}

// An arm that ends its slowest turns early looks fast. Its answers are shorter, which the trial names, and it is not
// called better. The same answers, and ones of unknown length, decide nothing.
func TestAnswersAreGuards(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*workload.Outcome)
		want   Verdict
		unlike []string
	}{
		"cut": {func(u *workload.Outcome) {
			if u.TTFT > .3 {
				u.OutputTokens, u.Latency, u.FinishReason = 1, u.TTFT, "stop"
				u.TTFT = .2
			}
		}, TradeOff, []string{"output_tokens_per_turn", "finish_stop", "finish_length"}},
		"other reason": {
			func(u *workload.Outcome) { u.FinishReason = "content_filter" }, TradeOff, []string{"finish_length"},
		},
		"longer":  {func(u *workload.Outcome) { u.OutputTokens = 120 }, TradeOff, []string{"output_tokens_per_turn"}},
		"alike":   {func(u *workload.Outcome) { u.OutputTokens = 103 }, BBetter, nil},
		"unknown": {func(u *workload.Outcome) { u.OutputTokens, u.Usage, u.FinishReason = 1, false, "" }, BBetter, nil},
	} {
		trial := newTrial(t, nil)
		drive(t, trial, .75, 100, func(s Span, r *Result) {
			for i := range r.Turns {
				if s.Arm == ArmB {
					c.change(&r.Turns[i])
				}
			}
		})
		s := trial.State()
		assert.Equal(t, string(c.want), s.Verdict, name)
		var unlike []string
		for _, g := range s.Guards {
			if g.Outcome == string(Unlike) {
				unlike = append(unlike, g.Metric)
			}
		}
		assert.Equal(t, c.unlike, unlike, name)
		for _, d := range append(s.Others, *s.Primary) {
			if c.want == TradeOff {
				assert.NotContains(t, []string{string(ABetter), string(BBetter)}, d.Outcome, "%s: %s", name, d.Metric)
			}
		}
	}
}

// Late time stamps widen the interval to the side on which an arm's true value may lie, and do not spoil a span.
func TestErrorsWidenTheInterval(t *testing.T) {
	late := func(arm Arm, e float64) *Trial {
		trial := newTrial(t, func(p *Plan) { p.Smallest = .001 })
		drive(t, trial, .9, 6, func(s Span, r *Result) {
			if s.Arm == arm {
				r.Errors = map[Metric]float64{MeanTTFT: e}
			}
		})
		return trial
	}
	none, ofA, ofB := late(ArmA, 0).State().Primary, late(ArmA, .04).State().Primary, late(ArmB, 9).State().Primary
	assert.InDelta(t, math.Log1p(none.Interval[1])-math.Log1p(-.1), math.Log1p(ofA.Interval[1]), .01)
	assert.InDelta(t, none.Interval[0], ofA.Interval[0], 1e-12)
	assert.Less(t, ofB.Interval[0], -.9, "all of it may be the load generator's")
	assert.InDelta(t, none.Interval[1], ofB.Interval[1], 1e-12)
}

// A spoiled span is repeated until it counts, with the one beside it; a stall of the target spoils none.
func TestSpoiledSpans(t *testing.T) {
	for _, together := range []bool{false, true} {
		trial := newTrial(t, func(p *Plan) { p.Together = together })
		spoil := 3
		spans := drive(t, trial, .9, 100, func(s Span, r *Result) {
			if s.Number == 1 && spoil > 0 {
				r.Spoiled = "the settings changed"
				spoil--
			}
			for i := range r.Turns { // no first token for 20 s
				if u := &r.Turns[i]; u.FirstToken() > 60 && u.FirstToken() < 80 {
					u.TTFT = 80 - u.Sent.Seconds()
				}
			}
		})
		attempts := 0
		for _, s := range spans {
			if s.Number == 1 {
				attempts = max(attempts, s.Attempt)
				assert.Equal(t, spans[1].Seed, s.Seed)
			}
		}
		assert.Equal(t, 4, attempts)
		assert.NotEqual(t, string(Running), trial.State().Verdict)
		assert.Greater(t, trial.Blocks[0].Seconds, trial.Blocks[1].Seconds, "the time is used")
	}
}

// With what earlier trials say of the variance, the first look comes after the first block, unless the spans contradict
// it.
func TestPriorBringsAnEarlyLook(t *testing.T) {
	for _, variance := range []float64{1e-3, 1e-9} {
		trial := newTrial(t, func(p *Plan) {
			p.Priors = map[string]decide.Variance{string(MeanTTFT): {Value: variance, DF: 30}}
		})
		trial.Shown.Prior = &api.TrialPrior{}
		drive(t, trial, .7, 100)
		s := trial.State()
		require.Equal(t, string(BBetter), s.Verdict)
		assert.Equal(t, 1, s.FirstLook)
		assert.Equal(t, 1, s.Looks[0].Blocks)
		assert.Equal(t, variance < 1e-6, s.Prior.Contradicted)
		assert.Equal(t, variance > 1e-6, s.Blocks == 1)
	}
}

func TestRefusals(t *testing.T) {
	p := defaultPlan(roundRobin, kv, 60)
	p.MaxTime = 500
	_, err := New(p)
	assert.Contains(t, refused(t, "max_time", err), "600 to 604800: a trial decides after block 2 of all arms",
		"ten spans of a minute")
	p.MaxTime, p.Latency = 899, 30
	_, err = New(p)
	assert.Contains(t, refused(t, "max_time", err), "900 to 604800: a trial decides after block 2 of all arms at the "+
		"earliest, and 1 fit; a span counts for 90 s", "ten spans of three median latencies that were measured before")
	p.Latency = 0
	p.MaxTime, p.Before, p.More = 779, 70, []api.ModeState{leastLoaded}
	_, err = New(p)
	assert.Contains(t, refused(t, "max_time", err), "780 to 604800", "six spans of a minute, each after 70 s")
	for field, change := range map[string]func(*Result){
		"counted_from": func(r *Result) { r.CountedFrom = math.NaN() },
		"until":        func(r *Result) { r.Until = r.CountedFrom },
		"tokens":       func(r *Result) { r.Tokens = r.Tokens[1:] },
	} {
		trial := newTrial(t, nil)
		r := Result{Elapsed: 100, Recording: recording(rand.New(rand.NewPCG(1, 1)), .4, 60)}
		change(&r)
		assert.Contains(t, trial.Add(r), field)
		assert.Empty(t, trial.Runs, "the span is repeated")
	}
}

// An interval that reaches beyond a factor of ten on both sides says nothing. One that does so on one side bounds the
// other.
func TestShownIntervals(t *testing.T) {
	relative := decide.Metric{}
	assert.Nil(t, shown(relative, [2]float64{-9, 9}))
	assert.InDeltaSlice(t, []float64{-.999, 1}, shown(relative, [2]float64{math.Log(.001), math.Log(2)})[:], 1e-9)
	assert.InDeltaSlice(t, []float64{-.9, 9}, shown(relative, [2]float64{math.Log(.1), math.Log(10)})[:], 1e-9)
}

// An arm that is retired leaves the order of the block under way and all later ones as they are, and the trial resumes
// with the same spans. The best of several arms, and the last two, are not decided without it.
func TestRetiredArms(t *testing.T) {
	slow := func(s Span, r *Result) {
		for i := range r.Turns {
			if s.Arm == "c" {
				r.Turns[i].TTFT *= 1.3
			}
		}
	}
	for _, ran := range []int{1, 6} { // in the first block and in the second one
		trial := newTrial(t, func(p *Plan) {
			p.More, p.Question, p.MaxTime = []api.ModeState{leastLoaded, {Arm: "mine"}}, api.QuestionOrder, 8000
		})
		drive(t, trial, .7, ran, slow)
		var arms []Arm // of the block under way
		for place := ran % 4; place < 4; place++ {
			arms = append(arms, trial.Slot(place-ran%4).Arm)
		}
		require.True(t, trial.Retire("it does not serve"))
		data, err := json.Marshal(trial)
		require.NoError(t, err)
		trial = new(Trial)
		require.NoError(t, json.Unmarshal(data, trial))
		last := trial.State().Ranking.Places[3]
		assert.Equal(t, []any{arms[0], "it does not serve", [2]int{4, 4}, ran / 4},
			[]any{Arm(last.Arm), last.Gone, last.Place, *last.LeftAfter})
		all := drive(t, trial, .7, 100, slow)
		for i, s := range all {
			if assert.NotEqual(t, arms[0], s.Arm); i+1 < len(arms) {
				assert.Equal(t, arms[i+1], s.Arm, "the block under way keeps its order")
			}
		}
		s := trial.State()
		assert.Equal(t, string(Order), s.Verdict)
		assert.Len(t, s.Ranking.Pairs, 3)
		assert.Equal(t, last, s.Ranking.Places[3])
		for i, look := range s.Looks {
			assert.Equal(t, i+2, look.Blocks)
		}
	}
	for _, question := range []api.TrialQuestion{api.QuestionBest, api.QuestionOrder} {
		trial := newTrial(t, func(p *Plan) {
			p.More, p.Question, p.MaxTime = []api.ModeState{leastLoaded}, question, 8000
		})
		assert.Equal(t, question == api.QuestionOrder, trial.Retire("it does not serve"))
		assert.False(t, trial.Retire("it does not serve"))
	}
}

// An arm that seems to fail more turns is not ahead of another one in the ranking, as it is not better in their pair.
func TestSuspectsAreNotAhead(t *testing.T) {
	trial := newTrial(t, func(p *Plan) { p.More, p.Question = []api.ModeState{leastLoaded}, api.QuestionOrder })
	drive(t, trial, .3, 9, func(s Span, r *Result) {
		if s.Arm == ArmB {
			fail(&r.Turns[len(r.Turns)-1], 0)
		}
	})
	r := trial.State().Ranking
	for _, p := range r.Pairs {
		assert.Equal(t, string(Running), p.Primary.Outcome)
		assert.Empty(t, p.More)
		if p.B == "b" {
			assert.Negative(t, p.Primary.Interval[1])
		}
	}
	for _, p := range r.Places {
		assert.Equal(t, [2]int{1, 3}, p.Place, p.Arm)
	}
}

// TestLossElsewhereIsATradeOff has a first token that is 53 % sooner under B, and a loss in one other figure. All arms
// have 2 GPUs at 3.60 dollars an hour.
func TestLossElsewhereIsATradeOff(t *testing.T) {
	watts := func(b float64) func(Span, *Result) {
		return func(s Span, r *Result) {
			r.Basis = api.CostBasis{GPUs: 2, GPUHour: 3.6, Watts: new(1000.), Simulated: true}
			if s.Arm == ArmB {
				*r.Basis.Watts = b
			}
		}
	}
	tokens := func(factor float64) func(Span, *Result) {
		return func(s Span, r *Result) {
			for i := range r.Tokens {
				if s.Arm == ArmB {
					r.Tokens[i] *= factor
				}
			}
		}
	}
	little := func(s Span, r *Result) { r.Tokens[int(r.CountedFrom)] += float64(s.Number*1237%100) / 20 }
	for name, c := range map[string]struct {
		change []func(Span, *Result)
		want   Verdict
		worse  []string
	}{
		"throughput": {[]func(Span, *Result){little, watts(1000), tokens(.84)}, TradeOff, []string{
			"output_tokens_per_second", "joules_per_million_tokens",
		}},
		"energy":          {[]func(Span, *Result){little, watts(1200)}, TradeOff, []string{"joules_per_million_tokens"}},
		"of no interest":  {[]func(Span, *Result){little, watts(1020), tokens(.99)}, BBetter, nil},
		"no power":        {[]func(Span, *Result){little}, BBetter, nil},
		"less energy too": {[]func(Span, *Result){little, watts(500)}, BBetter, nil},
	} {
		trial := newTrial(t, nil)
		drive(t, trial, .47, 100, c.change...)
		s := trial.State()
		assert.Equal(t, string(c.want), s.Verdict, name)
		var found []string
		for _, d := range s.Worse {
			found = append(found, d.Metric)
		}
		assert.Equal(t, c.worse, found, name)
		assert.Equal(t, string(c.want), s.Primary.Outcome, name)
		if name != "energy" {
			continue
		}
		// 40 tokens/s.
		costs := map[string]api.TrialDifference{}
		for _, d := range s.Costs {
			costs[d.Metric] = d
		}
		assert.InDelta(t, 25e6, costs["joules_per_million_tokens"].A, 1e5)
		assert.InDelta(t, .2, costs["joules_per_million_tokens"].Difference, 1e-3)
		assert.InDelta(t, .002/40*1e6, costs["dollars_per_million_tokens"].A, .1)
		assert.InDelta(t, 20, costs["tokens_per_second_per_gpu"].B, .1)
		assert.True(t, s.PowerSimulated)
		for _, d := range s.Others {
			assert.NotEqual(t, string(TradeOff), d.Outcome, "the others are judged by themselves")
		}
	}
}

// Costs of a turn within the SLOs are by the SLOs of the sweep.
func TestCostsOfARow(t *testing.T) {
	r := recording(rand.New(rand.NewPCG(1, 2)), .4, 100)
	r.Basis = api.CostBasis{GPUs: 4, GPUHour: 3.6, Watts: new(1000.)}
	for _, snapshots := range []int{0, 1} {
		all, err := r.Row(snapshots, api.SLO{TTFT: 10, TPOT: 1})
		require.NoError(t, err)
		half, err := r.Row(snapshots, api.SLO{TTFT: .4, TPOT: 1})
		require.NoError(t, err)
		assert.InDelta(t, 1000/.4, *all.JoulesPerGoodTurn, 1e-6)
		assert.InDelta(t, .004/.4, *all.DollarsPerGoodTurn, 1e-9)
		assert.Greater(t, *half.JoulesPerGoodTurn, 1.5*1000/.4)
		assert.InDelta(t, 1000/40.*1e6, *all.JoulesPerMillionTokens, 1e-3)
	}
}
