package cluster

import (
	"maps"
	"slices"

	"github.com/prometheus/common/model"
)

// reading is a set of samples by metric name. Nil results mean that no sample tells.
type reading map[string][]Sample

func newReading(samples []Sample) reading {
	r := reading{}
	for _, s := range samples {
		if !isSecondEndpoint(s) && !slices.Contains(processStart, s.Name) {
			r.put(s)
		}
	}
	return r
}

func (r reading) put(s Sample) { r[s.Name] = append(r[s.Name], s) }

// isSecondEndpoint tells the series that a worker writes for the endpoint at
// which routers ask for its cache's state. Those are no requests of users.
func isSecondEndpoint(s Sample) bool {
	endpoint := s.Labels["dynamo_endpoint"]
	return endpoint != "" && endpoint != generate
}

// of gives the samples of the first name that has any.
func (r reading) of(m metric) []Sample {
	for _, name := range m {
		if samples := r[name]; len(samples) > 0 {
			return samples
		}
	}
	return nil
}

func (r reading) has(m metric) bool { return len(r.of(m)) > 0 }

func (r reading) sum(m metric) *float64 {
	return fold(r.of(m), func(total, v float64) float64 { return total + v })
}

func (r reading) max(m metric) *float64 {
	return fold(r.of(m), func(most, v float64) float64 { return max(most, v) })
}

func (r reading) mean(m metric) *float64 {
	sum := r.sum(m)
	if sum == nil {
		return nil
	}
	return new(*sum / float64(len(r.of(m))))
}

func fold(samples []Sample, add func(a, b float64) float64) *float64 {
	if len(samples) == 0 {
		return nil
	}
	result := samples[0].Value
	for _, s := range samples[1:] {
		result = add(result, s.Value)
	}
	return &result
}

// increase is the growth of a counter over the window, all its present series together.
func (r reading) increase(m metric) float64 {
	total := 0.0
	for _, s := range r.of(m) {
		total += s.growth
	}
	return total
}

// step is the growth of a counter since the reading before, all its present series together.
func (r reading) step(m metric) float64 {
	total := 0.0
	for _, s := range r.of(m) {
		total += s.step
	}
	return total
}

// hasFrontend reports whether a Dynamo frontend is among the pages. Before its first request it reports neither its
// queue nor tokens, but the models that it serves.
func (r reading) hasFrontend() bool {
	for name := range r {
		if isFrontends(name) {
			return true
		}
	}
	return false
}

// ratio divides two counters' increases over the window. It is nil where either
// is absent or the lower one did not move.
func (r reading) ratio(over, under metric) *float64 {
	moved := r.increase(under)
	if !r.has(over) || moved == 0 {
		return nil
	}
	return new(r.increase(over) / moved)
}

// label gives the first value, in the order of the alphabet, that a label has
// on the samples of any of the metrics.
func (r reading) label(name model.LabelName, metrics ...metric) string {
	values := make(map[string]bool)
	for _, m := range metrics {
		for _, s := range r.of(m) {
			values[string(s.Labels[name])] = true
		}
	}
	delete(values, "")
	if len(values) == 0 {
		return ""
	}
	return slices.Min(slices.Collect(maps.Keys(values)))
}
