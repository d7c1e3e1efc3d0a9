package stats

import (
	"math"
	"slices"

	"kvbooth/sidecar/api"
)

// cutValues are the values of one metric that are known only to be at least so long.
type cutValues struct {
	n     int
	least float64 // the smallest one; valid where n > 0
}

func (c *cutValues) add(value float64) {
	if c.n == 0 || value < c.least {
		c.least = value
	}
	c.n++
}

// mark marks the figures that would be larger if the cut values, which are among all, were larger. They have no
// interval, since its upper end is not known either.
func (c *cutValues) mark(q *api.Quantiles, all *measured) {
	if c.n == 0 {
		return
	}
	q.Cut = c.n
	var values []float64
	for i := range all {
		values = append(values, all[i]...)
	}
	slices.Sort(values)
	depends := func(p float64) bool {
		return c.least <= values[int(math.Ceil(p*float64(len(values)-1)))]
	}
	if depends(.5) {
		q.AtLeast, q.P50Interval = append(q.AtLeast, "p50"), nil
	}
	if depends(.95) {
		q.AtLeast, q.P95Interval = append(q.AtLeast, "p95"), nil
	}
	if depends(.99) {
		q.AtLeast = append(q.AtLeast, "p99")
	}
	q.AtLeast, q.MeanInterval = append(q.AtLeast, "mean"), nil
}
