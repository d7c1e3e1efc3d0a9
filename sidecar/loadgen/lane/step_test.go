package lane

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/stats"
	"kvbooth/sidecar/loadgen/workload"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// at is a moment of the step tests.
func at(seconds float64) time.Time {
	return epoch.Add(time.Duration(seconds * float64(time.Second)))
}

// saved returns steps that continue after an id, and the states that they save.
func saved(last int64) (*steps, *[]api.StepRecord) {
	all := new([]api.StepRecord)
	s := &steps{lane: "main", save: func(r api.StepRecord) { *all = append(*all, r) }}
	s.now.ID = last
	return s, all
}

// A step settles at the moment when actual concurrency first equals its target, and stays settled.
func TestStepSettlesWhenActualReachesTarget(t *testing.T) {
	type numbers struct{ actual, target int }
	for name, row := range map[string]struct {
		reports []numbers // one a second
		want    int       // index of the report that settles the step, -1: none
	}{
		"growing":                 {[]numbers{{1, 3}, {2, 3}, {3, 3}}, 2},
		"at once":                 {[]numbers{{3, 3}}, 0},
		"shrinking":               {[]numbers{{5, 3}, {4, 3}, {3, 3}, {2, 3}}, 2},
		"never":                   {[]numbers{{1, 3}, {2, 3}}, -1},
		"replaced later":          {[]numbers{{3, 3}, {2, 3}, {3, 3}}, 0},
		"still the former target": {[]numbers{{9, 9}, {8, 9}}, -1}, // reported before the workload had the new one
		"former, then its own":    {[]numbers{{3, 9}, {3, 3}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, all := saved(0)
			s.begin(at(0), api.AtConversations(3), kv, false)
			for i, n := range row.reports {
				s.active(at(float64(i+1)), n.actual, api.AtConversations(n.target), n.actual == n.target)
				step, actual, wait := s.view(at(float64(i + 1)))
				assert.Equal(t, n.actual, actual)
				assert.Equal(t, settleSpan, wait, "no turn was counted")
				assert.Equal(t, row.want >= 0 && i >= row.want, step.Settled != nil)
			}
			if row.want < 0 {
				assert.Len(t, *all, 1)
				return
			}
			require.Len(t, *all, 2, "begun and settled, each reported once")
			assert.Equal(t, at(float64(row.want+1)), *(*all)[1].Settled)
		})
	}
}

// begin begins a turn in the step in force, and end says whether it counts.
func (m *Marks) begin(s *steps) *workload.LiveTurn {
	t := new(workload.LiveTurn)
	m.Begin(t, s.current())
	return t
}

func (m *Marks) end(s *steps, t *workload.LiveTurn, at time.Time) bool {
	return m.End(t, s.current()) && s.count(t.Step, at)
}

// A turn counts if it ends in a settled step after all turns that began before the step settled.
func TestTurnsCountAfterAllEarlierOnesEnded(t *testing.T) {
	s, _ := saved(0)
	m := new(Marks)
	assert.False(t, m.end(s, m.begin(s), at(0)), "no step was ever open")
	s.begin(at(1), api.AtConversations(2), kv, false)
	early, late := m.begin(s), m.begin(s)
	s.active(at(2), 2, api.AtConversations(2), true)
	short, whole, straddles, twice := m.begin(s), m.begin(s), m.begin(s), m.begin(s)
	assert.False(t, m.end(s, early, at(3)), "begun before the step had settled")
	assert.False(t, m.end(s, short, at(3.2)), "one from before is still in progress")
	assert.False(t, m.end(s, late, at(3.5)), "begun before, too")
	assert.True(t, m.end(s, whole, at(4)))
	assert.True(t, m.end(s, twice, at(5)))
	step, _, wait := s.view(at(10))
	assert.Equal(t, 2, step.Counted)
	assert.Equal(t, 54*time.Second, wait, "60 s from the end of the first counted turn")
	_, _, wait = s.view(at(100))
	assert.Zero(t, wait)

	s.begin(at(101), api.AtConversations(2), kv, false)
	assert.Equal(t, int64(2), s.current().ID)
	s.active(at(101), 2, api.AtConversations(2), true)
	within := m.begin(s)
	assert.False(t, m.end(s, within, at(102)), "one of the step before is still in progress")
	assert.False(t, m.end(s, straddles, at(102)), "ended in the next step")
	step, _, wait = s.view(at(102))
	assert.Zero(t, step.Counted)
	assert.Equal(t, settleSpan, wait)

	open := m.begin(s)
	s.end(at(103))
	assert.False(t, m.end(s, open, at(104)), "ended after the last step")
	assert.False(t, m.end(s, m.begin(s), at(105)), "no step is open")
}

