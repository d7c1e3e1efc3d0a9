package decide

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var secondary = []Metric{{Name: "throughput"}, {Name: "tpot", LessIsBetter: true}, {Name: "energy", LessIsBetter: true}}

// secondaryBlocks draws blocks of two arms, of which B has a sooner first token, and differs by effects in the
// secondary metrics. All of a run have some scatter in common.
func secondaryBlocks(seed uint64, n int, noise float64, effects ...float64) (all []Block) {
	rng := rand.New(rand.NewPCG(seed, 2))
	for k := range n {
		b := Block{Seconds: 600}
		for _, r := range Order(seed, []int{0, 1}, k) {
			common := rng.NormFloat64()
			draw := func(effect float64) float64 {
				return math.Exp(effect*float64(r.Arm) + noise*(common+rng.NormFloat64())/math.Sqrt2)
			}
			s := Span{Arm: r.Arm, At: r.At, Ended: 100, Values: map[string]float64{ttft.Name: draw(math.Log(.47))}}
			for i, m := range secondary {
				s.Values[m.Name] = draw(effects[i])
			}
			b.Spans = append(b.Spans, s)
		}
		all = append(all, b)
	}
	return all
}

func secondaryPlan() Plan {
	p := planOf(2, ttft)
	p.Secondary = secondary
	return p
}

func TestTradeOffOfSecondaryMetrics(t *testing.T) {
	less := math.Log(1 - .16)
	d := Decide(secondaryPlan(), secondaryBlocks(1, 6, .01, less, 0, 0))
	require.Equal(t, TradeOff, d.Verdict, "53 % sooner and 16 % less throughput")
	worse := d.Worse(&d.Primary[0])
	require.Len(t, worse, 1)
	assert.Equal(t, "throughput", worse[0].Metric.Name)
	assert.InDelta(t, -.16, worse[0].Metric.Shown(worse[0].Estimate), .02)
	reversed := d.Primary[0].Reversed()
	assert.Len(t, d.Worse(&reversed), 1)

	for name, effects := range map[string][]float64{
		"less than the margin":     {math.Log(.97), .03, .03},
		"better":                   {-less, less, less},
		"the margin, not certain ": {math.Log(.95), .05, .05},
	} {
		d = Decide(secondaryPlan(), secondaryBlocks(1, 6, .01, effects...))
		assert.Equal(t, Better, d.Verdict, name)
		assert.Empty(t, d.Worse(&d.Primary[0]), name)
	}
	for _, effects := range [][]float64{{0, .2, 0}, {0, 0, .2}} {
		assert.Equal(t, TradeOff, Decide(secondaryPlan(), secondaryBlocks(1, 6, .01, effects...)).Verdict)
	}
}

// TestErrorOfTradeOffs runs trials whose arms are equal in the secondary metrics, or differ by just the margin in all
// of them, where the error is largest. At most 5 % may end as a trade-off, all looks and metrics together.
func TestErrorOfTradeOffs(t *testing.T) {
	const trials = 800
	margin := math.Log1p(.05)
	for name, row := range map[string]struct {
		effects []float64
		noise   float64
		most    float64
	}{
		"equal arms":                  {[]float64{0, 0, 0}, .04, .005},
		"the margin in all of them":   {[]float64{-margin, margin, margin}, .04, .05},
		"much scatter and the margin": {[]float64{-margin, margin, margin}, .3, .05},
	} {
		p, traded := secondaryPlan(), 0
		for seed := range uint64(trials) {
			// The looks go on while the first metric is not decided, as here with much scatter.
			if Decide(p, secondaryBlocks(seed, 6, row.noise, row.effects...)).Verdict == TradeOff {
				traded++
			}
		}
		// Two standard errors of the count.
		allowed := row.most*trials + 2*math.Sqrt(row.most*(1-row.most)*trials)
		assert.LessOrEqual(t, float64(traded), allowed, name)
		t.Logf("%s: %d of %d", name, traded, trials)
	}
}
