package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
)

var slo = api.SLO{TTFT: .6, TPOT: .06}

// sample is a turn with the gaps between its chunks.
type sample struct {
	api.Turn
	ITL []chat.Gap
}

// whole returns a successful turn that ended at a given second.
func whole(ended float64) sample {
	return sample{Turn: api.Turn{
		Ended: at(ended), Number: 1, Status: api.TurnOK, TTFT: new(.3), TPOT: new(.025), Latency: new(20.),
		PromptTokens: new(4000), CachedTokens: new(1000), OutputTokens: new(800),
	}}
}

func failed(ended float64, class api.ErrorClass) sample {
	return sample{
		Turn: api.Turn{Ended: at(ended), Number: 1, Status: api.TurnError, ErrorClass: class, TTFT: new(30.)},
		ITL:  []chat.Gap{{Seconds: 9, Tokens: 1}},
	}
}

func counted(s sample, step int64) sample {
	s.Counted, s.Step = true, step
	return s
}

func fill(w *Window, samples ...sample) *Window {
	for i := range samples {
		w.Add(&samples[i].Turn, samples[i].ITL)
	}
	return w
}

func (r *Recorder) add(s sample) { r.Add(&s.Turn, 0, s.ITL) }

// reference computes a percentile by counting, without interpolation by index.
func reference(values []float64, p float64) float64 {
	s := slices.Sorted(slices.Values(values))
	whole, part := math.Modf(p * float64(len(s)-1))
	return (1-part)*s[int(whole)] + part*s[min(int(whole)+1, len(s)-1)]
}

// random returns turns of every kind over 100 s, in two steps, some out of order.
func random(r *rand.Rand, n int) []sample {
	all := make([]sample, n)
	for i := range all {
		second := 100 * float64(i) / float64(n)
		s := whole(second + r.Float64()*.5)
		s.Number, s.Step, s.Counted = 1+r.IntN(7), int64(1+i*2/n), r.IntN(3) > 0
		s.TTFT, s.TPOT, s.Latency = new(r.ExpFloat64()), new(r.ExpFloat64()*.05), new(30*r.Float64())
		if r.IntN(2) > 0 {
			s.CachedTokens = nil
		}
		switch r.IntN(10) {
		case 0:
			s.Status, s.ErrorClass = api.TurnError, api.ErrorClasses[r.IntN(len(api.ErrorClasses))]
		case 1:
			s.Status = api.TurnCancelled
		case 2:
			s.TPOT = nil // its tokens came in bursts
		}
		all[i] = s
	}
	return all
}

// Every figure equals a plain count over the samples.
func TestWindowAgainstBruteForce(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for round := range 10 {
		samples := random(r, 200+500*round)
		w := fill(NewWindow(t0, slo), samples...)
		check := func(rep Report, wanted func(sample) bool) {
			t.Helper()
			var ttft, tpot, latency []float64
			n, good, unknown := map[api.TurnStatus]int{}, 0, 0
			var prompt, cached, asked, output int64
			for _, s := range samples {
				if !s.Ended.After(at(41)) || !wanted(s) {
					continue
				}
				n[s.Status]++
				if s.Status != api.TurnOK {
					continue
				}
				ttft, latency = append(ttft, *s.TTFT), append(latency, *s.Latency)
				if s.TPOT == nil {
					unknown++
				} else {
					tpot = append(tpot, *s.TPOT)
				}
				if *s.TTFT <= .6 && s.TPOT != nil && *s.TPOT <= .06 {
					good++
				}
				prompt, output = prompt+4000, output+800
				if s.CachedTokens != nil {
					cached, asked = cached+1000, asked+4000
				}
			}
			for _, c := range []struct {
				got  api.Quantiles
				want []float64
			}{{rep.Window.Metrics.TTFT, ttft}, {rep.Window.Metrics.TPOT, tpot}, {rep.Window.Metrics.Latency, latency}} {
				require.Equal(t, len(c.want), c.got.N)
				require.InEpsilon(t, reference(c.want, .5), *c.got.P50, 1e-9)
				require.InEpsilon(t, reference(c.want, .95), *c.got.P95, 1e-9)
				require.InEpsilon(t, reference(c.want, .99), *c.got.P99, 1e-9)
			}
			require.Equal(t, n, map[api.TurnStatus]int{
				api.TurnOK: rep.OK, api.TurnError: rep.Errors,
				api.TurnCancelled: rep.Cancelled,
			})
			require.Equal(t, good, rep.SLOMet)
			require.Equal(t, [2]int{unknown, unknown}, [2]int{rep.Window.Metrics.TPOT.Unknown, rep.Window.Metrics.ITL.Unknown})
			require.Equal(t, []int64{prompt, cached, output}, []int64{rep.PromptTokens, rep.CachedTokens, rep.OutputTokens})
			require.InEpsilon(t, float64(cached)/float64(asked), *rep.HitRatio, 1e-9)
		}
		check(w.Report(at(101)), func(sample) bool { return true })
		rep := w.Report(at(101))
		require.InEpsilon(t, rep.Window.Metrics.TTFT.Shape.Mean, *rep.Window.Metrics.TTFT.Mean, 1e-9)
		rep.Window.Metrics.TTFT.P50Interval, rep.Window.Metrics.TTFT.P95Interval = nil, nil
		rep.Window.Metrics.TTFT.Mean, rep.Window.Metrics.TTFT.MeanInterval = nil, nil
		ttft, hits := w.Course(at(101))
		assert.Equal(t, rep.Window.Metrics.TTFT, ttft)
		assert.Equal(t, rep.HitRatio, hits)
		check(w.Counted(at(101), 2), func(s sample) bool { return s.Counted && s.Step == 2 })
	}
}

