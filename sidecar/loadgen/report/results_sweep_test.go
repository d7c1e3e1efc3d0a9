package report

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/proof"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	asked      = time.Date(2026, 2, 17, 12, 52, 0, 0, time.UTC)
	kv         = api.ModeState{Mode: api.ModeKV, Speculation: api.SpeculationOff}
	roundRobin = api.ModeState{Mode: api.ModeRoundRobin, Speculation: api.SpeculationOff}
)

// refused checks that an error names a field, and returns what that field allows.
func refused(t *testing.T, field string, err error) (allowed string) {
	t.Helper()
	var refused *api.FieldError
	require.ErrorAs(t, err, &refused, field)
	assert.Equal(t, field, refused.Field)
	return refused.Allowed
}

// swept is a sweep as the desk gives it, with nothing measured.
func swept(kind api.SweepKind, levels ...int) api.Sweep {
	return api.Sweep{
		SweepSummary: api.SweepSummary{
			ID: "20260217-125242", Lane: "main", State: api.SweepDone, Asked: asked,
			Request: api.SweepRequest{
				Kind:      kind,
				Modes:     []api.ModeState{roundRobin, kv},
				Levels:    api.LevelsOf(levels...),
				SLO:       &api.SLO{TTFT: .6, TPOT: .06},
				Primary:   new("ttft_p95"),
				Smallest:  new(.05),
				Seconds:   new(300.),
				WarmUp:    new(60.),
				Snapshots: new(3),
				Repeats:   new(3),
				Order:     new(api.OrderInterleaved),
				Seed:      new(uint64(7)),
			},
			Progress: api.SweepProgress{Spans: 18, Of: new(18), SecondsUsed: 3600},
		},
		Program: "1.4.0", Target: api.TargetID{URL: "http://cluster:8000", Model: "llama"},
		Deployment: api.Deployment{GPU: "H200", Workers: 3, Engine: "trtllm", MaxBatchSize: 64},
		Workload:   api.WorkloadShape{Turns: api.Range{Min: 3, Max: 5}, MaxTokens: 1024},
	}
}

// measured is a row with intervals of a share of each value.
func measured(level int, m api.ModeState, ttft95, tokens, share float64) api.BaselineRow {
	around := func(v float64) *[2]float64 { return &[2]float64{v * (1 - share), v * (1 + share)} }
	r := api.BaselineRow{Level: api.AtConversations(level), Mode: m.Mode, Speculation: m.Speculation, N: 900, Seconds: 900}
	r.TTFT = api.Percentiles{P50: new(ttft95 / 2), P95: new(ttft95)}
	r.TPOT = api.Percentiles{P50: new(.03), P95: new(.04)}
	r.Latency = api.Percentiles{P50: new(24.), P95: new(30.)}
	r.OutputTokensPerSecond, r.RequestsPerSecond, r.KVHitRatio = new(tokens), new(tokens/830), new(.9)
	r.Intervals = &api.RowIntervals{
		TTFT:    api.PercentileIntervals{P50: around(ttft95 / 2), P95: around(ttft95)},
		TPOT:    api.PercentileIntervals{P50: around(.03), P95: around(.04)},
		Latency: api.PercentileIntervals{P50: around(24), P95: around(30)}, OutputTokensPerSecond: around(tokens),
		RequestsPerSecond: around(tokens / 830),
	}
	return r
}

// Where the load generator's own error could change an outcome, a report says so and counts the level as neither.
func TestReportNamesWhatIsWithheld(t *testing.T) {
	s := crossed()
	for i := range s.Rows[:2] { // 0.446 and 0.655 s, and 0.2 s of the latter may be the load generator's
		r := &s.Rows[i]
		r.Errors = &api.RowErrors{TTFT: api.Percentiles{P95: new(.2)}}
		r.Intervals.TTFT.P95[0] -= .2
	}
	r := OfSweep(s)
	assert.Equal(t, api.OutcomeWithheld, r.Pairs[0].Levels[0].Figures[proof.QuantityTTFT95].Outcome)
	assert.Equal(t, api.LevelsOf(60), r.Pairs[0].Averages[proof.QuantityTTFT95].Withheld)
	assert.Contains(t, markdownOf(t, r), "+31.9 %, −209 ms, "+ownError)
	assert.Contains(t, markdownOf(t, r), ownError+" at 60")
}

