package proof

import (
	"fmt"
	"math"
	"slices"

	"kvbooth/sidecar/api"
)

// rateAt is a rate at a level, with how far its interval reaches down and up.
type rateAt struct {
	level    int
	rate     float64
	down, up float64
}

// grew says whether a rate is larger at a higher level by more than the two scatter.
func (p *rateAt) grew(higher *rateAt) bool {
	return higher.rate-p.rate > math.Hypot(p.up, higher.down)
}

// saturation says in a sentence at which level a side's throughput stops growing; empty: too few rates are known. A level
// saturates where the rate has grown from the lowest one, grows to no higher one, and a growth in proportion to the
// conversations, up to the highest level, would show.
func (s *Side) saturation() string {
	for _, name := range []Quantity{QuantityRequests, QuantityThroughput} {
		q := quantities[slices.IndexFunc(quantities, func(q quantity) bool { return q.name == name })]
		points := s.rates(q)
		if len(points) < 3 {
			continue
		}
		v := func(rate float64) string { return labels[q.name].value(rate) + " " + labels[q.name].name }
		top := &points[len(points)-1]
		at := saturatesAt(points)
		if at < 0 {
			if points[len(points)-2].grew(top) {
				return fmt.Sprintf("not shown: throughput still grows at %d, to %s.", top.level, v(top.rate))
			}
			return fmt.Sprintf("not certain: throughput is %s at %d, the highest level.", v(top.rate), top.level)
		}
		mean := 0.0
		for _, p := range points[at:] {
			mean += p.rate / float64(len(points)-at)
		}
		return fmt.Sprintf("at about %s: from %d conversations to %d, throughput grows by no more than its values scatter.",
			v(mean), points[at].level, top.level)
	}
	return ""
}

// saturatesAt is the index of the lowest level that saturates; −1: none.
func saturatesAt(points []rateAt) int {
	top := &points[len(points)-1]
	for i := 1; i < len(points)-1; i++ {
		p := &points[i]
		proportional := p.rate * float64(top.level-p.level) / float64(p.level)
		found := points[0].grew(p) && proportional > math.Hypot(p.up, top.down)
		for j := i + 1; j < len(points); j++ {
			found = found && !p.grew(&points[j])
		}
		if found {
			return i
		}
	}
	return -1
}

// rates are a side's rates by ascending level, where they and their intervals are known.
func (s *Side) rates(q quantity) (all []rateAt) {
	for i := range s.Rows {
		column, _ := s.table.At(s.Mode.Mode, s.Mode.Speculation, s.Rows[i].Concurrency)
		l := q.at(&column)
		if l.Value != nil && l.Interval != nil && l.Lookup == api.LookupExact {
			v, in := *l.Value, *l.Interval
			all = append(all, rateAt{level: s.Rows[i].Concurrency, rate: v, down: v - in[0], up: in[1] - v})
		}
	}
	return all
}