func TestWindowExpires(t *testing.T) {
	s := whole(10)
	s.ITL = []chat.Gap{{Seconds: .02, Tokens: 1}, {Seconds: .03, Tokens: 2}}
	w := fill(NewWindow(t0, slo), s)
	r := w.Report(at(69.9))
	assert.Equal(t, 1, r.OK)
	assert.Equal(t, 3, w.Report(at(69)).Window.Metrics.ITL.N)
	assert.Equal(t, 60.0, r.Window.Seconds)
	r = w.Report(at(70.1))
	assert.Zero(t, r.OK)
	assert.Zero(t, r.Window.Metrics.ITL.N)
	assert.Nil(t, r.Window.Metrics.TTFT.P50, "unknown, and not zero")
	assert.Nil(t, r.Window.ErrorRatio)
	assert.Empty(t, r.TTFTByTurn)
	for i := range 1000 {
		fill(w, whole(100+float64(i)))
	}
	assert.LessOrEqual(t, len(w.turns), 60, "expired turns are dropped")
	assert.LessOrEqual(t, cap(w.turns), 1000)
}

func TestWindowReset(t *testing.T) {
	s := whole(5)
	s.ITL = []chat.Gap{{Seconds: .02, Tokens: 1}}
	w := fill(NewWindow(t0, slo), counted(s, 3))
	w.Reset(at(6))
	fill(w, whole(5.5)) // ended before
	r := w.Report(at(8))
	assert.Zero(t, r.OK)
	assert.Zero(t, r.Window.Metrics.ITL.N)
	assert.Equal(t, 2.0, r.Window.Seconds)
	assert.Zero(t, w.Counted(at(8), 3).OK)
	fill(w, whole(8))
	assert.Equal(t, .5, w.Report(at(8)).Window.RequestsPerSecond)
}

// Failed turns enter the counts only, cancelled ones only their own.
func TestWindowStatus(t *testing.T) {
	cancelled := failed(3, "")
	cancelled.Status = api.TurnCancelled
	r := fill(NewWindow(t0, slo), whole(1), whole(2), whole(3), cancelled,
		failed(3, api.ErrorTimeout), failed(3, api.ErrorStall), failed(3, api.ErrorHTTP5xx),
		failed(3, api.ErrorHTTP5xx), failed(3, api.ErrorConnect)).Report(at(4))
	assert.Equal(t, []int{3, 5, 1}, []int{r.OK, r.Errors, r.Cancelled})
	assert.EqualValues(t, map[api.ErrorClass]int{
		api.ErrorTimeout: 1, api.ErrorStall: 1, api.ErrorHTTP5xx: 2,
		api.ErrorConnect: 1,
	}, r.Window.Errors)
	assert.Equal(t, 2, r.Window.Timeouts)
	assert.Equal(t, 5.0/8, *r.Window.ErrorRatio)
	assert.Equal(t, 3.0/8, *r.Window.GoodputRatio)
	assert.Equal(t, 3, r.Window.Metrics.TTFT.N)
	assert.Zero(t, r.Window.Metrics.ITL.N)
	assert.Equal(t, .75, r.Window.RequestsPerSecond)
	assert.Equal(t, 600.0, r.Window.OutputTokensPerSecond)
}