// A mode that certainly fails more turns is better in nothing at that level, and the titles of times say that failed
// turns are not in them.
func TestReportOfFailingMode(t *testing.T) {
	s := crossed()
	for i := range s.Spans { // KV-aware at 60, which is faster
		if x := &s.Spans[i]; x.Level == api.AtConversations(60) && x.Mode == kv {
			x.Turns, x.Failed = 800, 100
		}
	}
	r := OfSweep(s)
	p := r.Pairs[0]
	assert.Equal(t, api.OutcomeTradeOff, p.Levels[0].Figures[proof.QuantityTTFT95].Outcome)
	assert.Equal(t, api.LevelsOf(60), p.Averages[proof.QuantityTTFT95].TradeOff)
	assert.Contains(t, r.Words, "KV-aware certainly fails more turns at 60, and is better in nothing there.")
	text := markdownOf(t, r)
	assert.Contains(t, text, "### TTFT, successful turns only\n")
	assert.Contains(t, text, "; not counted at 60")
	assert.Contains(t, text, "### KV cache hit rate\n")

	trial := looked()
	trial.Rows[0].ErrorRatio = new(.03)
	assert.Contains(t, markdownOf(t, OfSweep(trial)), "| TTFT p95, successful turns only | ")
}

// A mode whose answers are certainly shorter is not compared at that level, and the sentences say by how much.
func TestReportOfShorterAnswers(t *testing.T) {
	s := crossed()
	short := s.Rows[0] // KV-aware at 60
	s.Rows[0].RequestsPerSecond = new(1.6 * *short.RequestsPerSecond)
	in := *short.Intervals.RequestsPerSecond
	s.Rows[0].Intervals.RequestsPerSecond = &[2]float64{1.6 * in[0], 1.6 * in[1]}
	r := OfSweep(s)
	require.NotNil(t, r.Pairs[0].Levels[0].Answers)
	assert.Nil(t, r.Pairs[0].Levels[1].Answers)
	assert.Contains(t, r.Words, "At 60, answers under KV-aware are 37.5 % shorter (35.0 to 39.9 %) than under "+
		"Round-robin, so neither is better there.")
	assert.Equal(t, api.OutcomeTradeOff, r.Pairs[0].Levels[0].Figures[proof.QuantityTTFT95].Outcome)
	assert.Equal(t, api.OutcomeWorse, r.Pairs[0].Levels[2].Figures[proof.QuantityTTFT95].Outcome)
}

// Every report says first that no engine on a GPU answered, and its JSON names the load generator that wrote it.
func TestReportOfMockedEngines(t *testing.T) {
	const mocked = "The engines are mocked: times and rates are no measurements of a GPU."
	s := crossed()
	s.Deployment.Kind = api.TargetMocked
	r := OfSweep(s)
	assert.Equal(t, mocked, r.Words[0])
	assert.Contains(t, written(t, r, api.ReportJSON), `"program": "`+api.Program()+`"`)

	b := api.Baseline{Name: "mine", Rows: s.Rows, Deployment: s.Deployment}
	other := b
	other.Name, other.Deployment.Kind = "other", api.TargetReal
	q := proof.Question{A: api.ReportSide{Mode: api.ModeKV}, B: api.ReportSide{Mode: api.ModeKV}}
	compared, err := Compare(b, other, q)
	require.NoError(t, err)
	assert.Equal(t, "mine: "+mocked, compared.Words[0])
	assert.Contains(t, compared.Pairs[0].Differences, api.Difference{Field: "kind", Live: "real", Baseline: "mocked"})

	run := Run{Target: api.Target{Kind: api.TargetMocked}}
	assert.Contains(t, run.summary(), "The engines are mocked · ")
}

