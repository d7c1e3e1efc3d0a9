package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/workload"
)

// redirector records the endpoint in use.
type redirector struct {
	at       string
	answers  int
	takes    time.Duration
	err      error
	refusals int // number of checks that fail with err; 0: all
}

func (d *redirector) Redirect(ctx context.Context, name string, answers int) error {
	err := d.Check(ctx, name)
	if err == nil {
		d.at, d.answers = name, answers
	}
	return err
}

func (d *redirector) Check(ctx context.Context, _ string) error {
	select {
	case <-time.After(d.takes):
	case <-ctx.Done():
		return ctx.Err()
	}
	if d.refusals == 1 {
		defer func() { d.err = nil }()
	}
	d.refusals--
	return d.err
}

const (
	kvURL = "http://kv:8000"
	rrURL = "http://rr:8000/v1"

	kvKey = "kv/off" // as the redirector knows it
	rrKey = "round_robin/off"
)

func endpoints(t *testing.T, d *redirector) *Arms {
	t.Helper()
	e, err := NewArms(t.Context(), ArmsOptions{
		Name: "endpoints", Arms: []Arm{{State: kvOff, URL: kvURL}, {State: rrOff, URL: rrURL}}, Redirector: d,
	})
	require.NoError(t, err)
	return e
}

func answers(status int, body string) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) {
		rec := httptest.NewRecorder()
		rec.WriteHeader(status)
		fmt.Fprint(rec, body)
		return rec.Result(), nil
	}
}

// The switch works in both directions.
func TestEndpointsSwitchRedirects(t *testing.T) {
	d, h := &redirector{at: kvKey}, new(reportRecorder)
	e := endpoints(t, d)
	require.Equal(t, []api.ModeState{kvOff, rrOff}, e.Offers())
	cold, err := e.Switch(t.Context(), kvOff, rrOff, h.report)
	require.NoError(t, err)
	require.False(t, cold, "the caches keep their contents")
	require.Equal(t, rrKey, d.at)
	_, err = e.Switch(t.Context(), rrOff, kvOff, h.report)
	require.NoError(t, err)
	require.Equal(t, kvKey, d.at)
	require.Equal(t, "switching: asking "+rrURL+" whether it serves\nswitching: turns go to "+rrURL+"\n"+
		"switching: asking "+kvURL+" whether it serves\nswitching: turns go to "+kvURL, h.text())
}

func TestEndpointsKeepAddressAfterFailure(t *testing.T) {
	for name, row := range map[string]struct {
		to     api.ModeState // the zero value means rrOff
		target redirector
		want   string
	}{
		"no address": {to: rrEagle, want: "kv with speculation off, round_robin with speculation off"},
		"no server": {
			target: redirector{err: errors.New("connection refused")},
			want:   "http://rr:8000/v1, the address of Round-robin, cannot serve: connection refused",
		},
		"another model": {target: redirector{err: errors.New("not the model in use")}, want: "not the model in use"},
		"it hangs":      {target: redirector{takes: time.Hour}, want: "timed out after 30s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := row.target
				d.at = kvKey
				begun := time.Now()
				_, err := endpoints(t, &d).Switch(t.Context(), kvOff, cmp.Or(row.to, rrOff), ignoreReport)
				require.ErrorContains(t, err, row.want)
				require.Equal(t, kvKey, d.at)
				require.LessOrEqual(t, time.Since(begun), redirectTimeout)
			})
		})
	}
	_, err := NewArms(t.Context(), ArmsOptions{Arms: []Arm{{State: kvOff, URL: kvURL}, {State: kvOff, URL: rrURL}}})
	require.ErrorContains(t, err, "a second address for kv")
	_, err = NewArms(t.Context(), ArmsOptions{Arms: []Arm{{State: kvOff, URL: "kv:8000"}}})
	require.ErrorAs(t, err, new(*api.FieldError))
}

// action is what a program or a request does to a cluster; the arms that it fails for have an error.
type action struct {
	takes  time.Duration
	fails  map[string]error
	makes  []string // the arms that it was asked for
	prints string
}

func (a *action) Switch(ctx context.Context, from, to Arm, output func(line string)) error {
	a.makes = append(a.makes, from.State.Arm+" to "+to.State.Arm)
	output(a.prints)
	select {
	case <-time.After(a.takes):
	case <-ctx.Done():
		return ctx.Err()
	}
	return a.fails[to.State.Arm]
}

