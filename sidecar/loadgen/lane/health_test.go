package lane

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
)

var broken = &chat.Error{Class: api.ErrorHTTP5xx, Status: 500, Message: "the server failed (500)"}

// Failed turns among good ones are no problem of the target. Only failures are, and a whole turn ends the problem.
func TestProblemBeginsAndEndsWithTurns(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		b.start(3)
		pass(10 * time.Second)
		f.set(func(f *fake) { f.ill = broken })
		pass(2 * time.Second)
		f.set(func(f *fake) { f.ill = nil })
		require.NoError(t, b.view.Ready())
		assert.Positive(t, b.totals().Errors)
		for _, turn := range b.store.allTurns() {
			assert.Equal(t, turn.Status == api.TurnOK, turn.Counted, "a failed turn does not count in its settled step")
		}
		pass(10 * time.Second)
		require.NoError(t, b.view.Ready())
		assert.Equal(t, 1, f.probes, "once for a target that was never lost")

		f.set(func(f *fake) { f.ill = broken })
		pass(10 * time.Second)
		for range 20 {
			require.ErrorContains(t, b.view.Ready(), broken.Message, "a successful probe is no turn")
			pass(time.Second)
		}
		assert.Greater(t, f.probes, 1, "another server may answer, with other extensions")
		f.set(func(f *fake) { f.ill = nil })
		pass(10 * time.Second)
		require.NoError(t, b.view.Ready())
	})
}

// A problem of turns ends with them. A stopped lane asks the target for its models.
func TestProblemOfAStoppedLane(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		f.set(func(f *fake) { f.ill = broken })
		b.start(3)
		pass(20 * time.Second)
		require.ErrorContains(t, b.view.Ready(), broken.Message)
		b.stop()
		pass(10 * time.Second)
		require.NoError(t, b.view.Ready())
		f.set(func(f *fake) { f.dark = broken })
		pass(10 * time.Second)
		require.NoError(t, b.view.Ready(), "a target without a problem is not probed again")
		assert.Positive(t, f.asked)

		f.set(func(f *fake) { f.gone = &chat.Error{Class: api.ErrorConnect, Message: "connection refused"} })
		pass(3 * time.Second)
		require.ErrorContains(t, b.view.Ready(), "connection refused")
		f.set(func(f *fake) { f.gone, f.dark = nil, nil })
		pass(3 * time.Second)
		require.NoError(t, b.view.Ready())
		f.set(func(f *fake) {
			f.gone = &chat.Error{Class: api.ErrorHTTP4xx, Status: 404, Message: "no list of models"}
		})
		pass(20 * time.Second)
		require.NoError(t, b.view.Ready(), "a server without a list of models may serve")
	})
}

// hangs makes the probe of a fake client fail after d.
func hangs(d time.Duration) func(*options) {
	return func(o *options) {
		o.Client.(*fake).slow = d
		o.Client.(*fake).dark = &chat.Error{Class: api.ErrorTimeout, Message: "no first token"}
	}
}

// Against a server that accepts and does not answer, the turns that wait for a probe fail with it. They do not queue
// for one probe each.
func TestProbeIsShared(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		require.ErrorContains(t, b.view.Ready(), "lane main: the target has not answered yet")
		b.start(20)
		pass(2*time.Minute - 2*time.Second)
		assert.Zero(t, b.totals().Errors)
		pass(2 * time.Second)
		assert.EqualValues(t, 20, b.totals().ErrorsByClass[api.ErrorTimeout])
		require.ErrorContains(t, b.view.Ready(), "no first token")
		pass(4 * time.Minute)
		assert.LessOrEqual(t, f.probes, 4)
		f.set(func(f *fake) { f.dark, f.slow = nil, 0 })
		pass(2*time.Minute + 10*time.Second)
		require.NoError(t, b.view.Ready())
		assert.Positive(t, b.totals().OK)
	}, hangs(2*time.Minute))
}

// A turn that is stopped while it waits for a probe is canceled. It is no error.
func TestStopDuringProbe(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		b.start(3)
		pass(5 * time.Second)
		b.stop()
		assert.EqualValues(t, 3, b.totals().Cancelled)
		assert.Zero(t, b.totals().Errors)
		for _, turn := range b.store.allTurns() {
			assert.Equal(t, api.TurnCancelled, turn.Status)
			assert.Empty(t, turn.ErrorClass)
			assert.Empty(t, turn.ErrorMessage)
		}
	}, hangs(time.Minute))
}
