package sweep

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

// looked feeds a queue second by second, and returns the second in which it was found to grow; 0: in none.
func looked(seconds, filled int, active func(second int) float64) int {
	q := queue{}
	for second := range seconds {
		q.active = append(q.active, active(second))
		if q.grows(second >= filled, second == seconds-1) {
			return second
		}
	}
	return 0
}

// A queue that grows is found long before its span ends. Neither filling up nor chance is growth.
func TestQueueGrows(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 2))
	around := func(mean float64) float64 { return mean + 5*chance.NormFloat64() }
	fills := func(second int) float64 { return around(100 * min(1, float64(second)/60)) }
	assert.Zero(t, looked(400, 60, fills))
	assert.Zero(t, looked(75, 60, fills), "the counted time is shorter than the warm-up")
	grows := looked(400, 60, func(second int) float64 { return fills(second) + 3*float64(second) })
	assert.Greater(t, grows, 60)
	assert.Less(t, grows, 200)
}