// A switch by a program or a request ends in the new arm, or back in the former one.
func TestArmsSwitchByAction(t *testing.T) {
	a := api.ModeState{Arm: "a", Mode: api.ModeUnknown, Speculation: api.SpeculationOff}
	b := api.ModeState{Arm: "b", Mode: api.ModeKV, Speculation: api.SpeculationOff}
	bad := errors.New("exit status 3")
	for name, row := range map[string]struct {
		action action
		target redirector
		from   api.ModeState
		cancel time.Duration // after it; 0: never
		makes  []string
		at     string
		want   string // in the error; empty: none
	}{
		"success": {from: a, makes: []string{"a to b"}, at: "b"},
		"restart": {
			target: redirector{err: errors.New("connection refused"), refusals: 9}, from: a, makes: []string{"a to b"}, at: "b",
		},
		"no answer after a restart": {
			target: redirector{err: errors.New("connection refused")}, from: a, makes: []string{"a to b", "b to a"},
			want: "it took longer than 10m0s (switch.timeout); until then: " + kvURL + ", the address of b, cannot serve: " +
				"connection refused",
		},
		"failure": {
			action: action{fails: map[string]error{"b": bad}}, from: a, makes: []string{"a to b", "b to a"}, at: "a",
			want: "the switch to b failed: exit status 3; it was switched back to a",
		},
		"failure twice": {
			action: action{fails: map[string]error{"a": bad, "b": bad}}, from: a, makes: []string{"a to b", "b to a"},
			want: "switching it back to a also failed: the switch to a failed: exit status 3; the mode in force is unknown",
		},
		"failure from an unknown arm": {
			action: action{fails: map[string]error{"b": bad}}, from: api.ModeState{Mode: api.ModeUnknown},
			makes: []string{" to b"}, want: "the previous arm is not known, so this one was left in place",
		},
		"time-out": {
			action: action{takes: time.Hour}, from: a, makes: []string{"a to b", "b to a"},
			want: "it took longer than 10m0s (switch.timeout)",
		},
		"cancellation": {
			action: action{takes: time.Minute}, from: a, cancel: time.Second, makes: []string{"a to b", "b to a"},
			at: "a", want: "the switch to b was stopped: context canceled; it was switched back to a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, h, act := &row.target, new(reportRecorder), row.action
				act.prints = "restarting"
				arms, err := NewArms(t.Context(), ArmsOptions{
					Name: "command", Arms: []Arm{{State: a, URL: kvURL}, {State: b, URL: kvURL}}, Action: &act,
					Timeout: 10 * time.Minute, Answers: 3, Redirector: d, Log: discard,
				})
				require.NoError(t, err)
				require.Nil(t, arms.Abilities().Check, "one of them serves at a time")
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if row.cancel > 0 {
					time.AfterFunc(row.cancel, cancel)
				}
				cold, err := arms.Switch(ctx, row.from, b, h.report)
				require.False(t, cold)
				require.Equal(t, row.makes, act.makes)
				require.Equal(t, row.at, d.at)
				require.Contains(t, h.text(), workload.PhaseOutput+": restarting")
				if row.want == "" {
					require.NoError(t, err)
					require.Equal(t, 3, d.answers)
					return
				}
				require.ErrorContains(t, err, row.want)
			})
		})
	}
}

