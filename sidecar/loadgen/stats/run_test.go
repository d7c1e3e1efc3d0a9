package stats

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
)

// The report of a run of at most 60 s equals that of the window in every percentile,
// interval and count.
func TestWholeAgreesWithTheWindow(t *testing.T) {
	r := NewRecorder(t0, slo)
	var turns []*api.Turn
	for _, s := range random(rand.New(rand.NewPCG(3, 4)), 900) {
		s.ITL = []chat.Gap{{Seconds: .01 + .04**s.TTFT, Tokens: 3}, {Seconds: .02, Tokens: 1}}
		s.Latency = new(min(*s.Latency, .1)) // short, so that start and end are in one batch
		s.Started = s.Ended.Add(-time.Duration(*s.Latency * float64(time.Second)))
		if s.Ended.After(at(59)) || s.Status == api.TurnCancelled {
			continue
		}
		r.add(s)
		turns = append(turns, &s.Turn)
	}
	window, whole := r.Report(at(59)), r.Whole(at(59), slices.Values(turns))
	require.Greater(t, whole.OK, 300)
	shared := whole.Window.Metrics
	for _, f := range api.Times {
		q := f.Quantiles(&shared)
		assert.LessOrEqual(t, *q.Min, *q.P50)
		assert.LessOrEqual(t, *q.P90, *q.P95)
		q.Min, q.P90, q.Max = nil, nil, nil // of a run alone
		if f.Key != "ttft" {
			q.Mean = nil
		}
	}
	assert.Equal(t, window.Window.Metrics, shared)
	assert.NotNil(t, whole.Window.Metrics.TTFT.P95Interval)
	assert.NotNil(t, whole.Window.Metrics.ITL.P95Interval)
	assert.Equal(t, window.TTFTByTurn, whole.TTFTByTurn)
	assert.Equal(t, window.RequestsInterval, whole.RequestsInterval)
	assert.Equal(t, window.HitInterval, whole.HitInterval)
	assert.Equal(t, []int{window.OK, window.Errors, window.Cancelled, window.SLOMet},
		[]int{whole.OK, whole.Errors, whole.Cancelled, whole.SLOMet})
	assert.Equal(t, window.Window.Errors, whole.Window.Errors)
	assert.Equal(t, window.Window.ErrorRatio, whole.Window.ErrorRatio)
	arrived := 0
	for _, one := range turns {
		arrived += *one.OutputTokens
	}
	assert.InEpsilon(t, float64(arrived)/59, whole.Window.OutputTokensPerSecond, 1e-9,
		"of turns that failed, too")
	require.NotNil(t, whole.OutputInterval)
	assert.InDelta(t, whole.Window.OutputTokensPerSecond, (whole.OutputInterval[0]+whole.OutputInterval[1])/2, 1e-9)
}

// While zeros of cached tokens are in doubt, they are unknown in the window, the totals and the report of the run.
func TestDoubtedZerosAreUnknown(t *testing.T) {
	r := NewRecorder(t0, slo)
	var turns []*api.Turn
	for second := range 5 {
		s := counted(whole(float64(second)), 1)
		s.CachedTokens = new(0)
		r.add(s)
		turns = append(turns, &s.Turn)
	}
	ratios := func() []*float64 {
		run := r.Whole(at(5), slices.Values(turns))
		last, step := r.Report(at(5)), r.Counted(at(5), 1)
		return []*float64{last.HitRatio, step.HitRatio, run.HitRatio, run.TTFTByTurn[0].CachedRatio}
	}
	for _, v := range ratios() {
		assert.Equal(t, 0., *v)
	}
	r.DoubtCached(true)
	for _, v := range ratios() {
		assert.Nil(t, v)
	}
	assert.EqualValues(t, 5, r.Totals().CachedUnknown)
	r.Reset(t0)
	assert.Zero(t, r.Totals().CachedUnknown)
}

// A run of hours keeps all its inter-token latencies in a bounded number of slots, in the
// batch of their time.
func TestWholeOfLongRun(t *testing.T) {
	r := NewRecorder(t0, slo)
	const hours = 5
	var turns []*api.Turn
	for second := range hours * 3600 {
		s := whole(float64(second) + .5)
		s.ITL = []chat.Gap{{Seconds: .02, Tokens: 9}}
		if second >= hours*3600*3/4 { // the last batch is slower
			s.ITL = []chat.Gap{{Seconds: .08, Tokens: 9}}
		}
		r.add(s)
		if second%100 == 0 {
			turns = append(turns, &s.Turn)
		}
	}
	assert.LessOrEqual(t, len(r.gaps.slots), ringSlots)
	q := r.Whole(at(hours*3600), slices.Values(turns)).Window.Metrics.ITL
	assert.Equal(t, hours*3600*9, q.N)
	assert.InEpsilon(t, .02, *q.P50, .005)
	assert.InEpsilon(t, .08, *q.P95, .005)
	assert.Nil(t, q.P50Interval, "batches that differ this much give no interval")

	r.Reset(at(hours * 3600))
	assert.Zero(t, r.Whole(at(hours*3600+1), slices.Values(turns[:0])).Window.Metrics.ITL.N)
}

