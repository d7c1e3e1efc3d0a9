package main

import (
	"os"
	"path/filepath"
	"testing"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/report"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The scatter of a trial comes from its JSON report. Any other file is refused with the flag.
func TestReadLike(t *testing.T) {
	s := api.Sweep{
		SweepSummary: api.SweepSummary{ID: "abc", Request: api.SweepRequest{
			Kind: api.SweepTrial, Modes: []api.ModeState{rrMode, kvMode}, Levels: api.LevelsOf(60), Seconds: new(60.),
			Together: new(false),
		}},
		Workload: api.WorkloadShape{MaxTokens: 1024},
		Rows:     []api.BaselineRow{{Level: api.AtConversations(60), Mode: api.ModeRoundRobin}},
		Trial: &api.TrialState{
			Method: api.TrialOnBlocks, BlockSeconds: 500,
			Variances: map[string]api.TrialVariance{"ttft_mean": {Value: .002, DegreesOfFreedom: 9}},
		},
	}
	path := filepath.Join(t.TempDir(), "report.json")
	write := func() {
		f, err := os.Create(path)
		require.NoError(t, err)
		require.NoError(t, report.Write(f, report.OfSweep(s), api.ReportJSON))
		require.NoError(t, f.Close())
	}
	write()
	like, err := readLike(path)
	require.NoError(t, err)
	assert.Equal(t, &api.TrialLike{
		ID:           "abc",
		Modes:        s.Request.Modes,
		Levels:       api.LevelsOf(60),
		Seconds:      60,
		Workload:     s.Workload,
		Variances:    s.Trial.Variances,
		BlockSeconds: 500,
	}, like)

	for allowed, change := range map[string]func(){
		"one with two whole blocks or more": func() { s.Trial.Variances = nil },
		"the JSON report of a trial":        func() { s.Trial = nil },
	} {
		before := *s.Trial
		change()
		write()
		s.Trial = &before
		_, err = readLike(path)
		var refused *api.FieldError
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, "like", refused.Field)
		assert.Contains(t, refused.Value, path)
		assert.Equal(t, allowed, refused.Allowed)
	}
	_, err = readLike(path + ".missing")
	require.ErrorContains(t, err, "like: "+path+".missing: no such file")
}
