package stats

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPercentile(t *testing.T) {
	for _, c := range []struct {
		values []float64
		p      float64
		want   float64
	}{
		{[]float64{7}, .95, 7},                     // one value is every percentile
		{[]float64{1, 2, 3, 4}, .5, 2.5},           // half way between two
		{[]float64{1, 2, 3, 4}, .95, 3.85},         // equals numpy.percentile
		{[]float64{15, 20, 35, 40, 50}, .4, 29},    // equals numpy.percentile
		{[]float64{15, 20, 35, 40, 50}, 1, 50},     // the greatest
		{[]float64{1, 2, 3, 4, 5, 6, 7}, .5, 4},    // the middle one
		{[]float64{0, 0, 0, 0, 0, 0, 1}, .99, .94}, // an outlier weighs by its distance
	} {
		assert.InDelta(t, c.want, Percentile(c.values, c.p), 1e-12, "%v at %v", c.values, c.p)
	}
	assert.True(t, math.IsNaN(Percentile(nil, .5)), "no values give NaN")
}

// The ranks equal those of the binomial distribution summed term by term.
func TestLowerRankIsExact(t *testing.T) {
	for _, p := range []float64{.05, .5, .95} {
		for n := 1; n <= 400; n++ {
			want, below := 0, math.Pow(1-p, float64(n))
			for k := 0; below <= .025; k++ {
				want = k + 1
				below += math.Exp(logChoose(float64(n), float64(k+1)) + float64(k+1)*math.Log(p) + float64(n-k-1)*math.Log(1-p))
			}
			require.Equal(t, want, lowerRank(n, p), "n %d, p %v", n, p)
		}
	}
	for _, p := range []float64{.05, .5, .95} {
		const n = 60_000
		normal := n*p - 1.96*math.Sqrt(n*p*(1-p))
		assert.InDelta(t, normal, lowerRank(n, p), 2, "large ranks agree with the normal approximation")
	}
}
