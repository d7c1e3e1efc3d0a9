package proof

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/workload"
)

// Sections that follow their neighbors inflate the variance; those that make up for
// each other do not shrink it.
func TestInflation(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	series := func(r float64) (all []Sectioned) {
		for range 60 {
			s, v := Sectioned{}, rng.NormFloat64()/math.Sqrt(1-r*r)
			for range 12 {
				s.Sections = append(s.Sections, v)
				v = r*v + rng.NormFloat64()
			}
			all = append(all, s)
		}
		return all
	}
	assert.InDelta(t, .4, correlation(series(.4)), .08)
	assert.InDelta(t, (1+.4)/(1-.4), inflation(series(.4)), .6)
	assert.InDelta(t, 1, inflation(series(-.4)), 0)
	assert.InDelta(t, 1, inflation([]Sectioned{{Sections: []float64{1, 1, 1, 1, 1}}}), 0)
}

// The interval of a row is shifted to the mean of its snapshots, but not below 0.
func TestIntervalOfSnapshotsIsPossible(t *testing.T) {
	r := Recording{Until: 400, Short: true, Tokens: make([]float64, 400)}
	for i := range 400 {
		sent, first := float64(i)*.9, .02
		if i < 300 { // outside of the snapshot, which is the last 60 s
			first = .2 + .1*float64(i%7)
		}
		r.Turns = append(r.Turns, workload.Outcome{
			Status: api.TurnOK, Sent: seconds(sent), TTFT: first, Latency: first + 1, OutputTokens: 5, TPOT: .25,
		})
	}
	row, err := r.Row(1, api.SLO{})
	require.NoError(t, err)
	require.Less(t, *row.TTFT.P50, .05)
	require.Zero(t, row.Intervals.TTFT.P50[0])
	require.Greater(t, row.Intervals.TTFT.P50[1], 0.)
}
