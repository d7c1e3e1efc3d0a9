// Package plausible holds the ranges that numbers from other programs must lie in.
// Readers ignore numbers outside of them. This package counts those.
package plausible

import (
	"log/slog"
	"maps"
	"math"
	"sync"
)

// Range is the range of a kind of number, both ends included.
type Range struct {
	Min, Max float64
	Whole    bool // only whole numbers
}

// The ranges of all numbers that the load generator reads. They are wide: a number
// outside is an error of the program that sent it, or an attack, never load.
var (
	Tokens   = Range{0, 1e7, true}      // of one prompt or answer
	Ratio    = Range{0, 1, false}       // shares and hit rates
	Requests = Range{0, 1e7, false}     // in progress or queued; a mean has fractions
	Seconds  = Range{0, 86400, false}   // of one request
	Total    = Range{0, 1 << 53, false} // counters; above, a float64 cannot represent all whole numbers
	Percent  = Range{0, 100, false}
	MiB      = Range{0, 1 << 30, false} // of a GPU's memory
	Watts    = Range{0, 1e4, false}     // of a GPU
	PerStep  = Range{0, 1000, false}    // tokens of one forward pass
)

// Source is where a number was read.
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

// Has reports whether v lies in the range; NaN lies in none. A number outside is counted for its
// source, and the first one of each source is logged with its name, such as "usage.prompt_tokens".
// It is safe for concurrent use.
func (r Range) Has(from Source, name string, v float64) bool {
	if v >= r.Min && v <= r.Max && (!r.Whole || v == math.Trunc(v)) {
		return true
	}
	mu.Lock()
	defer mu.Unlock()
	if rejected[from]++; rejected[from] == 1 {
		logger.Warn("an implausible value was ignored; "+
			"further ones from this source are counted in loadgen_implausible_values_total",
			"source", string(from), "name", name, "value", v, "least", r.Min, "most", r.Max, "whole", r.Whole)
	}
	return false
}

// Rejected returns the number of values outside of their range since the process began, by source.
func Rejected() map[Source]int64 {
	mu.Lock()
	defer mu.Unlock()
	return maps.Clone(rejected)
}

// LogTo sets the log of [Range.Has]. Before the first call, nothing is logged.
func LogTo(log *slog.Logger) {
	mu.Lock()
	defer mu.Unlock()
	logger = log
}
