package report

import (
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/proof"
)

// recorded is the report of a recorded table.
func recorded(t *testing.T, name string, q proof.Question) *Results {
	t.Helper()
	q.A = api.ReportSide{Baseline: name, Mode: api.ModeRoundRobin}
	q.B = api.ReportSide{Baseline: name, Mode: api.ModeKV, Speculation: api.SpeculationNotRecorded}
	b := builtin(t, name)
	r, err := Compare(b, b, q)
	require.NoError(t, err)
	return r
}

func builtin(t *testing.T, name string) api.Baseline {
	t.Helper()
	for _, b := range baseline.Builtin() {
		if b.Name == name {
			return b
		}
	}
	t.Fatalf("there is no %s", name)
	return api.Baseline{}
}

func markdownOf(t *testing.T, r *Results) string {
	t.Helper()
	return written(t, r, api.ReportMarkdown)
}

var slo = api.SLO{TTFT: .6, TPOT: .06}

var update = flag.Bool("update", false, "rewrite the reports in testdata")

// against is the report of two baselines under one mode, or the first one's only mode where none is given.
func against(t *testing.T, a, b api.Baseline, mode api.Mode) *Results {
	t.Helper()
	r, err := Compare(a, b, proof.Question{A: api.ReportSide{Mode: mode}, B: api.ReportSide{Mode: api.ModeKV}, SLO: slo})
	require.NoError(t, err)
	return r
}

// golden compares a text with the file of that name in testdata, to the letter.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(want), got, "go test ./sidecar/loadgen/report -update rewrites it")
}

// Reports are as those in testdata.
func TestReports(t *testing.T) {
	const h100, h200 = "h100x8-tp2-llama70b-fp8", "h200x3-tp1-llama70b-fp8"
	levels := []api.LevelRange{{From: 60, To: 180, Step: 20}}
	recordedH100 := builtin(t, h100)
	long, unknown, elsewhere := recordedH100, recordedH100, recordedH100
	long.Name, long.Title, long.Workload = "long", "Long openings", &api.WorkloadShape{OpeningTokens: 9000}
	unknown.Name, unknown.Rows = "unknown", []api.BaselineRow{measured(50, api.ModeState{Mode: api.ModeUnknown}, .5,
		100, .1)}
	elsewhere.Name, elsewhere.Rows = "elsewhere", []api.BaselineRow{measured(55, kv, .5, 100, .1)}
	for name, r := range map[string]*Results{
		"sweep":             OfSweep(spoiled()),
		"unfinished":        OfSweep(partly(3)), // 120 in one mode alone
		"one mode":          OfSweep(partly(1)),
		"three modes":       OfSweep(threeModes()),
		"speculation":       OfSweep(drafted()),
		"trial":             OfSweep(looked()),
		"trial of three":    OfSweep(ranked(proof.Best)),
		"capacity":          OfSweep(searched()),
		"h200":              recorded(t, h200, proof.Question{Levels: levels, SLO: slo}),
		"h200 whole":        recorded(t, h200, proof.Question{SLO: slo}),
		"h100":              recorded(t, h100, proof.Question{SLO: api.SLO{TTFT: .4, TPOT: .06}}),
		"two baselines":     against(t, recordedH100, builtin(t, h200), api.ModeKV),
		"other openings":    against(t, recordedH100, long, api.ModeKV), // nothing is called better
		"unknown mode":      against(t, unknown, recordedH100, ""),
		"no level together": against(t, elsewhere, recordedH100, ""),
	} {
		t.Run(name, func(t *testing.T) {
			golden(t, strings.ReplaceAll(name, " ", "-"), markdownOf(t, r))
			selfContained(t, written(t, r, api.ReportHTML))
		})
	}
}

