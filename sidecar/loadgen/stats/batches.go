package stats

import (
	"math"
	"time"

	"kvbooth/sidecar/api"
)

// Turns depend on each other: those of one conversation, those that share a
// worker, and through the router all of them. So no interval here counts turns as
// independent. The span is cut into a few batches of equal length; how far these
// lie apart tells how well the whole is known, and Student's t pays for their being
// few. The more batches, the shorter each is, and the more it depends on its
// neighbours; four were found to keep to 5 % where more do not: the test in
// sidecar/test/intervals judges pairs of windows of one unchanged setting.
const (
	batches = 4
	student = 3.182 // the 97.5 % quantile of Student's t with batches − 1 degrees of freedom
	normal  = 1.960 // that of the normal distribution

	// batchTurns is how long a batch lasts at least, in mean turns. Below that the
	// batches are too few to be independent, and there is no interval.
	batchTurns = 1.0 / 3
)

// batchOf is the batch of a moment within a span that begins at 0.
func batchOf(at, span time.Duration) int {
	return min(max(int(batches*at/max(1, span)), 0), batches-1)
}

// shares are the parts of a ratio by batches: what was counted, and out of what.
type shares struct{ part, whole [batches]float64 }

func (s *shares) add(batch int, part, whole float64) {
	s.part[batch] += part
	s.whole[batch] += whole
}

// ratio is the ratio over all batches with its standard error: that of a ratio
// estimator over clusters, Cochran, "Sampling Techniques", 3rd edition (1977),
// section 6.3. It is false where a batch is empty, of which nothing is known.
func (s *shares) ratio() (value, deviation float64, ok bool) {
	part, whole := 0.0, 0.0
	for i := range batches {
		if s.whole[i] <= 0 {
			return math.NaN(), math.NaN(), false
		}
		part, whole = part+s.part[i], whole+s.whole[i]
	}
	value = part / whole
	squares := 0.0
	for i := range batches {
		d := s.part[i] - value*s.whole[i]
		squares += d * d
	}
	return value, math.Sqrt(squares*batches/(batches-1)) / whole, true
}

// interval is the 95 % interval of the ratio, which cannot leave the range from 0
// to limit; nil where it is not known.
func (s *shares) interval(limit float64) *[2]float64 {
	value, deviation, ok := s.ratio()
	if !ok {
		return nil
	}
	return &[2]float64{max(0, value-student*deviation), min(limit, value+student*deviation)}
}

// quantileInterval is the 95 % interval of a p-quantile over n values. The shares
// are those of the values up to the quantile, and quantile gives others. As many of
// the values count as independent ones would know the quantile's rank as well:
// Korn and Graubard, "Confidence Intervals for Proportions with Small Expected
// Number of Positive Counts Estimated from Survey Data", Survey Methodology 24
// (1998), here for order statistics; never more than there are. It is nil where
// these are too few.
func (s *shares) quantileInterval(n int, p float64, quantile func(p float64) float64) *[2]float64 {
	_, deviation, ok := s.ratio()
	if !ok {
		return nil
	}
	effect := max(1, deviation*deviation*float64(n)/(p*(1-p)))
	effective := int(float64(n) / effect * (normal / student) * (normal / student))
	lower, upper := lowerRank(effective, p), lowerRank(effective, 1-p)
	if lower == 0 || upper == 0 {
		return nil
	}
	whole := float64(effective + 1)
	return &[2]float64{quantile(float64(lower) / whole), quantile(1 - float64(upper)/whole)}
}

// measured are the values of one metric by batches.
type measured [batches][]float64

func (v *measured) add(batch int, value float64) {
	if defined(value) {
		v[batch] = append(v[batch], value)
	}
}

// summarise gives the percentiles with intervals that hold for turns that depend on each
// other; without any where the batches cannot be trusted.
func (v *measured) summarise(trusted bool) api.Quantiles {
	var all []float64
	for i := range v {
		all = append(all, v[i]...)
	}
	q := quantiles(all)
	if trusted && q.N > 0 {
		q.P50Interval, q.P95Interval = v.interval(all, .5), v.interval(all, .95)
	}
	return q
}

// interval is that of a quantile; all are the values in ascending order.
func (v *measured) interval(all []float64, p float64) *[2]float64 {
	quantile := Percentile(all, p)
	var s shares
	for i := range v {
		for _, value := range v[i] {
			if value <= quantile {
				s.part[i]++
			}
		}
		s.whole[i] = float64(len(v[i]))
	}
	return s.quantileInterval(len(all), p, func(p float64) float64 { return Percentile(all, p) })
}

// summariseGaps is the summary of inter-token latencies. Their interval counts no
// more of them as independent than there are turns.
func summariseGaps(gaps *[batches]buckets, turns int, trusted bool) api.Quantiles {
	var all buckets
	for i := range gaps {
		all.merge(&gaps[i])
	}
	q := all.summarise()
	if !trusted || all.total == 0 {
		return q
	}
	interval := func(p float64) *[2]float64 {
		quantile := all.quantile(p)
		var s shares
		for i := range gaps {
			s.add(i, gaps[i].upTo(quantile), gaps[i].total)
		}
		return s.quantileInterval(turns, p, all.quantile)
	}
	q.P50Interval, q.P95Interval = interval(.5), interval(.95)
	return q
}
