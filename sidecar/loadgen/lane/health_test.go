package lane

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/stats"
)

var broken = &chat.Error{Class: api.ErrorHTTP5xx, Status: 500, Message: "the server failed (500)"}

// Single failed turns among good ones are no problem of the target; a time with only failures is. A complete turn ends
// the problem.
func TestProblemBeginsAndEndsWithTurns(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		b.start(3)
		pass(10 * time.Second)
		f.set(func(f *fake) { f.turnError = broken })
		pass(2 * time.Second)
		f.set(func(f *fake) { f.turnError = nil })
		require.NoError(t, b.view.Ready())
		assert.Positive(t, b.totals().Errors)
		for _, turn := range b.store.allTurns() {
			assert.Equal(t, turn.Status == api.TurnOK, turn.Counted, "a failed turn does not count in its settled step")
		}
		pass(10 * time.Second)
		require.NoError(t, b.view.Ready())
		assert.Equal(t, 1, f.probes, "once for a target that was never lost")

		f.set(func(f *fake) { f.turnError = broken })
		pass(10 * time.Second)
		for range 20 {
			require.ErrorContains(t, b.view.Ready(), broken.Message, "a successful probe is no turn")
			pass(time.Second)
		}
		assert.Greater(t, f.probes, 1, "another server may answer, with other extensions")
		f.set(func(f *fake) { f.turnError = nil })
		pass(10 * time.Second)
		require.NoError(t, b.view.Ready())
	})
}

// Behind a server that resets a share of its requests, as many turns succeed as those of a plain client, which sends
// the next request at once. No reset is a reason for a probe.
func TestResetsSlowNoOtherTurns(t *testing.T) {
	const conversations, span = 4, 10 * time.Minute
	for _, every := range []int{100, 33, 10, 3} {
		t.Run(fmt.Sprintf("1 of %d", every), func(t *testing.T) {
			virtual(t, func(t *testing.T, b *booth, f *fake) {
				f.set(func(f *fake) { f.resetEvery, f.slow = every, 3*time.Second })
				b.start(conversations)
				pass(time.Minute)
				before := b.totals()
				pass(span)
				turn := f.ttft + time.Duration(f.words-1)*f.gap
				plain := conversations * span.Seconds() / turn.Seconds()
				assert.InEpsilon(t, plain, b.totals().OK-before.OK, .02)
				assert.Greater(t, b.totals().Errors-before.Errors, int64(plain)/int64(every)-2)
				assert.Equal(t, 1, f.probes)
				require.NoError(t, b.view.Ready())
			})
		})
	}
}

// A problem with turns ends when the lane stops. A stopped lane requests the target's models.
func TestStoppedLaneAsksForModels(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		f.set(func(f *fake) { f.turnError = broken })
		b.start(3)
		pass(20 * time.Second)
		require.ErrorContains(t, b.view.Ready(), broken.Message)
		b.stop()
		pass(10 * time.Second)
		require.NoError(t, b.view.Ready())
		f.set(func(f *fake) { f.probeError = broken })
		pass(10 * time.Second)
		require.NoError(t, b.view.Ready(), "a target without a problem is not probed again")
		assert.Positive(t, f.asked)

		f.set(func(f *fake) {
			f.modelsError = &chat.Error{Class: api.ErrorConnect, Unreached: true, Message: "connection refused"}
		})
		pass(3 * time.Second)
		require.ErrorContains(t, b.view.Ready(), "connection refused")
		f.set(func(f *fake) { f.modelsError, f.probeError = nil, nil })
		pass(3 * time.Second)
		require.NoError(t, b.view.Ready())
		f.set(func(f *fake) {
			f.modelsError = &chat.Error{Class: api.ErrorHTTP4xx, Status: 404, Message: "no list of models"}
		})
		pass(20 * time.Second)
		require.NoError(t, b.view.Ready(), "a server without a list of models may serve")
	})
}

// probeFailsAfter makes every probe of a fake client fail after d.
func probeFailsAfter(d time.Duration) func(*options) {
	return func(o *options) {
		o.Client.(*fake).slow = d
		o.Client.(*fake).probeError = &chat.Error{Class: api.ErrorTimeout, Message: "no first token"}
	}
}

// Against a server that accepts connections and does not answer, all turns that wait for a probe fail with it. They do
// not queue for one probe each. The log has the failures and their end.
func TestProbeIsShared(t *testing.T) {
	var log bytes.Buffer
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
		f.set(func(f *fake) { f.probeError, f.slow = nil, 0 })
		pass(2*time.Minute + 10*time.Second)
		require.NoError(t, b.view.Ready())
		assert.Positive(t, b.totals().OK)
		for _, line := range []string{
			`level=WARN msg="turns fail" lane=main class=timeout turns=1 first_message="no first token"`,
			`level=ERROR msg="turns still fail" lane=main class=timeout`, `level=INFO msg="turns succeed again" lane=main`,
		} {
			assert.Contains(t, log.String(), line)
		}
	}, probeFailsAfter(2*time.Minute), func(o *options) { o.log = slog.NewTextHandler(&log, nil) })
}

// A turn that is stopped while it waits for a probe is cancelled, not failed.
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
	}, probeFailsAfter(time.Minute))
}

