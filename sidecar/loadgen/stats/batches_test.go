package stats

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/loadgen/chat"
)

func TestBatchOf(t *testing.T) {
	for at, want := range map[time.Duration]int{-1: 0, 0: 0, 14: 0, 15: 1, 59: 3, 60: 3, 99: 3} {
		assert.Equal(t, want, batchOf(at*time.Second, time.Minute), "%d s of 60", at)
	}
	assert.Zero(t, batchOf(0, 0), "a span of no length")
}

// A ratio has an interval unless a batch is empty.
func TestRatioInterval(t *testing.T) {
	var s shares
	for i, part := range []float64{8, 12, 9, 11} {
		s.add(i, part, 20)
	}
	in := s.interval(1)
	// Deviations −2, 2, −1, 1: √(10·4/3)/80 is the standard error of 0.5.
	assert.InDelta(t, .5-3.182*.045644, in[0], 1e-4)
	assert.InDelta(t, .5+3.182*.045644, in[1], 1e-4)
	s.part[0], s.part[1] = 0, 20
	assert.Equal(t, 1.0, s.interval(1)[1], "no ratio is above its limit")
	s.whole[2] = 0
	assert.Nil(t, s.interval(1), "a batch is empty")
}

// The more the batches differ in their shares of values up to the quantile, the fewer values count as independent: 151
// of 400 where they agree, by the ratio of the normal quantile to Student's.
func TestQuantileInterval(t *testing.T) {
	rank := func(p float64) float64 { return p }
	for _, c := range []struct {
		parts [batches]float64
		p     float64
		want  *[2]float64
	}{
		{[batches]float64{50, 50, 50, 50}, .5, &[2]float64{63. / 152, 1 - 63./152}},
		{[batches]float64{40, 60, 45, 55}, .5, &[2]float64{16. / 46, 1 - 16./46}}, // an effect of 10/3
		{[batches]float64{94, 96, 96, 94}, .95, &[2]float64{138. / 152, 1 - 3./152}},
		{[batches]float64{90, 100, 95, 95}, .95, nil}, // 42 values have no interval of their p95
	} {
		var s shares
		for i, part := range c.parts {
			s.add(i, part, 100)
		}
		got := s.quantileInterval(400, c.p, rank)
		if c.want == nil {
			assert.Nil(t, got, "%v", c)
			continue
		}
		require.NotNil(t, got)
		assert.InDeltaSlice(t, c.want[:], got[:], 1e-9, "%v", c)
	}
}

func TestNoIntervalWithEmptyBatch(t *testing.T) {
	var m measured
	for i := range 400 {
		m.add(0, float64(i%97))
	}
	q := m.summarize(true)
	assert.Equal(t, 400, q.N)
	assert.Nil(t, q.P50Interval, "three batches are empty")
	for i := range 1200 {
		m.add(1+i%3, float64(i%97))
	}
	assert.NotNil(t, m.summarize(true).P50Interval)
	assert.Nil(t, m.summarize(false).P50Interval, "the turns are too long for the batches")
}

// Intervals require a span of four thirds of a turn, so that a batch lasts a third of one.
func TestBatchedNeedsLongSpan(t *testing.T) {
	w := NewWindow(t0, slo)
	var early Report
	for i := range 541 {
		s := counted(whole(float64(i)*.1), 1)
		s.Latency, s.TTFT = new(40.), new(.3+.01*math.Sin(float64(i))) // 40 s a turn
		s.ITL = []chat.Gap{{Seconds: .02 + .001*math.Sin(float64(i)), Tokens: 5}}
		fill(w, s)
		if i == 530 {
			early = w.Counted(at(53), 1)
		}
	}
	assert.False(t, early.Batched)
	assert.Nil(t, early.HitInterval)
	assert.Nil(t, early.Window.Metrics.TTFT.P50Interval)
	r := w.Counted(at(54), 1)
	require.True(t, r.Batched)
	assert.Equal(t, &[2]float64{.25, .25}, r.HitInterval)
	assert.InDelta(t, 10, r.RequestsInterval[0], 1)
	for _, q := range []*[2]float64{
		r.Window.Metrics.TTFT.P50Interval, r.Window.Metrics.TPOT.P50Interval,
		r.Window.Metrics.ITL.P50Interval,
	} {
		assert.LessOrEqual(t, q[0], q[1])
	}
	assert.Less(t, r.Window.Metrics.ITL.P50Interval[0], *r.Window.Metrics.ITL.P50)
	assert.Greater(t, r.Window.Metrics.ITL.P50Interval[1], *r.Window.Metrics.ITL.P50)
}

// The tokens up to a gap agree with the quantile.
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
