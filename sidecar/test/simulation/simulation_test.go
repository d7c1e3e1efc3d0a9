//go:build verify && unix

package main

import (
	"bytes"
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/closedloop"
	"kvbooth/sidecar/sim/study"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The committed document and charts are those of the committed results, which are those of the current profile.
func TestCommittedFilesAreCurrent(t *testing.T) {
	r, err := readResults("testdata/results.json")
	require.NoError(t, err)
	p, err := sim.LoadProfile(r.Profile)
	require.NoError(t, err)
	assert.Equal(t, hash(p), r.Hash, "the profile or the recorded workload has changed: go tool mage docs")
	files, err := render(r)
	require.NoError(t, err)
	assert.Len(t, files, 4)
	for name, want := range files {
		text, err := os.ReadFile(filepath.Join("../../..", docs, name))
		require.NoError(t, err)
		assert.True(t, bytes.Equal(want, text), "%s is not what its results give: go run ./sidecar/test/simulation write",
			name)
	}
}

// A small simulation can be rendered.
func TestSmallSimulationIsRendered(t *testing.T) {
	p := sim.H200()
	r := results{Profile: p.Name, Cores: 2}
	for _, workers := range []int{1, 2} {
		s, err := atScale(t.Context(), p, workers, 10, []int{2, 4}, 1)
		require.NoError(t, err)
		require.Len(t, s.Points, 4)
		assert.Equal(t, api.AtConversations(4*workers), s.Points[2].Level)
		r.Scales, r.Grown = append(r.Scales, s), append(r.Grown, s)
		c, err := cost(t.Context(), p, workers, 4, 30*time.Second)
		require.NoError(t, err)
		assert.Greater(t, c.Tokens, 100*workers)
		assert.Positive(t, c.CPUSeconds)
		r.Costs = append(r.Costs, c)
	}
	files, err := render(r)
	require.NoError(t, err)
	assert.Contains(t, string(files[document]), "on clusters of 1, 2 workers (runs of every point: 1)")
	for _, name := range []string{crossingChart, grownChart, costChart} {
		d := xml.NewDecoder(bytes.NewReader(files[name]))
		for err = nil; err == nil; {
			_, err = d.Token()
		}
		assert.ErrorIs(t, err, io.EOF, "%s is XML", name)
	}
	again, err := render(r)
	require.NoError(t, err)
	assert.Equal(t, files, again)
}

// made returns a scale in which kv's TTFT p95 is a multiple of round-robin's, by load.
func made(workers int, ratios ...float64) scale {
	s := scale{Workers: workers}
	for i, ratio := range ratios {
		kv, rr := closedloop.Figures{TTFT95: ratio}, closedloop.Figures{TTFT95: 1}
		level := (20 + 20*i) * workers
		s.Points = append(
			s.Points,
			study.Point{Level: api.AtConversations(level), Mode: api.ModeKV, Runs: []closedloop.Figures{kv, kv}},
			study.Point{Level: api.AtConversations(level), Mode: api.ModeRoundRobin, Runs: []closedloop.Figures{rr, rr}},
		)
	}
	return s
}

func TestTrendOfCrossings(t *testing.T) {
	of := func(a, b scale) string { return trend([]scale{a, b}) }
	early, late, never := made(3, .5, 1.5, 2), made(50, .5, .5, 1.5), made(50, .5, .5, .5)
	each, total := crossing(early)
	assert.Equal(t, []string{"30 (30 to 30)", "90"}, []string{each, total})
	each, _ = crossing(never)
	assert.Equal(t, "none shown", each)
	assert.Contains(t, of(early, late),
		"moves to higher loads: from 30 conversations for each worker (30 to 30) with 3 workers to 50 (50 to 50) with 50.")
	assert.Contains(t, of(late, early), "moves to lower loads, not to higher ones: from 50")
	assert.Contains(t, of(early, early), "does not move beyond the spread")
	assert.Contains(t, of(early, never), "With 3 workers the curves cross, with 50 no crossing shows")
	assert.Contains(t, of(never, early), "With 50 workers no crossing shows at these loads, with 3 one does")
	assert.Contains(t, of(never, never), "Neither with 50 workers nor with 50")
}
