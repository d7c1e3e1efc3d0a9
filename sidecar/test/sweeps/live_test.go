//go:build booth

package sweeps

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/test/boothtest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A load generator that is killed in the middle of a sweep continues with the next unfinished span. The report agrees
// with the store.
func TestKilledProcessContinuesSweep(t *testing.T) {
	booth := boothtest.Start(t, boothtest.Options{Target: boothtest.Simulated})
	address, loadgen := booth.LoadgenPart(t, "sweeps", "", "--think-time=0s", "--start-rate=1000", "--opening-tokens=300",
		"--turns-min=2", "--turns-max=3", "--max-tokens=32", "--output-tokens-mean=20", "--concurrency=3")
	client, err := api.NewClient(http.DefaultClient, address, "")
	require.NoError(t, err)
	ctx := t.Context()
	_, err = client.Start(ctx, api.DefaultLane, api.StartRequest{})
	require.NoError(t, err)

	s, err := client.StartSweep(ctx, api.DefaultLane, api.SweepRequest{
		Kind:    api.SweepLevels,
		Levels:  api.LevelsOf(4, 8),
		Modes:   []api.ModeState{{Mode: api.ModeKV}, {Mode: api.ModeRoundRobin}},
		Repeats: new(1),
		WarmUp:  new(1.),
		Seconds: new(4.),
	})
	require.NoError(t, err)
	follow := func(what string, ok func(api.Sweep) bool) api.Sweep {
		t.Helper()
		var latest api.Sweep
		wait.Within(t, 3*time.Minute, what, func() (any, bool) {
			now, err := client.Sweep(ctx, s.ID)
			if err != nil {
				return err, false
			}
			latest = now
			return now.Progress, ok(now)
		})
		return latest
	}
	before := follow("the second span counts", func(s api.Sweep) bool {
		return len(s.Spans) == 1 && s.Progress.Span != nil && s.Progress.Span.Phase == api.SpanCounting
	})
	loadgen.Kill()
	loadgen.Start(t)
	after := follow("it goes on", func(s api.Sweep) bool { return len(s.Spans) > 1 })
	assert.JSONEq(t, text(t, before.Spans[0]), text(t, after.Spans[0]))
	s = follow("the end", ended)
	require.Equal(t, api.SweepDone, s.State, s.Reason)
	spoiled := func(span api.SweepSpan) bool { return span.Spoiled != "" } // on a busy machine; it is repeated
	spans := slices.DeleteFunc(slices.Clone(s.Spans), spoiled)
	require.Len(t, spans, 4, text(t, s.Spans))
	require.Len(t, s.Rows, 4)
	for i, span := range spans {
		assert.Equal(t, i, span.Number)
		assert.Equal(t, span.Turns, turnsOf(t, client, span))
	}
	var state api.Status
	wait.Eventually(t, "the lane is given back", func() (any, bool) {
		state, err = client.Status(ctx)
		return err, err == nil && state.Lanes[0].State.Sweep == nil
	})
	assert.Equal(t, api.AtConversations(3), state.Lanes[0].State.Concurrency.Target)
	assert.True(t, state.Lanes[0].State.Running, "the state before the sweep, and before the kill")
}

// turnsOf returns the number of stored turns of a span that succeeded while it counted.
func turnsOf(t *testing.T, client *api.Client, span api.SweepSpan) (n int) {
	t.Helper()
	for _, turn := range boothtest.Turns(t, client, api.DefaultLane, span.Step) {
		if turn.Status == api.TurnOK && inside(turn.Ended, span) {
			n++
		}
	}
	return n
}
