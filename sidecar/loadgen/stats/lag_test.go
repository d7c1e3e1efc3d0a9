package stats

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat"

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
		h.AddSend(at, late/4)
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
	assert.Equal(t, 50*200, since.Send.N())
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
			m.TTFT.P50Interval, m.TPOT.P50Interval = &[2]float64{.2, .3}, &[2]float64{.2, .3}
			before, want := m.TTFT, Summarize(truth)
			lag.Allow(&m, 11)
			for _, p := range []struct{ before, want, bound float64 }{
				{*before.P50, *want.P50, *m.TTFT.P50Error}, {*before.P95, *want.P95, *m.TTFT.P95Error},
			} {
				assert.LessOrEqual(t, p.before-p.want, p.bound)
				assert.Less(t, p.bound, 4*max(p.before-p.want, .0003))
			}
			mean, late := stat.Mean(measured, nil)-stat.Mean(truth, nil), lag.MeanError(len(measured))
			assert.LessOrEqual(t, mean, late)
			assert.Less(t, late, 4*mean)
			assert.InDelta(t, before.P50Interval[0]-*m.TTFT.P50Error, m.TTFT.P50Interval[0], 1e-9)
			assert.InDelta(t, before.P50Interval[1], m.TTFT.P50Interval[1], 1e-9, "a time stamp is never early")
			assert.InDelta(t, before.P50Interval[1]+*m.TPOT.P50Error, m.TPOT.P50Interval[1], 1e-9)
			assert.Less(t, *m.TPOT.P95Error, .003, "ten gaps share the error")
			assert.Nil(t, m.ITL.P50Error, "an unknown value has no error")
			single := api.Metrics{TPOT: Summarize(measured)}
			lag.Allow(&single, 2)
			assert.InDelta(t, *single.TPOT.P95Error, 10**m.TPOT.P95Error, 1e-9, "one gap has all of it")
		})
	}
}

// The bound of a percentile without a known shape is the lag's percentile, raised by the error of both samples.
func TestErrorBoundWithoutShape(t *testing.T) {
	var lags Lags
	for ms := range 1000 {
		lags.Add(time.Duration(1+ms) * time.Millisecond)
	}
	raised := .5 + errorFactor*math.Sqrt(2/1000.)*.5
	assert.InDelta(t, lags.Quantile(raised), lags.bound(.5, 1, 1000, nil), 1e-9)
	assert.Zero(t, lags.bound(.5, 1, 0, nil), "no turns")
	assert.Zero(t, new(Lags).bound(.5, 1, 1000, nil), "no samples")
}

// The error of a mean has that of the mean sample, of both probes the larger, and what requests were sent late.
func TestMeanError(t *testing.T) {
	var lag Lag
	assert.InDelta(t, unseenError, lag.MeanError(100), 1e-12)
	for range 100 {
		lag.Timer.Add(time.Millisecond)
		lag.Stream.Add(4 * time.Millisecond)
		lag.Send.Add(16 * time.Millisecond)
	}
	assert.InEpsilon(t, safetyFactor*.004+unseenError+.016, lag.MeanError(100), .125, "alike samples have no spread")
	assert.InDelta(t, unseenError, lag.MeanError(0), 1e-12)
	for range 100 {
		lag.Send.Add(32 * time.Millisecond)
	}
	few, many := lag.MeanError(4), lag.MeanError(400)
	assert.InEpsilon(t, errorFactor*.008*(math.Sqrt(1/4.+1/200.)-math.Sqrt(1/400.+1/200.)), few-many, .15)
}

// A row and a report get the error of the same turns.
func TestRowAndReportHaveTheError(t *testing.T) {
	var lag Lag
	for range 200 {
		lag.Timer.Add(2 * time.Millisecond)
		lag.Stream.Add(time.Millisecond)
	}
	summary := Summarize([]float64{.1, .2, .3, .4, .5, .6, .7, .8, .9, 1})
	summary.P50Interval = &[2]float64{.2, .9}
	report := Report{OK: 10, OutputTokens: 110}
	report.Window.Metrics.TPOT = summary
	report.Allow(&lag)
	row := api.BaselineRow{N: summary.N, TPOT: api.Percentiles{P50: summary.P50, P95: summary.P95}}
	widened := row
	widened.Intervals = &api.RowIntervals{TPOT: api.PercentileIntervals{P50: summary.P50Interval}}
	lag.AllowRow(&row, 11)
	lag.AllowRow(&widened, 11)
	assert.Equal(t, report.Window.Metrics.TPOT.P50Interval, widened.Intervals.TPOT.P50)
	want := (safetyFactor*lag.Quantile(.95) + unseenError) / 10
	assert.InDelta(t, want, *report.Window.Metrics.TPOT.P95Error, 1e-9)
	require.NotNil(t, row.Errors)
	assert.Equal(t, report.Window.Metrics.TPOT.P95Error, row.Errors.TPOT.P95)
	assert.Nil(t, row.Errors.TTFT.P95)
	assert.InDelta(t, lag.Quantile(.95), *row.LagSeconds, 1e-12)
	assert.Nil(t, row.Intervals.TPOT.P95, "an unknown interval stays unknown")
}
