package proof

import (
	"math"

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

// Saturation is where a side's throughput stops growing.
type Saturation struct {
	Quantity Quantity
	From     int     // the lowest level that saturates; 0: none is shown to
	Top      int     // the highest level
	Rate     float64 // mean of the levels that saturate; at the highest one where none does
	Grows    bool    // up to the highest level
}

// Saturation is that of a side; nil: too few rates are known. A level saturates where the rate has grown from the
// lowest one, grows to no higher one, and a growth in proportion to the conversations, up to the highest level, would
// show.
func (s *Side) Saturation() *Saturation {
	for _, q := range []Quantity{QuantityRequests, QuantityThroughput} {
		points := s.rates(q)
		if len(points) < 3 {
			continue
		}
		top := &points[len(points)-1]
		at := saturatesAt(points)
		if at < 0 {
			return &Saturation{Quantity: q, Top: top.level, Rate: top.rate, Grows: points[len(points)-2].grew(top)}
		}
		mean := 0.0
		for _, p := range points[at:] {
			mean += p.rate / float64(len(points)-at)
		}
		return &Saturation{Quantity: q, From: points[at].level, Top: top.level, Rate: mean}
	}
	return nil
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
func (s *Side) rates(q Quantity) (all []rateAt) {
	for i := range s.Rows {
		column, _ := s.table.At(s.Mode, s.Rows[i].Concurrency)
		l := q.lookedUpIn(&column)
		if l.Value != nil && l.Interval != nil && l.Lookup == api.LookupExact {
			v, in := *l.Value, *l.Interval
			all = append(all, rateAt{level: s.Rows[i].Concurrency, rate: v, down: v - in[0], up: in[1] - v})
		}
	}
	return all
}
