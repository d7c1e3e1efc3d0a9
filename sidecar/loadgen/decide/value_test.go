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
	}{
		{"none failed", whole, 50.5, 50.5, 95.05},
		{"refused at once", hundred(0, 0), (98*99/2. + 200) / 100, 50.5, 95.05},
		{"at the time-out", hundred(300, 300, 300, 300), (96*97/2. + 1200) / 100, 50.5, 95.05},
		{"more than the quantile", hundred(0, 0, 0, 0, 0, 200), (94*95/2. + 700) / 100, 50.5, 100},
	} {
		t.Run(test.name, func(t *testing.T) {
			assert.InDelta(t, test.mean, test.s.Mean(largest), 1e-9)
			assert.InDelta(t, test.p50, test.s.Quantile(.5, largest), 1e-9)
			assert.InDelta(t, test.p95, test.s.Quantile(.95, largest), 1e-9)
		})
	}
	assert.True(t, math.IsNaN(Sample{}.Mean(1)))
	assert.True(t, math.IsNaN(Sample{}.Quantile(.5, 1)))
}