// crossed is a finished sweep in which kv is better at 60, neither at 120, and worse at 180.
func crossed() api.Sweep {
	s := swept(api.SweepLevels, 60, 120, 180)
	s.Rows = []api.BaselineRow{
		measured(60, kv, .446, 2263, .02), measured(60, roundRobin, .655, 2147, .02),
		measured(120, kv, .59, 2806, .02), measured(120, roundRobin, .595, 2643, .02),
		measured(180, kv, 3.143, 3908, .02), measured(180, roundRobin, .732, 3434, .02),
	}
	for i, r := range s.Rows {
		state := api.ModeState{Mode: r.Mode, Speculation: r.Speculation}
		for repeat := range 2 {
			row := s.Rows[i]
			for _, q := range quantities { // repeats of a hundredth less and more
				if of := q.In(&row); *of != nil {
					*of = new(**of * (1 + .02*(float64(repeat)-.5)))
				}
			}
			c := api.SweepCauses{Seconds: 300, ClusterFigures: api.ClusterFigures{
				QueueSeconds: new(.02 + float64(repeat)/100), QueueLargest: new(.04), QueueSkew: new(1.17),
				InflightSpread: new(13.), EngineTTFT: new(.26),
			}}
			if r.Level == api.AtConversations(180) && r.Mode == api.ModeKV {
				c.ClusterFigures = api.ClusterFigures{
					QueueSeconds: new(.31), QueueLargest: new(1.48 - float64(repeat)), QueueSecond: new(.4 + float64(repeat)),
					QueueLeast: new(.03), QueueSkew: new(2.55), InflightLargest: new(71.), InflightSpread: new(30.),
					EngineTTFT: new(1.59),
				}
			}
			s.Spans = append(s.Spans, api.SweepSpan{
				Number: 2*i + repeat, Attempt: 1, Mode: state, Level: r.Level, Seed: 1 << 63, Started: asked,
				CountedFrom: asked.Add(time.Minute), Until: asked.Add(6 * time.Minute), Elapsed: 370, Turns: 900, Cold: "emptied",
				Row: &row, Causes: &c, Target: "http://" + strings.ReplaceAll(string(r.Mode), "_", "-") + ":8000",
				Router:     "mode set by the driver endpoints; no metrics say how it chooses workers",
				FirstTurns: &api.SweepFirstTurns{Openings: 10},
			})
		}
	}
	s.Spans[9].Turns, s.Spans[9].Failed = 80, 20 // 20 of 1,000 turns of two spans
	return s
}

func written(t *testing.T, r Readable, f api.ReportFormat) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, Write(&b, r, f))
	return b.String()
}

// spoiled is a finished sweep whose last span was repeated and spoiled again, with figures that must not count.
func spoiled() api.Sweep {
	s := crossed()
	s.Spans = append(s.Spans, api.SweepSpan{
		Number: 12, Attempt: 2, Mode: kv, Level: api.AtConversations(180), Started: asked, Cold: "nonce",
		Spoiled: "12 % of its turns failed",
		Causes:  &api.SweepCauses{ClusterFigures: api.ClusterFigures{QueueSeconds: new(99.)}},
	})
	return s
}

// partly is a sweep that still runs, with so many rows.
func partly(rows int) api.Sweep {
	s := crossed()
	s.State, s.Progress.Spans, s.Rows = api.SweepRunning, 3, s.Rows[:rows]
	return s
}

// threeModes is a sweep of which every pair of modes has its tables.
func threeModes() api.Sweep {
	s := crossed()
	least := api.ModeState{Mode: api.ModeLeastLoaded, Speculation: api.SpeculationOff}
	s.Request.Modes = append(s.Request.Modes, least)
	s.Rows = append(s.Rows, measured(60, least, .5, 2200, .02), measured(120, least, .58, 2700, .02))
	return s
}

// drafted is a sweep of two kinds of speculation, which fill the GPUs equally.
func drafted() api.Sweep {
	s := swept(api.SweepLevels, 60, 120)
	s.Request.Modes = nil
	for _, kind := range []struct {
		speculation          api.Speculation
		acceptance, perStep  float64
		ttft95, tokens, tpot float64
	}{{api.SpeculationDraft, .62, 4.1, .45, 2600, .021}, {api.SpeculationEagle3, .78, 3.34, .44, 3100, .017}} {
		m := api.ModeState{Mode: api.ModeKV, Speculation: kind.speculation}
		s.Request.Modes = append(s.Request.Modes, m)
		for _, level := range s.Request.Levels {
			var repeats []api.BaselineRow
			for _, scale := range []float64{.99, 1.01} {
				r := measured(level.Conversations(), m, kind.ttft95*scale, kind.tokens*scale, .02)
				r.TPOT.P50 = new(kind.tpot * scale)
				r.AcceptanceRate, r.TokensPerStep, r.GPUMemoryBytes = new(kind.acceptance*scale),
					new(kind.perStep*scale), new(130e9)
				repeats = append(repeats, r)
				s.Spans = append(s.Spans, api.SweepSpan{
					Number: len(
						s.Spans,
					),
					Attempt: 1,
					Mode:    m,
					Level:   api.AtConversations(level.Conversations()),
					Turns:   900,
					Cold:    "emptied",
					Row:     &r,
					Causes:  &api.SweepCauses{},
				})
			}
			s.Rows = append(s.Rows, proof.MeanRow(repeats))
		}
	}
	return s
}