// While turns succeed, a target is ready even if its list of models is refused, broken or missing.
func TestTargetWithoutAListOfModelsIsReady(t *testing.T) {
	for name, modelsError := range map[string]*chat.Error{
		"refused":   {Class: api.ErrorHTTP4xx, Status: 403, Message: "no"},
		"missing":   {Class: api.ErrorHTTP4xx, Status: 404, Message: "no"},
		"broken":    broken,
		"silent":    {Class: api.ErrorTimeout, Message: "no answer"},
		"cut short": {Class: api.ErrorConnect, Message: "the server did not answer"},
		"no JSON":   {Class: api.ErrorMalformed, Message: "not a list of models"},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, b *booth, f *fake) {
				pass(time.Minute)
				require.NoError(t, b.view.Ready(), "stopped")
				b.start(2)
				for range 60 {
					pass(time.Second)
					require.NoError(t, b.view.Ready(), "answers of 12 s")
				}
				assert.Equal(t, 1, f.probes)
				assert.EqualValues(t, 1, b.snapshot().Target.Probes)
			}, func(o *options) {
				f := o.Client.(*fake)
				f.modelsError, f.words, f.gap = modelsError, 3, 6*time.Second
			})
		})
	}
}

// A probe costs tokens. After a refusal that a repeat cannot change, the next probe follows a change of the list of
// models, and the message stays. After other failures the intervals grow.
func TestProbesBackOff(t *testing.T) {
	t.Run("a refusal for good", func(t *testing.T) {
		noModel := &chat.Error{Class: api.ErrorHTTP4xx, Status: 404, Message: "the server has no model"}
		virtual(t, func(t *testing.T, b *booth, f *fake) {
			pass(10 * time.Minute)
			assert.Equal(t, 1, f.probes)
			require.ErrorContains(t, b.view.Ready(), "no model")
			f.set(func(f *fake) {
				f.probeError = &chat.Error{Class: api.ErrorHTTP5xx, Status: 503, Message: "the circuit breaker is open"}
			})
			b.start(3)
			pass(time.Minute)
			require.ErrorContains(t, b.view.Ready(), "no model", "the first error that says what to do")
			b.stop()
			f.set(func(f *fake) { f.probeError, f.model = nil, "loaded" })
			pass(time.Minute)
			require.NoError(t, b.view.Ready())
		}, func(o *options) { o.Client.(*fake).probeError = noModel })
	})
	t.Run("any other failure", func(t *testing.T) {
		virtual(t, func(t *testing.T, b *booth, f *fake) {
			pass(10 * time.Minute)
			assert.InDelta(t, 24, f.probes, 4, "after 2, 4, 8, 16 s, then every 30 s")
			f.set(func(f *fake) { f.probeError = nil })
			pass(40 * time.Second)
			require.NoError(t, b.view.Ready())
		}, func(o *options) { o.Client.(*fake).probeError = broken })
	})
}

// Defects of a serving target's answers are reported from the third one on.
func TestDefectsOfAnswersAreReported(t *testing.T) {
	notices := func(b *booth) string { return strings.Join(b.snapshot().Target.Notices, "\n") }
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		b.start(2)
		pass(20 * time.Second)
		assert.Empty(t, notices(b))
		f.set(func(f *fake) { f.gap, f.finish = 0, "" })
		pass(20 * time.Second)
		assert.Contains(t, notices(b), "came in bursts")
		tpot := b.snapshot().Window.Metrics.TPOT
		assert.Nil(t, tpot.P50, "also not of the turns without bursts")
		assert.Greater(t, tpot.Unknown, 3)
		assert.Contains(t, notices(b), "without a finish reason")
		f.set(func(f *fake) { f.findings = chat.ReasoningAdded | chat.Split })
		pass(20 * time.Second)
		assert.Contains(t, notices(b), "count reasoning tokens outside of completion_tokens")
		assert.Contains(t, notices(b), "had more chunks than tokens: TPOT is by the tokens, and ITL is the time between")
		assert.NotContains(t, notices(b), "cached tokens")
		f.set(func(f *fake) { f.lists = []string{"unknown"} })
		b.stop()
		pass(20 * time.Second)
		assert.NotContains(t, notices(b), "list of models lacks", "the server has answered under that name")
		require.NoError(t, b.view.Ready())
	})
	unasked := target{client: newFake(), listed: []string{"unknown"}}
	assert.Contains(t, strings.Join(unasked.notices(nil), ""), "list of models lacks")
	few := target{client: &fake{}, answers: answerCounts{all: 502, buffered: 4}}
	assert.Empty(t, few.notices(nil), "a few answers in bursts among many")
	few.answers.all = 20
	var lag stats.Lag
	lag.Timer.Add(time.Millisecond)
	assert.Contains(t, few.notices(&lag), "4 of 20 answers came in bursts: the server or a proxy buffers its streams. "+
		"TPOT and ITL are unknown, and TTFT includes the time in the buffer.")
	lag.Timer.Add(30 * time.Millisecond)
	assert.Contains(t, few.notices(&lag), "4 of 20 answers came in bursts. TPOT and ITL are unknown. The load "+
		"generator itself was late, so whether the server or a proxy buffers its streams is not known.")
}
