package calibrate

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/closedloop"
	"kvbooth/sidecar/sim/study"
)

// recordedBy returns a baseline as the load generator would record it on a simulated cluster: openings of so many
// tokens, the given levels, and the mean over seeds that no fit uses.
func recordedBy(t testing.TB, p sim.Profile, opening int, modes []api.Mode, levels ...int) api.Baseline {
	t.Helper()
	w := closedloop.Recorded()
	w.OpeningTokens, w.Output, w.MaxTokens = []int{opening}, &api.Distribution{Mean: 150, CV: .4}, 1024
	grid := study.Grid{
		Cluster: sim.DefaultOptions(p), Workload: w, Levels: api.LevelsOf(levels...), Modes: modes,
		Seeds: []uint64{101, 102, 103, 104}, Sweep: true,
	}
	points, err := grid.Run(t.Context(), 2, nil)
	require.NoError(t, err)
	b := api.Baseline{
		Name: fmt.Sprintf("simulated-%d", opening), Kind: "imported",
		Deployment: api.Deployment{GPU: p.GPU, Workers: p.Workers, TensorParallel: p.TensorParallel},
		Workload: &api.WorkloadShape{
			Turns: w.Turns, MaxTokens: w.MaxTokens, Openings: &w.Openings, OpeningTokens: opening,
			OutputTokens: w.Output, Followup: api.RecordedFollowup,
		},
	}
	for _, point := range points {
		f := point.Mean()
		b.Rows = append(b.Rows, api.BaselineRow{
			Level: point.Level, Mode: point.Mode, Speculation: api.SpeculationNotRecorded,
			TTFT: api.Percentiles{P50: &f.TTFT50, P95: &f.TTFT95}, TPOT: api.Percentiles{P50: &f.TPOT50, P95: &f.TPOT95},
			OutputTokensPerSecond: &f.TokensPerSecond, RequestsPerSecond: &f.RequestsPerSecond, KVHitRatio: &f.Hit,
		})
	}
	return b
}

func set(p *sim.Profile, name string, factor float64) {
	for _, c := range p.Constants() {
		if c.Name == name {
			c.Set(p, c.Get(p)*factor)
		}
	}
}

func get(p sim.Profile, name string) float64 {
	for _, c := range p.Constants() {
		if c.Name == name {
			return c.Get(&p)
		}
	}
	return 0
}

// slow returns a deployment with long iterations, so that a level of six minutes has few of them: one worker on a GPU
// with a quarter of the bandwidth.
func slow() sim.Profile {
	p := sim.H200()
	p.Workers, p.Memory.Bandwidth = 1, 1200
	p.Step.Floors = nil
	p.Step.Base, p.Step.PerSequence, p.Step.PerContextToken = 150, 1.1, 2e-4
	maps.DeleteFunc(p.Sources, func(name string, _ sim.Source) bool { return strings.HasPrefix(name, "step.floors") })
	return p
}

var roundRobin = []api.Mode{api.ModeRoundRobin}

// TestFitRecoversSimulatedConstants fits data that the simulation has made with other constants and seeds. Determined
// constants are recovered; of the others, the determined combination is.
func TestFitRecoversSimulatedConstants(t *testing.T) {
	start := slow()
	truth := start
	set(&truth, "step.base", 1.3)
	set(&truth, "step.per_sequence", .6)
	set(&truth, "step.per_context_token", 1.4)
	set(&truth, "speculation.not_recorded.tokens_per_step", 1.1)
	b := recordedBy(t, truth, 4000, roundRobin, 6, 16, 32, 48)
	r, err := Run(t.Context(), Options{
		Start: start, Baselines: []api.Baseline{b}, Seeds: 2, Now: time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC),
		Fit: []string{"step.base", "step.per_sequence", "step.per_context_token", "speculation.not_recorded.tokens_per_step"},
	})
	require.NoError(t, err)
	compare(t, r, truth)
	assert.Equal(t, []int{6, 32, 48}, r.InSample.Levels)
	assert.Equal(t, []int{16}, r.OutOfSample.Levels)
	status := map[string]Status{}
	for _, c := range r.Constants {
		status[c.Name] = c.Status
	}
	assert.Equal(t, Fitted, status["step.base"])
	assert.Equal(t, Fitted, status["speculation.not_recorded.tokens_per_step"])
	assert.Equal(t, NotDetermined, status["step.per_sequence"],
		"with prompts of one length, a sequence and its context have the same effect")
	assert.Equal(t, NotDetermined, status["step.per_context_token"])
	assert.Equal(t, Derived, status["frontend.in"], "not in Fit")

	assert.Equal(t, "simulated-4000", r.Profile.Name)
	assert.Equal(t, "simulated-4000", r.Profile.Baseline)
	assert.Equal(t, r.Calibrated(), r.Profile.Calibrated)
	assert.Equal(t, r.Calibrated(), r.Profile.CalibratedFor(api.SpeculationNotRecorded))
	assert.False(t, r.Profile.CalibratedFor(api.SpeculationEagle3))
	assert.Contains(t, r.Profile.Basis,
		"on 2026-11-22 to simulated-4000, from h200-tp1. In sample: mean absolute error TTFT p50 ")
	text, err := r.Profile.YAML()
	require.NoError(t, err)
	_, err = sim.ParseProfile(text)
	assert.NoError(t, err, "the fitted profile can be read back")
}