// A sweep that has measured nothing yet says so, in every kind and state.
func TestReportOfAnEmptySweep(t *testing.T) {
	for _, kind := range api.SweepKinds {
		for _, state := range []api.SweepState{api.SweepRunning, api.SweepPaused, api.SweepCancelled, api.SweepFailed} {
			empty := swept(kind, 60)
			empty.State, empty.Progress, empty.Reason = state, api.SweepProgress{Of: new(18)}, "the target is gone."
			r := OfSweep(empty)
			md := markdownOf(t, r)
			assert.Contains(t, md, "Nothing was measured yet.")
			assert.Contains(t, md, "with 0 of 18 spans measured")
			assert.Contains(t, written(t, r, api.ReportHTML), "0 of 18 spans")
			if state == api.SweepRunning {
				assert.Equal(t, []string{"No results yet: the first measurement is still running."}, Words(&empty))
			} else {
				assert.Contains(t, strings.Join(Words(&empty), " "), "with 0 of 18 spans measured: the target is gone.")
			}
		}
	}
}

// anySweep draws a sweep of some levels, modes and repeats, in which anything may be missing.
func anySweep(rng *rand.Rand) api.Sweep {
	s := swept(api.SweepLevels)
	value := func(to **float64, top float64) *[2]float64 {
		if rng.IntN(8) == 0 {
			return nil
		}
		v := rng.Float64() * top
		if rng.IntN(30) == 0 {
			v = 0
		}
		*to = &v
		if rng.IntN(5) == 0 {
			return nil
		}
		return &[2]float64{v * rng.Float64(), v * (1 + rng.Float64())}
	}
	modes := []api.ModeState{kv, roundRobin, {Mode: api.ModeKV, Speculation: api.SpeculationEagle3}}[:1+rng.IntN(3)]
	s.Request.Modes = modes
	for level := 10; level <= 10*(1+rng.IntN(6)); level += 10 {
		s.Request.Levels = append(s.Request.Levels, api.AtConversations(level))
		for _, m := range modes {
			if rng.IntN(6) == 0 {
				continue
			}
			r := api.BaselineRow{
				Level: api.AtConversations(
					level,
				),
				Mode:        m.Mode,
				Speculation: m.Speculation,
				N:           rng.IntN(1000),
				Intervals:   &api.RowIntervals{},
			}
			for _, q := range quantities {
				*q.IntervalIn(r.Intervals) = value(q.In(&r), map[baseline.Kind]float64{
					baseline.Time: 5, baseline.Rate: 5000, baseline.Share: 1, baseline.Amount: 8e10,
				}[q.Kind])
			}
			if rng.IntN(10) == 0 {
				r.Intervals = nil
			}
			s.Rows = append(s.Rows, r)
			causes := api.SweepCauses{Seconds: 300}
			for _, c := range baseline.OfCluster {
				value(c.InCluster(&causes.ClusterFigures), 3)
			}
			s.Spans = append(s.Spans, api.SweepSpan{
				Number: len(
					s.Spans,
				),
				Attempt: 1,
				Mode:    m,
				Level:   api.AtConversations(level),
				Row:     &r,
				Causes:  &causes,
				Started: asked,
			})
		}
	}
	return s
}

