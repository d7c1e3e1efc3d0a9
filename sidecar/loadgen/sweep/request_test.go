package sweep

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// A request without modes compares all arms, or is refused.
func TestAllArmsAreCompared(t *testing.T) {
	settings := api.Settings{MaxConcurrency: 100, Slider: api.Slider{Min: 10, Max: 50, Increment: 10}}
	for name, row := range map[string]struct {
		kind     api.SweepKind
		arms     int
		twin     bool
		together bool
		want     string
	}{
		"two on two lanes":  {kind: api.SweepTrial, arms: 2, twin: true, together: true},
		"three with a twin": {kind: api.SweepTrial, arms: 3, twin: true},
		"nine":              {kind: api.SweepTrial, arms: 9},
		"ten":               {kind: api.SweepTrial, arms: 10, want: "modes: a list of 10 is not allowed: 2 to 9 for a trial"},
		"a search over three": {
			kind: api.SweepCapacity, arms: 3, want: "modes: a list of 3 is not allowed: 1 to 2 for a capacity search",
		},
	} {
		state := api.State{Driver: "endpoints", Concurrency: api.Concurrency{Target: api.AtConversations(20)}}
		for i := range row.arms {
			state.Modes = append(state.Modes, api.ModeState{Arm: fmt.Sprint("a", i), Mode: api.ModeUnknown})
		}
		var twin *api.State
		if row.twin {
			twin = &state
		}
		r, err := complete(api.SweepRequest{Kind: row.kind}, state, twin, settings)
		if row.want != "" {
			require.EqualError(t, err, row.want, name)
			continue
		}
		require.NoError(t, err, name)
		assert.Equal(t, []api.ModeState(state.Modes), r.Modes, name)
		assert.Equal(t, row.together, *r.Together, name)
	}
}
