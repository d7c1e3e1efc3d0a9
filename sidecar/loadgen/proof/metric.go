package proof

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"kvbooth/sidecar/api"
)

// Metric is what a trial compares. A failed turn counts in the times of a trial as slower than every successful one.
type Metric string

// The metrics.
const (
	MeanTTFT Metric = "ttft_mean"
	TTFT95   Metric = "ttft_p95"
	TTFT50   Metric = "ttft_p50"
	// LaterTTFT95 is of the turns whose conversation a worker may have cached: the second and later.
	LaterTTFT95 Metric = "ttft_p95_turn2+"
	TPOT95      Metric = "tpot_p95"
	Throughput  Metric = "output_tokens_per_second"
	HitRate     Metric = "kv_hit_ratio"
	// Goodput is the share of ended turns, the failed among them, that were whole and within all SLOs.
	Goodput Metric = "goodput"
)

// Metrics are those that every trial and every run reports, in the order of tables: all but [LaterTTFT95], which only
// a trial that is decided by it reports.
var Metrics = []Metric{MeanTTFT, TTFT95, TTFT50, TPOT95, Throughput, HitRate, Goodput}

// known reports whether a trial may be decided by the metric.
func (m Metric) known() bool { return slices.Contains(api.SweepMetrics, string(m)) }

// metrics are what sentences call the metrics, and what sort of quantity each is.
var metrics = map[Metric]struct {
	name string
	kind kind
}{
	MeanTTFT: {"mean TTFT", duration}, TTFT95: {"TTFT p95", duration}, TTFT50: {"TTFT p50", duration},
	LaterTTFT95: {"TTFT p95 from turn 2 on", duration}, TPOT95: {"TPOT p95", duration},
	Throughput: {"throughput", rate}, HitRate: {"KV cache hit rate", share}, Goodput: {"goodput", share},
}

// Name is what sentences call the metric.
func (m Metric) Name() string { return cmp.Or(metrics[m].name, string(m)) }

// Share says whether the metric is a share from 0 to 1. Differences of shares are in points,
// so that .01 is one percentage point; those of times and rates are relative, so
// that .01 is one per cent.
func (m Metric) Share() bool { return metrics[m].kind == share }

// LessIsBetter is so of times.
func (m Metric) LessIsBetter() bool { return metrics[m].kind.lessIsBetter() }

// scaled brings a value to the scale on which differences are taken: the natural logarithm of times
// and rates, since a router makes them so many per cent larger or smaller, and shares as they are.
func (m Metric) scaled(value float64) float64 { return metrics[m].kind.scaled(value) }

// unscaled is the inverse of scaled.
func (m Metric) unscaled(value float64) float64 { return metrics[m].kind.unscaled(value) }

// relative brings a difference from the scale to what is shown of it.
func (m Metric) relative(difference float64) float64 {
	if m.Share() {
		return difference
	}
	return math.Expm1(difference)
}

// margin brings a difference as it is shown to the scale: that upwards, which is the
// smaller of the two for a relative one.
func (m Metric) margin(difference float64) float64 {
	if m.Share() {
		return difference
	}
	return math.Log1p(difference)
}

// Turn is one turn of a span. Its times are seconds since the span's beginning.
type Turn struct {
	Number       int // in its conversation, from 1
	Sent         float64
	FirstToken   float64 // 0: none came
	Ended        float64 // 0: it was cancelled with the span
	Failed       bool    // it ended in an error
	OutputTokens int
	PromptTokens int
	CachedTokens int // of the prompt
	HasCached    bool
	Buffered     bool // its tokens came in bursts, and its TPOT is unknown
}

// good reports whether an ended turn is whole and within the SLOs, as the window judges it: an
// unknown TPOT meets none.
func (t *Turn) good(slo api.SLO) bool {
	tpot, ok := t.tpot()
	return !t.Failed && t.FirstToken > 0 && t.FirstToken-t.Sent <= slo.TTFT && !t.Buffered && (!ok || tpot <= slo.TPOT)
}

// wait is how long a failed turn waited for its first token, or for its end where none came.
func (t *Turn) wait() float64 {
	if t.FirstToken > 0 {
		return t.FirstToken - t.Sent
	}
	return t.Ended - t.Sent
}

// tpot is the mean time of an output token after the first; false below two, and where it is
// unknown.
func (t *Turn) tpot() (float64, bool) {
	return (t.Ended - t.FirstToken) / float64(t.OutputTokens-1), t.OutputTokens >= 2 && !t.Buffered
}

// tally is what is counted in a section of a span, or in all of it.
type tally struct {
	ttft, tpot      []float64
	latency         []float64
	waits           []float64 // of failed turns, for their first tokens
	later           []float64 // TTFT from turn 2 on
	laterWaits      []float64
	tokens, seconds float64
	prompt, cached  float64
	ended, good     float64
}

// value returns a metric of the counted turns, NaN if it was not measured.
func (t *tally) value(m Metric) float64 {
	switch m {
	case MeanTTFT:
		return stat.Mean(t.ttft, nil)
	case TTFT95:
		return percentile(t.ttft, .95)
	case TTFT50:
		return percentile(t.ttft, .5)
	case LaterTTFT95:
		return percentile(t.later, .95)
	case TPOT95:
		return percentile(t.tpot, .95)
	case Throughput:
		return t.tokens / t.seconds
	case HitRate:
		return t.cached / t.prompt
	case Goodput:
		return t.good / t.ended
	}
	return math.NaN()
}
