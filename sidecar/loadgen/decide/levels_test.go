package decide

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"gonum.org/v1/gonum/stat"
)

// Levels that scatter alike share their degrees of freedom; a level without a second value has the others' variance.
func TestLevelsShareVariance(t *testing.T) {
	got := Levels([]float64{60, 90, 120}, [][2][]float64{{{1, 1.2}, {2, 2.2}}, {{1, 1.2}, {1.1, 1.3}}, {{1}, nil}})
	assert.InDelta(t, 1, got[0].Estimate, 1e-9)
	assert.InDelta(t, .1, got[1].Estimate, 1e-9)
	assert.InDelta(t, math.Sqrt(.02), got[0].SE, .01)
	assert.InDelta(t, 4, got[0].DF, 0)
	assert.Less(t, got[0].P(0), .01)
	assert.Greater(t, got[1].P(0), .4)
	assert.InDelta(t, 1, got[0].P(2), 1e-9)
	assert.True(t, math.IsNaN(got[2].P(0)))
	assert.True(t, math.IsNaN(Levels([]float64{60}, [][2][]float64{{{1}, {2}}})[0].P(0)))
}

// Where the scatter grows from 2 to 15 %, few reports on equal arms name a level of nine in one of three quantities,
// and the variances follow the growth.
func TestLevelsFollowGrowingScatter(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 5))
	const reports = 100
	for _, repeats := range []int{2, 3} {
		named, ratios := 0, []float64{}
		for range reports {
			var p []float64
			for range 3 {
				var at []float64
				var values [][2][]float64
				for level := 20.; level <= 180; level += 20 {
					var arms [2][]float64
					for i := range 2 * repeats {
						arms[i%2] = append(arms[i%2], .02*math.Pow(7.5, (level-20)/160)*rng.NormFloat64())
					}
					at, values = append(at, level), append(values, arms)
				}
				found := Levels(at, values)
				for _, d := range found {
					p = append(p, d.P(0))
				}
				ratios = append(ratios, found[8].SE/found[0].SE)
			}
			if slices.Contains(Holm(p, .05), true) {
				named++
			}
		}
		assert.LessOrEqual(t, named, 10, "%d repeats", repeats)
		assert.InDelta(t, 7.5, stat.Mean(ratios, nil), 3.5)
	}
}

func TestHolm(t *testing.T) {
	for _, test := range []struct {
		p    []float64
		want []bool
	}{
		{nil, []bool{}},
		{[]float64{.02, .01, .04}, []bool{true, true, true}},
		{[]float64{.03, .01, .04}, []bool{false, true, false}},
		{[]float64{.02, .03}, []bool{true, true}},
		{[]float64{math.NaN(), .04}, []bool{false, true}},
	} {
		assert.Equal(t, test.want, Holm(test.p, .05), "%v", test.p)
	}
}

func TestCapacity(t *testing.T) {
	at := func(means ...float64) (levels []Excess) {
		for i, m := range means {
			levels = append(levels, Excess{float64(60 + 20*i), m, 4})
		}
		return levels
	}
	sure := Variance{1e-6, 10}
	for _, test := range []struct {
		name     string
		levels   []Excess
		variance Variance
		want     float64
		interval [2]float64
	}{
		{"rises through the limit", at(-.3, -.1, .1, .3), sure, 90, [2]float64{80, 100}},
		{"out of order", at(-.3, .1, -.2, .3), sure, 100 + 20*.05/.35, [2]float64{100, 120}},
		{"met at all levels", at(-.3, -.2, -.1), sure, 100, [2]float64{100, math.Inf(1)}},
		{"met at none", at(.1, .2, .3), sure, 0, [2]float64{0, 60}},
		{"scatters", at(-.3, -.1, .1, .3), Variance{.02, 10}, 90, [2]float64{60, 120}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := Capacity(test.levels, test.variance)
			assert.InDelta(t, test.want, got.Level, 1e-9)
			assert.Equal(t, test.interval, got.Interval)
		})
	}
	assert.Equal(t, []float64{1, 2.5, 2.5, 4}, isotonic([]Excess{{1, 1, 1}, {2, 3, 1}, {3, 2, 1}, {4, 4, 1}}))
}

// The ends of the interval are where the mixture of likelihood ratios reaches 1/α.
func TestSequence(t *testing.T) {
	batches := []float64{1, 1.2, .9, 1.1, 1, 1.2, .9, 1.1}
	mean, in := Sequence(batches, .05, 0, Variance{})
	assert.InDelta(t, 1.05, mean, 1e-9)
	squares := 0.
	for _, v := range batches {
		squares += (v - mean) * (v - mean)
	}
	n, r := 8., .1/8.1
	t2 := (in[1] - mean) * (in[1] - mean) * n / (squares / 7)
	assert.InDelta(t, 20, math.Sqrt(r)*math.Pow((1+t2/7)/(1+r*t2/7), n/2), 1e-6)
	_, wide := Sequence(batches, .05, .01, Variance{})
	assert.InDelta(t, in[1]+.025, wide[1], 1e-9)
	_, prior := Sequence(batches, .05, 0, Variance{Value: squares / 7, DF: 5})
	t2 = (prior[1] - mean) * (prior[1] - mean) * n / (squares / 7)
	assert.InDelta(t, 20, math.Sqrt(r)*math.Pow((1+t2/12)/(1+r*t2/12), (n+5)/2), 1e-6)
	_, first := Sequence(batches[:1], .05, 0, Variance{Value: squares / 7, DF: 5})
	assert.False(t, math.IsInf(first[1], 1), "the prior suffices for a first interval")
	_, none := Sequence(batches[:1], .05, 0, Variance{})
	assert.True(t, math.IsInf(none[1], 1))
	_, following := Sequence([]float64{1, 1, 1, 1, 1.2, 1.2, 1.2, 1.2}, .05, 0, Variance{})
	_, mixed := Sequence([]float64{1, 1.2, 1, 1.2, 1, 1.2, 1, 1.2}, .05, 0, Variance{})
	assert.Greater(t, following[1]-following[0], 1.5*(mixed[1]-mixed[0]))
}

// Correlated neighbors increase the variance within series and leave fewer degrees of freedom.
func TestVarianceWithinSeries(t *testing.T) {
	assert.Equal(t, Variance{}, Within([]float64{1}, nil))
	mixed := Within([]float64{1, 2, 1, 2}, []float64{11, 12, 11, 12})
	assert.InDelta(t, 2./6, mixed.Value, 1e-9, "of the distances from each series' own mean")
	assert.InDelta(t, 6, mixed.DF, 1e-9)
	following := Within([]float64{1, 1, 1, 1, 2, 2, 2, 2})
	assert.Greater(t, following.Value, 2*2./7)
	assert.Less(t, following.DF, 7./2)
	batches := []float64{1, 1, 1, 1, 2, 2, 2, 2}
	m := Batched(batches, Variance{Value: 1, DF: 5})
	assert.InDelta(t, following.DF+5, m.Discounted(batches).Batch.DF, 1e-9)
}

// What is known of the variance before is dropped where the batches contradict it.
func TestBatchesContradictEarlierVariance(t *testing.T) {
	batches := []float64{1, 2, 1, 2, 1, 2}
	assert.InDelta(t, 15, Batched(batches, Variance{Value: .3, DF: 10}).Batch.DF, 1e-9)
	assert.InDelta(t, 5, Batched(batches, Variance{Value: .01, DF: 10}).Batch.DF, 1e-9)
}
