package cluster

import (
	"hash/maphash"
	"slices"
	"time"

	"github.com/prometheus/common/model"
)

// window is the time over which increases are computed.
const window = 60 * time.Second

// maxSeries bounds the memory for a target that renames its series each second.
const maxSeries = 2 * maxSamples

// history keeps the counters of the last 60 s. The zero value is ready to use. It is not safe for concurrent use.
type history struct {
	series    map[seriesKey]*series
	processes processes
}

// seriesKey is a hash of a series' name and labels.
type seriesKey uint64

// series is one counter without its resets: total never falls.
type series struct {
	value  float64 // value at the last reading
	total  float64
	points []point // within the window, oldest first; the newest holds total
}

type point struct {
	at    time.Time
	total float64
}

var labelSeed = maphash.MakeSeed()

// keyOf hashes a name and labels. It is cheaper than a fingerprint, because the sum needs no sorting of the labels.
func keyOf(s Sample) seriesKey {
	if s.key != 0 {
		return s.key
	}
	type pair struct{ name, value string }
	sum := maphash.String(labelSeed, s.Name)
	for name, value := range s.Labels {
		sum += maphash.Comparable(labelSeed, pair{string(name), string(value)})
	}
	return seriesKey(sum)
}

// add takes in a reading and drops points older than the window. It returns each
// series of the reading once, since a page may repeat one, with its growth.
func (h *history) add(now time.Time, samples []Sample) []Sample {
	seen := make(map[seriesKey]bool, len(samples))
	samples = slices.DeleteFunc(samples, func(s Sample) bool {
		key := keyOf(s)
		again := seen[key]
		seen[key] = true
		return again
	})
	if h.series == nil {
		h.series, h.processes = map[seriesKey]*series{}, processes{}
	}
	unsettled := h.processes.observe(now, samples, h.fell)
	var pages []Sample
	for i, s := range samples {
		if isCounter(s.Name) {
			if isWorkerSample(s) && unsettled[pageOf(s)] {
				delete(h.series, keyOf(s))
			}
			samples[i].growth, samples[i].step = h.observe(now, s)
		}
		if isFrontends(s.Name) {
			pages = append(pages, frontendPage(s))
		}
	}
	for _, p := range pages {
		h.observe(now, p)
	}
	for key, s := range h.series {
		for len(s.points) > 0 && now.Sub(s.points[0].at) > window {
			s.points = s.points[1:]
		}
		if len(s.points) == 0 {
			delete(h.series, key)
		}
	}
	return samples
}

// fell reports whether a counter is below its value at the reading before.
func (h *history) fell(sample Sample) bool {
	s := h.series[keyOf(sample)]
	return s != nil && sample.Value < s.value
}

// frontendPage returns a series that stands for the page of a frontend's sample. It is in the history as long as the
// page is read.
func frontendPage(s Sample) Sample {
	return Sample{Name: "page", Labels: model.LabelSet{
		model.InstanceLabel: s.Labels[model.InstanceLabel], model.JobLabel: s.Labels[model.JobLabel],
	}}
}

// observe adds a sample and returns its growth: within the window, and since the
// last reading. Growth is never negative: a counter that has fallen was reset to
// zero by a restart, so its whole value is growth. The value of a series at its
// first reading is not growth, nor is a series beyond maxSeries. A frontend has most
// of its counters only from the first request on: on a page that was read before
// that, they begin at zero.
func (h *history) observe(now time.Time, sample Sample) (growth, step float64) {
	key := keyOf(sample)
	s, known := h.series[key]
	switch {
	case !known && len(h.series) >= maxSeries:
		return 0, 0
	case !known:
		s = &series{}
		h.series[key] = s
		page := h.series[keyOf(frontendPage(sample))]
		if isFrontends(sample.Name) && sample.Labels[model.InstanceLabel] != "" && page != nil {
			s.points = append(s.points, point{now, 0})
			step = sample.Value
		}
	case sample.Value >= s.value:
		step = sample.Value - s.value
	default:
		step = sample.Value
	}
	s.total += step
	s.value = sample.Value
	s.points = append(s.points, point{now, s.total})
	first := slices.IndexFunc(s.points, func(p point) bool { return now.Sub(p.at) <= window })
	return s.total - s.points[first].total, step
}
