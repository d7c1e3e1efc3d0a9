package proof

import (
	"math"

	"kvbooth/sidecar/api"
)

// rateAt is a rate at a level. down and up are the distances to the ends of its interval.
type rateAt struct {
	level    api.Level
	rate     float64
	down, up float64
}

// grew reports whether the rate at a higher level is larger by more than the combined uncertainty of the two.
func (p *rateAt) grew(higher *rateAt) bool {
	return higher.rate-p.rate > math.Hypot(p.up, higher.down)
}

// proportional is the growth up to a higher level if the rate grows as the conversations do.
func (p *rateAt) proportional(higher *rateAt) float64 {
	return p.rate * (higher.level.Value - p.level.Value) / p.level.Value
}

// flatTo reports whether the rate certainly grows by less than the share flat of a proportional growth.
func (p *rateAt) flatTo(higher *rateAt) bool {
	return higher.rate-p.rate+math.Hypot(p.down, higher.up) < flat*p.proportional(higher)
}

// Saturation is the level at which the throughput of a side stops growing.
type Saturation struct {
	Quantity Quantity
	From     api.Level // the lowest level that saturates; 0 if none certainly does
	Top      api.Level // the highest level
	Rate     float64   // mean over the levels that saturate, or the rate at Top
	Grows    bool      // the rate still grows at Top
}

// flat is the share of a growth in proportion to the conversations below which throughput saturates.
const flat = .5

// Saturation returns the saturation of a side, or nil with fewer than three known rates. A level saturates under three
// conditions: its rate is larger than at the lowest level, the rate at no higher level is larger, and up to no higher
// level does the rate grow by more than half as much as the conversations; up to the highest one, that is certain.
// Without the last one, a table whose values scatter widely would saturate while its throughput grows.
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

// saturatesAt returns the index of the lowest level that saturates, or −1.
func saturatesAt(points []rateAt) int {
	for i := 1; i < len(points)-1; i++ {
		p, top := &points[i], &points[len(points)-1]
		found := points[0].grew(p) && p.flatTo(top)
		for j := i + 1; j < len(points); j++ {
			between := points[j].rate-p.rate <= flat*p.proportional(&points[j])
			found = found && !p.grew(&points[j]) && between
		}
		if found {
			return i
		}
	}
	return -1
}

// rates returns the rates of a side that have a known interval, by ascending level.
func (s *Side) rates(q Quantity) (all []rateAt) {
	for i := range s.Rows {
		column, _ := s.table.At(s.Mode, s.Rows[i].Level)
		l := q.LookedUpIn(&column)
		if l.Value != nil && l.Interval != nil && l.Lookup == api.LookupExact {
			v, in := *l.Value, *l.Interval
			all = append(all, rateAt{level: s.Rows[i].Level, rate: v, down: v - in[0], up: in[1] - v})
		}
	}
	return all
}
