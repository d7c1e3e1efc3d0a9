//go:build booth

// What a simulation computes gets no more of the processors than others leave, which
// beside the tests of all packages is next to nothing: these run with whole booths.

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// workers are the processes that a load generator computes simulations in.
func (p *program) workers() (ids []string) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", p.cmd.Process.Pid))
	for _, task := range tasks {
		text, _ := os.ReadFile(task)
		ids = append(ids, strings.Fields(string(text))...)
	}
	return ids
}

// A simulation is computed in a process of its own, which survives neither its
// cancellation nor the load generator, however that ends.
func TestSimulationLeavesNoProcess(t *testing.T) {
	t.Parallel()
	p := start(t, "http://127.0.0.1:1")
	ask := func() (id, worker string) {
		r, err := p.client.StartSimulation(t.Context(), api.SimulationRequest{Levels: []int{3000}, Seeds: new(12)}) // for minutes
		require.NoError(t, err)
		p.until("it has a process", func() bool {
			_, err := p.client.Simulation(t.Context(), r.ID)
			return err == nil && len(p.workers()) == 1
		})
		return r.ID, p.workers()[0]
	}
	gone := func(worker string) {
		p.until("the process is gone", func() bool {
			_, err := os.Stat("/proc/" + worker)
			return err != nil
		})
	}
	id, worker := ask()
	r, err := p.client.CancelSimulation(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, api.SimulationCancelled, r.Progress.State)
	gone(worker)

	_, worker = ask()
	p.kill()
	gone(worker)
}

// The answer comes through the real API, and the profiles of the data directory are offered.
func TestSimulation(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	text, err := os.ReadFile("../../sim/profiles/h200-tp1.yaml")
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(p.dir, "profiles"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(p.dir, "profiles", "twin.yaml"), []byte(strings.Replace(string(text), "name: h200-tp1", "name: twin", 1)), 0o600))
	p.start("http://127.0.0.1:1")
	r, err := p.client.StartSimulation(t.Context(), api.SimulationRequest{Profile: new("twin"), Levels: []int{8}, Seeds: new(1)})
	require.NoError(t, err)
	p.until("it is done", func() bool {
		var err error
		r, err = p.client.Simulation(t.Context(), r.ID)
		require.NoError(t, err)
		return r.Progress.State == api.SimulationDone
	})
	assert.Len(t, r.Points, 2)
	assert.NotEmpty(t, r.Explanation)
	l, err := p.client.Simulations(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "twin.yaml", l.Profiles[len(l.Profiles)-1].Source)
}
