//go:build unix

package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbooth/sidecar/api"
)

// A failing target is reported with its class and what to do by /readyz, status, metrics and turns. The workload pauses
// and continues automatically once the target works. (Tests of chat cover the classes and texts of all faults, tests of
// breaker and workload the pauses between attempts.)
func TestFaults(t *testing.T) {
	t.Parallel()
	const want = "refused access (401): bad key; check the API key (LOADGEN_TARGET_API_KEY"
	server := startTarget(t)
	p := start(t, server.URL, "--concurrency=2", "--start-rate=1000", "--start")
	p.eventually("turns end well", func() bool { return p.serves(2)() && p.ready() })

	server.breaks(refuse(http.StatusUnauthorized, "bad key"))
	p.eventually("turns fail", func() bool {
		return p.metric("loadgen_errors_total", "class", string(api.ErrorHTTP4xx)) > 0
	})
	var lane api.LaneStatus
	p.eventually("/readyz and status report the reason", func() bool { // the turn in progress may end well
		lane = p.lane()
		return !lane.Target.Reachable && strings.Contains(lane.Target.Problem, want) && strings.Contains(p.unready(), want)
	})
	assert.True(t, lane.State.Running)
	p.eventually("the turns have class and reason", func() bool {
		turns := p.turns()
		return strings.Contains(turns, ",error,"+string(api.ErrorHTTP4xx)+",") && strings.Contains(turns, want)
	})

	server.works()
	ok := p.lane().Totals.OK
	p.eventually("turns end well again", func() bool { return p.serves(ok+2)() && p.ready() })
	assert.True(t, p.lane().Target.Reachable)
	p.endsWell()
}

// A target that fails at the start is reported before any turn. The workload waits for it, and then runs in the mode
// that the configuration names.
func TestTargetDownAtStart(t *testing.T) {
	t.Parallel()
	for _, mode := range []api.Mode{api.ModeUnknown, api.ModeRoundRobin} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			server := startTarget(t)
			server.breaks(hangUp)
			args := []string{"--concurrency=8", "--start-rate=100"}
			if mode == api.ModeRoundRobin {
				args = append(args, "--mode-driver=pinned", "--mode-mode=round_robin")
			}
			p := start(t, server.URL, args...)
			p.eventually("/readyz reports the reason", func() bool {
				return strings.Contains(p.unready(), "the server did not answer")
			})
			assert.Zero(t, p.metric("loadgen_requests_total"))
			_, err := p.client.Start(t.Context(), "", api.StartRequest{})
			assert.NoError(t, err)
			p.eventually("turns fail", func() bool { return p.lane().Totals.Errors > 0 })
			assert.True(t, p.lane().State.Running)

			server.works()
			p.eventually("the workload runs in its mode", func() bool {
				l := p.lane()
				pinned := mode != api.ModeRoundRobin || server.pinned.Load() > 0 // once the driver has the workers
				return l.State.Running && l.State.Mode == mode && l.Totals.OK > 0 && pinned
			})
			p.eventually("it is ready", p.ready)
			assert.Equal(t, "llama", p.lane().Target.Model)
			assert.Equal(t, mode == api.ModeRoundRobin, server.pinned.Load() > 0)
			p.endsWell()
		})
	}
}
