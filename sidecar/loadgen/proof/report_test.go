package proof

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
)

// recorded is the report of a recorded table.
func recorded(t *testing.T, name string, q Question) Report {
	t.Helper()
	q.A = api.ModeState{Mode: api.ModeRoundRobin, Speculation: api.SpeculationNotRecorded}
	q.B = api.ModeState{Mode: api.ModeKV, Speculation: api.SpeculationNotRecorded}
	for _, b := range baseline.Builtin() {
		if b.Name == name {
			r, err := NewReport(b, q)
			require.NoError(t, err)
			return r
		}
	}
	t.Fatalf("there is no %s", name)
	return Report{}
}

func text(t *testing.T, r Report) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, r.WriteMarkdown(&b))
	return b.String()
}

var slo = api.SLO{TTFT: .6, TPOT: .06}

// The recorded H200 table at the slider's levels says what its document says of it, where
// that follows from the table.
func TestReportOfH200(t *testing.T) {
	r := recorded(t, "h200x3-tp1-llama70b-fp8", Question{Levels: []int{60, 80, 100, 120, 140, 160, 180}, SLO: slo})
	md := text(t, r)
	for _, want := range []string{
		"| 60 | 274 ms | 249 ms | +9.3 % | 655 ms | 446 ms | +32.0 % |",
		"| 180 | 413 ms | 472 ms | −14.1 % | 732 ms | 3143 ms | −329.6 % |",
		"On average 94.3 % under KV-aware (91.2 % to 96.1 %) and 87.8 % under Round-robin (83.9 % to 90.9 %).",
		"- **Throughput and requests, tokens/s**: an average advantage of +9.4 % for KV-aware over 7 levels, from +5.4 % at 60 to +13.8 % at 180.",
		"| 60 | 2146.9 | 2262.8 | +5.4 % | 2.60 | 2.57 | −1.2 % |",
		"| KV-aware | 120 |",
		"| Round-robin | none: 60, the lowest tested, misses them |",
		"KV-aware is worse at 120, 140, 160, 180.",
		"from −329.6 % at 180 to +32.0 % at 60. KV-aware is worse at 140, 180.",
	} {
		assert.Contains(t, md, want)
	}
	assert.NotContains(t, md, "NaN")
	assert.NotContains(t, md, "Inf")
}

func TestReportOfWholeH200Table(t *testing.T) {
	md := text(t, recorded(t, "h200x3-tp1-llama70b-fp8", Question{SLO: slo}))
	assert.Contains(t, md, "| KV-aware | 130 |")
	assert.Contains(t, md, "| Round-robin | none: 40, the lowest tested, misses them; by themselves 130 meet them")
	assert.Contains(t, md, "not recorded", "requests a second at the other levels")
}

func TestReportOfH100(t *testing.T) {
	r := recorded(t, "h100x8-tp2-llama70b-fp8", Question{SLO: api.SLO{TTFT: .4, TPOT: .06}})
	md := text(t, r)
	assert.Contains(t, md, "| KV-aware | 50; judged by TTFT alone, since TPOT was not recorded at 20, 30, 40, 50, 60, 70, 80, 100, 120 |")
	assert.Contains(t, md, "| Round-robin | none: 20, the lowest tested, misses them; judged by TTFT alone")
	assert.Contains(t, md, "### TPOT\n\nNot recorded.")
	// The document rounds these to 96.0 and 83.8; its own table says this.
	assert.Contains(t, md, "On average 95.9 % under KV-aware (93.4 % to 97.8 %) and 83.9 % under Round-robin (81.8 % to 85.2 %).")
}

func TestReportForPrograms(t *testing.T) {
	date, seed := time.Date(2026, 2, 17, 12, 52, 0, 0, time.UTC), uint64(1<<63)
	r := recorded(t, "h100x8-tp2-llama70b-fp8", Question{SLO: slo, Levels: []int{30, 20, 20}, Inputs: []Input{{File: "sweep.tsv", Date: &date, Seed: &seed, Version: "1.2"}}})
	assert.Contains(t, text(t, r), "| sweep.tsv | 2026-02-17T12:52:00Z | 9223372036854775808 | 1.2 |")
	var tsv strings.Builder
	require.NoError(t, r.WriteTSV(&tsv))
	lines := strings.Split(strings.TrimSpace(tsv.String()), "\n")
	require.Len(t, lines, 3)
	head, first := strings.Split(lines[0], "\t"), strings.Split(lines[1], "\t")
	require.Len(t, head, 1+3*len(quantities))
	require.Len(t, first, len(head))
	assert.Equal(t, []string{"concurrency", "a_ttft_p50", "b_ttft_p50", "advantage_ttft_p50"}, head[:4])
	assert.Equal(t, []string{"20", "0.237", "0.218", "0.0801688"}, first[:4])
	assert.Empty(t, first[7], "TPOT was not recorded")
	var data strings.Builder
	require.NoError(t, r.WriteJSON(&data))
	var back Report
	require.NoError(t, json.Unmarshal([]byte(data.String()), &back))
	assert.Equal(t, r, back)
}

func TestReportRefusals(t *testing.T) {
	b := baseline.Builtin()[0]
	a := api.ModeState{Mode: api.ModeRoundRobin, Speculation: api.SpeculationNotRecorded}
	kv := api.ModeState{Mode: api.ModeKV, Speculation: api.SpeculationNotRecorded}
	for field, q := range map[string]Question{
		"a":      {A: api.ModeState{Mode: api.ModeLeastLoaded}, B: kv},
		"b":      {A: a, B: api.ModeState{Mode: api.ModeKV, Speculation: api.SpeculationDraft}},
		"levels": {A: a, B: kv, Levels: []int{61}},
	} {
		_, err := NewReport(b, q)
		var refused *api.FieldError
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, field, refused.Field)
	}
}