// The numbers of a report are those of the sweep, to the last digit, whatever is missing;
// what is no number is nowhere.
func TestReportsNumbersAreTheSweeps(t *testing.T) {
	for seed := range uint64(40) {
		s := anySweep(rand.New(rand.NewPCG(seed, 0)))
		r := OfSweep(s)
		rows := tsv(t, r)
		require.Len(t, rows, len(s.Rows))
		found := map[string]map[string]string{}
		for _, row := range rows {
			found[row["mode"]+row["speculation"]+row["concurrency"]] = row
		}
		for i := range s.Rows {
			want := &s.Rows[i]
			row := found[string(want.Mode)+string(want.Speculation)+want.Level.String()]
			require.NotNil(t, row)
			for _, q := range quantities {
				require.Equal(t, digits(*q.In(want), -1), row[q.Name])
				ends := ends(q.IntervalOf(want), -1)
				require.Equal(t, ends, []string{row[q.Name+"_low"], row[q.Name+"_high"]})
			}
		}
		require.True(t, json.Valid([]byte(written(t, r, api.ReportJSON))))
		for _, f := range api.ReportFormats {
			text := written(t, r, f)
			for _, no := range []string{"NaN", "+Inf", "-Inf", "−Inf", "Inf ", "%!"} {
				require.NotContains(t, text, no, "seed %d as %s", seed, f)
			}
		}
		selfContained(t, written(t, r, api.ReportHTML))
	}
}

// selfContained holds a page to what e-mail and paper ask: no script, nothing from elsewhere.
func selfContained(t *testing.T, page string) (elements map[string]int) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, []string{"meta"}, xml.HTMLEntity
	elements = map[string]int{}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if start, ok := token.(xml.StartElement); ok {
			elements[start.Name.Local]++
			for _, a := range start.Attr {
				require.NotContains(t, []string{"src", "href", "srcset", "action", "style"}, a.Name.Local)
				require.False(t, strings.HasPrefix(a.Name.Local, "on"), a.Name.Local)
			}
			if start.Name.Local == "svg" {
				require.Contains(t, fmt.Sprint(start.Attr), "aria-label")
			}
		}
	}
	for _, no := range []string{"script", "link", "img", "iframe", "object", "base", "form"} {
		require.Zero(t, elements[no], no)
	}
	require.NotContains(t, page, "url(")
	require.NotContains(t, page, "@import")
	require.NotContains(t, page, "ZgotmplZ")
	return elements
}

// A page shows what people wrote as words, and its charts say in words what they draw.
func TestReportAsAPage(t *testing.T) {
	s := crossed()
	s.Request.Title = new(`<script>alert(1)</script> "a|b"`)
	s.Spans[0].Spoiled = "<img src=x onerror=alert(1)>"
	r := OfSweep(s)
	html := written(t, r, api.ReportHTML)
	elements := selfContained(t, html)
	assert.Equal(t, 5, elements["svg"])
	assert.Contains(t, html, "&lt;script&gt;alert(1)&lt;/script&gt;")
	assert.Contains(t, html, "SLO 600 ms")
	assert.Contains(t, html, `aria-label="TTFT p95: Round-robin at 60: 655 ms (642 to 668); Round-robin at 120: 595 ms`)
	assert.Contains(t, html, noneShown)
	assert.Contains(t, html, `class="band first"`)
	assert.Regexp(t, `@media screen and \(prefers-[a-z]+-scheme: dark\)`, html)
	assert.Contains(t, html, "@media print")
	md := written(t, r, api.ReportMarkdown)
	assert.Contains(t, md, `# &lt;script>alert(1)&lt;/script> "a\|b"`)
}

// Baselines that were measured are judged by the intervals of their own.
func TestReportOfMeasuredBaselines(t *testing.T) {
	s := crossed()
	s.Rows[0].Measured = &asked
	b := api.Baseline{Name: "mine", Title: "Mine", Kind: baseline.KindMeasured, Rows: s.Rows}
	r, err := Compare(b, b, proof.Question{
		A: api.ReportSide{Mode: api.ModeRoundRobin}, B: api.ReportSide{Mode: api.ModeKV}, SLO: slo,
	})
	require.NoError(t, err)
	assert.Contains(t, markdownOf(t, r), "| baseline mine | 2026-02-17T12:52:00Z | not recorded | not recorded |")
	f := r.Pairs[0].Levels[0].Figures[proof.QuantityTTFT95]
	assert.Equal(t, api.OutcomeBetter, f.Outcome)
	assert.False(t, f.Estimated)
	assert.InDelta(t, .319, *f.Advantage, .001)
	assert.Less(t, f.Interval[0], *f.Advantage)
	assert.Equal(t, api.OutcomeTooVariable, r.Pairs[0].Levels[0].Figures[proof.QuantityHitRate].Outcome)
}

