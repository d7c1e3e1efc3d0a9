package stats

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// A quantile is rounded up within the bucket of the sample, and JSON preserves the lags.
func TestLags(t *testing.T) {
	var l Lags
	for i := range 100 {
		l.Add(time.Duration(i) * time.Millisecond)
	}
	l.Add(-time.Second)
	l.Add(time.Hour)
	assert.Equal(t, 102, l.N())
	for p, late := range map[float64]float64{.01: 0, .5: .048, .95: .094} {
		assert.GreaterOrEqual(t, l.Quantile(p), late, p)
		assert.LessOrEqual(t, l.Quantile(p), max(late*1.125, 1.125e-6), p)
	}
	data, err := json.Marshal(l)
	require.NoError(t, err)
	var back Lags
	require.NoError(t, json.Unmarshal(data, &back))
	assert.Equal(t, l, back)
	require.NoError(t, json.Unmarshal([]byte("[[4000000000,1],[3,2]]"), &back))
	assert.Equal(t, 2, back.N(), "an invalid index is ignored")
	require.Error(t, json.Unmarshal([]byte("7"), &back))
}

// The lag of a span includes only its own samples, and that of a run the samples since its start.
func TestLagHistory(t *testing.T) {
	var h LagHistory
	start := time.Unix(1_000_000, 0)
	var before Lag
	for i := range 50 * 600 { // ten minutes
		if i == 50*400 {
			before = h.Total()
		}
		at, late := start.Add(time.Duration(i)*20*time.Millisecond), time.Millisecond
		if second := i / 50; second >= 400 && second < 460 {
			late = 8 * time.Millisecond
		}
		h.AddTimer(at, late)
		h.AddStream(at, late/2)
	}
	for _, row := range []struct {
		from, to int
		want     float64
		known    bool
	}{
		{540, 599, .001, true}, {400, 459, .008, true}, {300, 599, .008, true}, // a fifth of the span
		{460, 519, .001, true}, {100, 160, 0, false}, {700, 760, 0, false},
	} {
		lag := h.Between(start.Add(time.Duration(row.from)*time.Second), start.Add(time.Duration(row.to)*time.Second))
		assert.InDelta(t, row.want, lag.Quantile(.95), .001, "%d to %d s", row.from, row.to)
		assert.Equal(t, row.known, lag.Known())
	}
	since := h.Total().Since(before)
	assert.Equal(t, 50*200, since.Timer.N())
	assert.InDelta(t, .0011, since.Quantile(.5), .0001)
}

// The bound covers the true effect of a lag, and is not much larger, for similar and for widely spread times of the
// target.
func TestErrorBoundCoversLag(t *testing.T) {
	for name, spread := range map[string]float64{"alike": 0, "as wide as the lag": .01, "wide": .5} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 1))
			stop := func() float64 { // a process that does not run for a quarter of the time, 20 ms at once
				return max(0, .02*(4*r.Float64()-3)) + .0001
			}
			var lag Lag
			for range 3000 {
				lag.Timer.Add(time.Duration(stop() * float64(time.Second)))
				lag.Stream.Add(100 * time.Microsecond)
			}
			var truth, measured []float64
			for range 10_000 {
				v := .2 + spread*r.Float64()
				truth, measured = append(truth, v), append(measured, v+stop())
			}
			m := api.Metrics{TTFT: Summarize(measured), TPOT: Summarize(measured)}
			before, want := m.TTFT, Summarize(truth)
			lag.Allow(&m, 11)
			for _, p := range []struct{ before, want, bound float64 }{
				{*before.P50, *want.P50, *m.TTFT.P50Error}, {*before.P95, *want.P95, *m.TTFT.P95Error},
			} {
				assert.LessOrEqual(t, p.before-p.want, p.bound)
				assert.Less(t, p.bound, 4*max(p.before-p.want, .0003))
			}
			assert.InDelta(t, before.P50Interval[0]-*m.TTFT.P50Error, m.TTFT.P50Interval[0], 1e-9)
			assert.InDelta(t, before.P50Interval[1], m.TTFT.P50Interval[1], 1e-9, "a time stamp is never early")
			assert.InDelta(t, before.P50Interval[1]+*m.TPOT.P50Error, m.TPOT.P50Interval[1], 1e-9)
			assert.Less(t, *m.TPOT.P95Error, .003, "ten gaps share the error")
			assert.Nil(t, m.ITL.P50Error, "an unknown value has no error")
		})
	}
}
