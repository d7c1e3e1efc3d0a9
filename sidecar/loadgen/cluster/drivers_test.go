package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

var (
	kvOff = api.ModeState{Mode: api.ModeKV, Speculation: api.SpeculationOff}
	rrOff = api.ModeState{Mode: api.ModeRoundRobin, Speculation: api.SpeculationOff}
)

var discard = slog.New(slog.DiscardHandler)

func ignoreReport(string, string) {}

// frontend returns a transport that answers /health with the given document.
func frontend(document string) func(*http.Request) (*http.Response, error) {
	return func(req *http.Request) (*http.Response, error) {
		rec := httptest.NewRecorder()
		if req.URL.Path == "/health" {
			fmt.Fprint(rec, document)
		} else {
			rec.WriteHeader(http.StatusNotFound)
		}
		return rec.Result(), nil
	}
}

func health(ids ...string) string {
	var instances []string
	for _, id := range ids {
		instances = append(instances, `{"endpoint":"generate","instance_id":`+id+`}`)
	}
	return `{"instances":[` + strings.Join(instances, ",") + `]}`
}

// pin makes a pinned driver on a transport.
func pin(t *testing.T, transport http.RoundTripper) *Pinned {
	t.Helper()
	offers := []api.ModeState{kvOff, rrOff}
	p, err := NewPinned("http://frontend:8000/v1", offers, &http.Client{Transport: transport}, discard)
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p
}

func TestProbe(t *testing.T) {
	document := fixture(t, "health.json")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, document)
	}))
	defer server.Close()
	for _, path := range []string{"", "/v1", "/v1/"} {
		instances, err := Probe(t.Context(), server.URL+path, nil)
		require.NoError(t, err)
		require.Equal(t, []string{"14329115205840220014", "15012847854049735988", trtllmWorker}, instances,
			"each once, to the last digit, without the second endpoints")
	}
	for want, do := range map[string]func(*http.Request) (*http.Response, error){
		"not the health of a Dynamo frontend": frontend("<html>"),
		"answered 404 Not Found":              scene{}.RoundTrip,
		"connection refused":                  refused,
	} {
		_, err := Probe(t.Context(), "http://frontend:8000", &http.Client{Transport: &fakeTransport{do: do}})
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "http://frontend:8000/health")
	}
}

func TestPinnedRotatesEvenly(t *testing.T) {
	p := pin(t, &fakeTransport{do: frontend(fixture(t, "health.json"))})
	require.Equal(t, []api.ModeState{kvOff, rrOff}, p.Offers())
	require.Empty(t, p.Instance(), "the router chooses the instance under kv")
	require.Nil(t, p.Instances())

	cold, err := p.Switch(t.Context(), kvOff, rrOff, ignoreReport)
	require.NoError(t, err)
	require.False(t, cold)

	const askers, each = 8, 125 // 1000 turns over 3 instances
	var group sync.WaitGroup
	var mu sync.Mutex
	counts := map[string]int{}
	for range askers {
		group.Go(func() {
			for range each {
				id := p.Instance()
				mu.Lock()
				counts[id]++
				mu.Unlock()
			}
		})
	}
	group.Wait()
	require.Len(t, counts, 3)
	require.ElementsMatch(t, slices.Collect(maps.Keys(counts)), p.Instances())
	for id, n := range counts {
		require.InDelta(t, askers*each/3.0, n, 1, id)
	}

	_, err = p.Switch(t.Context(), rrOff, kvOff, ignoreReport)
	require.NoError(t, err)
	require.Empty(t, p.Instance())
	require.Nil(t, p.Instances())
}

func TestPinnedRefusesModesItCannotServe(t *testing.T) {
	p := pin(t, &fakeTransport{do: frontend(health())})
	_, err := p.Switch(t.Context(), kvOff, rrOff, ignoreReport)
	require.ErrorContains(t, err, "no instances to send turns to: /health of http://frontend:8000 lists none")
	require.Empty(t, p.Instance(), "a failed switch leaves kv in force")

	var field *api.FieldError
	_, err = p.Switch(t.Context(), kvOff, api.ModeState{Mode: api.ModeLeastLoaded}, ignoreReport)
	require.ErrorAs(t, err, &field)
	require.Contains(t, field.Allowed, "round_robin")

	p = pin(t, &fakeTransport{do: refused})
	_, err = p.Switch(t.Context(), kvOff, rrOff, ignoreReport)
	require.ErrorContains(t, err, "connection refused")
}

// Before any load, the driver says why it cannot rotate turns: only a Dynamo takes the instance of a turn.
func TestPinnedChecksTheServer(t *testing.T) {
	for name, row := range map[string]struct {
		do       func(*http.Request) (*http.Response, error)
		noDynamo bool
		want     string // "" if it can
	}{
		"a Dynamo":                  {do: frontend(health("1"))},
		"a Dynamo without workers":  {do: frontend(health()), want: "no instances to send turns to"},
		"a server that is starting": {do: answers(http.StatusServiceUnavailable, ""), want: "answered 503"},
		"no server":                 {do: refused, want: "connection refused"},
		"a server without health":   {do: scene{}.RoundTrip, noDynamo: true, want: "requires a Dynamo frontend"},
		"vllm-router":               {do: answers(http.StatusOK, ""), noDynamo: true, want: "requires a Dynamo frontend"},
		"SMG":                       {do: answers(http.StatusOK, "OK"), noDynamo: true, want: "requires a Dynamo frontend"},
		"a gateway":                 {do: answers(http.StatusOK, `{"status":"ok"}`), noDynamo: true, want: "no list of instances"},
		"a list of other instances": {
			do: answers(http.StatusOK, `{"instances":[{"name":"worker-1"}]}`), noDynamo: true, want: "have no endpoints",
		},
	} {
		p := pin(t, &fakeTransport{do: row.do})
		require.NoError(t, p.Check(t.Context(), []api.ModeState{kvOff}), "kv needs no list: "+name)
		err := p.Check(t.Context(), []api.ModeState{kvOff, rrOff})
		if row.want == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, row.want, name)
		require.Equal(t, row.noDynamo, errors.Is(err, ErrNoDynamo), name)
	}
}

