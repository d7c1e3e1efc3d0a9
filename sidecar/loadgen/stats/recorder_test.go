package stats

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbooth/sidecar/api"
)

// Totals restart with the lane; Prometheus counters continue.
func TestRecorderTotals(t *testing.T) {
	r := NewRecorder(t0, slo)
	r.add(whole(1))
	r.add(failed(1, api.ErrorStall))
	r.ConversationEnded(api.ConversationError)
	r.Reset(at(2))
	assert.Equal(t, api.Totals{ErrorsByClass: map[api.ErrorClass]int64{}}, r.Totals())
	assert.Zero(t, r.Report(at(2)).OK)
	r.add(whole(3))
	r.add(whole(3))
	r.add(failed(3, api.ErrorConnect))
	cancelled := failed(3, "")
	cancelled.Status, cancelled.OutputTokens = api.TurnCancelled, new(5)
	r.add(cancelled)
	r.ConversationEnded(api.ConversationCompleted)
	r.ConversationEnded(api.ConversationRetired)
	assert.Equal(t, api.Totals{
		OK: 2, Errors: 1, Cancelled: 1, ErrorsByClass: map[api.ErrorClass]int64{api.ErrorConnect: 1},
		InputTokens: 8000, CachedTokens: 2000, OutputTokens: 1605, Conversations: 2,
	}, r.Totals())
	ever, _ := r.cumulative()
	assert.Equal(t, int64(3), ever.turns[api.TurnOK])
	assert.Equal(t, int64(3), ever.sloMet)
}

// The window is judged by the present objectives, the counter by those at the end of each turn.
func TestRecorderSLO(t *testing.T) {
	r := NewRecorder(t0, slo)
	r.add(counted(whole(1), 1))
	r.SetSLO(api.SLO{TTFT: .1, TPOT: .01})
	r.add(counted(whole(2), 1))
	assert.Zero(t, r.Report(at(3)).SLOMet)
	assert.Zero(t, r.Counted(at(3), 1).SLOMet)
	ever, _ := r.cumulative()
	assert.Equal(t, int64(1), ever.sloMet)
}

// Turns that were sent before a reset and end after it are in the Prometheus counters alone.
func TestRecorderLeavesOutEarlierSteps(t *testing.T) {
	r := NewRecorder(t0, slo)
	r.Reset(at(2))
	r.BeginStep(2, nil)
	r.add(counted(whole(3), 1))
	assert.Zero(t, r.Totals().OK)
	assert.Zero(t, r.Report(at(4)).Window.Metrics.ITL.N)
	assert.Empty(t, r.gaps.slots)
	ever, _ := r.cumulative()
	assert.Equal(t, int64(1), ever.turns[api.TurnOK])
	r.add(counted(whole(3), 3))
	assert.EqualValues(t, 1, r.Totals().OK)
}
