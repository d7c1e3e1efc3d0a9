package stats

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// A step's live figures cover its whole batches, of half a minute or longer where there are few turns or long ones. The
// intervals of TTFT come with the first batch, others with the third or fourth, and all start anew with each step.
func TestLiveFiguresOfWholeBatches(t *testing.T) {
	for name, test := range map[string]struct {
		every, latency, minutes float64 // seconds between turns, seconds, of the run
		seconds, n              float64
		p95, rates              bool // have an interval
	}{
		"one batch":              {1, 10, 1.5, 60, 60, true, false},
		"several":                {1, 10, 5.5, 300, 300, true, true},
		"few turns a minute":     {3, 10, 9.5, 480, 160, true, true}, // 20 a minute
		"very few turns":         {20, 10, 21, 1200, 60, false, true},
		"long turns":             {1, 70, 13.5, 720, 720, true, true}, // three minutes each
		"no more than last hour": {1, 10, 75.5, 3600, 3600, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
			w, m := NewWindow(began, slo), NewMeter(began)
			now := began
			w.BeginStep(1, nil)
			w.CountFrom(began)
			for at := 0.; at < 60*test.minutes; at += test.every {
				now = began.Add(time.Duration(at * float64(time.Second)))
				m.Add(now, 110) // with tokens of turns in progress
				w.Add(&api.Turn{
					Ended: now, Number: 1, Step: 1, Counted: true, Status: api.TurnOK,
					PromptTokens: new(100), CachedTokens: new(50 + int(at/60)%9), OutputTokens: new(100),
					TTFT: new(.2 + .1*math.Mod(at, 7)), TPOT: new(.02), Latency: &test.latency,
				}, nil)
				w.FirstToken(1, now, .2+.1*math.Mod(at, 7))
				w.AdvanceLive(m, now)
			}
			r := w.Live(m, now, 1)
			assert.InDelta(t, test.seconds, r.Window.Seconds, 1e-9)
			assert.InDelta(t, test.n, r.OK, 1)
			q := r.Window.Metrics.TTFT
			assert.NotNil(t, q.P50Interval)
			assert.Equal(t, test.p95, q.P95Interval != nil)
			assert.Equal(t, test.rates, r.OutputInterval != nil)
			assert.Equal(t, test.rates, r.HitInterval != nil)
			assert.Equal(t, test.rates, r.Window.Metrics.Latency.P50Interval != nil)
			assert.InEpsilon(t, 110/test.every, r.Window.OutputTokensPerSecond, .02)
			assert.EqualValues(t, 100*r.OK, r.OutputTokens)
			assert.InDelta(t, float64(r.CachedTokens)/float64(100*r.OK), *r.HitRatio, 1e-9)
			if in := r.HitInterval; in != nil {
				assert.InDelta(t, *r.HitRatio, (in[0]+in[1])/2, 1e-9)
			}
			assert.InDelta(t, *q.P50, math.Sqrt(q.P50Interval[0]*q.P50Interval[1]), 1e-9)
			assert.GreaterOrEqual(t, math.Log(q.P50Interval[1] / *q.P50), 2.5*liveWander-1e-9,
				"the interval allows for slow changes of speed")

			w.BeginStep(2, nil)
			w.Add(&api.Turn{Ended: now.Add(time.Second), Step: 2, Counted: true, Status: api.TurnOK}, nil)
			r = w.Live(m, now.Add(2*time.Second), 2)
			require.Equal(t, 1, r.OK)
			assert.Nil(t, r.Window.Metrics.TTFT.P50Interval)
			assert.Nil(t, r.OutputInterval)
		})
	}
}

// Log-uniform values have the same density everywhere on the logarithmic scale, here 1.
func TestIndependentVarianceOfAPercentile(t *testing.T) {
	var b buckets
	for i := range 1000 {
		b.addAll([]float64{math.Exp(float64(i)/1000 - 1)})
	}
	for _, p := range []float64{.5, .95} {
		assert.InEpsilon(t, p*(1-p)/50, independentQuantile(&b, p, 50), .15)
	}
}