// pickedInstances counts the instances of the next turns.
func pickedInstances(p *Pinned, turns int) map[string]int {
	counts := map[string]int{}
	for range turns {
		counts[p.Instance()]++
	}
	return counts
}

func TestPinnedRefreshesInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &fakeTransport{do: frontend(health("1", "2", "3"))}
		p := pin(t, source)
		_, err := p.Switch(t.Context(), kvOff, rrOff, ignoreReport)
		require.NoError(t, err)
		require.Equal(t, map[string]int{"1": 2, "2": 2, "3": 2}, pickedInstances(p, 6))

		source.use(frontend(health("1", "3")))
		after(refreshEvery)
		require.Equal(t, map[string]int{"1": 3, "3": 3}, pickedInstances(p, 6), "a lost instance gets no more turns")

		// In neither case may the KV router route the turns.
		for _, do := range []func(*http.Request) (*http.Response, error){refused, silent, frontend(health())} {
			source.use(do)
			after(5 * refreshEvery)
			require.Equal(t, map[string]int{"1": 3, "3": 3}, pickedInstances(p, 6), "the known instances stay in rotation")
		}

		source.use(frontend(health("1", "4")))
		after(2 * refreshEvery)
		require.Equal(t, map[string]int{"1": 3, "4": 3}, pickedInstances(p, 6), "a new instance joins the rotation")
	})
}

// A refresh in progress during a mode change does not restore the rotation.
func TestPinnedDiscardsLateRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &fakeTransport{do: frontend(health("1", "2"))}
		p := pin(t, source)
		_, err := p.Switch(t.Context(), kvOff, rrOff, ignoreReport)
		require.NoError(t, err)
		answer := make(chan struct{})
		source.use(func(req *http.Request) (*http.Response, error) {
			<-answer
			return frontend(health("1"))(req)
		})
		after(refreshEvery)
		_, err = p.Switch(t.Context(), rrOff, kvOff, ignoreReport)
		require.NoError(t, err)
		close(answer)
		synctest.Wait()
		require.Empty(t, p.Instance())
	})
}

func TestManualSwitchWaitsForConfirm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewManual([]api.ModeState{kvOff, rrOff, rrEagle})
		require.Len(t, m.Offers(), 3)
		require.ErrorIs(t, m.Confirm(), api.ErrConflict, "no switch has begun")

		var phase, message string
		var cold, done bool
		var result error
		go func() {
			cold, result = m.Switch(t.Context(), kvOff, rrEagle, func(p, msg string) { phase, message = p, msg })
			done = true
		}()
		after(time.Hour)
		require.False(t, done)
		require.Equal(t, "waiting_for_operator", phase)
		for _, word := range []string{"DYN_ROUTER_MODE=round-robin", "eagle3", "restart the frontend and the workers"} {
			require.Contains(t, message, word)
		}
		_, err := m.Switch(t.Context(), kvOff, rrOff, ignoreReport)
		require.ErrorIs(t, err, api.ErrConflict, "another switch waits")

		require.NoError(t, m.Confirm())
		synctest.Wait()
		require.True(t, done)
		require.True(t, cold)
		require.NoError(t, result)
		require.ErrorIs(t, m.Confirm(), api.ErrConflict, "the switch was confirmed before")
	})
}

// The steps to an arm of the user's own are not those of a Dynamo, and need not empty the caches.
func TestManualSwitchToArm(t *testing.T) {
	a, b := api.ModeState{Arm: "a", Mode: api.ModeKV}, api.ModeState{Arm: "b"}
	m, h := NewManual([]api.ModeState{a, b}), new(reportRecorder)
	cold, err := m.Switch(t.Context(), a, b, func(phase, message string) {
		h.report(phase, message)
		require.NoError(t, m.Confirm())
	})
	require.NoError(t, err)
	require.False(t, cold)
	cold, err = m.Switch(t.Context(), b, b, h.report)
	require.NoError(t, err)
	require.False(t, cold)
	_, err = m.Switch(t.Context(), a, api.ModeState{Arm: "c"}, h.report)
	require.EqualError(t, err, "arm: c is not allowed: a, b")
	require.Equal(t, "waiting_for_operator: Switch to b. Confirm when it serves.", h.text())
}

func TestManualConfirmAfterCancel(t *testing.T) {
	m := NewManual([]api.ModeState{kvOff, rrOff})
	gone := errors.New("stopped by the operator")
	ctx, cancel := context.WithCancelCause(t.Context())
	cold, err := m.Switch(ctx, kvOff, rrOff, func(string, string) { cancel(gone) })
	require.ErrorIs(t, err, gone)
	require.False(t, cold)
	require.ErrorIs(t, m.Confirm(), api.ErrConflict, "no switch waits")

	var field *api.FieldError
	_, err = m.Switch(t.Context(), kvOff, api.ModeState{Mode: "random"}, ignoreReport)
	require.ErrorAs(t, err, &field)
	require.Equal(t, "mode", field.Field)
}
