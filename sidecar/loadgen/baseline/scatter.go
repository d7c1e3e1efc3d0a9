package baseline

import (
	"slices"

	"kvbooth/sidecar/api"
)

// scatter is by how much a recorded value differs from what another run of the same
// would have recorded: one standard deviation, as a share of the value, of the hit
// ratio itself. No recorded table tells it, so it is estimated, and everything that
// rests on it says so: from the second differences over the levels of
// h200x3-tp1-llama70b-fp8, which are 0 on a straight line, so that what is left is
// mostly scatter (Gasser, Sroka and Jennen-Steinmetz, Biometrika 73, 1986). The
// median of their sizes, over .6745, is not misled by the few levels at which the
// curve does bend. TestScatter computes them, and holds these roundings-up against
// them. One table has to do for all: others have fewer levels or fewer columns.
type scatter struct {
	share float64 // of the value
	fixed float64 // in the value's unit
}

var (
	scatterTTFT     = [2]scatter{{share: .02}, {share: .05}} // of p50 and p95
	scatterTPOT     = [2]scatter{{share: .015}, {share: .015}}
	scatterLatency  = [2]scatter{{share: .03}, {share: .02}}
	scatterOutput   = scatter{share: .015}
	scatterRequests = scatter{share: .035}
	scatterHits     = scatter{fixed: .02}
)

// normal is the 97.5 % quantile of the normal distribution.
const normal = 1.960

// interval is the 95 % interval of a recorded value.
func (s scatter) interval(value float64) *[2]float64 {
	half := normal * (s.fixed + s.share*value)
	return &[2]float64{value - half, value + half}
}

// estimate gives the values of a column that were recorded without an interval the
// one that they are estimated to have. ITL is recorded nowhere.
func estimate(c *api.Column) {
	for _, of := range []struct {
		value   *api.LookedUp
		scatter scatter
	}{
		{&c.TTFT.P50, scatterTTFT[0]},
		{&c.TTFT.P95, scatterTTFT[1]},
		{&c.TPOT.P50, scatterTPOT[0]},
		{&c.TPOT.P95, scatterTPOT[1]},
		{&c.Latency.P50, scatterLatency[0]},
		{&c.Latency.P95, scatterLatency[1]},
		{&c.OutputTokensPerSecond, scatterOutput},
		{&c.RequestsPerSecond, scatterRequests},
		{&c.KVHitRatio, scatterHits},
	} {
		if of.value.Value != nil && of.value.Interval == nil {
			of.value.Interval, of.value.Estimated = of.scatter.interval(*of.value.Value), true
		}
	}
}

// WithIntervals gives a copy of a baseline in which every row that was recorded without intervals
// has those that its values are estimated to have, where [At] estimates them.
func WithIntervals(b api.Baseline) api.Baseline {
	b.Rows = slices.Clone(b.Rows)
	for i := range b.Rows {
		r := &b.Rows[i]
		if r.Intervals != nil {
			continue
		}
		c, _ := At(b, r.Mode, r.Speculation, r.Concurrency)
		pair := func(l api.LookedUpPair) api.PercentileIntervals {
			return api.PercentileIntervals{P50: l.P50.Interval, P95: l.P95.Interval}
		}
		r.Intervals = &api.RowIntervals{
			TTFT: pair(c.TTFT), TPOT: pair(c.TPOT), ITL: pair(c.ITL), Latency: pair(c.Latency),
			OutputTokensPerSecond: c.OutputTokensPerSecond.Interval, RequestsPerSecond: c.RequestsPerSecond.Interval,
			KVHitRatio: c.KVHitRatio.Interval,
		}
	}
	return b
}
