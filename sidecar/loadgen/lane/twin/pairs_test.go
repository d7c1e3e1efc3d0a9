package twin

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/proof"
	"kvbooth/sidecar/loadgen/workload"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func turn(k int64, number int, ended time.Time) *workload.Turn {
	return &workload.Turn{Draw: workload.Draw{Seed: 7, Number: k}, Turn: api.Turn{
		Number: number, Ended: ended, TTFT: new(.3), TPOT: new(.02), Latency: new(10.),
		PromptTokens: new(100), CachedTokens: new(50),
	}}
}

// A turn is paired with the same turn of the same conversation, whichever lane is first. A turn of another draw is
// another one.
func TestMatcherPairsTurns(t *testing.T) {
	var m matcher
	m.begin(setting{level: api.AtConversations(2)})
	assert.False(t, m.add(0, turn(4, 1, noon)))
	assert.Equal(t, 1, m.left())
	assert.True(t, m.add(1, turn(4, 1, noon)))
	assert.Zero(t, m.left())
	assert.False(t, m.add(1, turn(4, 2, noon)))
	assert.False(t, m.add(0, turn(4, 3, noon)), "another turn")
	other := turn(4, 2, noon)
	other.Draw.Shape = 1
	assert.False(t, m.add(0, other), "another draw")
	assert.True(t, m.add(0, turn(4, 2, noon)))
	assert.Equal(t, 2, m.pairs.N())
	assert.Equal(t, 2, m.left())
}

// A turn without a counterpart is dropped after an hour, and the number of turns that wait is limited. Dropped turns
// count as unpaired.
func TestMatcherIsBounded(t *testing.T) {
	var m matcher
	m.begin(setting{level: api.AtConversations(2)})
	for k := range int64(maxWaiting + 10) {
		m.add(0, turn(k, 1, noon))
	}
	assert.Len(t, m.waiting[0], maxWaiting)
	assert.Equal(t, maxWaiting+10, m.left())
	assert.True(t, m.add(1, turn(5, 1, noon.Add(time.Minute))))
	m.add(0, turn(-1, 1, noon.Add(2*time.Hour)))
	assert.Len(t, m.waiting[0], 1)
	assert.Equal(t, maxWaiting+10, m.left())
}

// Another setting counts anew. The former pairs are kept while only the modes are swapped.
func TestMatcherKeepsTheOtherHalf(t *testing.T) {
	kv, rr := api.ModeState{Mode: api.ModeKV}, api.ModeState{Mode: api.ModeRoundRobin}
	shape := api.WorkloadShape{Openings: new(10)}
	apart := setting{steps: [2]int64{1, 1}, modes: [2]api.ModeState{kv, rr}, level: api.AtConversations(2), shape: shape}
	fill := func(m *matcher) {
		m.add(0, turn(1, 1, noon))
		m.add(1, turn(1, 1, noon))
	}
	var m matcher
	m.begin(apart)
	fill(&m)
	first := m.pairs
	swapped := apart
	swapped.modes, swapped.shape.Openings = [2]api.ModeState{rr, kv}, new(10)
	m.begin(swapped)
	assert.Zero(t, m.pairs.N())
	assert.Same(t, first, m.other)
	swapped.steps[0]++
	m.begin(swapped)
	assert.Same(t, first, m.other, "another step of the same setting")
	fill(&m)
	m.begin(apart)
	assert.NotSame(t, first, m.other, "now the half before is the other one")
	assert.NotNil(t, m.other)
	more := apart
	more.level = api.AtConversations(3)
	m.begin(more)
	assert.Nil(t, m.other)
	m.begin(apart)
	fill(&m)
	same := apart
	same.modes = [2]api.ModeState{kv, kv}
	m.begin(same)
	assert.Nil(t, m.other)
}

// A target is another one if a known property differs.
func TestTargetDiffersByKnownProperties(t *testing.T) {
	before := identity{TargetID: api.TargetID{URL: "http://a", Model: "m"}, gpu: "H200", workers: 3}
	assert.False(t, before.other(before))
	assert.False(t, before.other(identity{TargetID: api.TargetID{URL: "http://a"}}), "not known now")
	for _, now := range []identity{
		{TargetID: api.TargetID{URL: "http://b", Model: "m"}},
		{TargetID: api.TargetID{URL: "http://a", Model: "n"}},
		{TargetID: before.TargetID, gpu: "A100"},
		{TargetID: before.TargetID, workers: 4},
	} {
		assert.True(t, before.other(now), "%+v", now)
	}
}

// A turn of a run that was taken over may end before the lanes are joined. It makes no pair, and its worker is noted.
func TestTurnEndsBeforeLanesAreJoined(t *testing.T) {
	d := NewDesk(t.Context(), slog.New(slog.DiscardHandler))
	for _, name := range []string{api.DefaultLane, api.TwinLane} {
		early := turn(1, 1, noon)
		early.Lane, early.Status, early.Counted, early.Step, early.Worker = name, api.TurnOK, true, 3, "7"
		d.TurnEnded(early)
	}
	assert.Zero(t, d.matcher.pairs.N())
	assert.Equal(t, [2]served{{"7": time.Time{}}, {"7": time.Time{}}}, d.served)
	assert.Empty(t, d.SharedWorkers())
}

// GPUs show that workers with different names are the same. They are not listed beside workers.
func TestSharedGPUs(t *testing.T) {
	workers := [2]map[string]bool{{"7": true, "8": true}, {"7": true, "8": true}}
	gpus := [2]map[string]bool{{"GPU-1": true, "GPU-2": true}, {"GPU-1": true}}
	assert.Equal(t, []string{"7", "8"}, shared(workers, gpus))
	workers[1] = map[string]bool{"host:8000": true}
	assert.Equal(t, []string{"GPU-1"}, shared(workers, gpus))
}

// A difference is relative to the value of lane main, as far as there is one.
func TestDifferenceIsRelativeToMain(t *testing.T) {
	for want, p := range map[string]proof.Paired{
		"25.0 % higher":     {Metric: proof.TTFTMean, A: .2, B: .25},
		"250.0 ms higher":   {Metric: proof.TTFTMean, B: .25},
		"1.5 ms higher":     {Metric: proof.TPOTMean, B: .0015},
		"0.0 ms":            {Metric: proof.LatencyMean},
		"40.0 points lower": {Metric: proof.HitRate, A: .4},
	} {
		assert.Equal(t, want, amount(&p))
	}
}

// Turns are paired after a jump of the clock by an hour. The time of a member's turn is by the member's own clock.
func TestMatcherPairsTurnsAfterClockJumps(t *testing.T) {
	for name, jump := range map[string]time.Duration{"forward": time.Hour, "back": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			var m matcher
			m.begin(setting{level: api.AtConversations(2)})
			assert.False(t, m.add(0, turn(10, 1, noon)))
			after := noon.Add(jump + time.Second)
			assert.Equal(t, jump < 0, m.add(1, turn(10, 1, after)), "an hour is what a turn waits")
			for k := range int64(100) {
				at := after.Add(time.Duration(k) * time.Second)
				m.add(1, turn(20+k, 1, at))
				assert.True(t, m.add(0, turn(20+k, 1, at)), k)
			}
			assert.GreaterOrEqual(t, m.pairs.N(), 100)
		})
	}
}