// The recorded tables say what the documents of their records do, where that follows from the table. The golden report
// h200 has the same levels.
func TestReportsOfTheRecord(t *testing.T) {
	const h200 = "h200x3-tp1-llama70b-fp8"
	levels := func(to int) proof.Question {
		return proof.Question{Levels: []api.LevelRange{{From: 60, To: to, Step: 20}}, SLO: slo}
	}
	html := written(t, recorded(t, h200, levels(180)), api.ReportHTML)
	// The document says 14.7 %, "before queueing onset"; the mean of its own table's column is this.
	assert.Contains(t, markdownOf(t, recorded(t, h200, levels(160))),
		"**TTFT, p95**: an average advantage of +14.6 % for KV-aware over 6 levels")
	// Under KV-aware throughput grows by 9.6 % and more at each of these levels.
	assert.NotContains(t, markdownOf(t, recorded(t, h200, levels(160))), "3.87 requests/s")
	assert.Equal(t, 4, selfContained(t, html)["svg"])
	assert.Contains(t, html, "<td>732 ms</td><td>3143 ms</td><td>−329.6 %, &#43;2411 ms</td>")
	// The document rounds these to 96.0 and 83.8; its own table says this.
	assert.Contains(t, markdownOf(t, recorded(t, "h100x8-tp2-llama70b-fp8", proof.Question{SLO: slo})),
		"On average 95.9 % under KV-aware (93.4 % to 97.8 %) and 83.9 % under Round-robin (81.8 % to 85.2 %).")
}

func TestReportForPrograms(t *testing.T) {
	date, seed := time.Date(2026, 2, 17, 12, 52, 0, 0, time.UTC), uint64(1<<63)
	r := recorded(t, "h100x8-tp2-llama70b-fp8", proof.Question{SLO: slo, Levels: []api.LevelRange{
		{From: 30, To: 30},
		{From: 20, To: 25},
	}, Inputs: []api.Source{{File: "sweep.tsv", Date: &date, Seed: &seed, Version: "1.2"}}})
	assert.Contains(t, markdownOf(t, r), "| sweep.tsv | 2026-02-17T12:52:00Z | 9223372036854775808 | 1.2 |")
	rows := tsv(t, r)
	require.Len(t, rows, 4)
	assert.Equal(t, "Round-robin", rows[0]["side"])
	assert.Equal(t, "20", rows[0]["concurrency"])
	assert.Equal(t, "0.237", rows[0]["ttft_p50"])
	assert.Equal(t, "0.218", rows[2]["ttft_p50"])
	assert.Equal(t, "0.0801688", rows[2]["advantage_ttft_p50"])
	assert.Empty(t, rows[0]["tpot_p50"], "it was not recorded")
	assert.Empty(t, rows[0]["advantage_ttft_p50"], "over itself")
	var back struct {
		Pairs []struct {
			Levels []struct{ Figures map[string]proof.Figure }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(written(t, r, api.ReportJSON)), &back))
	assert.InDelta(t, .0801688, *back.Pairs[0].Levels[0].Figures["ttft_p50"].Advantage, 1e-7)
	again, err := baseline.ReadCSV(strings.NewReader(written(t, OfSweep(drafted()), api.ReportTSV)), "again")
	require.NoError(t, err)
	for _, s := range OfSweep(crossed()).Sides {
		assert.Equal(t, &api.TargetID{URL: s.Addresses[0], Model: "llama"}, s.Target, "the address of its spans")
	}
	assert.InDelta(t, .62, *again.Rows[0].AcceptanceRate, 1e-9)
	assert.NotNil(t, again.Rows[0].Intervals.TokensPerStep)
	refused(t, "format", Write(io.Discard, r, "pdf"))
}

// tsv is a report's TSV, row by row.
func tsv(t *testing.T, r *Results) (rows []map[string]string) {
	t.Helper()
	lines := strings.Split(strings.TrimRight(written(t, r, api.ReportTSV), "\n"), "\n")
	head := strings.Split(lines[0], "\t")
	for _, line := range lines[1:] {
		values := strings.Split(line, "\t")
		require.Len(t, values, len(head))
		row := map[string]string{}
		for i, v := range values {
			row[head[i]] = v
		}
		rows = append(rows, row)
	}
	return rows
}

// arms is a trial of three arms, of which two have no mode.
func arms() api.Sweep {
	s := ranked(proof.Best)
	named := map[api.Mode]api.ModeState{
		api.ModeKV:          {Arm: "alpha", Mode: api.ModeKV, Speculation: api.SpeculationOff},
		api.ModeRoundRobin:  {Arm: "beta 2", Mode: api.ModeUnknown, Speculation: api.SpeculationNotRecorded},
		api.ModeLeastLoaded: {Arm: "gamma", Mode: api.ModeUnknown, Speculation: api.SpeculationNotRecorded},
	}
	for i, m := range s.Request.Modes {
		s.Request.Modes[i] = named[m.Mode]
	}
	for i := range s.Rows {
		m := named[s.Rows[i].Mode]
		s.Rows[i].Arm, s.Rows[i].Mode, s.Rows[i].Speculation = m.Arm, m.Mode, m.Speculation
	}
	for i := range s.Spans {
		s.Spans[i].Mode = named[s.Spans[i].Mode.Mode]
	}
	for i := range s.Trial.Ranking.Places {
		p := &s.Trial.Ranking.Places[i]
		p.Mode = named[p.Mode.Mode]
	}
	return s
}

