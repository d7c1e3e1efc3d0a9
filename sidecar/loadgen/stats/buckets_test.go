package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/loadgen/chat"
)

// No bucket is wider than 1 % of its values, and its middle is at most 0.4 % off.
func TestBucketWidth(t *testing.T) {
	for o := range octaves {
		for i := range perOctave {
			low, next := math.Ldexp(1+float64(i)/perOctave, o+minExp), math.Ldexp(1+float64(i+1)/perOctave, o+minExp)
			high := math.Nextafter(next, 0)
			require.LessOrEqual(t, (high-low)/low, .01)
			for _, v := range []float64{low, (low + high) / 2, high} {
				octave, part := bucketOf(v)
				require.Equal(t, [2]int{o, i}, [2]int{octave, part}, "%v", v)
				require.LessOrEqual(t, math.Abs(middle(o, i)-v)/v, .004)
			}
		}
	}
}

func TestBucketEdges(t *testing.T) {
	var b buckets
	put := func(v float64) { o, p := bucketOf(v); b.add(o, p, 1) }
	put(0)    // two tokens in one read
	put(1e-9) // shorter than any bucket
	assert.Zero(t, b.quantile(1))
	put(1e6) // longer than any bucket
	assert.InEpsilon(t, 1024, b.quantile(1), .01)
	assert.Zero(t, b.quantile(.5))
}

// Quantiles of weighted gaps agree with a sort, and those of merged sets with one set.
func TestBucketQuantiles(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 50 {
		var whole, a, b buckets
		gaps := make([]chat.Gap, 1+r.IntN(3000))
		for i := range gaps {
			gaps[i] = chat.Gap{Seconds: math.Exp(r.NormFloat64()*2 - 4), Tokens: .5 + 3*r.Float64()}
			o, p := bucketOf(gaps[i].Seconds)
			whole.add(o, p, gaps[i].Tokens)
			[]*buckets{&a, &b}[i%2].add(o, p, gaps[i].Tokens)
		}
		p50, p95 := chat.GapPercentiles(gaps)
		a.merge(&b)
		for _, set := range []*buckets{&whole, &a} {
			require.InEpsilon(t, p50, set.quantile(.5), .01)
			require.InEpsilon(t, p95, set.quantile(.95), .01)
		}
	}
}

func TestBucketsClear(t *testing.T) {
	var b buckets
	b.add(3, 4, 5)
	b.add(-1, 0, 1)
	b.estimated = true
	b.clear()
	q := b.summarize()
	assert.Zero(t, q.N)
	assert.False(t, q.Estimated)
	assert.Nil(t, q.P50)
	b.add(5, 6, 1)
	assert.Equal(t, middle(5, 6), b.quantile(0.01), "nothing is left below")
}
