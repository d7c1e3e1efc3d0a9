package cluster

import (
	"maps"
	"slices"
	"strconv"

	"github.com/prometheus/common/model"

	"kvbooth/sidecar/loadgen/chat/plausible"
)

// reading holds samples by metric name. Its methods return nil where the samples are missing.
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

// isSecondEndpoint reports whether a worker wrote a series for the endpoint at which
// routers read the state of its cache. Its requests are not users' requests.
func isSecondEndpoint(s Sample) bool {
	endpoint := s.Labels["dynamo_endpoint"]
	return endpoint != "" && endpoint != generate
}

// samples returns the samples of the first name that has any.
func (r reading) samples(m metric) []Sample {
	for _, name := range m {
		if samples := r[name]; len(samples) > 0 {
			return samples
		}
	}
	return nil
}

func (r reading) has(m metric) bool { return len(r.samples(m)) > 0 }

func (r reading) sum(m metric) *float64 {
	return fold(r.samples(m), func(total, v float64) float64 { return total + v })
}

func (r reading) max(m metric) *float64 {
	return fold(r.samples(m), func(most, v float64) float64 { return max(most, v) })
}

func (r reading) mean(m metric) *float64 {
	sum := r.sum(m)
	if sum == nil {
		return nil
	}
	return new(*sum / float64(len(r.samples(m))))
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

// increase sums the growth over the window of all present series of a counter.
func (r reading) increase(m metric) float64 {
	total := 0.0
	for _, s := range r.samples(m) {
		total += s.growth
	}
	return total
}

// step sums the growth since the previous reading of all present series of a counter.
func (r reading) step(m metric) float64 {
	total := 0.0
	for _, s := range r.samples(m) {
		total += s.step
	}
	return total
}

// hasFrontend reports whether a Dynamo frontend is among the pages. Before its first request a frontend reports neither
// its queue nor tokens, only the models that it serves.
func (r reading) hasFrontend() bool {
	for name := range r {
		if isFrontends(name) {
			return true
		}
	}
	return false
}

// ratio divides the increases of two counters over the window. It is nil where
// either is missing or the divisor has not grown.
func (r reading) ratio(over, under metric) *float64 {
	moved := r.increase(under)
	if !r.has(over) || moved == 0 {
		return nil
	}
	return new(r.increase(over) / moved)
}

// maxLabel returns the largest number in a label on the samples of a metric. It is nil without a plausible number.
func (r reading) maxLabel(name model.LabelName, m metric) (most *float64) {
	for _, s := range r.samples(m) {
		v, err := strconv.ParseFloat(string(s.Labels[name]), 64)
		if err == nil && plausible.Total.Has(plausible.Metrics, s.Name, v) && (most == nil || v > *most) {
			most = &v
		}
	}
	return most
}

// label returns the alphabetically first value of a label on the samples of any of
// the metrics.
func (r reading) label(name model.LabelName, metrics ...metric) string {
	values := make(map[string]bool)
	for _, m := range metrics {
		for _, s := range r.samples(m) {
			values[string(s.Labels[name])] = true
		}
	}
	delete(values, "")
	if len(values) == 0 {
		return ""
	}
	return slices.Min(slices.Collect(maps.Keys(values)))
}
