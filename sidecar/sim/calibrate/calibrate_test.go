package calibrate

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/closedloop"
	"kvbooth/sidecar/sim/study"
)

// recordedBy is what the load generator would have recorded of a simulated cluster: openings of
// so many tokens, at these levels, the mean over some seeds that no fit uses.
func recordedBy(t testing.TB, p sim.Profile, opening int, modes []api.Mode, levels ...int) api.Baseline {
	t.Helper()
	w := closedloop.Recorded()
	w.OpeningTokens = []int{opening}
	grid := study.Grid{Cluster: sim.DefaultOptions(p), Workload: w, Levels: levels, Modes: modes, Seeds: []uint64{101, 102, 103, 104}}
	points, err := grid.Run(t.Context(), 2, nil)
	require.NoError(t, err)
	b := api.Baseline{
		Name: fmt.Sprintf("simulated-%d", opening), Kind: "imported",
		Deployment: api.Deployment{GPU: p.GPU, Workers: p.Workers, TensorParallel: p.TensorParallel},
		Workload: &api.WorkloadShape{
			Turns: w.Turns, MaxTokens: w.MaxTokens, Openings: &w.Openings, OpeningTokens: opening, OutputTokens: w.Output, Followup: recordedFollowup,
		},
	}
	for _, point := range points {
		f := point.Mean()
		b.Rows = append(b.Rows, api.BaselineRow{
			Concurrency: point.Concurrency, Mode: point.Mode, Speculation: api.SpeculationNotRecorded,
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

func TestZZ(t *testing.T) {
	start := sim.H200()
	start.Workers = 1
	truth := start
	set(&truth, "step.base", 1.25)
	set(&truth, "step.per_sequence", .7)
	set(&truth, "step.per_prefill_token", .8)
	set(&truth, "step.per_context_token", 1.5)
	set(&truth, "frontend.in", 1.3)
	set(&truth, "speculation.not_recorded.tokens_per_step", 1.08)
	rr := []api.Mode{api.ModeRoundRobin}
	bs := []api.Baseline{recordedBy(t, truth, 4000, rr, 2, 8, 14, 20, 28, 38, 50), recordedBy(t, truth, 1000, rr, 2, 8, 14, 20, 28, 38, 50)}
	for _, n := range []int{1, 2} {
		began := time.Now()
		r, err := Run(t.Context(), Options{Start: start, Baselines: bs[:n], Suggest: n == 1})
		require.NoError(t, err)
		t.Log(time.Since(began), r.Rounds, r.Runs)
		t.Log(r.InSample.String())
		t.Log(r.OutOfSample.String())
		for _, c := range r.Constants {
			t.Logf("%-28s start %9.4g true %9.4g fitted %9.4g ± %8.3g (%.1f %%) %s %v | %s = %.4g ± %.2g | %s", c.Name, c.Start, get(truth, c.Name), c.Value, 1.96*c.Error, 196*c.Error/c.Value, c.Status, c.AtBound, c.Combination, c.CombinationValue, c.CombinationError, c.Remedy)
		}
	}
}
