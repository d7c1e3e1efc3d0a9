// Package montecarlo runs tables of cases whose trials have a known truth: it repeats them, counts how they end, and
// reports the shares, the quantiles and the means of each case.
package montecarlo

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat"

	"kvbooth/internal/figure"
	"kvbooth/sidecar/api"
)

// Each returns a case for each value, with the value in this format as its name.
func Each[C any](format string, values ...C) map[string]C {
	cases := map[string]C{}
	for _, v := range values {
		cases[fmt.Sprintf(format, v)] = v
	}
	return cases
}

// Run runs each case, by name, as a parallel subtest, and reports its results under the table's title. The function of
// a case runs its trials and holds its results to their bounds.
func Run[C any](t *testing.T, title string, cases map[string]C, run func(t *testing.T, c C, r *Results)) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &Results{}
			defer func() { figure.Report(t, "%s, %s: %v", title, name, r) }()
			run(t, cases[name], r)
		})
	}
}

// Results are the results of a case. They are not safe for concurrent use.
type Results struct{ cells []*Cell }

// Cell returns the results under a name, such as that of a metric.
func (r *Results) Cell(name string) *Cell {
	i := slices.IndexFunc(r.cells, func(c *Cell) bool { return c.name == name })
	if i < 0 {
		i = len(r.cells)
		r.cells = append(r.cells, &Cell{name: name})
	}
	return r.cells[i]
}

// String returns all results in the order in which they were first added.
func (r *Results) String() string {
	var texts []string
	for _, c := range r.cells {
		texts = append(texts, c.String())
	}
	return strings.Join(texts, "; ")
}

// Cell collects values of many trials by name.
type Cell struct {
	name string
	all  []*values
}

// values are the values under a name, of which text gives a summary.
type values struct {
	name string
	of   []float64
	text func([]float64) string
}

func (c *Cell) add(name string, v float64, text func([]float64) string) {
	known := c.find(name)
	if known == nil {
		known = &values{name: name, text: text}
		c.all = append(c.all, known)
	}
	known.of = append(known.of, v)
}

func (c *Cell) find(name string) *values {
	if i := slices.IndexFunc(c.all, func(v *values) bool { return v.name == name }); i >= 0 {
		return c.all[i]
	}
	return nil
}

// Count adds a trial in which something is so or not. The report has the share of those in which it is.
func (c *Cell) Count(name string, yes bool) {
	v := 0.
	if yes {
		v = 1
	}
	c.add(name, v, func(of []float64) string { return fmt.Sprintf("%.1f %%", 100*stat.Mean(of, nil)) })
}

// Sample adds a value, such as a time. The report has the median, and the range that holds nine of ten values.
func (c *Cell) Sample(name string, v float64) {
	c.add(name, v, func(of []float64) string {
		return fmt.Sprintf("%.3g (median; 5 to 95 %%: %.3g to %.3g; nine of ten by %.3g)",
			quantile(of, .5), quantile(of, .05), quantile(of, .95), quantile(of, .9))
	})
}

// Mean adds a value, such as an estimate. The report has the mean with its standard error.
func (c *Cell) Mean(name string, v float64) {
	c.add(name, v, func(of []float64) string {
		return fmt.Sprintf("%.4g ± %.2g", stat.Mean(of, nil), standardError(of))
	})
}

// Covers is the name of the count of intervals that hold the truth.
const Covers = "interval holds the truth"

// Search adds the result of a capacity search, which is nil if it found no level. An interval that is open above has no
// upper end.
func (c *Cell) Search(level *api.Level, interval *[2]api.Level, above bool, truth float64) {
	low, high := interval[0].Value, interval[1].Value
	if above {
		high = math.Inf(1)
	}
	c.Count(Covers, low <= truth && truth <= high)
	c.Count("open above", above)
	c.Count("undetermined", above && low == 0)
	if level != nil {
		c.Sample("estimate", level.Value)
	}
	c.Sample("width", high-low)
}

// String returns the summaries of all values.
func (c *Cell) String() string {
	n := 0
	var texts []string
	for _, v := range c.all {
		n = max(n, len(v.of))
		texts = append(texts, v.name+" "+v.text(v.of))
	}
	return fmt.Sprintf("%s (%d): %s", c.name, n, strings.Join(texts, ", "))
}

// Of returns the values under a name, in the order of their trials.
func (c *Cell) Of(name string) []float64 {
	if v := c.find(name); v != nil {
		return v.of
	}
	return nil
}

// Total returns the sum of the values under a name, for counts the number of trials in which it is so.
func (c *Cell) Total(name string) (total float64) {
	for _, v := range c.Of(name) {
		total += v
	}
	return total
}

// Average returns the mean of the values under a name, for counts the share. It is NaN without values.
func (c *Cell) Average(name string) float64 { return stat.Mean(c.Of(name), nil) }

// Error returns the standard error of the mean of the values under a name.
func (c *Cell) Error(name string) float64 { return standardError(c.Of(name)) }

func standardError(of []float64) float64 { return stat.StdErr(stat.StdDev(of, nil), float64(len(of))) }

// Quantile returns a quantile of the values under a name by the nearest rank, and NaN without values.
func (c *Cell) Quantile(name string, p float64) float64 { return quantile(c.Of(name), p) }

func quantile(values []float64, p float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	return stat.Quantile(p, stat.Empirical, slices.Sorted(slices.Values(values)), nil)
}

// AtMost requires that the total under a name, which must have values, does not exceed a bound.
func (c *Cell) AtMost(t *testing.T, name string, most int) {
	t.Helper()
	require.NotEmpty(t, c.Of(name), "%s: %s", c.name, name)
	assert.LessOrEqual(t, c.Total(name), float64(most), "%s: %s", c.name, name)
}

// AtLeast requires that the total under a name, which must have values, reaches a bound.
func (c *Cell) AtLeast(t *testing.T, name string, least int) {
	t.Helper()
	require.NotEmpty(t, c.Of(name), "%s: %s", c.name, name)
	assert.GreaterOrEqual(t, c.Total(name), float64(least), "%s: %s", c.name, name)
}

// Most returns the largest plausible number of errors in n trials with an error rate of 5 %: three standard errors
// above.
func Most(n int) int { return int(math.Ceil(.05*float64(n) + 3*math.Sqrt(.05*.95*float64(n)))) }
