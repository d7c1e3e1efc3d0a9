package study

import (
	"bytes"
	"encoding/csv"
	"math"
	"strings"
	"testing"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/closedloop"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNamesMatchFields(t *testing.T) {
	var f closedloop.Figures
	numbers := map[string]float64{}
	for i, field := range closedloop.Fields {
		numbers[field.Name] = float64(i) + 1
		*field.Of(&f) = float64(i) + 1
	}
	at := func(name string) float64 { return numbers[name] }
	assert.Equal(t, closedloop.Figures{
		TTFT50: at("ttft_p50"), TTFT95: at("ttft_p95"), TTFTMean: at("ttft_mean"),
		TPOT50: at("tpot_p50"), TPOT95: at("tpot_p95"), InProgress: at("conversations_in_progress"),
		Latency50: at("latency_p50"), Latency95: at("latency_p95"),
		TokensPerSecond: at("tokens_per_second"), RequestsPerSecond: at("requests_per_second"), Hit: at("hit_ratio"),
		Dropped: at("dropped_per_second"), Overloaded: at("overloaded_share"),
		Causes: closedloop.Causes{
			LargestQueue: at("largest_queue_seconds"), Waiting: at("queue"),
			Spread: at("inflight_spread"), Skew: at("inflight_skew"), Herding: at("herding_share"),
			Twice: at("prefilled_twice_share"), Full: at("full_batch_share"),
			Queued: at("queued_seconds"), Prefill: at("prefill_seconds"), Decode: at("decode_seconds"),
		},
	}, f)
}

func TestResultRoundTrip(t *testing.T) {
	unknown := figures(.4, 1, .1, 3, math.NaN())
	points := []Point{
		point(60, api.ModeKV, figures(.4, 1, .1, 3, .1), figures(.6, 3, .1, 5, .1)),
		point(60, api.ModeRoundRobin, unknown, unknown),
	}
	r := NewResult(
		Request{Levels: api.LevelsOf(60), Seeds: new(2), Speculation: new(api.SpeculationEagle3)},
		sim.H200(),
		points,
	)
	assert.False(t, r.Calibrated)
	assert.Equal(t, sim.H200().Speculation[api.SpeculationEagle3].Basis, r.About)
	assert.Equal(t, "Simulated, not measured: h200-tp1 (not calibrated), 3 × H200, 2 seeds.", r.Heading())
	assert.Equal(t, Estimate{Mean: .5, Low: .4, High: .6}, r.Points[0].Figures["ttft_p95"])
	assert.Equal(t, Estimate{Mean: 3, Low: 1, High: 3}, r.Points[0].Figures["largest_queue_seconds"],
		"the mean of the longest waits is the longest")
	assert.NotContains(t, r.Points[1].Figures, "herding_share")

	var text bytes.Buffer
	require.NoError(t, r.WriteJSON(&text))
	back, err := ReadResult(bytes.NewReader(text.Bytes()))
	require.NoError(t, err)
	assert.Equal(t, r.Request, back.Request)
	assert.Equal(t, r.Points, back.Points)
	assert.Equal(t, r.Explanation, ExplainModes(back.points))
	assert.Equal(t, "then KV-aware", back.Curves("then")[0].Name)

	text.Reset()
	require.NoError(t, r.WriteCSV(&text))
	table := csv.NewReader(&text)
	table.Comment = '#'
	rows, err := table.ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 3)
	assert.Equal(t, []string{"60", "kv", "2"}, rows[1][:3])
	want := map[string]string{"ttft_p95": "0.5", "ttft_p95_low": "0.4", "ttft_p95_high": "0.6"}
	for i, name := range rows[0] {
		switch name {
		case "ttft_p95", "ttft_p95_low", "ttft_p95_high":
			assert.Equal(t, want[name], rows[1][i])
		case "herding_share":
			assert.Empty(t, rows[2][i])
		}
	}
	for _, wrong := range []string{"", "[]", `{"basis": "measured"}`, `{"basis": "simulated", "tint": 1}`} {
		_, err := ReadResult(strings.NewReader(wrong))
		assert.ErrorContains(t, err, "as booth simulate writes it", wrong)
	}
}
