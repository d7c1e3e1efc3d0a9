package lane

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/workload"
)

// setLatency sets the duration of every turn.
func (f *fake) setLatency(d time.Duration) {
	f.set(func(f *fake) { f.ttft = d - time.Duration(f.words-1)*f.gap })
}

// reported expects an event whose text contains words.
func (b *booth) reported(words string) {
	b.t.Helper()
	assert.Contains(b.t, strings.Join(b.store.eventLines(), "\n"), words)
}

// A cap of 25 requests a second allows some 52 of a thousand conversations (25 a second of 2 s each). The step settles
// at the actual number. Without the cap the next step reaches its target.
func TestHeldByTheCap(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		f.setLatency(2 * time.Second)
		b.patch(api.WorkloadPatch{TargetRPS: new(25.)})
		b.start(1000)
		pass(20 * time.Second)
		s := b.lane.State()
		assert.Equal(t, api.LimitedByTargetRPS, s.Concurrency.LimitedBy, "the limit is shown at once")
		assert.Nil(t, s.Step.Held, "not before half a minute")
		assert.Nil(t, s.Step.Settled)
		pass(40 * time.Second)
		s = b.lane.State()
		require.NotNil(t, s.Step.Held)
		assert.Equal(t, api.LimitedByTargetRPS, s.Step.Held.By)
		assert.InDelta(t, 53, s.Step.Held.At, 4)
		assert.InDelta(t, s.Step.Held.At, s.Concurrency.Actual, 5)
		assert.NotNil(t, s.Step.Settled)
		assert.True(t, s.Settling, "60 s of counted turns are still to come")
		b.reported("of 1000 conversations by the cap of 25 requests/s")
		pass(70 * time.Second)
		at, id := s.Step.Held.At, s.Step.ID
		s = b.lane.State()
		assert.False(t, s.Settling)
		assert.Equal(t, id, s.Step.ID, "one step")
		assert.Equal(t, at, b.snapshot().Baseline.Level.Conversations())
		row := b.rows()[level{at, api.ModeKV}]
		require.NotNil(t, row.Measured, "%v", b.rows())
		assert.InDelta(t, 25, *row.RequestsPerSecond, .5)

		b.patch(api.WorkloadPatch{TargetRPS: new(0.)})
		pass(5 * time.Second)
		s = b.lane.State()
		assert.Nil(t, s.Step.Held)
		assert.NotNil(t, s.Step.Settled)
		assert.Equal(t, api.Concurrency{Target: api.AtConversations(1000), Actual: 1000}, s.Concurrency)
		assert.Equal(t, api.AtConversations(1000), b.snapshot().Baseline.Level)
		b.stop()
		assert.NotContains(t, b.rows(), level{1000, api.ModeKV}, "after five seconds")
	}, func(o *options) { o.configured.MaxConcurrency = 1000 })
}

// When a workload that settled at its target falls to what the cap allows, a new step begins, and again when it
// returns to the target. No row has figures of two steps.
func TestHeldAfterReachingTheTarget(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		latency := func(at int) float64 { return *b.rows()[level{at, api.ModeKV}].Latency.P50 }
		f.setLatency(4 * time.Second)
		b.patch(api.WorkloadPatch{TargetRPS: new(20.)})
		b.start(60)
		pass(2 * time.Minute)
		s := b.lane.State()
		require.Nil(t, s.Step.Held)
		require.EqualValues(t, 1, s.Step.ID)
		assert.InDelta(t, 4, latency(60), .1)

		f.setLatency(time.Second)
		pass(2 * time.Minute)
		s = b.lane.State()
		require.NotNil(t, s.Step.Held)
		at := s.Step.Held.At
		assert.InDelta(t, 22, at, 4)
		pass(2 * time.Minute)
		assert.Equal(t, s.Step.ID, b.lane.State().Step.ID)
		assert.InDelta(t, 1, latency(at), .1)
		assert.InDelta(t, 4, latency(60), .1, "without the faster turns")

		f.setLatency(4 * time.Second)
		pass(2 * time.Minute)
		s = b.lane.State()
		assert.Nil(t, s.Step.Held)
		assert.Equal(t, 60, s.Concurrency.Actual)
		b.reported("reached 60 conversations")
		assert.Equal(t, api.AtConversations(60), b.snapshot().Baseline.Level)
		assert.InDelta(t, 1, latency(at), .1, "without the slower turns")
	})
}

// Each case is thirty seconds of a workload, second by second.
func TestStepIsHeldOnlyWhenSteady(t *testing.T) {
	const target = 100
	byCap := func(n int) *api.Held { return &api.Held{By: api.LimitedByTargetRPS, At: n} }
	byStart := &api.Held{By: api.LimitedByStartRate, At: 40}
	for name, tt := range map[string]struct {
		seconds int
		actual  func(i int) int
		begun   int           // a second
		cap     time.Duration // waited for a second
		start   time.Duration
		want    *api.Held
	}{
		"still":                {30, func(int) int { return 40 }, 1, time.Second, 0, byCap(40)},
		"by the start rate":    {30, func(int) int { return 40 }, 1, 0, 600 * time.Millisecond, byStart},
		"not long enough":      {29, func(int) int { return 40 }, 1, time.Second, 0, nil},
		"half for either":      {30, func(int) int { return 40 }, 1, 500 * time.Millisecond, 500 * time.Millisecond, nil},
		"at its target once":   {30, func(i int) int { return 40 + 60*((i+1)%31/30) }, 1, time.Second, 0, nil},
		"nothing begins":       {30, func(int) int { return 40 }, 0, time.Second, 0, nil},
		"growing by a tenth":   {30, func(i int) int { return 40 + i/10 }, 1, time.Second, 0, byCap(41)},
		"growing by more":      {30, func(i int) int { return 40 + i*4/30 }, 1, time.Second, 0, nil},
		"falling":              {30, func(i int) int { return 40 - i*4/30 }, 1, time.Second, 0, nil},
		"growing as all begin": {30, func(i int) int { return 40 + i }, 1, 0, time.Second, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var d holdDetector
			for i := range tt.seconds + 1 {
				d.add(at(float64(i)), workload.Pace{
					Actual: tt.actual(i), Begun: int64(i * tt.begun), Waited: map[api.Limiter]time.Duration{
						api.LimitedByTargetRPS: time.Duration(i) * tt.cap, api.LimitedByStartRate: time.Duration(i) * tt.start,
					},
				})
			}
			assert.Equal(t, tt.want, d.held(target))
			for i := range 100 {
				d.add(at(float64(tt.seconds+1+i)), workload.Pace{})
			}
			assert.Len(t, d.paces, 31)
		})
	}
}
