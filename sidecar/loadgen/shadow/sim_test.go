package shadow

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/closedloop"
)

// observed is a turn of a simulated cluster, as a client measures it.
type observed struct {
	closedloop.Turn
	request Request
	flight  *Flight
}

// simulate holds conversations with a cluster and returns all turns that have ended.
func simulate(t *testing.T, o sim.Options, w closedloop.Workload, until time.Duration) (turns []*observed,
	ids []sim.WorkerID,
) {
	t.Helper()
	loop, err := closedloop.New(o, w)
	require.NoError(t, err)
	for _, worker := range loop.Cluster.Workers() {
		ids = append(ids, worker.ID)
	}
	asked := map[int64]Request{}
	loop.OnAsk = func(turn *closedloop.Turn, q sim.Request) {
		r := Request{PromptTokens: q.PromptTokens, Conversation: uint64(turn.Conversation) + 1}
		for _, hash := range q.Blocks[:q.PromptTokens/o.Profile.KV.BlockTokens] {
			r.Blocks = append(r.Blocks, uint64(hash))
		}
		asked[turn.Conversation] = r
	}
	loop.OnTurn = func(turn *closedloop.Turn) {
		r := asked[turn.Conversation]
		r.Worker = turn.Decision.Worker().Worker
		turns = append(turns, &observed{Turn: *turn, request: r})
	}
	require.NoError(t, loop.Run(until))
	return turns, ids
}

// replay feeds turns to a shadow in the order of time.
func replay(s *Shadow, turns []*observed) {
	type event struct {
		at   time.Duration
		kind int
		turn *observed
	}
	var events []event
	for _, turn := range turns {
		events = append(events, event{turn.Submitted, 0, turn}, event{turn.FirstToken, 1, turn}, event{turn.Ended, 2, turn})
	}
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	for _, e := range events {
		switch e.kind {
		case 0:
			e.turn.flight = s.Begin(e.at, e.turn.request)
		case 1:
			s.First(e.at, e.turn.flight)
		case 2:
			s.End(e.at, e.turn.flight, e.turn.OutputTokens, e.turn.CachedTokens)
		}
	}
}

// measured returns the hit rate of the turns that got their first token after a moment.
func measured(turns []*observed, since time.Duration) float64 {
	var cached, prompt int
	for _, turn := range turns {
		if turn.FirstToken > since {
			cached += turn.CachedTokens
			prompt += turn.PromptTokens
		}
	}
	return float64(cached) / float64(prompt)
}

// The shadow of the policy in force is within one point of the hits that the cluster measured, and so are its real
// choices on the caches of the shadow. The shadow of another policy is within two points of what the cluster measures
// under that policy with the same draws.
func TestShadowAgreesWithTheSimulatedCluster(t *testing.T) {
	profile, err := sim.OpenProfile("h200-tp1")
	require.NoError(t, err)
	modes := []api.Mode{api.ModeKV, api.ModeRoundRobin}
	for _, row := range []struct {
		workers int
		forget  bool
	}{{3, true}, {3, false}, {5, true}, {5, false}} {
		t.Run(fmt.Sprintf("%+v", row), func(t *testing.T) {
			rates := map[api.Mode]float64{}
			figures := map[api.Mode]Figures{}
			for _, mode := range modes {
				o := sim.DefaultOptions(profile)
				o.Profile.Workers, o.Mode, o.ForgetAnswers, o.Seed = row.workers, mode, row.forget, 7
				turns, ids := simulate(t, o, closedloop.Recorded(), 5*time.Minute)
				options := DefaultOptions(profile.KV.BlockTokens)
				options.Workers, options.Capacity = ids, profile.KV.Blocks
				s, err := New(options)
				require.NoError(t, err)
				replay(s, turns)
				rates[mode], figures[mode] = measured(turns, s.since), s.Figures(s.now)
				found, sure := s.AnswersFound()
				assert.True(t, sure)
				assert.Equal(t, !row.forget, found)
			}
			for mode, f := range figures {
				assert.Less(t, f.Account.Error(), .01, mode)
				for _, p := range f.Policies {
					policy := api.Mode(p.Policy.Name)
					if !slices.Contains(modes, policy) {
						continue
					}
					bound := .01
					if policy != mode {
						bound = .02
					}
					assert.InDelta(t, rates[policy], p.Total.HitRatio(), bound, "%s under %s", policy, mode)
				}
			}
			assert.Greater(t, figures[api.ModeKV].Choices.Agreement(), .95)
		})
	}
}
