package cluster

import (
	"slices"
	"time"

	"github.com/prometheus/common/model"
)

// window is the time over which increases are taken.
const window = 60 * time.Second

// history keeps the counters of the last 60 s. It is not safe for concurrent use.
type history map[seriesKey]*series

type seriesKey struct {
	name   string
	labels model.Fingerprint
}

// series is one counter without its resets: total only grows.
type series struct {
	value  float64 // as last read
	total  float64
	points []point // of the window, oldest first; the newest holds total
}

type point struct {
	at    time.Time
	total float64
}

func keyOf(s Sample) seriesKey {
	return seriesKey{s.Name, s.Labels.Fingerprint()}
}

// add takes in a reading and forgets what is older than the window.
func (h history) add(now time.Time, samples []Sample) {
	for _, s := range samples {
		if isCounter(s.Name) {
			h.observe(now, s)
		}
	}
	for key, s := range h {
		s.points = slices.DeleteFunc(s.points, func(p point) bool { return now.Sub(p.at) > window })
		if len(s.points) == 0 {
			delete(h, key)
		}
	}
}

// observe adds the growth since the last reading. A counter that has fallen was
// reset to zero by a restart, so that all of its value is growth. What a series
// counted before it was first read is unknown and left out.
func (h history) observe(now time.Time, sample Sample) {
	key := keyOf(sample)
	s, known := h[key]
	switch {
	case !known:
		s = &series{}
		h[key] = s
	case sample.Value >= s.value:
		s.total += sample.Value - s.value
	default:
		s.total += sample.Value
	}
	s.value = sample.Value
	s.points = append(s.points, point{now, s.total})
}

// increase is how much a counter grew within the window; never negative.
func (h history) increase(sample Sample) float64 {
	s, known := h[keyOf(sample)]
	if !known {
		return 0
	}
	return s.total - s.points[0].total
}
