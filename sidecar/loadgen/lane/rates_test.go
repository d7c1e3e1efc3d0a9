package lane

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// atRate makes the load one of single turns that come at a rate.
func atRate(rate api.Level) func(*options) {
	return func(o *options) {
		o.Settings.Level, o.Settings.Turns = rate, api.Range{Min: 1, Max: 1}
		o.Settings.Arrivals, o.Settings.Burstiness, o.Settings.MaxInflight = api.ArrivalsConstant, 1, 1000
	}
}

// Steps follow each other as if the slider had been moved, and the last one stays. A level that an operator sets ends
// them.
func TestSteps(t *testing.T) {
	levels := []api.Level{api.AtRate(1), api.AtRate(2), api.AtRate(4)}
	for name, want := range map[string][]api.Level{
		"undisturbed": {levels[0], levels[1], levels[2], levels[2]},
		"moved":       {levels[0], api.AtRate(3), api.AtRate(3), api.AtRate(3)},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, b *booth, f *fake) {
				f.setLatency(2 * time.Second)
				b.noError(b.lane.Start(t.Context(), ann, api.StartRequest{}))
				var seen []api.Level
				for range want {
					pass(4 * time.Minute)
					s := b.lane.State()
					seen = append(seen, s.Concurrency.Target)
					assert.NotNil(t, s.Step.Settled, "%v", seen)
					if name == "moved" && len(seen) == 1 {
						b.patch(api.WorkloadPatch{Level: &want[1]})
					}
					pass(time.Minute)
				}
				assert.Equal(t, want, seen)
				if name == "undisturbed" {
					b.reported("steps: step 2: 2 conversations/s, KV")
					assert.EqualValues(t, 3, b.lane.State().Step.ID)
				}
			}, atRate(levels[0]), func(o *options) { o.Steps, o.StepDuration = levels, 5*time.Minute })
		})
	}
}

// A ramp is one step, which settles after its end. Another change of settings goes on with it.
func TestRampIsOneStep(t *testing.T) {
	ramp := &api.Ramp{From: api.AtRate(1), Seconds: 600}
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		f.setLatency(2 * time.Second)
		b.noError(b.lane.Start(t.Context(), ann, api.StartRequest{}))
		pass(time.Minute)
		b.patch(api.WorkloadPatch{Level: new(api.AtRate(5)), Ramp: ramp})
		pass(5 * time.Minute)
		b.reported("step 2: 5 conversations/s, from 1/s within 10m, ")
		assert.InDelta(t, 6, b.lane.State().Concurrency.Actual, 1, "3/s of 2 s each")
		pass(299 * time.Second)
		assert.Nil(t, b.lane.State().Step.Settled)
		pass(10 * time.Second)
		s := b.lane.State()
		assert.NotNil(t, s.Step.Settled)
		assert.EqualValues(t, 2, s.Step.ID)
		assert.InDelta(t, 10, s.Concurrency.Actual, 1)

		b.patch(api.WorkloadPatch{MaxTokens: new(32)})
		pass(10 * time.Second)
		assert.InDelta(t, 10, b.lane.State().Concurrency.Actual, 1, "not from the beginning")
		_, err := b.lane.Patch(t.Context(), ann, api.WorkloadPatch{Level: new(api.AtConversations(5)), Ramp: ramp})
		refuses(t, err, "ramp")
		_, err = b.lane.Patch(t.Context(), ann, api.WorkloadPatch{Ramp: &api.Ramp{From: api.AtRate(0), Seconds: 600}})
		refuses(t, err, "ramp.from")
		_, err = b.lane.Patch(t.Context(), ann, api.WorkloadPatch{Ramp: &api.Ramp{From: api.AtRate(1), Seconds: .5}})
		refuses(t, err, "ramp.seconds")
	}, atRate(api.AtRate(1)))
}

// Turns that wait for a connection are sent late. The wait is in their TTFT, and as much of it is the load generator's
// own error, so that the verdict names it.
func TestLatenessIsTheClientsError(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		b.noError(b.lane.Start(t.Context(), ann, api.StartRequest{}))
		for _, connect := range []time.Duration{0, 2 * time.Second, 0} {
			f.set(func(f *fake) { f.connect = connect })
			pass(90 * time.Second)
			s := b.view.Snapshot()
			window := s.Lanes[0].Window
			assert.InDelta(t, connect.Seconds(), window.Late.P50, .001)
			for _, q := range []api.Quantiles{window.Metrics.TTFT, window.Metrics.Latency} {
				assert.InDelta(t, connect.Seconds(), *q.P50Error, .01, "%v", connect)
				assert.InDelta(t, connect.Seconds(), *q.P95Error, .01, "%v", connect)
				assert.Greater(t, *q.P50, connect.Seconds())
			}
			verdict := api.VerdictFine
			if connect > 0 {
				verdict = api.VerdictBottleneck
				assert.Contains(t, s.Client.Reason, "TTFT and end-to-end latency cannot be judged")
			}
			assert.Equal(t, verdict, s.Client.Verdict, s.Client.Reason)
		}
	}, atRate(api.AtRate(1)))
}

// The schedule of a load at a rate begins once the target was probed, so that the probe makes no turn late.
func TestProbeMakesNoTurnLate(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		b.noError(b.lane.Start(t.Context(), ann, api.StartRequest{}))
		pass(time.Minute)
		turns := b.store.allTurns()
		require.NotEmpty(t, turns)
		for _, turn := range turns {
			assert.Zero(t, *turn.Late)
		}
	}, atRate(api.AtRate(1)), func(o *options) { o.Client.(*fake).slow = 3 * time.Second })
}
