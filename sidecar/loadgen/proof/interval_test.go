package proof

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
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
