package decide

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A failed turn ranks above every success of the block. Its value is its wait where that is longer.
func TestFailedTurnsAreTheSlowest(t *testing.T) {
	hundred := func(failed ...float64) (s Sample) {
		for i := range 100 - len(failed) {
			s.OK = append(s.OK, float64(i+1))
		}
		s.Failed = failed
		return s
	}
	whole := hundred()
	largest := Largest(whole, hundred(0, 0))
	assert.InDelta(t, 100, largest, 0)
	for _, test := range []struct {
		name     string
		s        Sample
		mean     float64
		p50, p95 float64
		atLeast  bool
	}{
		{"none failed", whole, 50.5, 50.5, 95.05, false},
		{"refused at once", hundred(0, 0), (98*99/2. + 200) / 100, 50.5, 95.05, false},
		{"at the time-out", hundred(300, 300, 300, 300), (96*97/2. + 1200) / 100, 50.5, 95.05, false},
		{"more than the quantile", hundred(0, 0, 0, 0, 0, 200), (94*95/2. + 700) / 100, 50.5, 100, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			assert.InDelta(t, test.mean, test.s.Mean(largest), 1e-9)
			p50, _ := test.s.Quantile(.5, largest)
			assert.InDelta(t, test.p50, p50, 1e-9)
			p95, atLeast := test.s.Quantile(.95, largest)
			assert.InDelta(t, test.p95, p95, 1e-9)
			assert.Equal(t, test.atLeast, atLeast)
		})
	}
	assert.True(t, math.IsNaN(Sample{}.Mean(1)))
	v, _ := Sample{}.Quantile(.5, 1)
	assert.True(t, math.IsNaN(v))
}
