package cluster

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"

	"github.com/prometheus/common/model"

	"kvbooth/sidecar/loadgen/plausible"
)

// catalogue holds the series of earlier answers of one place by the text that
// names them. Most come again every second, and to parse their labels anew would
// be most of the work. It is safe for concurrent use.
type catalogue struct {
	mu     sync.Mutex
	series map[string]Sample // without values; shared, so never written to
	bytes  int
}

// find gives the series that a text names; parse does where it is a new one, and
// gives nil labels for a text that cannot be read.
func (c *catalogue) find(
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
	s.worker, s.key = workerID(s), keyOf(s)
	if engineOf(s.Name) != "" {
		s.scheduler, s.rank, _ = s.schedulerOf()
	}
	if c.bytes += len(text); c.series == nil || c.bytes > 2*maxBody {
		c.series, c.bytes = map[string]Sample{}, len(text)
	}
	c.series[string(text)] = s
	return s, true
}

// intake takes in what one answer tells, within the bounds of what is kept and
// of what each number may be.
type intake struct {
	from       plausible.Source
	samples    []Sample
	full       bool   // there are more than maxSamples
	impossible string // of the metrics with values out of their range the first by name
	unreadable bool   // some samples are too long, or not in the format
	told       int
}

// room tells whether one more sample is read, good or not.
func (in *intake) room() bool {
	in.told++
	in.full = in.full || in.told > maxSamples
	return !in.full
}

// add keeps a sample. NaN says that nothing is known, and so does a hit rate of -1.
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

// gaps is what was left out; nil where all was kept. It says the same of the same flaws.
func (in *intake) gaps() error {
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
