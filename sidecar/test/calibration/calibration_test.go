//go:build verify

package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/calibrate"
)

const again = "run go tool mage docs"

// The stored results must be those of the current profiles.
func TestDocumentIsCurrent(t *testing.T) {
	kept, err := read(resultsFile)
	require.NoError(t, err)
	var names []string
	for _, one := range kept.Profiles {
		p, err := sim.LoadProfile(one.Name)
		require.NoError(t, err)
		assert.Equal(t, hash(p), one.Hash, "%s has changed since its errors were computed: %s", one.Name, again)
		names = append(names, one.Name)
	}
	assert.ElementsMatch(t, sim.ProfileNames(), names, again)
	want, err := render(kept)
	require.NoError(t, err)
	text, err := os.ReadFile("../../../" + document)
	require.NoError(t, err)
	got, wanted := strings.Split(string(text), "\n"), strings.Split(string(want), "\n")
	for i := range min(len(got), len(wanted)) {
		require.Equal(t, wanted[i], got[i], "line %d: %s", i+1, again)
	}
	assert.Len(t, got, len(wanted), again)
}

// One row of each table is simulated again, to find changes of the model.
func TestStoredResultsAreCurrent(t *testing.T) {
	kept, err := read(resultsFile)
	require.NoError(t, err)
	for _, one := range kept.Profiles {
		if len(one.Rows) == 0 {
			continue
		}
		p, err := sim.LoadProfile(one.Name)
		require.NoError(t, err)
		b, ok := recordedOf(p)
		require.True(t, ok)
		row := one.Rows[0]
		b.Rows = slices.DeleteFunc(b.Rows,
			func(r api.BaselineRow) bool { return r.Level.Conversations() != row.Concurrency || r.Mode != row.Mode })
		rows, _, err := calibrate.Check(t.Context(), p, b, errorSeeds, 2, nil)
		require.NoError(t, err)
		require.Len(t, rows, 1)
		assert.InEpsilon(t, row.TTFT50, rows[0].Simulated.TTFT50, 1e-4, "%s: %s", one.Name, again)
		assert.InEpsilon(t, row.TokensPerSecond, rows[0].Simulated.TokensPerSecond, 1e-4, "%s: %s", one.Name, again)
	}
}
