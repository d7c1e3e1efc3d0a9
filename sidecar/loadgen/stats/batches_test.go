package stats

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBatchOf(t *testing.T) {
	for at, want := range map[time.Duration]int{-1: 0, 0: 0, 14: 0, 15: 1, 59: 3, 60: 3, 99: 3} {
		assert.Equal(t, want, batchOf(at*time.Second, time.Minute), "%d s of 60", at)
	}
	assert.Zero(t, batchOf(0, 0), "a span of no length")
}

// The interval of a ratio by hand, and what has none.
func TestRatioInterval(t *testing.T) {
	var s shares
	for i, part := range []float64{8, 12, 9, 11} {
		s.add(i, part, 20)
	}
	in := s.interval(1)
	// Deviations −2, 2, −1, 1: √(10·4/3)/80 is the standard error of .5.
	assert.InDelta(t, .5-3.182*.045644, in[0], 1e-4)
	assert.InDelta(t, .5+3.182*.045644, in[1], 1e-4)
	s.part[0], s.part[1] = 0, 20
	assert.Equal(t, 1.0, s.interval(1)[1], "no ratio is above its limit")
	s.whole[2] = 0
	assert.Nil(t, s.interval(1), "a batch of which nothing is known")
}

// coverage is how often of so many trials the intervals of p50 and p95 hold the true
// quantiles, and how often there is one. Every batch is off by a shift of its own.
func coverage(trials, perBatch int, shift float64) (in, given map[float64]float64) {
	r := rand.New(rand.NewPCG(5, 6))
	in, given = map[float64]float64{}, map[float64]float64{}
	for range trials {
		var m measured
		for batch := range batches {
			off := shift * r.NormFloat64()
			for range perBatch {
				m.add(batch, 100+off+r.NormFloat64())
			}
		}
		q := m.summarise(true)
		for p, interval := range map[float64]*[2]float64{.5: q.P50Interval, .95: q.P95Interval} {
			if interval == nil {
				continue
			}
			given[p]++
			truth := 100 + math.Sqrt(1+shift*shift)*math.Sqrt2*math.Erfinv(2*p-1)
			if interval[0] <= truth && truth <= interval[1] {
				in[p]++
			}
		}
	}
	for p := range in {
		in[p] /= given[p]
		given[p] /= float64(trials)
	}
	return in, given
}

// Intervals hold what they promise where turns are independent, and where all turns
// of a batch have something in common, which the order statistics alone miss.
func TestIntervalsOfDependentTurns(t *testing.T) {
	in, given := coverage(2000, 200, 0)
	for _, p := range []float64{.5, .95} {
		assert.Greater(t, given[p], .99)
		assert.Greater(t, in[p], .95, "p %v", p)
	}
	in, given = coverage(2000, 200, .3)
	assert.Greater(t, in[.5], .94)
	assert.Greater(t, in[.95], .94)
	assert.Less(t, given[.95], 1.0, "sometimes the batches say that too few turns are independent")

	r, missed := rand.New(rand.NewPCG(7, 8)), 0
	for range 1000 {
		values := make([]float64, 0, 400)
		for range batches {
			off := .3 * r.NormFloat64()
			for range 100 {
				values = append(values, off+r.NormFloat64())
			}
		}
		if q := Summarise(values); q.P50Interval[0] > 0 || q.P50Interval[1] < 0 {
			missed++
		}
	}
	assert.Greater(t, missed, 300, "as if independent, more than 30 %% of the intervals are wrong")
}

func TestTooFewBatches(t *testing.T) {
	var m measured
	for i := range 400 {
		m.add(0, float64(i%97))
	}
	q := m.summarise(true)
	assert.Equal(t, 400, q.N)
	assert.Nil(t, q.P50Interval, "three batches are empty")
	for i := range 1200 {
		m.add(1+i%3, float64(i%97))
	}
	assert.NotNil(t, m.summarise(true).P50Interval)
	assert.Nil(t, m.summarise(false).P50Interval, "the turns are too long for the batches")
}

// A span must be longer than a turn by a third, so that a batch lasts a third of one.
func TestBatched(t *testing.T) {
	w := NewWindow(t0)
	var early Report
	for i := range 541 {
		s := counted(whole(float64(i)*.1), 1)
		s.Latency, s.TTFT = 40, .3+.01*math.Sin(float64(i)) // 40 s a turn
		s.ITL = []Gap{{.02 + .001*math.Sin(float64(i)), 5}}
		w.Add(s)
		if i == 530 {
			early = w.Counted(at(53), 1, slo)
		}
	}
	assert.False(t, early.Batched)
	assert.Nil(t, early.HitInterval)
	assert.Nil(t, early.Window.Metrics.TTFT.P50Interval)
	r := w.Counted(at(54), 1, slo)
	require.True(t, r.Batched)
	assert.Equal(t, &[2]float64{.25, .25}, r.HitInterval)
	assert.InDelta(t, 10, r.RequestsInterval[0], 1)
	for _, q := range []*[2]float64{r.Window.Metrics.TTFT.P50Interval, r.Window.Metrics.TPOT.P50Interval, r.Window.Metrics.ITL.P50Interval} {
		assert.LessOrEqual(t, q[0], q[1])
	}
	assert.Less(t, r.Window.Metrics.ITL.P50Interval[0], *r.Window.Metrics.ITL.P50)
	assert.Greater(t, r.Window.Metrics.ITL.P50Interval[1], *r.Window.Metrics.ITL.P50)
}

// The tokens up to a gap are those that a quantile counts.
func TestBucketsUpTo(t *testing.T) {
	var b buckets
	r := rand.New(rand.NewPCG(1, 1))
	b.zero, b.total = 7, 7
	for range 1000 {
		octave, part := bucketOf(r.ExpFloat64() * .03)
		b.add(octave, part, 1)
	}
	for _, p := range []float64{.1, .5, .95, 1} {
		assert.GreaterOrEqual(t, b.upTo(b.quantile(p)), p*b.total)
		assert.Less(t, b.upTo(b.quantile(p)*.99), p*b.total)
	}
	assert.Equal(t, 7.0, b.upTo(0))
	assert.Equal(t, b.total, b.upTo(5000))
}
