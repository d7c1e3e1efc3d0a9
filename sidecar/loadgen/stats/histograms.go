package stats

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/workload"
)

// Classic buckets, in seconds and tokens. They include the default objectives.
var (
	ttftBuckets = []float64{.01, .025, .05, .1, .2, .3, .4, .5, .6, .8, 1, 1.5, 2, 3, 5, 7.5, 10, 15, 20, 30, 60}
	gapBuckets  = []float64{
		.001, .0025, .005, .0075, .01, .015, .02, .025, .03, .04, .05, .06, .08, .1, .15, .2, .3,
		.5, 1, 2.5,
	}
	latencyBuckets = []float64{.5, 1, 2, 3, 5, 7.5, 10, 15, 20, 25, 30, 40, 50, 60, 90, 120, 180, 300}
	inputBuckets   = []float64{
		128, 256, 512, 1024, 2048, 3072, 4096, 5120, 6144, 7168, 8192, 12288, 16384, 32768, 65536,
		131072,
	}
	outputBuckets = []float64{16, 32, 64, 128, 256, 384, 512, 640, 768, 896, 1024, 1536, 2048, 4096, 8192, 16384}
)

// maxTokensPerGap bounds the tokens of a gap. A histogram counts whole observations, so
// that an inter-token latency is observed once a token; a larger number is a server's error.
const maxTokensPerGap = 4096

// histograms holds those of one lane since the process began.
type histograms struct {
	times         [api.NumTimes]byTurn
	input, output byTurn

	// carry is the fraction of a token that was not observed yet, by turn: where tokens are
	// estimated, a gap's share of them need not be whole.
	carry [len(turnLabels)]float64
}

// byTurn is a histogram with the label turn. All its series exist from the start.
type byTurn struct {
	vec  *prometheus.HistogramVec
	turn [len(turnLabels)]prometheus.Observer
}

func newHistograms() *histograms {
	h := &histograms{
		input:  newByTurn("loadgen_input_tokens", "Prompt tokens of whole turns.", inputBuckets),
		output: newByTurn("loadgen_output_tokens", "Output tokens of whole turns.", outputBuckets),
	}
	for i, t := range times {
		h.times[i] = newByTurn(t.histogram(), t.Help+" Of whole turns.", t.buckets)
	}
	return h
}

// newByTurn makes a histogram with classic buckets, and native ones no wider than 10 %.
func newByTurn(name, help string, buckets []float64) byTurn {
	h := byTurn{vec: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: buckets,
		NativeHistogramBucketFactor:     1.1,
		NativeHistogramMaxBucketNumber:  160,
		NativeHistogramMinResetDuration: time.Hour,
	}, []string{"turn"})}
	for i, label := range turnLabels {
		h.turn[i] = h.vec.WithLabelValues(label)
	}
	return h
}

func (h *histograms) all() []prometheus.Collector {
	all := []prometheus.Collector{h.input.vec, h.output.vec}
	for i := range h.times {
		all = append(all, h.times[i].vec)
	}
	return all
}

// observe adds a whole turn with its gaps, and returns the count and sum of its observed inter-token
// latencies. It is not safe for concurrent use.
func (h *histograms) observe(one *workload.Outcome, gaps []chat.Gap) (n uint64, total float64) {
	turn := turnIndex(one.Number)
	for i := range times {
		if times[i].of != nil {
			observe(h.times[i].turn[turn], times[i].of(one))
		}
	}
	if one.PromptTokens > 0 { // 0 where the server did not report it
		h.input.turn[turn].Observe(float64(one.PromptTokens))
	}
	h.output.turn[turn].Observe(float64(one.OutputTokens))
	for _, g := range gaps {
		if !possible(g) {
			continue
		}
		h.carry[turn] += min(g.Tokens, maxTokensPerGap)
		whole := uint64(h.carry[turn])
		h.carry[turn] -= float64(whole)
		for range whole {
			h.times[api.TimeITL].turn[turn].Observe(g.Seconds)
		}
		n += whole
		total += float64(whole) * g.Seconds
	}
	return n, total
}

func observe(o prometheus.Observer, seconds float64) {
	if defined(seconds) {
		o.Observe(seconds)
	}
}
