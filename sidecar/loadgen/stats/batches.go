package stats

import (
	"math"
	"slices"
	"time"

	"kvbooth/sidecar/api"
)

// Turns depend on each other: those of one conversation, those that share a worker, and
// through the router all of them. Intervals here therefore do not count turns as
// independent. The span is cut into a few batches of equal length, whose differences
// show the uncertainty of the whole; Student's t accounts for their small number. More
// batches are shorter, and depend more on their neighbors. Four keep to an error of 5 %
// where more do not: the test in sidecar/test/intervals compares pairs of windows of
// one unchanged setting.
const (
	batches = 4
	Student = 3.182 // the 97.5 % quantile of Student's t with batches − 1 degrees of freedom
	normal  = 1.960 // the 97.5 % quantile of the normal distribution

	// batchTurns is the minimum length of a batch, in mean turns. Shorter batches depend
	// too much on each other, and there is no interval.
	batchTurns = 1.0 / 3
)

// batchOf returns the batch of a moment within a span that begins at 0.
func batchOf(at, span time.Duration) int {
	return min(max(int(batches*at/max(1, span)), 0), batches-1)
}

// shares holds the numerator and the denominator of a ratio by batch.
type shares struct{ part, whole [batches]float64 }

func (s *shares) add(batch int, part, whole float64) {
	s.part[batch] += part
	s.whole[batch] += whole
}

// ratio returns the ratio over all batches with its standard error, that of a ratio
// estimator over clusters: Cochran, "Sampling Techniques", 3rd edition (1977),
// section 6.3. ok is false where a batch is empty.
func (s *shares) ratio() (value, deviation float64, ok bool) {
	part, whole := 0.0, 0.0
	for i := range batches {
		if s.whole[i] <= 0 {
			return math.NaN(), math.NaN(), false
		}
		part += s.part[i]
		whole += s.whole[i]
	}
	value = part / whole
	squares := 0.0
	for i := range batches {
		d := s.part[i] - value*s.whole[i]
		squares += d * d
	}
	return value, math.Sqrt(squares*batches/(batches-1)) / whole, true
}

// interval returns the 95 % interval of the ratio, within 0 and limit; nil where it is
// unknown.
func (s *shares) interval(limit float64) *[2]float64 {
	value, deviation, ok := s.ratio()
	if !ok {
		return nil
	}
	return &[2]float64{max(0, value-Student*deviation), min(limit, value+Student*deviation)}
}

// quantileInterval returns the 95 % interval of a p-quantile over n values. The shares
// are those of the values up to the quantile; quantile returns other quantiles. The
// effective number of values is the number of independent ones that would determine
// the quantile's rank as well, at most n: Korn and Graubard, "Confidence Intervals for
// Proportions with Small Expected Number of Positive Counts Estimated from Survey
// Data", Survey Methodology 24 (1998), here for order statistics. The interval is nil
// where there are too few values.
func (s *shares) quantileInterval(n int, p float64, quantile func(p float64) float64) *[2]float64 {
	_, deviation, ok := s.ratio()
	if !ok {
		return nil
	}
	effect := max(1, deviation*deviation*float64(n)/(p*(1-p)))
	effective := int(float64(n) / effect * (normal / Student) * (normal / Student))
	lower, upper := lowerRank(effective, p), lowerRank(effective, 1-p)
	if lower == 0 || upper == 0 {
		return nil
	}
	whole := float64(effective + 1)
	return &[2]float64{quantile(float64(lower) / whole), quantile(1 - float64(upper)/whole)}
}

// measured holds the values of one metric by batch.
type measured [batches][]float64

func (v *measured) add(batch int, value float64) {
	if defined(value) {
		v[batch] = append(v[batch], value)
	}
}

// summarize returns the percentiles with intervals that hold for dependent turns. There
// are no intervals where trusted is false.
func (v *measured) summarize(trusted bool) api.Quantiles {
	var all []float64
	for i := range v {
		all = append(all, v[i]...)
	}
	q := Summarize(all)
	if trusted && q.N > 0 {
		q.P50Interval, q.P95Interval = v.interval(all, .5), v.interval(all, .95)
	}
	return q
}

// addMean adds the mean with its interval, as summarize does the percentiles.
func (v *measured) addMean(q *api.Quantiles, trusted bool) {
	var s shares
	for i := range v {
		slices.Sort(v[i]) // the sum does not depend on the order in which turns were added
		for _, value := range v[i] {
			s.add(i, value, 1)
		}
	}
	if q.N > 0 {
		q.Mean = &q.Shape.Mean
	}
	if trusted {
		q.MeanInterval = s.interval(math.Inf(1))
	}
}

// interval returns the interval of a quantile. all has the values in ascending order.
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

// summarizeGaps summarizes inter-token latencies. For their interval, at most as many
// count as independent as there are turns.
func summarizeGaps(gaps *[batches]buckets, turns int, trusted bool) api.Quantiles {
	var all buckets
	for i := range gaps {
		all.merge(&gaps[i])
	}
	q := all.summarize()
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