// Turns that count within the first minute are as long as all turns: none is left out because of its length.
func TestCountedTurnsAreNoShorter(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 34))
	length := func() float64 { return 25 * math.Exp(.3*rng.NormFloat64()) }
	var counted, all []float64
	for range 200 {
		s, _ := saved(0)
		m := new(Marks)
		s.begin(at(0), api.AtConversations(60), kv, false)
		type turn struct {
			*workload.LiveTurn
			length, ends float64
		}
		var open []turn
		for range 60 { // in progress since long before
			l := length()
			open = append(open, turn{m.begin(s), l, l * rng.Float64()})
		}
		s.active(at(0), 60, api.AtConversations(60), true)
		var first time.Time
		for {
			next := slices.IndexFunc(open, func(o turn) bool {
				return !slices.ContainsFunc(open, func(p turn) bool { return p.ends < o.ends })
			})
			o, l := &open[next], length()
			if now := at(o.ends); m.end(s, o.LiveTurn, now) {
				if first.IsZero() {
					first = now
				}
				if now.Sub(first) > time.Minute {
					break
				}
				counted = append(counted, o.length)
			}
			all = append(all, l)
			*o = turn{m.begin(s), l, o.ends + l}
		}
	}
	slices.Sort(counted)
	slices.Sort(all)
	assert.InEpsilon(t, stats.Percentile(all, .5), stats.Percentile(counted, .5), .01)
}

// A step that has ended does not settle any more, even if turns had counted.
func TestEndedStepDoesNotSettle(t *testing.T) {
	s, all := saved(0)
	s.end(at(0))
	assert.Empty(t, *all, "there was none to end")
	s.begin(at(1), api.AtConversations(1), kv, false)
	s.active(at(2), 1, api.AtConversations(1), true)
	s.count(1, at(3))
	s.end(at(90))
	s.end(at(91))
	s.active(at(92), 0, api.AtConversations(1), false)
	step, actual, wait := s.view(at(93))
	assert.Zero(t, actual)
	assert.Equal(t, settleSpan, wait)
	assert.Equal(t, 1, step.Counted)
	require.Len(t, *all, 3)
	assert.Equal(t, at(90), *(*all)[2].Ended)
}

// Ids continue from an earlier process. The states are saved in order, and the last one of each step has its end.
func TestStepStatesAreSavedInOrder(t *testing.T) {
	s, all := saved(41)
	assert.EqualValues(t, 41, s.now.ID)
	s.begin(at(1), api.AtConversations(1), kv, false)
	s.active(at(2), 1, api.AtConversations(1), true)
	s.begin(at(3), api.AtConversations(5), roundRobin, false)
	s.active(at(4), 1, api.AtConversations(1), true) // of the former target
	s.end(at(5))
	one := api.StepRecord{
		Lane:        "main",
		ID:          42,
		Level:       api.AtConversations(1),
		Mode:        api.ModeKV,
		Speculation: api.SpeculationOff,
		Started:     at(1),
	}
	settled, ended := one, one
	settled.Settled = new(at(2))
	ended.Settled, ended.Ended = new(at(2)), new(at(3))
	two := one
	two.ID, two.Level, two.Mode, two.Started = 43, api.AtConversations(5), api.ModeRoundRobin, at(3)
	closed := two
	closed.Ended = new(at(5))
	assert.Equal(t, []api.StepRecord{one, settled, ended, two, closed}, *all)
}

// A step whose conversations of another shape have ended settles at its target, and not before.
// TestStepSettlesAfterShapeChange shows that it does not settle while they are in progress.
func TestUnmixedStepSettlesAtItsTarget(t *testing.T) {
	s, _ := saved(0)
	s.begin(at(6), api.AtConversations(3), kv, true)
	s.active(at(7), 2, api.AtConversations(3), false)
	assert.True(t, s.isMixed())
	s.unmix(at(8))
	assert.False(t, s.isMixed())
	assert.Nil(t, s.now.Settled, "not as many as asked for yet")
	s.active(at(9), 3, api.AtConversations(3), true)
	assert.Equal(t, at(9), *s.now.Settled)
	s.begin(at(10), api.AtConversations(3), kv, true)
	s.end(at(11))
	assert.False(t, s.isMixed())
}

// Each change of concurrency, mode or workload settings begins a step. A request without a change begins none.
func TestEachChangeBeginsAStep(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		b.patch(api.WorkloadPatch{MaxTokens: new(50)})
		assert.EqualValues(t, 41, b.lane.State().Step.ID, "nothing runs")
		id := b.start(2).Step.ID
		assert.EqualValues(t, 42, id)
		for _, row := range []struct {
			name  string
			patch api.WorkloadPatch
			more  int64
		}{
			{"nothing", api.WorkloadPatch{}, 0},
			{"what is in force", api.WorkloadPatch{Level: new(api.AtConversations(2)), MaxTokens: new(50)}, 0},
			{"concurrency", api.WorkloadPatch{Level: new(api.AtConversations(3))}, 1},
			{"turns", api.WorkloadPatch{Turns: &api.Range{Min: 1, Max: 2}}, 1},
			{"max_tokens", api.WorkloadPatch{MaxTokens: new(51)}, 1},
			{"start_rate", api.WorkloadPatch{StartRate: new(500.0)}, 1},
			{"target_rps", api.WorkloadPatch{TargetRPS: new(1000.0)}, 1},
			{"several at once", api.WorkloadPatch{Level: new(api.AtConversations(2)), MaxTokens: new(52)}, 1},
		} {
			id += row.more
			assert.Equal(t, id, b.patch(row.patch).Step.ID, row.name)
		}
		b.changeMode(roundRobin, false, nil)
		assert.Equal(t, id+1, b.lane.State().Step.ID, "mode")
		assert.Equal(t, id+1, b.stop().Step.ID)
		assert.Equal(t, id+2, b.start(2).Step.ID, "another start")
	}, func(o *options) { o.LastStep = 41 })
}