func TestWindowSLO(t *testing.T) {
	for _, c := range []struct {
		ttft, tpot float64
		tokens     int
		good       int
		uncounted  bool
	}{
		{.6, .06, 800, 1, false},         // equal to the objective
		{.6001, .01, 800, 0, false},      // TTFT above the objective
		{.1, .0601, 800, 0, false},       // TPOT above the objective
		{.1, math.NaN(), 1, 1, false},    // one token has no TPOT to miss
		{.1, math.NaN(), 800, 0, false},  // an unknown TPOT meets nothing
		{.1, math.NaN(), 1, 0, true},     // one chunk may hold any number of tokens
		{math.NaN(), .01, 800, 0, false}, // no token was received
	} {
		s := whole(1)
		s.TTFT, s.TPOT, s.OutputTokens = &c.ttft, &c.tpot, &c.tokens
		if c.uncounted {
			s.TokenSource = "chunks"
		}
		assert.Equal(t, c.good, fill(NewWindow(t0, slo), s).Report(at(2)).SLOMet, "%+v", c)
	}
}

// After reasoning, the time to the first token of the answer counts. Turns without a count of tokens are counted.
func TestWindowOfReasoning(t *testing.T) {
	first, plain := whole(1), whole(1)
	first.FirstAnswer, first.PromptTokens, first.CachedTokens = new(2.5), nil, nil
	assert.Nil(t, fill(NewWindow(t0, slo), plain).Report(at(2)).Window.FirstAnswer)
	got := fill(NewWindow(t0, slo), first, plain).Report(at(2)).Window
	assert.Equal(t, 1, got.FirstAnswer.N)
	assert.InDelta(t, 2.5, *got.FirstAnswer.P95, 1e-9)
	r := NewRecorder(t0, slo)
	r.add(first)
	r.add(plain)
	assert.EqualValues(t, 1, r.Totals().InputUnknown)
	assert.EqualValues(t, 1, r.Totals().CachedUnknown)
}

func TestWindowByTurn(t *testing.T) {
	w := NewWindow(t0, slo)
	for turn, ttft := range map[int]float64{1: .5, 5: .1, 6: .2, 9: .4} {
		s := whole(1)
		s.Number, s.TTFT, s.Latency = turn, &ttft, new(10*ttft)
		prompt := max(0, 1000*(turn-1)) // the first turn does not report its prompt
		s.PromptTokens, s.OutputTokens, s.CachedTokens = &prompt, new(100*turn), new(prompt/4)
		fill(w, s)
	}
	got, r := "", w.Report(at(2))
	for _, r := range r.TTFTByTurn {
		input := "unknown"
		if r.InputMean != nil {
			input = fmt.Sprintf("%.0f, p95 %.0f, %.0f %% cached", *r.InputMean, *r.InputP95, 100**r.CachedRatio)
		}
		got += fmt.Sprintf("%s: %d at %.2f, %.1f s, input %s, output %.0f; ", r.Turn, r.N, *r.P50, *r.LatencyP50, input,
			*r.OutputMean)
	}
	assert.Equal(t,
		"1: 1 at 0.50, 5.0 s, input unknown, output 100; 5: 1 at 0.10, 1.0 s, input 4000, p95 4000, "+
			"25 % cached, output 500; "+
			"6+: 2 at 0.30, 3.0 s, input 6500, p95 7850, 25 % cached, output 750; ", got)
	assert.InDelta(t, 7700, *r.Window.InputP95, 1e-9)
}

func TestWindowITL(t *testing.T) {
	a, b := whole(1), whole(1.5)
	a.ITL = []chat.Gap{ // only the first is possible
		{Seconds: .010, Tokens: 95},
		{Seconds: math.NaN(), Tokens: 1},
		{Seconds: -1, Tokens: 1},
		{Seconds: .01},
		{Seconds: .01, Tokens: math.Inf(1)},
	}
	b.ITL, b.ITLEstimated = []chat.Gap{{Seconds: .200, Tokens: 5}}, true
	w := fill(NewWindow(t0, slo), a)
	assert.False(t, w.Report(at(2)).Window.Metrics.ITL.Estimated)
	q := fill(w, b).Report(at(2)).Window.Metrics.ITL
	assert.Equal(t, 100, q.N, "tokens")
	assert.True(t, q.Estimated)
	assert.InEpsilon(t, .010, *q.P50, .004)
	assert.InEpsilon(t, .010, *q.P95, .004)
	assert.InEpsilon(t, .200, *q.P99, .004)
	assert.Nil(t, q.P50Interval)
}