// The table of a trial of arms is read back, and its arms are compared by their names, also those without a mode.
func TestReportOfArmsIsReadBack(t *testing.T) {
	table := written(t, OfSweep(arms()), api.ReportTSV)
	b, err := baseline.ReadCSV(strings.NewReader(table), "arms")
	require.NoError(t, err)
	r, err := Compare(b, b, proof.Question{A: api.ReportSide{Arm: "gamma"}, B: api.ReportSide{Arm: "alpha"}})
	require.NoError(t, err)
	assert.Equal(t, "alpha against gamma: arms", r.Title)
	require.Empty(t, r.Pairs[0].Withheld)
	assert.NotNil(t, r.Pairs[0].Levels[0].Figures[proof.QuantityTTFT95].Advantage)
}

// A value that depends on turns that were cut is marked. A side whose value may be larger is not better by it.
func TestLowerBoundsInReports(t *testing.T) {
	for mode, want := range map[api.Mode]string{
		api.ModeKV:         "| ≥ 446 ms | +32.0 %, −210 ms, not certain yet |",
		api.ModeRoundRobin: "| ≥ 655 ms | 446 ms | +32.0 %, −210 ms |",
	} {
		b := builtin(t, "h200x3-tp1-llama70b-fp8")
		b.Rows = slices.Clone(b.Rows)
		for i := range b.Rows {
			if b.Rows[i].Mode == mode && b.Rows[i].Level == api.AtConversations(60) {
				b.Rows[i].AtLeast = []string{"ttft_p95"}
			}
		}
		got := markdownOf(t, against(t, b, b, api.ModeRoundRobin))
		assert.Equal(t, 1, strings.Count(got, "≥"))
		assert.Contains(t, got, want)
	}
}

func TestReportRefusals(t *testing.T) {
	b := baseline.Builtin()[0]
	two := b
	two.Rows = append(slices.Clone(b.Rows), api.BaselineRow{
		Level: api.AtConversations(60), Mode: api.ModeKV, Speculation: api.SpeculationDraft,
	})
	arms := api.Baseline{Name: "arms", Rows: arms().Rows}
	a, kv := api.ReportSide{Mode: api.ModeRoundRobin}, api.ReportSide{Mode: api.ModeKV}
	for _, c := range []struct {
		field string
		a, b  api.Baseline
		q     proof.Question
	}{
		{"a_mode", b, b, proof.Question{A: api.ReportSide{Mode: api.ModeLeastLoaded}, B: kv}},
		{"a_mode", b, b, proof.Question{B: kv}}, // it has two
		{"b_speculation", b, b, proof.Question{A: a, B: api.ReportSide{Mode: api.ModeKV, Speculation: api.SpeculationDraft}}},
		{"b_speculation", b, two, proof.Question{A: a, B: kv}},
		{"a_arm", arms, b, proof.Question{B: kv}},
		{"b_arm", b, arms, proof.Question{A: a, B: api.ReportSide{Mode: api.ModeUnknown}}},
		{"b_arm", b, arms, proof.Question{A: a, B: api.ReportSide{Arm: "delta"}}},
		{"a_mode", api.Baseline{Name: "empty"}, b, proof.Question{B: kv}},
		{"levels", b, b, proof.Question{A: a, B: kv, Levels: []api.LevelRange{{From: 61, To: 61}}}},
		{"levels", b, b, proof.Question{A: a, B: kv, Levels: []api.LevelRange{{From: 61, To: 69}}}},
	} {
		_, err := Compare(c.a, c.b, c.q)
		allowed := refused(t, c.field, err)
		switch {
		case strings.HasSuffix(c.field, "_arm"):
			assert.Equal(t, `what arms has: arm "alpha"; arm "beta 2"; arm "gamma"`, allowed)
		case c.field != "levels" && len(c.a.Rows) > 0:
			assert.Contains(t, allowed, "round_robin with speculation not_recorded; kv with speculation not_recorded")
		}
	}
}
