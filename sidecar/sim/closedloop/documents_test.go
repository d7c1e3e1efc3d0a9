package closedloop

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
)

// Where every conversation has a document of its own, hardly a turn but the first is slow under KV-aware routing. Under
// round-robin on three workers about half of the later turns are slow. The guide says so (checklist.md). A
// turn is slow if its TTFT is more than half of the median of first turns.
func TestOwnDocumentsByTurn(t *testing.T) {
	slow := func(mode api.Mode) (share [6]float64) {
		w := Recorded()
		w.Openings = 0
		o := sim.DefaultOptions(three)
		o.Mode, o.Seed = mode, 1
		l, err := New(o, w)
		require.NoError(t, err)
		require.NoError(t, l.Run(20*time.Minute))
		var firsts []time.Duration
		for _, u := range l.Turns() {
			if u.Number == 1 {
				firsts = append(firsts, u.TTFT())
			}
		}
		slices.Sort(firsts)
		var all [6]float64
		for _, u := range l.Turns() {
			all[u.Number]++
			if u.TTFT() > firsts[len(firsts)/2]/2 {
				share[u.Number]++
			}
		}
		for i := range share {
			share[i] /= max(1, all[i])
		}
		return share
	}
	roundRobin, kv := slow(api.ModeRoundRobin), slow(api.ModeKV)
	for number := 2; number <= 5; number++ {
		assert.InDelta(t, .07, kv[number], .04, "turn %d under KV-aware routing", number)
		assert.InDelta(t, .53, roundRobin[number], .08, "turn %d under round-robin", number)
	}
}
