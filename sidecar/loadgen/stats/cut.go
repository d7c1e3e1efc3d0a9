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
	for _, figure := range []struct {
		p        float64
		name     string
		interval **[2]float64
	}{
		{0, "min", nil},
		{.5, "p50", &q.P50Interval},
		{.9, "p90", nil},
		{.95, "p95", &q.P95Interval},
		{.99, "p99", nil},
		{1, "max", nil},
	} {
		if !depends(figure.p) {
			continue
		}
		if q.AtLeast = append(q.AtLeast, figure.name); figure.interval != nil {
			*figure.interval = nil
		}
	}
	q.AtLeast, q.MeanInterval = append(q.AtLeast, "mean"), nil
}
