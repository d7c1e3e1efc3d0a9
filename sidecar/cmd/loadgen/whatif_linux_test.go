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

// workers are the processes in which a load generator computes simulations.
func (p *program) workers() (ids []string) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", p.cmd.Process.Pid))
	for _, task := range tasks {
		text, _ := os.ReadFile(task)
		ids = append(ids, strings.Fields(string(text))...)
	}
	return ids
}

// A simulation is computed in a process of its own, which ends when it is canceled and when the load generator is
// killed.
func TestSimulationLeavesNoProcess(t *testing.T) {
	t.Parallel()
	p := newProcess(t).serve("http://127.0.0.1:1")
	ask := func() (id, worker string) {
		// for minutes
		r, err := p.client.StartSimulation(t.Context(), api.SimulationRequest{Levels: []int{3000}, Seeds: new(12)})
		require.NoError(t, err)
		p.eventually("it has a process", func() bool {
			_, err := p.client.Simulation(t.Context(), r.ID)
			return err == nil && len(p.workers()) == 1
		})
		return r.ID, p.workers()[0]
	}
	gone := func(worker string) {
		p.eventually("the process is gone", func() bool { return !exists("/proc/" + worker) })
	}
	id, worker := ask()
	r, err := p.client.CancelSimulation(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, api.SimulationCancelled, r.Progress.State)
	gone(worker)

	_, worker = ask()
	p.client = nil // it answers no more
	p.kill()
	gone(worker)
}
