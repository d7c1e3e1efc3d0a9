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
	"kvbooth/sidecar/loadgen/report/chart"
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
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(want), got, "go test ./sidecar/loadgen/report -update rewrites it")
}

// comparison is the report on two modes of a recorded table.
func comparison(t *testing.T) *Results {
	t.Helper()
	return recorded(t, "h200x3-tp1-llama70b-fp8", proof.Question{
		Levels: []api.LevelRange{{From: 60, To: 180, Step: 40}}, SLO: slo,
	})
}

// The model of each kind of report is as that in testdata, which has it as Markdown.
func TestReports(t *testing.T) {
	twins := reported(t, some(), nil, "ttft_p95>600ms", "error_rate>1%")
	twins.Twin = reported(t, some()[:300], nil)
	for name, d := range map[string]Document{
		"sweep":          OfSweep(spoiled()).Document(),
		"trial":          OfSweep(looked()).Document(),
		"trial-of-three": OfSweep(ranked(proof.Best)).Document(),
		"capacity":       OfSweep(searched()).Document(),
		"comparison":     comparison(t).Document(),
		"run":            twins.Document(),
		"shadow":         replayed().Document(),
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			require.NoError(t, d.WriteMarkdown(&b))
			golden(t, name+".md", b.String())
			b.Reset()
			require.NoError(t, d.WriteHTML(&b))
			selfContained(t, b.String())
		})
	}
}

// everything is a document with each element of the model, in a report of one row.
type everything struct {
	document Document
	Figure   float64 `json:"figure"`
}

func (e *everything) Document() Document { return e.document }

func (e *everything) Formats() Formats {
	return Formats{api.ReportJSON, CSV, api.ReportTSV, api.ReportMarkdown, api.ReportHTML}
}

func (e *everything) Records() [][]string {
	return [][]string{{"name", "figure"}, {"a, \"b\"\tc", "1.5"}}
}

// Each format of a report is as that in testdata.
func TestFormats(t *testing.T) {
	d := Document{Title: "A <report> | of \x60all\x60", Foot: "Written by a test.", Sections: []Section{
		{Top: true, Text: []string{"First sentence.", "Second [sentence](x)."}, Items: []Item{{"Unfinished", "2 of 3"}}},
		{
			Title: "Figures", Warning: "Too late.", Text: []string{"Below the title."},
			Figures: []Figure{{"TTFT p95", "446 ms", "SLO 600 ms met", "good"}, {Name: "KV cache hit", Note: "not reported"}},
		},
		{Title: "Lane twin", Level: 1, Items: []Item{{"Turns", "one\ntwo"}, {Text: "unnamed"}}},
		{
			Title: "Table", Level: 3,
			Charts: []chart.Chart{chart.Levels("TTFT", "ms", 600, chart.Series{Name: "<kv>", Points: []chart.Point{
				{Level: 60, Value: 446, Band: &[2]float64{430, 462}}, {Level: 120, Value: 530},
			}})},
			Table: &Table{Words: []int{2}, Head: []string{"Concurrency", "TTFT", "Remarks"}, Rows: [][]string{
				{"60", "446 ms (430 to 462)", "cold (twice)"}, {"120", "530 ms", ""},
			}},
		},
	}}
	r := &everything{d, 1.5}
	for _, format := range r.Formats() {
		text := written(t, r, format)
		if _, body, ok := strings.Cut(text, "</style>\n"); ok {
			text = body
		}
		golden(t, "format."+string(format), text)
	}
	var b strings.Builder
	require.NoError(t, d.WriteText(&b))
	golden(t, "format.txt", b.String())
}