// Only the chunks of a turn that was cut short are known. They count with the tokens of
// whole turns' chunks. A successful turn reports its tokens.
func TestTokensOfTurnsCutShort(t *testing.T) {
	r := NewRecorder(t0, slo)
	assert.InDelta(t, 1, r.TokensPerChunk(), 0)
	s := whole(10)
	s.Started, s.Latency, s.OutputTokens, s.ITL = at(5), new(5.), new(50), make([]chat.Gap, 19)
	r.add(s)
	assert.InDelta(t, 2.5, r.TokensPerChunk(), 1e-9)
	cut := s.Turn
	cut.Status, cut.TokenSource, cut.OutputTokens = api.TurnCancelled, "chunks", new(8)
	both := r.Whole(at(20), slices.Values([]*api.Turn{&s.Turn, &cut}))
	assert.InDelta(t, (50+8*2.5)/20, both.Window.OutputTokensPerSecond, 1e-9)
	r.Reset(at(20))
	assert.InDelta(t, 1, r.TokensPerChunk(), 0)
}

func TestSpread(t *testing.T) {
	turn := func(started, ttft, ended float64) *api.Turn {
		return &api.Turn{Started: at(started), TTFT: &ttft, Ended: at(ended)}
	}
	assert.InDeltaSlice(t, []float64{0, .5, .5, 0}, spread(turn(12, 3, 25), t0, 40*time.Second, 4), 1e-9)
	assert.InDeltaSlice(t, []float64{1, 0, 0, 0}, spread(turn(1, 1, 2), t0, 40*time.Second, 4), 1e-9, "one token")
	assert.InDeltaSlice(t, []float64{0, 0, 0, 1}, spread(&api.Turn{Started: at(1), Ended: at(40)}, t0, 40*time.Second, 4),
		1e-9, "no first token is known")
	assert.InDeltaSlice(t, []float64{0, 0, 0, .5}, spread(turn(30, 0, 50), t0, 40*time.Second, 4), 1e-9,
		"the rest came after the span")
}

// Turns that were cut at the end of a run count as at least as long as until then, and figures that would be larger if
// they were longer are marked. Turns that ended after the run are in no rate.
func TestCutTurnsCountAsAtLeastAsLong(t *testing.T) {
	r := NewRecorder(t0, slo)
	var turns []*api.Turn
	add := func(status api.TurnStatus, sent, ttft, ended float64) {
		turn := &api.Turn{Number: 1, Status: status, Started: at(sent), Ended: at(ended)}
		if ttft > 0 {
			turn.TTFT, turn.Latency = &ttft, new(ended-sent)
		}
		if status == api.TurnOK {
			turn.Late = new(.01)
		}
		turns = append(turns, turn)
	}
	for i := range 16 {
		add(api.TurnOK, float64(i), .1, float64(i)+.5)
	}
	add(api.TurnCancelled, 14, 0, 20)  // no token for 6 s
	add(api.TurnCancelled, 19, .3, 20) // in the middle of its answer
	add(api.TurnOK, 19.5, .2, 22)      // in the grace period
	whole := r.Whole(at(20), slices.Values(turns))
	ttft, latency := whole.Window.Metrics.TTFT, whole.Window.Metrics.Latency
	assert.Equal(t, []int{17, 0, 2}, []int{whole.OK, whole.Errors, whole.Cancelled})
	assert.Equal(t, []int{19, 1}, []int{ttft.N, ttft.Cut})
	assert.InDelta(t, (17*.1+.1+.3+6)/19, *ttft.Mean, 1e-9)
	assert.Equal(t, []string{"p95", "p99", "max", "mean"}, ttft.AtLeast)
	assert.InDeltaSlice(t, []float64{.1, .22, 6}, []float64{*ttft.Min, *ttft.P90, *ttft.Max}, 1e-9)
	assert.Equal(t, []int{19, 2}, []int{latency.N, latency.Cut})
	assert.Equal(t, []string{"p90", "p95", "p99", "max", "mean"}, latency.AtLeast)
	assert.InDelta(t, .01, latency.Late.P95, .002, "the lateness of cut turns is not known")
	assert.InDelta(t, 16./20, whole.Window.RequestsPerSecond, 1e-9)
	assert.Equal(t, 1, whole.TTFTByTurn[0].Cut)
}

// Minimum, mean and maximum of inter-token latencies are those of their buckets.
func TestSpreadOfGaps(t *testing.T) {
	var gaps [batches]buckets
	gaps[0].addGaps([]chat.Gap{{Seconds: .02, Tokens: 3}, {Seconds: .5, Tokens: 1}}, false)
	gaps[3].addGaps([]chat.Gap{{Seconds: .03, Tokens: 1}}, false)
	q := summarizeGaps(&gaps, 1, false)
	spreadOfGaps(&q, &gaps)
	for want, got := range map[float64]*float64{.02: q.Min, .59 / 5: q.Mean, .5: q.Max} {
		assert.InEpsilon(t, want, *got, .004)
	}
	gaps[1].addGaps([]chat.Gap{{Seconds: 0, Tokens: 1}}, false)
	spreadOfGaps(&q, &gaps)
	assert.Zero(t, *q.Min)
}