// Gaps expire second by second, also when a slot is reused.
func TestWindowITLExpires(t *testing.T) {
	w := NewWindow(t0, slo)
	for second := range 700 {
		s := counted(whole(float64(second)+.5), 1)
		s.ITL = []chat.Gap{{Seconds: .02, Tokens: 1}}
		fill(w, s)
		assert.Equal(t, min(second+1, 60), w.Report(at(float64(second)+.6)).Window.Metrics.ITL.N)
		assert.Equal(t, min(second+1, 59*5+second%5+1), w.Counted(at(float64(second)+.6), 1).Window.Metrics.ITL.N,
			"in slots of 5 s")
	}
	late := counted(whole(100), 1)
	late.ITL = []chat.Gap{{Seconds: .02, Tokens: 1}}
	fill(w, late)
	assert.Equal(t, 60, w.Report(at(699.6)).Window.Metrics.ITL.N)
	assert.Equal(t, 300, w.Counted(at(699.6), 1).Window.Metrics.ITL.N)
}

func TestCounted(t *testing.T) {
	one := func(ended float64, step int64, counts bool) sample {
		s := whole(ended)
		s.Step, s.Counted, s.ITL = step, counts, []chat.Gap{{Seconds: .02, Tokens: 10}}
		return s
	}
	w := fill(NewWindow(t0, slo), one(1, 1, true), one(2, 1, true))
	assert.Equal(t, 2, w.Counted(at(3), 1).OK)
	fill(w, one(12, 2, false), one(20, 2, true), one(20.4, 1, true), one(25, 2, true), one(30, 2, true))
	r := w.Counted(at(30), 2)
	assert.Equal(t, 3, r.OK, "neither another step's, though late, nor what straddled the step's begin")
	assert.Equal(t, 30, r.Window.Metrics.ITL.N)
	assert.Equal(t, 10.0, r.Window.Seconds, "since the first counted turn ended")
	assert.InDelta(t, .3, r.Window.RequestsPerSecond, 1e-9,
		"without the turn that starts the span, with the one that straddles the step's start")
	assert.Equal(t, 240.0, r.Window.OutputTokensPerSecond)
	assert.Equal(t, int64(2400), r.OutputTokens)
	assert.Zero(t, w.Counted(at(30), 1).OK, "an earlier step has no figures")
	none := w.Counted(at(30), 3)
	assert.Zero(t, none.OK)
	assert.Zero(t, none.Window.Seconds, "a step without a counted turn has not begun to settle")
	assert.NotNil(t, none.Window.Errors)
	assert.Equal(t, 7, w.Report(at(30)).OK, "the window has all turns")
	assert.Equal(t, 70.0, fill(w, one(90, 2, true)).Counted(at(90), 2).Window.Seconds, "the span grows with the step")
	assert.Equal(t, 300.0, fill(w, one(330, 2, true)).Counted(at(330), 2).Window.Seconds,
		"the span is at most five minutes")
}

// The figures of a step with many turns a second cover the kept turns, and at least the window.
func TestCountedOfManyTurns(t *testing.T) {
	w := NewWindow(t0, slo)
	for i := range 3 * maxStepTurns {
		fill(w, counted(whole(float64(i)/200), 1)) // 200 a second for 300 s
	}
	r := w.Counted(at(300), 1)
	assert.InDelta(t, maxStepTurns/200, r.Window.Seconds, .1)
	assert.InDelta(t, 200, r.Window.RequestsPerSecond, .1)
	assert.InDelta(t, maxStepTurns, r.OK, 1)
	assert.LessOrEqual(t, len(w.turns), maxStepTurns+1)
	for i := range 60_000 {
		fill(w, counted(whole(300+float64(i)/1000), 1)) // 1,000 a second
	}
	r = w.Counted(at(360), 1)
	assert.InDelta(t, 60, r.Window.Seconds, .1)
	assert.InDelta(t, 1000, r.Window.RequestsPerSecond, 1)
}