// compare checks a fit against the constants that made its data: determined constants are within 5 %, combinations
// within four standard errors, and the figures of each level within 2 %.
func compare(t *testing.T, r *Result, truth sim.Profile) {
	t.Helper()
	value := func(name string) float64 { return get(truth, name) }
	for _, c := range r.Constants {
		switch {
		case c.Status == Fitted:
			assert.InEpsilon(t, value(c.Name), c.Value, .05, c.Name)
		case c.Combination != "":
			want := 0.0
			for i, term := range strings.Split(strings.ReplaceAll(c.Combination, " - ", " + -"), " + ") {
				factor, name := 1.0, term
				if i > 0 {
					number, rest, ok := strings.Cut(term, " × ")
					require.True(t, ok, term)
					var err error
					factor, err = strconv.ParseFloat(number, 64)
					require.NoError(t, err)
					name = rest
				}
				want += factor * value(name)
			}
			assert.InDelta(t, want, c.CombinationValue, 4*c.CombinationError, c.Combination)
		}
	}
	for _, row := range r.Rows {
		at := fmt.Sprintf("%s at %v", row.Baseline, row.Recorded.Level)
		assert.InEpsilon(t, *row.Recorded.TTFT.P50, row.Simulated.TTFT50, .02, at)
		assert.InEpsilon(t, *row.Recorded.OutputTokensPerSecond, row.Simulated.TokensPerSecond, .02, at)
		assert.InEpsilon(t, *row.Recorded.TPOT.P50, row.Simulated.TPOT50, .02, at)
	}
}

// TestRunRefusesInsufficientData checks that the error names the field and what to measure, before any computation.
func TestRunRefusesInsufficientData(t *testing.T) {
	good := recordedBy(t, slow(), 4000, roundRobin, 2, 4)
	for _, row := range []struct {
		intent  string
		change  func(*Options, *api.Baseline)
		field   string
		message string
	}{
		{"one level", func(_ *Options, b *api.Baseline) {
			b.Rows = b.Rows[1:]
		}, "simulated-4000: concurrency", "measure at 1 and 2, too"},
		{"one level is left", func(o *Options, _ *api.Baseline) {
			o.HoldOut = []int{4}
		}, "hold-out", "at least two remaining levels"},
		{"an unknown level", func(o *Options, _ *api.Baseline) {
			o.HoldOut = []int{5}
		}, "hold-out", "levels of the baselines: 2, 4"},
		{"no speed", func(_ *Options, b *api.Baseline) {
			for i := range b.Rows {
				b.Rows[i].OutputTokensPerSecond, b.Rows[i].TPOT = nil, api.Percentiles{}
			}
		}, "simulated-4000: rows", "throughput or TPOT as well"},
		{"no TTFT", func(_ *Options, b *api.Baseline) {
			for i := range b.Rows {
				b.Rows[i].TTFT = api.Percentiles{}
			}
		}, "simulated-4000: rows", "TTFT as well"},
		{"no mode", func(_ *Options, b *api.Baseline) {
			for i := range b.Rows {
				b.Rows[i].Mode = api.ModeUnknown
			}
		}, "simulated-4000: mode", "rows of kv, round_robin or least_loaded"},
		{"two kinds of speculation", func(_ *Options, b *api.Baseline) {
			b.Rows[1].Speculation = api.SpeculationOff
		}, "simulated-4000: speculation", "rows of one kind"},
		{"no workload", func(_ *Options, b *api.Baseline) {
			b.Workload = nil
		}, "simulated-4000: workload", "the line # workload:"},
		{"no length of answers", func(_ *Options, b *api.Baseline) {
			b.Workload.OutputTokens = nil
			for i := range b.Rows {
				b.Rows[i].RequestsPerSecond = nil
			}
		}, "simulated-4000: workload.output_tokens", "the lengths of the answers"},
		{"another GPU", func(_ *Options, b *api.Baseline) { b.Deployment.GPU = "H100" }, "profile", "one of the H100"},
		{"more GPUs", func(_ *Options, b *api.Baseline) {
			b.Deployment.TensorParallel = 2
		}, "profile", "one with 2 GPUs a worker"},
		{"an unknown constant", func(o *Options, _ *api.Baseline) { o.Fit = []string{"step.bass"} }, "fit", "step.base"},
		{"one seed", func(o *Options, _ *api.Baseline) { o.Seeds = 1 }, "seeds", "2 to 100"},
		{"no baseline", func(o *Options, _ *api.Baseline) { o.Baselines = nil }, "from", "at least one"},
	} {
		t.Run(row.intent, func(t *testing.T) {
			b := good
			b.Rows, b.Workload = slices.Clone(good.Rows), new(*good.Workload)
			o := Options{Start: slow(), Baselines: []api.Baseline{b}}
			row.change(&o, &b)
			if len(o.Baselines) > 0 {
				o.Baselines[0] = b
			}
			_, err := Run(t.Context(), o)
			var refused *api.FieldError
			require.ErrorAs(t, err, &refused)
			assert.Equal(t, row.field, refused.Field)
			assert.Contains(t, refused.Allowed, row.message)
		})
	}
}