// Reports on what the kinds above do not have say so in a few sentences and cells.
func TestReportsOfUnusualResults(t *testing.T) {
	const h100, h200 = "h100x8-tp2-llama70b-fp8", "h200x3-tp1-llama70b-fp8"
	recordedH100 := builtin(t, h100)
	long, unknown, elsewhere := recordedH100, recordedH100, recordedH100
	long.Name, long.Title, long.Workload = "long", "Long openings", &api.WorkloadShape{OpeningTokens: 9000}
	unknown.Name, unknown.Rows = "unknown", []api.BaselineRow{measured(50, api.ModeState{Mode: api.ModeUnknown}, .5,
		100, .1)}
	elsewhere.Name, elsewhere.Rows = "elsewhere", []api.BaselineRow{measured(55, kv, .5, 100, .1)}
	for name, c := range map[string]struct {
		r    *Results
		want []string
	}{
		"120 is known of one mode alone": {OfSweep(partly(3)), []string{
			"Levels of KV-aware alone, which are not compared: 120.",
			"- **TTFT, p95**: an advantage of +31.9 % for KV-aware at 60.\n",
			"an advantage of 0.0 % for KV-aware at 60. Not certain at 60.\n",
			"| 655 ms (642 to 668) | 446 ms (437 to 455) | +31.9 % (+27.6 to +35.9), −209 ms |",
			"Still running, with 3 of 18 spans measured: this can still change.",
		}},
		"one mode": {OfSweep(partly(1)), []string{
			"Only KV-aware was measured, so there is nothing to compare it with.", "## The cluster's own metrics\n",
			"| KV-aware | 60 | 223 ms (219 to 227) | 446 ms (437 to 455) | 30.0 ms (29.4 to 30.6) |",
		}},
		"three modes": {OfSweep(threeModes()), []string{
			"Each mode is compared with each other one. An advantage is by how much the latter's times are lower",
			"### Least loaded against KV-aware: TTFT\n", "### Least loaded against KV-aware: Errors\n",
			"- **Least loaded against KV-aware, TTFT, p95**: an average advantage of −5.2 % for Least loaded over 2 levels " +
				"(60 to 120), from −12.1 % at 60 to +1.7 % at 120. Least loaded is worse at 60; not certain at 120.",
			"Router, Round-robin**: mode set by the driver endpoints; no metrics say how it chooses workers\n",
			"Router, Least loaded**: not recorded\n", "Modes**: Round-robin (round_robin, speculation off); KV-aware (kv,",
			"By TTFT p95, Least loaded and KV-aware do not cross at these levels: Least loaded is worse wherever",
			"Least loaded sustains 120 conversations, the most that was measured.",
		}},
		"speculation": {OfSweep(drafted()), []string{
			"for times and memory, (", "a difference in percentage points for hit and acceptance rates: positive where",
			"### Speculation and GPU memory\n", "draft model acceptance rate |",
			"| 121.1 GiB (121.1 to 121.1) | 0.0 %, not certain |", "so no crossing point can be found.",
			"**Speculation and GPU memory, tokens per step**: an average advantage of −18.5 %",
		}},
		"a lower SLO": {recorded(t, h100, proof.Question{SLO: api.SLO{TTFT: .4, TPOT: .06}}), []string{
			"Round-robin sustains nothing: even 20, the lowest level measured, misses them, judged by TTFT alone where TPOT",
			"| Round-robin | nothing: even 20, the lowest level measured, misses them, judged by TTFT alone where TPOT was " +
				"not recorded |",
			"At 50 conversations, the most that KV-aware sustains, TTFT p95 is 400 ms, against 443 ms under Round-robin.\n",
			"### Latency\n\nNot recorded.\n",
		}},
		"a cascade of queues": {recorded(t, h200, proof.Question{SLO: slo}), []string{
			"KV-aware is better than Round-robin at 120 and worse at 170: they cross between the two.",
			"The cluster's own metrics there are not recorded; at 170, under KV-aware against Round-robin: longest queue time " +
				"1,480 ms against 40.0 ms;", "in-flight spread 28 to 32 against 12 to 14;",
			"Under KV-aware, queues built up at 170: a worker had about 57 requests in flight on average, and queues form " +
				"from about 65; the busiest worker had up to 71 requests in flight, more than its batch of 64; queue times grew " +
				"on more than one worker, from 30.0 ms to 1,480 ms and 1,360 ms; on 1 of 3 workers they did not grow; " +
				"after 60 to 90 s the queues were gone; under Round-robin no queue time was above 40.0 ms.",
			"spread no less evenly under KV-aware, with an in-flight skew of 1.02× against 1.11×.",
			"Throughput is better under KV-aware even there, by +14.0 %.",
			"(above that, these still meet them: 130); KV-aware", "(above that, these still meet them: 130) |",
		}},
		"two baselines": {against(t, recordedH100, builtin(t, h200), api.ModeKV), []string{
			"# KV-aware: 3× H200, Llama 3.1 70B FP8, recorded against 8× H100, Llama 3.1 70B FP8, recorded\n",
			"- **Block size**: h100x8-tp2-llama70b-fp8: not recorded; h200x3-tp1-llama70b-fp8: 32\n",
			"- **Concurrency, h100x8-tp2-llama70b-fp8**: 20, 30, 40, 50, 60, 70, 80, 100, 120 conversations in progress\n",
			"### Differences in setup\n", "More than the mode differs, so the results do not compare the modes alone:",
			"| tensor parallel | 1 | 2 |", "**Averaged, h100x8-tp2-llama70b-fp8**: 3 runs: ",
		}},
		"other openings": {against(t, recordedH100, long, api.ModeKV), []string{ // nothing is called better
			"No advantage is shown: the opening texts of the two differ in length, or one of them does not record it",
			"| opening tokens | 9000 tokens | 3,500 to 4,000 tokens |", "not compared |",
		}},
		"unknown mode": {against(t, unknown, recordedH100, ""), []string{
			"# KV-aware against Mode unknown: ", "No advantage is shown: the routing mode of one of them is unknown.",
		}},
		"no level together": {against(t, elsewhere, recordedH100, ""), []string{
			"The two have no level in common.", "Levels of KV-aware with speculation off alone, which are not compared: 55.",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := markdownOf(t, c.r)
			for _, want := range c.want {
				assert.Contains(t, got, want)
			}
			selfContained(t, written(t, c.r, api.ReportHTML))
		})
	}
}

// The recorded tables say what the documents of their records do, where that follows from the table.
func TestReportsOfTheRecord(t *testing.T) {
	before := markdownOf(t, recorded(t, "h200x3-tp1-llama70b-fp8", proof.Question{
		Levels: []api.LevelRange{{From: 60, To: 160, Step: 20}}, SLO: slo,
	}))
	html := written(t, comparison(t), api.ReportHTML)
	// The document says 14.7 %, "before queueing onset"; the mean of its own table's column is this.
	assert.Contains(t, before, "**TTFT, p95**: an average advantage of +14.6 % for KV-aware over 6 levels")
	// Under KV-aware throughput grows by 9.6 % and more at each of these levels.
	assert.NotContains(t, before, "3.87 requests/s")
	assert.Equal(t, 5, selfContained(t, html)["svg"])
	assert.Contains(t, html, "<td>732 ms</td><td>3,143 ms</td><td>4.3 times as long, &#43;2,411 ms</td>")
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
	assert.Contains(t, markdownOf(t, r), "| sweep.tsv | 2026-02-17T12:52:00Z | 9223…5808 | 1.2 |")
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