// An arm that is not ready is asked again, and the caches of all workers are emptied once it is.
func TestArmsWaitUntilReadyAndEmptyCaches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := api.ModeState{Arm: "a"}, api.ModeState{Arm: "c+d e"}
		var asked []string
		refusals := 2
		transport := &fakeTransport{do: func(r *http.Request) (*http.Response, error) {
			asked = append(asked, r.Method+" "+r.URL.String())
			if r.URL.Path == "/ready" && refusals > 0 {
				refusals--
				return answers(http.StatusServiceUnavailable, "starting")(r)
			}
			return answers(http.StatusOK, "")(r)
		}}
		client := &http.Client{Transport: transport}
		sender := Sender{Client: client}
		arms, err := NewArms(t.Context(), ArmsOptions{
			Name: "http", Arms: []Arm{{State: a, URL: kvURL}, {State: b, URL: kvURL}}, Timeout: time.Minute, Answers: 1,
			Action: Call{Request: Request{URL: "{url}/policy/{arm}?name={arm}"}, Sender: sender}, Ready: kvURL + "/ready",
			Cold: []Request{{URL: "http://{worker}/reset?{arm}"}}, Workers: []string{"w1", "w2"}, Redirector: new(redirector),
			Sender: sender, Log: discard,
		})
		require.NoError(t, err)
		h := new(reportRecorder)
		cold, err := arms.Switch(t.Context(), a, b, h.report)
		require.NoError(t, err)
		require.True(t, cold)
		require.Equal(t, []string{
			"POST " + kvURL + "/policy/c+d%20e?name=c%2Bd+e",
			"GET " + kvURL + "/ready", "GET " + kvURL + "/ready", "GET " + kvURL + "/ready",
			"POST http://w1/reset?c%2Bd+e", "POST http://w2/reset?c%2Bd+e",
		}, asked)
		require.Contains(t, h.text(),
			"waiting until c+d e is ready: GET "+kvURL+"/ready answered 503 Service Unavailable: starting")

		asked = nil
		require.False(t, arms.InPlace(b, a), "the action may end turns in flight")
		require.True(t, arms.SameWorkers(b, a), "both have one address")
		cold, err = arms.SwitchWarm(t.Context(), b, a, h.report)
		require.NoError(t, err)
		require.False(t, cold)
		require.Equal(t, []string{"POST " + kvURL + "/policy/a?name=a", "GET " + kvURL + "/ready"}, asked)

		asked = nil
		cold, err = arms.Switch(t.Context(), b, b, h.report)
		require.NoError(t, err)
		require.True(t, cold)
		require.Equal(t, []string{"POST http://w1/reset?c%2Bd+e", "POST http://w2/reset?c%2Bd+e"}, asked)

		transport.do = answers(http.StatusNotFound, "no such path")
		cold, err = arms.Switch(t.Context(), b, b, h.report)
		require.NoError(t, err)
		require.False(t, cold)
		require.Contains(t, h.text(), workload.PhaseWarning+": the caches could not be emptied, so a nonce makes the "+
			"prefixes cold: POST http://w1/reset?c%2Bd+e answered 404 Not Found: no such path")

		transport.do = func(r *http.Request) (*http.Response, error) {
			rec := httptest.NewRecorder()
			http.Redirect(rec, r, "/login", http.StatusFound)
			res := rec.Result()
			res.Request = r
			return res, nil
		}
		_, err = arms.Switch(t.Context(), a, b, h.report)
		require.ErrorContains(t, err, "POST "+kvURL+"/policy/c+d%20e?name=c%2Bd+e answered 302 Found with the Location "+
			"http://kv:8000/login; redirects are not followed")
	})
}

func TestSelectedSourceReadsTheCurrentOne(t *testing.T) {
	sources := map[string]Source{}
	for _, name := range []string{"a", "b"} {
		d, err := NewDirect("http://"+name, nil,
			&http.Client{Transport: &fakeTransport{do: answers(http.StatusOK, "dynamo_component_inflight_requests 7\n")}})
		require.NoError(t, err)
		sources[name] = d
	}
	current := "a"
	c := SelectedSource(func() Source { return sources[current] })
	require.Equal(t, "direct", c.Name())
	for _, current = range []string{"a", "b"} {
		samples, err := c.Fetch(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, current, samples[0].Labels["instance"])
	}
}

// The route of an arm differs with its address and its headers, and reveals none of them.
func TestRouteOfArm(t *testing.T) {
	a, b := api.ModeState{Arm: "a"}, api.ModeState{Arm: "b"}
	route := func(url, key string) string {
		d := &Arms{opts: ArmsOptions{Arms: []Arm{{State: a, URL: url, Headers: map[string]string{"X-Key": key}}, {State: b}}}}
		return d.Route(a)
	}
	require.Equal(t, route(kvURL, "one"), route(kvURL, "one"))
	require.NotEqual(t, route(kvURL, "one"), route(kvURL, "two"))
	require.NotEqual(t, route(kvURL, "one"), route(rrURL, "one"))
	require.NotContains(t, route(kvURL, "one"), "one")
}
