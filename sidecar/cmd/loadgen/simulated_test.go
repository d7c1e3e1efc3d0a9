//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

var (
	kvDraft = api.ModeState{Mode: api.ModeKV, Speculation: api.SpeculationDraft}
	rrEagle = api.ModeState{Mode: api.ModeRoundRobin, Speculation: api.SpeculationEagle3}
)

// simulated is a target that is a simulated cluster, whose restarts take a moment.
type simulated struct {
	*target

	mu    sync.Mutex
	mode  api.ModeState
	ready time.Time
}

func newSimulated(t *testing.T, mode api.ModeState) *simulated {
	s := &simulated{target: newTarget(t), mode: mode}
	s.Config.Handler = s
	return s
}

// becomes is a switch that somebody else makes.
func (s *simulated) becomes(mode api.ModeState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mode, s.ready = mode, time.Now().Add(time.Second)
}

func (s *simulated) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	ready := time.Now().After(s.ready)
	s.mu.Unlock()
	switch r.Method + " " + r.URL.Path {
	case "PUT /sim/v1/mode":
		var to api.ModeState
		if err := json.NewDecoder(r.Body).Decode(&to); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.becomes(to)
		w.WriteHeader(http.StatusAccepted)
		s.state(w)
	case "GET /sim/v1/state":
		s.state(w)
	case "GET /sim/v1/decisions":
		fmt.Fprintf(w, `{"decisions":[{"request_id":"main-1","candidates":[{"worker":"7"}]}]}`)
	default:
		if !ready {
			http.Error(w, `{"message":"restarting"}`, http.StatusServiceUnavailable)
			return
		}
		s.target.ServeHTTP(w, r)
	}
}

func (s *simulated) state(w http.ResponseWriter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := max(0, time.Until(s.ready))
	_ = json.NewEncoder(w).Encode(map[string]any{
		"mode": s.mode.Mode, "speculation": s.mode.Speculation, "offers": []api.ModeState{kvDraft, rrEagle},
		"ready": left == 0, "ready_in_seconds": left.Seconds(),
		"profile": "h200-tp1", "calibrated": s.mode == rrEagle, "speed": 1,
	})
}

// in says whether everything that tells the mode tells this one.
func (p *program) in(mode api.ModeState) func() bool {
	return func() bool {
		l := p.lane()
		return l.State.Mode == mode.Mode && l.State.Speculation == mode.Speculation &&
			l.Target.Deployment.Speculation == mode.Speculation &&
			p.metric("loadgen_info", "mode", string(mode.Mode)) == 1 && p.metric("loadgen_info", "speculation", string(mode.Speculation)) == 1
	}
}

// The mode is the cluster's, not the configuration's: at the start, after a
// change, when somebody else changes it, and at the next start.
func TestSimulatedCluster(t *testing.T) {
	t.Parallel()
	s := newSimulated(t, rrEagle)
	s.Start()
	p := start(t, s.URL, "--mode-driver=simulated", "--mode-mode=kv", "--concurrency=2", "--start")
	assert.True(t, p.in(rrEagle)(), "at once")
	state := p.lane().State
	assert.Equal(t, "simulated", state.Driver)
	assert.Equal(t, []api.ModeState{kvDraft, rrEagle}, state.Modes)
	assert.Equal(t, &api.Simulation{Profile: "h200-tp1", Calibrated: true, Speed: 1}, state.Simulation)
	p.until("turns", p.serves(3))

	_, err := p.client.SetMode(t.Context(), "", api.ModeRequest{Mode: kvDraft.Mode, Speculation: kvDraft.Speculation})
	require.NoError(t, err)
	p.until("it is switched, and runs again", func() bool { return p.in(kvDraft)() && p.lane().State.Running })
	p.until("turns in that mode", p.serves(3))
	assert.False(t, p.lane().State.Simulation.Calibrated)
	assert.Zero(t, p.lane().Totals.Errors, "the restart was waited for")

	decisions, err := p.client.Decisions(t.Context(), "", 0)
	require.NoError(t, err)
	assert.Equal(t, "simulated", decisions.Source)
	assert.Equal(t, "main-1", decisions.Decisions[0].RequestID)

	step := p.lane().State.Step.ID
	s.becomes(rrEagle)
	p.until("the mode is as somebody else set it", p.in(rrEagle))
	assert.Equal(t, step+1, p.lane().State.Step.ID)
	p.until("the event is stored", func() bool {
		events, err := p.client.Events(t.Context(), "", 1)
		return err == nil && events.Events[0].By == "cluster" &&
			events.Events[0].Text == "KV-aware with draft model to Round-robin with EAGLE-3: the cluster is in that mode"
	})
	p.endsWell()

	s.becomes(kvDraft)
	p = start(t, s.URL, "--mode-driver=simulated", "--data-dir="+p.dir)
	assert.True(t, p.in(kvDraft)())
	p.endsWell()
}

// The start waits so long and no longer, and not at all for what will not change.
func TestPatiently(t *testing.T) {
	away := errors.New("connection refused")
	for name, row := range map[string]struct {
		answers func(asked time.Duration) error
		stopped time.Duration // by a signal; 0: never
		want    error
		after   time.Duration
	}{
		"there":      {answers: func(time.Duration) error { return nil }},
		"away":       {answers: func(time.Duration) error { return away }, want: away, after: clusterPatience},
		"comes up":   {answers: func(d time.Duration) error { return map[bool]error{true: away}[d < 3*time.Second] }, after: 3 * time.Second},
		"not of use": {answers: func(time.Duration) error { return &api.FieldError{Field: "mode.driver"} }, want: &api.FieldError{Field: "mode.driver"}},
		"stopped":    {answers: func(time.Duration) error { return away }, stopped: time.Second, want: context.Canceled, after: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if row.stopped > 0 {
					time.AfterFunc(row.stopped, cancel)
				}
				begun := time.Now()
				mode, err := patiently(ctx, func(context.Context) (api.ModeState, error) {
					return rrEagle, row.answers(time.Since(begun))
				})
				assert.Equal(t, row.want, err)
				assert.Equal(t, rrEagle, mode)
				assert.InDelta(t, row.after.Seconds(), time.Since(begun).Seconds(), .3)
			})
		})
	}
}

// A cluster that stays away does not keep the load generator from starting: the
// configuration's mode stands until the cluster tells its own.
func TestSimulatedClusterStaysAway(t *testing.T) {
	t.Parallel()
	port := holdPort(t)
	p := start(t, "http://"+port.address(), "--mode-driver=simulated", "--mode-mode=least_loaded")
	p.says("the simulated cluster has not reported its mode yet; using the configured mode until it does")
	assert.Equal(t, api.ModeLeastLoaded, p.lane().State.Mode)
	assert.Empty(t, p.lane().State.Modes)
	s := newSimulated(t, rrEagle)
	require.NoError(t, s.Listener.Close())
	s.Listener = port.listen()
	s.Start()
	p.until("the mode is the cluster's", p.in(rrEagle))
	assert.Equal(t, []api.ModeState{kvDraft, rrEagle}, p.lane().State.Modes)
	p.endsWell()
}