func TestCalibratedRequiresSmallErrors(t *testing.T) {
	good := Errors{Rows: 1, TTFT50: .06, Throughput: .03, TPOT: .03, TTFT95: .07, Hit: .2}
	middle, tail := good, good
	middle.TTFT50, tail.TTFT95 = .061, .071
	for _, row := range []struct {
		intent  string
		in, out Errors
		want    bool
	}{
		{"at the bounds", good, good, true},
		{"error of the median too large", middle, good, false},
		{"error of the tail too large", tail, good, false},
		{"held-out error too large", good, middle, false},
		{"no level held out", good, Errors{}, false},
		{
			"no TTFT p95, no TPOT",
			Errors{Rows: 1, TTFT50: .04, Throughput: .04, TPOT: math.NaN(), TTFT95: math.NaN()},
			good, true,
		},
	} {
		assert.Equal(t, row.want, (&Result{InSample: row.in, OutOfSample: row.out}).Calibrated(), row.intent)
	}
}

// TestNewSourceReportsAssumptions uses a baseline that lacks parts of the deployment and the workload.
func TestNewSourceReportsAssumptions(t *testing.T) {
	b := recordedBy(t, slow(), 4000, roundRobin, 2, 4)
	b.Deployment = api.Deployment{}
	b.Workload = &api.WorkloadShape{Turns: b.Workload.Turns, MaxTokens: b.Workload.MaxTokens}
	s, err := newSource(slow(), b)
	require.NoError(t, err)
	assert.Equal(t, []int{3500, 3556, 3611, 3667, 3722, 3778, 3833, 3889, 3944, 4000}, s.workload.OpeningTokens)
	assert.Equal(t, 10, s.workload.Openings)
	assert.InDelta(t, 150, s.workload.Output.Mean, 15, "throughput over requests")
	assert.Len(t, s.assumed, 3)
	for i, text := range []string{"number of workers", "number of opening texts", "throughput over requests"} {
		assert.Contains(t, s.assumed[i], text)
	}
}

func TestCutDistributionKeepsMean(t *testing.T) {
	d := cut(853, .17, 1024)
	r := rand.New(rand.NewPCG(1, 2))
	sum := 0.0
	for range 100_000 {
		sum += min(d.Mean*(1+d.CV*r.NormFloat64()), 1024)
	}
	assert.InDelta(t, 853, sum/100_000, 1)
}

func TestRunEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b := recordedBy(t, slow(), 4000, roundRobin, 2, 4)
	o := Options{Start: slow(), Baselines: []api.Baseline{b}, OnProgress: func(Progress) { cancel() }}
	_, err := Run(ctx, o)
	assert.ErrorIs(t, err, context.Canceled)
}
