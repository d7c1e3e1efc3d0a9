package api_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// What nobody filled is written as the document wants it: lists and maps empty, not null.
func TestEmptyListsAreNotNull(t *testing.T) {
	for _, v := range []any{
		api.Snapshot{Lanes: []api.LaneSnapshot{{Cluster: api.Cluster{Workers: []api.Worker{{}}}}}},
		api.Snapshot{},
		api.Status{Lanes: []api.LaneStatus{{}}},
		api.Status{},
		api.History{},
		api.DecisionList{},
		api.DecisionList{Decisions: []api.RoutingDecision{{}}},
		api.ConversationList{},
		api.EventList{},
		api.BaselineList{},
		api.BaselineList{Baselines: []api.Baseline{{}}},
		api.SimulationList{},
		api.SimulationList{Profiles: []api.SimulationProfile{{}}},
		api.SimulationResult{},
		api.SimulationEnd{},
		api.SweepList{},
		api.SweepList{Sweeps: []api.SweepSummary{{}}},
		api.Sweep{},
		api.Sweep{Trial: &api.TrialState{}, Capacity: &api.Capacity{}},
		api.Sweep{Capacity: &api.Capacity{Modes: []api.ModeCapacity{{}}}},
		api.State{Sweep: &api.SweepSummary{}},
		api.Shadow{},
		api.Twin{Showcase: &api.Showcase{}},
	} {
		text, err := json.Marshal(v)
		require.NoError(t, err)
		require.NotContains(t, string(text), "null", "%T", v)
	}
}
