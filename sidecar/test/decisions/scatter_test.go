//go:build verify

package decisions

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat"
)

// TestSpans shows what the simulated spans are like.
func TestSpans(t *testing.T) {
	logs := make([][]float64, len(metrics))
	sums := make([]float64, len(metrics))
	for i := range 500 {
		c := counted(newSpans(world{}, 2, i).record(0, 0, length, 1))
		values := c.values(0, 0)
		for j, m := range metrics {
			v := values[m.Name]
			logs[j] = append(logs[j], math.Log(v))
			sums[j] += v / 500
		}
	}
	for j, m := range metrics {
		t.Logf("%-12s mean %.4g, standard deviation of its logarithm %.4f", m.Name, sums[j], stat.StdDev(logs[j], nil))
	}
}