// Lists in a report's JSON are lists, also where they are empty.
func TestReportsListsAreLists(t *testing.T) {
	s := swept(api.SweepLevels, 60)
	s.State = api.SweepDone
	data := written(t, OfSweep(s), api.ReportJSON)
	for _, field := range []string{"words", "sides", "pairs", "inputs", "spans"} {
		assert.NotContains(t, data, `"`+field+`": null`)
		assert.Contains(t, data, `"`+field+`": [`)
	}
	one := crossed()
	r, err := Compare(api.Baseline{Name: "mine", Rows: one.Rows[:1]}, api.Baseline{Name: "mine", Rows: one.Rows[:1]},
		proof.Question{})
	require.NoError(t, err)
	assert.NotContains(t, written(t, r, api.ReportJSON), "null")
	assert.Equal(t, "mine (A)", r.Sides[0].Name, "a result beside itself")
}

// The mean of rows has the mean of their errors, in its intervals, where all of them have one, and the share of failed
// turns of all turns.
func TestMeanRowHasErrors(t *testing.T) {
	rows := []api.BaselineRow{measured(60, kv, .4, 2000, .02), measured(60, kv, .5, 2000, .02)}
	before := proof.MeanRow(rows).Intervals.TTFT.P95
	for i := range rows {
		rows[i].Errors = &api.RowErrors{
			TTFT: api.Percentiles{P95: new(.01 + .02*float64(i))}, TPOT: api.Percentiles{P95: new(.001)},
		}
	}
	mean := proof.MeanRow(rows)
	assert.InDelta(t, .02, *mean.Errors.TTFT.P95, 1e-9)
	assert.InDelta(t, max(0, before[0]-.02), mean.Intervals.TTFT.P95[0], 1e-9)
	assert.InDelta(t, before[1], mean.Intervals.TTFT.P95[1], 1e-9)
	assert.InDelta(t, .041, mean.Intervals.TPOT.P95[1], 1e-9)
	rows[1].Errors = nil
	assert.Nil(t, proof.MeanRow(rows).Errors)
	for i := range rows {
		rows[i].N, rows[i].ErrorRatio = []int{80, 900}[i], new([]float64{.2, 0}[i])
	}
	assert.InDelta(t, .02, *proof.MeanRow(rows).ErrorRatio, 1e-9)
}

// What a side sustains is not known while a level that could change it has not run.
func TestUnfinishedSweepDoesNotSayWhatIsSustained(t *testing.T) {
	const known = "Round-robin sustains 120 conversations, the most that was measured"
	for _, tt := range []struct {
		planned []int
		p95     float64 // at 120
		want    string
	}{
		{[]int{60, 120}, .5, known},
		{[]int{60, 120, 180}, .5, known},
		{[]int{30, 60, 120}, .5, "what Round-robin sustains is not known yet"},
		{[]int{60, 90, 120}, .7, "what Round-robin sustains is not known yet"},
		{[]int{60, 120, 180}, .7, "Round-robin sustains 60 conversations"},
	} {
		s := swept(api.SweepLevels, tt.planned...)
		s.State, s.Progress.Spans = api.SweepRunning, 2
		s.Rows = []api.BaselineRow{measured(60, roundRobin, .4, 2000, .02), measured(120, roundRobin, tt.p95, 2500, .02)}
		for i, row := range s.Rows {
			for repeat := range *s.Request.Repeats {
				s.Spans = append(s.Spans, api.SweepSpan{Number: 3*i + repeat, Attempt: 1, Mode: roundRobin, Level: row.Level})
			}
		}
		assert.Contains(t, strings.Join(Words(&s), "\n"), tt.want, "%v", tt)
		s.Spans = s.Spans[:1]
		assert.Contains(t, strings.Join(Words(&s), "\n"), "what Round-robin sustains is not known yet", "1 of 6 spans")
	}
}
