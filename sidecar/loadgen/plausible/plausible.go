// Package plausible holds the ranges that numbers from other programs must lie in.
// What lies outside is dropped by whoever read it, and counted here.
package plausible

import (
	"log/slog"
	"maps"
	"math"
	"sync"
)

// Range is what a kind of number may be, both ends included.
type Range struct {
	Min, Max float64
	Whole    bool // no fractions
}

// The ranges of all that the load generator reads. They are wide: what lies outside
// is a fault of the program that tells it, or malice, never load.
var (
	Tokens   = Range{0, 1e7, true}      // of one prompt or answer
	Ratio    = Range{0, 1, false}       // shares and hit rates
	Requests = Range{0, 1e7, false}     // in progress or queued; a mean has fractions
	Seconds  = Range{0, 86400, false}   // of one request
	Total    = Range{0, 1 << 53, false} // of what adds up since a process began; beyond, a float64 skips numbers
	Percent  = Range{0, 100, false}
	MiB      = Range{0, 1 << 30, false} // of a GPU's memory
	PerStep  = Range{0, 1000, false}    // tokens of one forward pass
)

// Source is who told a number.
type Source string

// All sources.
const (
	Target     Source = "target"     // the answers of the server under load
	Metrics    Source = "metrics"    // a page of metrics
	Prometheus Source = "prometheus" // a query's result
)

var (
	mu       sync.Mutex
	rejected = map[Source]int64{Target: 0, Metrics: 0, Prometheus: 0}
	logger   = slog.New(slog.DiscardHandler)
)

// Has says whether v lies in the range; NaN lies in none. What does not is counted
// for its source, and the first of each source is logged under its name, such as
// "usage.prompt_tokens". It is safe for concurrent use.
func (r Range) Has(from Source, name string, v float64) bool {
	if v >= r.Min && v <= r.Max && (!r.Whole || v == math.Trunc(v)) {
		return true
	}
	mu.Lock()
	defer mu.Unlock()
	if rejected[from]++; rejected[from] == 1 {
		logger.Warn(
			"an implausible value was ignored; further ones from this source are counted in loadgen_implausible_values_total",
			"source",
			string(from),
			"name",
			name,
			"value",
			v,
			"least",
			r.Min,
			"most",
			r.Max,
			"whole",
			r.Whole,
		)
	}
	return false
}

// Rejected is how many values of each source lay outside of their range since the
// process began.
func Rejected() map[Source]int64 {
	mu.Lock()
	defer mu.Unlock()
	return maps.Clone(rejected)
}

// LogTo says where [Range.Has] logs; nowhere before.
func LogTo(log *slog.Logger) {
	mu.Lock()
	defer mu.Unlock()
	logger = log
}
