package config

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/cluster"
)

func churnOf(events string, args ...string) input {
	return input{
		args:  append([]string{"churn", "--target-url=http://a:1", "--events=events.yaml"}, args...),
		files: map[string]string{"events.yaml": events},
	}
}

// The events are those of the command line and of the file, under all arms.
func TestChurnEvents(t *testing.T) {
	in := churnOf(`
- name: kill
  run: [sh, -c, "kill {arm}"]
  undo_request: {url: "{url}/start", headers: {X-Key: "1"}, method: PUT}
  worker: 10.0.0.1
  settle: 30s
`, "--event=nothing", `--arms=[{"name":"a"},{"name":"b"}]`)
	c := in.must(t)
	arm := func(name string) api.ModeState {
		return api.ModeState{Arm: name, Mode: api.ModeUnknown, Speculation: api.SpeculationNotRecorded}
	}
	require.Equal(t, []api.ModeState{arm("a"), arm("b")}, c.Churn.Under)
	require.Equal(t, []Event{
		{Name: "nothing"},
		{
			Name: "kill", Do: cluster.Program{"sh", "-c", "kill {arm}"}, Worker: "10.0.0.1", Settle: 30 * time.Second,
			Undo: cluster.Call{Request: cluster.Request{
				Method: "PUT", URL: "{url}/start", Headers: map[string]string{"X-Key": "1"},
			}},
		},
	}, c.Churn.List)
	in.args = append(in.args, "--modes=b")
	require.Equal(t, []api.ModeState{arm("b")}, in.must(t).Churn.Under)
}

// A script with an error is refused by the name of the field.
func TestChurnRefuses(t *testing.T) {
	for _, row := range []struct {
		in   input
		want string
	}{
		{churnOf("[]"), "events is required"},
		{churnOf("- {name: a}"), "events[0].run is required"},
		{churnOf("- {run: sh}"), "events[0].name is required"},
		{churnOf("- {name: a, run: sh}\n- {name: a, run: sh}"), "events: a is not allowed: a name that no other event has"},
		{churnOf("- {name: a, when: '1'}"), `events[0]: unknown field "when"`},
		{churnOf("name: a"), "events: events.yaml is not allowed: a list of events"},
		{churnOf("- {name: a, run: [sh, '{worker}']}"), "events[0].run[1]: {worker}"},
		{churnOf("- {name: a, request: {url: nowhere}}"), "events[0].request.url: nowhere"},
		{churnOf("- {name: a, request: 'PUT http://{worker}'}"), "events[0].request.url: {worker}"},
		{churnOf("- {name: a, run: sh, undo_run: sh, undo_request: 'http://a'}"), "events[0].undo_request: "},
		{churnOf("- {name: a, run: sh, settle: 2h}"), "events[0].settle: 2h"},
		{churnOf("- {name: a, run: sh}", "--before=30s", "--window=10s"), "window: 10s is not allowed"},
		{churnOf("- {name: a, run: sh}", "--duration=1m"), "duration: 1m0s is not allowed"},
		{churnOf("[]", "--event=quake"), "event: quake is not allowed"},
		{churnOf("- {name: a, run: sh}", `--arms=[{"name":"a"}]`, "--modes=c"), "modes: c is not allowed"},
	} {
		_, _, err := row.in.load()
		require.ErrorContains(t, err, row.want)
	}
}
