package history

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

// series returns n values with a deviation of 1 % around 0, and more from an index on.
func series(random *rand.Rand, n, from int, more float64) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = .01 * random.NormFloat64()
		if i >= from {
			values[i] += more
		}
	}
	return values
}

func TestChanges(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	const studies = 100
	for name, c := range map[string]struct {
		n, from int
		more    float64
		least   float64 // share of the series with just this change, give or take one run
		false_  float64 // share of the series with any other one
	}{
		"none":           {40, 40, 0, 1, .02},
		"8 % at 12":      {20, 12, .08, .98, .02},
		"5 % at 12":      {20, 12, .05, .98, .02},
		"just now":       {15, 12, .08, .5, .02},
		"smaller values": {20, 6, -.04, .95, .02},
	} {
		found, others := 0, 0
		for range studies {
			all := Changes(series(random, c.n, c.from, c.more))
			switch {
			case len(all) == 0 && c.more == 0, len(all) == 1 && c.more != 0 && max(all[0]-c.from, c.from-all[0]) <= 1:
				found++
			case len(all) > 0:
				others++
			}
		}
		t.Logf("%s: %.1f %% found, %.1f %% others", name, 100*float64(found)/studies, 100*float64(others)/studies)
		assert.GreaterOrEqual(t, float64(found), (c.least-c.false_)*studies, name)
		assert.LessOrEqual(t, float64(others), c.false_*studies, name)
	}
	assert.Empty(t, Changes(make([]float64, 30)), "equal values")
	assert.Empty(t, Changes(nil))
}
