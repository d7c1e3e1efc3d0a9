//go:build booth

package sweeps

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/test/boothtest"
)

// A load generator that is killed in the middle of a sweep goes on with its next unfinished
// span; what its report says is what the store says.
func TestKilledProcess(t *testing.T) {
	booth := boothtest.Start(t, boothtest.Options{Target: boothtest.Simulated})
	address, loadgen := booth.LoadgenPart(t, "sweeps", "", "--think-time=0s", "--start-rate=1000", "--opening-tokens=300",
		"--turns-min=2", "--turns-max=3", "--max-tokens=32", "--output-tokens-mean=20", "--concurrency=3")
	client, err := api.NewClient(http.DefaultClient, address, "")
	require.NoError(t, err)
	ctx := t.Context()
	_, err = client.Start(ctx, api.DefaultLane, api.StartRequest{})
	require.NoError(t, err)

	s, err := client.StartSweep(ctx, api.DefaultLane, api.SweepRequest{
		Kind: api.SweepLevels, Levels: []int{4, 8}, Modes: []api.ModeState{{Mode: api.ModeKV}, {Mode: api.ModeRoundRobin}},
		Repeats: new(1), WarmUp: new(1.), Seconds: new(4.),
	})
	require.NoError(t, err)
	follow := func(what string, ok func(api.Sweep) bool) api.Sweep {
		t.Helper()
		var latest api.Sweep
		require.Eventually(t, func() bool {
			now, err := client.Sweep(ctx, s.ID)
			if err == nil {
				latest = now
			}
			return err == nil && ok(now)
		}, 3*time.Minute, 100*time.Millisecond, what)
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
	require.Len(t, s.Spans, 4, text(t, s.Spans))
	require.Len(t, s.Rows, 4)
	for i, span := range s.Spans {
		assert.Equal(t, i, span.Number)
		assert.Equal(t, span.Turns, turnsOf(t, client, span))
	}
	var state api.Status
	require.Eventually(t, func() bool {
		state, err = client.Status(ctx)
		return err == nil && state.Lanes[0].State.Sweep == nil
	}, time.Minute, 100*time.Millisecond, "the lane is given back")
	assert.Equal(t, 3, state.Lanes[0].State.Concurrency.Target)
	assert.True(t, state.Lanes[0].State.Running, "as it was before the sweep, and before the kill")

	var seconds bytes.Buffer
	require.NoError(t, client.SweepSeconds(ctx, &seconds, s.ID))
	rows, err := csv.NewReader(&seconds).ReadAll()
	require.NoError(t, err)
	assert.Greater(t, len(rows), 4*4, "a row a second of every span, and the header")
	var report bytes.Buffer
	require.NoError(t, client.SweepReport(ctx, &report, s.ID, api.ReportJSON))
	assert.True(t, json.Valid(report.Bytes()))
}

// turnsOf counts the turns of a span in the store that ended well while it counted.
func turnsOf(t *testing.T, client *api.Client, span api.SweepSpan) (n int) {
	t.Helper()
	var raw bytes.Buffer
	require.NoError(t, client.TurnsCSV(t.Context(), &raw, api.DefaultLane, span.Step))
	rows, err := csv.NewReader(&raw).ReadAll()
	require.NoError(t, err)
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	for _, row := range rows[1:] {
		started, err := time.Parse(time.RFC3339Nano, row[column["started"]])
		require.NoError(t, err)
		latency, err := strconv.ParseFloat(row[column["latency_seconds"]], 64)
		if err == nil && row[column["status"]] == string(api.TurnOK) && inside(started.Add(time.Duration(latency*1e9)), span) {
			n++
		}
	}
	return n
}
