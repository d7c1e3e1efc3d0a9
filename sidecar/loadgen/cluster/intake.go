package cluster

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"

	"github.com/prometheus/common/model"

	"kvbooth/sidecar/loadgen/chat/plausible"
)

// seriesCache holds the series of earlier answers of one page or server by the text
// that names them. Most series return every second, and parsing their labels again
// would be most of the work. It is safe for concurrent use.
type seriesCache struct {
	mu     sync.Mutex
	series map[string]Sample // samples without values; shared, so read-only
	bytes  int
}

// find returns the series that a text names. parse is called for a new text and
// returns nil labels for an invalid one.
func (c *seriesCache) find(
	text []byte, parse func(text []byte) (name string, labels model.LabelSet),
) (s Sample, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s, ok = c.series[string(text)]; ok {
		return s, true
	}
	s.Name, s.Labels = parse(text)
	if s.Labels == nil {
		return s, false
	}
	for _, value := range s.Labels {
		if len(value) > maxLabel {
			return s, false
		}
	}
	s.locate()
	s.worker, s.key = workerID(s), keyOf(s)
	if engineOf(s.Name) != "" {
		s.scheduler, s.rank, _ = s.schedulerOf()
	}
	if c.bytes += len(text); c.series == nil || c.bytes > 2*maxBody {
		c.series = map[string]Sample{}
		c.bytes = len(text)
	}
	c.series[string(text)] = s
	return s, true
}

// intake collects the samples of one answer, within the bounds on their number and
// on each value.
type intake struct {
	from       plausible.Source
	samples    []Sample
	full       bool   // more than maxSamples were read
	impossible string // metric with a value out of range, the alphabetically first
	unreadable bool   // some samples are too long or not in the format
	read       int
}

// room counts one more sample, valid or not, and reports whether it is within maxSamples.
func (in *intake) room() bool {
	in.read++
	in.full = in.full || in.read > maxSamples
	return !in.full
}

// add keeps a sample. NaN, and a hit rate of -1, mean that the value is unknown.
func (in *intake) add(s Sample, number string) {
	allowed, wanted := wanted[s.Name]
	value, err := strconv.ParseFloat(number, 64)
	switch {
	case !wanted:
	// beyond a float64's bounds it is infinite, and out of every range
	case err != nil && !errors.Is(err, strconv.ErrRange):
		in.unreadable = true
	case math.IsNaN(value), value == -1 && slices.Contains(engineHitRate, s.Name):
	case allowed.Has(in.from, s.Name, value):
		s.Value = value
		in.samples = append(in.samples, s)
	case in.impossible == "" || s.Name < in.impossible:
		in.impossible = s.Name
	}
}

// omissions returns an error that describes the omitted samples, or nil if there are none. Equal
// reasons give an equal text.
func (in *intake) omissions() error {
	var errs []error
	if in.full {
		errs = append(errs, fmt.Errorf("cut after %d samples", maxSamples))
	}
	if in.impossible != "" {
		errs = append(errs, fmt.Errorf("impossible values are left out, such as one of %s", in.impossible))
	}
	if in.unreadable {
		errs = append(errs, errors.New("samples that cannot be read, or are too long, are left out"))
	}
	return errors.Join(errs...)
}
