package proof

import (
	"cmp"
	"math"

	"gonum.org/v1/gonum/stat"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
)

// Metric is a quantity that a trial compares. In the times of a trial, a failed turn counts as slower than every
// successful turn.
type Metric string

// The metrics.
const (
	MeanTTFT Metric = "ttft_mean"
	TTFT95   Metric = "ttft_p95"
	TTFT50   Metric = "ttft_p50"
	// LaterTTFT95 covers the second and later turns, whose conversation may be in a worker's cache.
	LaterTTFT95 Metric = "ttft_p95_turn2+"
	TPOT95      Metric = "tpot_p95"
	Throughput  Metric = "output_tokens_per_second"
	HitRate     Metric = "kv_hit_ratio"
	// Goodput is the share of whole turns within all SLOs among all ended turns, failed ones included.
	Goodput Metric = "goodput"

	// GoodRate is the number of whole turns within all SLOs in a second.
	GoodRate Metric = "good_turns_per_second"

	// AnswerTokens is the mean number of output tokens of a successful turn, by usage.
	AnswerTokens Metric = "output_tokens_per_turn"
	// StopShare and LengthShare are the shares of successful turns with that finish reason.
	StopShare   Metric = "finish_stop"
	LengthShare Metric = "finish_length"

	// firstThird and otherThirds are the deciding metric in the first third of what counts and in the rest, on the scale
	// of differences, and afterEffect is how far the first is above the rest.
	firstThird  Metric = "first_third"
	otherThirds Metric = "other_thirds"
	afterEffect Metric = "after_effect"
)

// Guards lists the metrics in which arms may not differ by more than [decide.GuardMargin] where one is called better.
var Guards = []Metric{AnswerTokens, StopShare, LengthShare}

// Energy is the energy of the workers' GPUs per million output tokens.
const Energy Metric = "joules_per_million_tokens"

// Secondary lists the metrics in which an arm that is called better may not certainly be worse by more than the
// smallest difference of interest. The price of tokens is not among them, since it is inverse to the throughput.
var Secondary = []Metric{Throughput, TPOT95, Energy}

// Metrics lists the metrics of every trial and every run, in the order of tables. [LaterTTFT95] is not included: only a
// trial that is decided by it reports it.
var Metrics = []Metric{MeanTTFT, TTFT95, TTFT50, TPOT95, Throughput, HitRate, Goodput}

// metrics maps each metric to its name in sentences and its kind.
var metrics = map[Metric]struct {
	name string
	kind baseline.Kind
}{
	MeanTTFT: {"mean TTFT", baseline.Time}, TTFT95: {"TTFT p95", baseline.Time}, TTFT50: {"TTFT p50", baseline.Time},
	LaterTTFT95: {"TTFT p95 from turn 2 on", baseline.Time}, TPOT95: {"TPOT p95", baseline.Time},
	Throughput: {"throughput", baseline.Rate}, HitRate: {"KV cache hit rate", baseline.Share},
	Goodput: {"goodput", baseline.Share}, GoodRate: {"turns per second within the SLOs", baseline.Rate},
	AnswerTokens: {"output tokens per answer", baseline.Rate},
	StopShare:    {"answers with finish reason stop", baseline.Share},
	LengthShare:  {"answers with finish reason length", baseline.Share},
	firstThird:   {"", baseline.Share}, otherThirds: {"", baseline.Share}, afterEffect: {"", baseline.Share},
}

func init() {
	for _, f := range api.Costs {
		about := metrics[Metric(f.Key)]
		if about.name, about.kind = f.InSentence(), baseline.Rate; f.Better == api.BetterLower {
			about.kind = baseline.Amount
		}
		metrics[Metric(f.Key)] = about
	}
}

// Name returns the metric's name in sentences.
func (m Metric) Name() string { return cmp.Or(metrics[m].name, string(m)) }

// Share reports whether the metric is a share from 0 to 1. A difference of 0.01 is one percentage point for shares, and
// one per cent for times and rates.
func (m Metric) Share() bool { return metrics[m].kind == baseline.Share }

// Time reports whether the metric is a time of turns, in seconds.
func (m Metric) Time() bool { return metrics[m].kind == baseline.Time }

// LessIsBetter reports whether a smaller value is better, as for times.
func (m Metric) LessIsBetter() bool { return metrics[m].kind.LessIsBetter() }

// scaled converts a value to the scale of differences. Times and rates become natural logarithms, since the effect of a
// router on them is relative. Shares are unchanged.
func (m Metric) scaled(value float64) float64 { return scaled(metrics[m].kind, value) }

// unscaled is the inverse of scaled.
func (m Metric) unscaled(value float64) float64 { return unscaled(metrics[m].kind, value) }

// tally holds the counted values of a section of a span, or of the whole span. Times are in seconds.
type tally struct {
	times           [api.NumTimes][]float64
	waits           []float64 // [wait] of failed turns
	later           []float64 // TTFT from turn 2 on
	laterWaits      []float64 // [wait] of failed turns from turn 2 on
	tokens, seconds float64
	prompt, cached  float64
	ended, good     float64
	answers         float64            // successful turns
	reported        float64            // successful turns whose output tokens the server reported
	answerTokens    float64            // output tokens of these
	finished        map[string]float64 // successful turns by finish reason; unknown ones are left out
}

// value returns a metric of the counted turns, NaN if it was not measured.
func (t *tally) value(m Metric) float64 {
	switch m {
	case MeanTTFT:
		return stat.Mean(t.times[api.TimeTTFT], nil)
	case TTFT95:
		return percentile(t.times[api.TimeTTFT], .95)
	case TTFT50:
		return percentile(t.times[api.TimeTTFT], .5)
	case LaterTTFT95:
		return percentile(t.later, .95)
	case TPOT95:
		return percentile(t.times[api.TimeTPOT], .95)
	case Throughput:
		return t.tokens / t.seconds
	case HitRate:
		return t.cached / t.prompt
	case Goodput:
		return t.good / t.ended
	case GoodRate:
		return t.good / t.seconds
	case AnswerTokens:
		if t.reported < t.answers {
			return math.NaN()
		}
		return t.answerTokens / t.reported
	case StopShare:
		return t.finishShare("stop")
	case LengthShare:
		return t.finishShare("length")
	}
	return math.NaN()
}

// costs returns the costs of the counted turns.
func (t *tally) costs(b api.CostBasis) api.Cost {
	b.Tokens, b.GoodTurns = new(t.tokens/t.seconds), new(t.good/t.seconds)
	if len(t.times[api.TimeTPOT]) > 0 {
		b.TPOT = new(percentile(t.times[api.TimeTPOT], .5))
	}
	return b.Cost()
}

// finishShare returns the share of a finish reason, NaN if none is known.
func (t *tally) finishShare(reason string) float64 {
	all := 0.0
	for _, n := range t.finished {
		all += n
	}
	return t.finished[reason] / all
}
