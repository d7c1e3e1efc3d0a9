//go:build dynamo

package dynamo

import (
	"cmp"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/local"
)

// In each of its modes, Dynamo accepts a priority and names the worker of every turn. Under direct, the load generator
// names it. With session affinity, a conversation stays on the worker of its first turn even under round-robin.
func TestRouterModes(t *testing.T) {
	d := Start(t, 18000, func(o *local.Options) { o.FrontendArgs = []string{"--router-session-affinity-ttl-secs=600"} })
	instances, err := d.Instances(t.Context())
	require.NoError(t, err)
	special := map[string][]string{
		"kv":          {"--mode-driver=pinned"},
		"direct":      {"--mode-driver=pinned", "--mode-offers=round_robin"},
		"round-robin": {"--arms=round-robin", "--target-session=header:X-Dynamo-Session-ID"},
	}
	for _, mode := range local.RouterModes {
		t.Run(mode, func(t *testing.T) {
			args, found := special[mode]
			if !found {
				args = []string{"--arms=" + mode}
			}
			url := startServing(t, d, mode)
			b := startAgainst(t, d, append(args, "--target-url="+url, "--request-priority=5")...)
			b.start(t)
			b.waitOK(t, 150, time.Minute)
			b.drain(t)
			turns := b.turns(t)
			for _, turn := range turns {
				assert.Contains(t, instances, turn.Worker, "%s: %s %s", turn.RequestID, turn.Status, turn.ErrorClass)
			}
			assert.Zero(t, b.status(t).Lanes[0].Totals.Errors)
			served := slices.Sorted(maps.Values(perWorker(turns)))
			later, moved := movedTurns(turns)
			t.Logf("%s: turns by worker %v, %d of %d later turns moved to another one",
				b.status(t).Lanes[0].State.InMode().Name(), served, moved, later)
			switch mode {
			case "direct":
				assert.LessOrEqual(t, served[len(served)-1]-served[0], 1, "%v", served)
			case "round-robin":
				assert.Zero(t, moved, "of %d later turns", later)
			case "random":
				assert.NotZero(t, moved, "without a session, turns move")
			}
		})
	}
}

// movedTurns returns the number of turns after the first of a conversation, and how many of them had another worker
// than the turn before.
func movedTurns(turns []api.Turn) (later, moved int) {
	slices.SortFunc(turns, func(a, b api.Turn) int {
		return cmp.Or(cmp.Compare(a.Conversation, b.Conversation), cmp.Compare(a.Number, b.Number))
	})
	for i, t := range turns[1:] {
		if before := turns[i]; before.Conversation == t.Conversation {
			later++
			if t.Worker != before.Worker {
				moved++
			}
		}
	}
	return later, moved
}
