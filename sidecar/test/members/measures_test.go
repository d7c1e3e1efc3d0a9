//go:build members && linux

package members

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// quick are flags of short conversations, one after the other.
var quick = []string{
	"--mode-driver=simulated", "--concurrency=6", "--think-time=0s", "--start-rate=1000", "--opening-tokens=300", "--turns-min=2", "--turns-max=3",
	"--max-tokens=32", "--output-tokens-mean=20",
}

// slow is the speed of a cluster whose TTFT of such openings is about a second.
const slow = .25

// sweep starts a sweep and returns a function that waits for a state of it.
func (r *rig) sweep(ask api.SweepRequest) (follow func(what string, ok func(api.Sweep) bool) api.Sweep) {
	r.Helper()
	s, err := r.client.StartSweep(r.Context(), api.DefaultLane, ask)
	require.NoError(r, err)
	return func(what string, ok func(api.Sweep) bool) (now api.Sweep) {
		r.Helper()
		r.until(what, func() bool {
			latest, err := r.client.Sweep(r.Context(), s.ID)
			if err != nil { // the coordinator is being started
				return false
			}
			now = latest
			return ok(now)
		})
		return now
	}
}

func ended(s api.Sweep) bool { return s.State != api.SweepRunning }

// Sweeps, recorded results and trials work with members as in one process. A coordinator that was killed begins the
// span again.
func TestSweeps(t *testing.T) {
	// So slow that the lag of a busy machine makes no span invalid, with answers so short that turns end all the same,
	// and conversations that begin one after the other, so that no part of a span is without a turn.
	r := newRig(t, startTarget(t, slow), 200, 2, append(quick, "--max-tokens=4", "--output-tokens-mean=3", "--start-rate=20")...)
	both := []api.ModeState{{Mode: api.ModeKV}, {Mode: api.ModeRoundRobin}}
	follow := r.sweep(api.SweepRequest{Kind: api.SweepLevels, Levels: []int{8}, Modes: both, Repeats: new(1), WarmUp: new(1.), Seconds: new(4.)})
	before := follow("the second span counts", func(s api.Sweep) bool {
		return len(s.Spans) == 1 && s.Progress.Span != nil && s.Progress.Span.Phase == api.SpanCounting
	})
	r.coordinator.process.Kill()
	r.startCoordinator()
	s := follow("the sweep ends", ended)
	require.Equal(t, api.SweepDone, s.State, s.Reason)
	assert.Equal(t, before.Spans[0], s.Spans[0])
	require.Len(t, s.Rows, 2)
	for _, span := range s.Spans {
		assert.Positive(t, span.Turns)
	}
	_, err := r.client.SweepBaseline(t.Context(), s.ID, api.SweepBaselineRequest{Name: "two members"})
	require.NoError(t, err)
	kept, err := r.client.Baseline(t.Context(), "two members")
	require.NoError(t, err)
	require.Len(t, kept.Rows, 2)
	for _, row := range kept.Rows {
		assert.Equal(t, 8, row.Concurrency)
		assert.Positive(t, *row.TTFT.P95)
	}

	s = r.sweep(api.SweepRequest{Kind: api.SweepTrial, Levels: []int{8}, Modes: both, Seconds: new(4.), MaxSeconds: new(600.)})(
		"a pair of spans counts", func(s api.Sweep) bool { return ended(s) || s.Trial != nil && s.Trial.Pairs > 0 })
	require.Equal(t, api.SweepRunning, s.State, s.Reason)
	_, err = r.client.PatchSweep(t.Context(), s.ID, api.SweepPatch{State: api.SweepCancelled})
	require.NoError(t, err)
	r.until("the lane is given back", func() bool { return r.lane(0).State.Sweep == nil })
}

func (r *rig) lane(i int) api.LaneSnapshot {
	s, err := r.client.Snapshot(r.Context())
	require.NoError(r, err)
	return s.Lanes[i]
}

// The lanes of a twin hold the same conversations on the same members, each on its own cluster, also after a member
// was killed.
func TestTwin(t *testing.T) {
	second := startTarget(t, 1)
	r := newRig(t, startTarget(t, 1), 200, 2, append(quick, "--twin-target-url=http://"+second.address)...)
	_, err := r.client.Start(t.Context(), api.DefaultLane, api.StartRequest{})
	require.NoError(t, err)
	pairs := func() int {
		now, err := r.client.Twin(t.Context())
		require.NoError(t, err)
		return now.Pairs
	}
	r.until("turns are paired", func() bool { return pairs() >= 20 })
	m := r.holder(0)
	m.process.Kill()
	r.start(m)
	had := pairs()
	r.until("pairs go on", func() bool {
		return pairs() >= had+20 && r.lane(0).State.Concurrency.Actual == 6 && r.lane(1).State.Concurrency.Actual == 6
	})
	asked := map[int64]bool{}
	for _, a := range r.target.all() {
		asked[a.number] = true
	}
	both := 0
	for _, a := range second.all() {
		if asked[a.number] {
			both++
		}
	}
	assert.Greater(t, both, len(second.all())/2, "the twin holds conversations of the same numbers")
	_, err = r.client.WithoutTimeout().Stop(t.Context(), api.DefaultLane, api.StopRequest{})
	require.NoError(t, err)
}
