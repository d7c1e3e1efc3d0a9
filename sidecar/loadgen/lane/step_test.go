package lane

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// at is a moment of the step tests.
func at(seconds float64) time.Time {
	return epoch.Add(time.Duration(seconds * float64(time.Second)))
}

// saved returns steps that go on after an id, and all that they save.
func saved(last int64) (*steps, *[]api.StepRecord) {
	all := new([]api.StepRecord)
	s := &steps{lane: "main", save: func(r api.StepRecord) { *all = append(*all, r) }}
	s.now.ID = last
	return s, all
}

// A step settles at the moment when actual concurrency first equals its target, and stays settled.
func TestStepSettles(t *testing.T) {
	type numbers struct{ actual, target int }
	for name, row := range map[string]struct {
		told []numbers // one a second
		want int       // index of the one that settles it, -1: none does
	}{
		"growing":                 {[]numbers{{1, 3}, {2, 3}, {3, 3}}, 2},
		"at once":                 {[]numbers{{3, 3}}, 0},
		"shrinking":               {[]numbers{{5, 3}, {4, 3}, {3, 3}, {2, 3}}, 2},
		"never":                   {[]numbers{{1, 3}, {2, 3}}, -1},
		"replaced later":          {[]numbers{{3, 3}, {2, 3}, {3, 3}}, 0},
		"still the former target": {[]numbers{{9, 9}, {8, 9}}, -1}, // told before the workload had the new one
		"former, then its own":    {[]numbers{{3, 9}, {3, 3}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, all := saved(0)
			s.begin(at(0), 3, kv, false)
			for i, n := range row.told {
				s.active(at(float64(i+1)), n.actual, n.target)
				step, actual, wait := s.view(at(float64(i + 1)))
				assert.Equal(t, n.actual, actual)
				assert.Equal(t, settleSpan, wait, "no turn was counted")
				assert.Equal(t, row.want >= 0 && i >= row.want, step.Settled != nil)
			}
			if row.want < 0 {
				assert.Len(t, *all, 1)
				return
			}
			require.Len(t, *all, 2, "begun and settled, each told once")
			assert.Equal(t, at(float64(row.want+1)), *(*all)[1].Settled)
		})
	}
}

// A turn counts that began after its step had settled and ended within it.
func TestStepCounts(t *testing.T) {
	s, _ := saved(0)
	assert.False(t, s.counts(s.mark(), at(0)), "no step was ever open")
	s.begin(at(1), 2, kv, false)
	early := s.mark()
	s.active(at(2), 2, 2)
	whole, straddles, twice := s.mark(), s.mark(), s.mark()
	assert.False(t, s.counts(early, at(3)), "begun before the step had settled")
	assert.True(t, s.counts(whole, at(4)))
	assert.True(t, s.counts(twice, at(5)))
	step, _, wait := s.view(at(10))
	assert.Equal(t, 2, step.Counted)
	assert.Equal(t, 54*time.Second, wait, "60 s from the end of the first counted turn")
	_, _, wait = s.view(at(100))
	assert.Zero(t, wait)

	s.begin(at(101), 2, kv, false)
	assert.Equal(t, int64(2), s.current().ID)
	s.active(at(101), 2, 2)
	assert.False(t, s.counts(straddles, at(102)), "ended in the next step")
	step, _, wait = s.view(at(102))
	assert.Zero(t, step.Counted)
	assert.Equal(t, settleSpan, wait)

	open := s.mark()
	s.end(at(103))
	assert.False(t, s.counts(open, at(104)), "ended after the last step")
	assert.False(t, s.counts(s.mark(), at(105)), "no step is open")
}

// A step that has ended does not settle any more, whatever it had counted.
func TestStepEnds(t *testing.T) {
	s, all := saved(0)
	s.end(at(0))
	assert.Empty(t, *all, "there was none to end")
	s.begin(at(1), 1, kv, false)
	s.active(at(2), 1, 1)
	s.counts(s.mark(), at(3))
	s.end(at(90))
	s.end(at(91))
	s.active(at(92), 0, 1)
	step, actual, wait := s.view(at(93))
	assert.Zero(t, actual)
	assert.Equal(t, settleSpan, wait)
	assert.Equal(t, 1, step.Counted)
	require.Len(t, *all, 3)
	assert.Equal(t, at(90), *(*all)[2].Ended)
}

// Ids go on from an earlier process. Each state is saved in its order, and the last one of a step has its end.
func TestStepRecords(t *testing.T) {
	s, all := saved(41)
	assert.EqualValues(t, 41, s.now.ID)
	s.begin(at(1), 1, kv, false)
	s.active(at(2), 1, 1)
	s.begin(at(3), 5, roundRobin, false)
	s.active(at(4), 1, 1) // of the former target
	s.end(at(5))
	one := api.StepRecord{
		Lane: "main", ID: 42, Concurrency: 1, Mode: api.ModeKV, Speculation: api.SpeculationOff, Started: at(1),
	}
	settled, ended := one, one
	settled.Settled = new(at(2))
	ended.Settled, ended.Ended = new(at(2)), new(at(3))
	two := one
	two.ID, two.Concurrency, two.Mode, two.Started = 43, 5, api.ModeRoundRobin, at(3)
	closed := two
	closed.Ended = new(at(5))
	assert.Equal(t, []api.StepRecord{one, settled, ended, two, closed}, *all)
}

// While conversations of another shape are in progress a step does not settle.
func TestStepMixed(t *testing.T) {
	s, all := saved(0)
	s.begin(at(1), 2, kv, true)
	s.active(at(2), 2, 2)
	assert.True(t, s.isMixed())
	assert.False(t, s.counts(s.mark(), at(3)))
	s.unmix(at(4))
	assert.False(t, s.isMixed())
	assert.True(t, s.counts(s.mark(), at(5)))
	require.Len(t, *all, 2)
	assert.Equal(t, at(4), *(*all)[1].Settled)

	s.begin(at(6), 3, kv, true)
	s.active(at(7), 2, 3)
	s.unmix(at(8))
	assert.Nil(t, s.now.Settled, "not as many as asked for yet")
	s.active(at(9), 3, 3)
	assert.Equal(t, at(9), *s.now.Settled)
	s.end(at(10))
	assert.False(t, s.isMixed())
}

// Each change of concurrency, mode or workload settings begins a step. What changes nothing begins none.
func TestStepsOfALane(t *testing.T) {
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
			{"what is in force", api.WorkloadPatch{Concurrency: new(2), MaxTokens: new(50)}, 0},
			{"concurrency", api.WorkloadPatch{Concurrency: new(3)}, 1},
			{"turns", api.WorkloadPatch{Turns: &api.Range{Min: 1, Max: 2}}, 1},
			{"max_tokens", api.WorkloadPatch{MaxTokens: new(51)}, 1},
			{"start_rate", api.WorkloadPatch{StartRate: new(500.0)}, 1},
			{"target_rps", api.WorkloadPatch{TargetRPS: new(1000.0)}, 1},
			{"several at once", api.WorkloadPatch{Concurrency: new(2), MaxTokens: new(52)}, 1},
		} {
			id += row.more
			assert.Equal(t, id, b.patch(row.patch).Step.ID, row.name)
		}
		b.switched(roundRobin, false, nil)
		assert.Equal(t, id+1, b.lane.State().Step.ID, "mode")
		assert.Equal(t, id+1, b.stop().Step.ID)
		assert.Equal(t, id+2, b.start(2).Step.ID, "another start")
	}, func(o *options) { o.LastStep = 41 })
}
