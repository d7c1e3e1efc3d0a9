//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/churn"
)

// An event happens under each arm in each block, and is undone, also where a signal ends the command before the turns
// have recovered. What was observed by then is reported, with the breakers that the router's page shows.
func TestChurn(t *testing.T) {
	t.Parallel()
	s := startTarget(t)
	var mu sync.Mutex
	var calls []string
	control := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, r.URL.Path)
		if r.URL.Path == "/break/only" {
			s.breaks(refuse(http.StatusServiceUnavailable, "no workers"))
		} else {
			s.works()
		}
	}))
	defer control.Close()
	called := func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(calls)
	}
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for i, state := range []int{0, 1, 1, 2} {
			fmt.Fprintf(w, "smg_worker_cb_state{worker=\"http://w:%d\"} %d\n", i, state)
		}
	}))
	defer page.Close()
	dir := t.TempDir()
	script, document := filepath.Join(dir, "events.yaml"), filepath.Join(dir, "churn.json")
	require.NoError(t, os.WriteFile(script, fmt.Appendf(nil, `
- name: overload
  worker: w:2
  request: "%[1]s/break/{arm}"
  undo_request: {method: PUT, url: "%[1]s/repair"}
`, control.URL), 0o600))
	p := newProgram(t, "churn", "--events="+script, `--arms=[{"name":"only"}]`, "--output="+document, "--blocks=2",
		"--warm-up=0s", "--before=4s", "--after=2s", "--window=1s", "--concurrency=3", "--start-rate=1000",
		"--think-time=0s", "--cluster-metrics-urls=no-target,"+page.URL).serve(s.URL)
	p.eventually("the second event", func() bool { return len(called()) == 3 })
	assert.Equal(t, unmeasured, p.stop(os.Interrupt), p)
	assert.Equal(t, []string{"/break/only", "/repair", "/break/only", "/repair"}, called())
	var r churn.Report
	require.NoError(t, json.Unmarshal([]byte(content(t, document)), &r))
	assert.Equal(t, api.Program(), r.Program)
	require.Len(t, r.Instances, 2)
	first := r.Instances[0]
	assert.Equal(t, first.Failed, first.Errors[api.ErrorHTTP5xx])
	assert.Positive(t, first.Failed)
	assert.Equal(t, &churn.Recovery{Seconds: 1, Censored: true}, first.TTFT.Recovery)
	assert.Equal(t, 0.75, *first.HitRate.Before)
	assert.Equal(t, []string{"http://w:1"}, first.Opened, "of workers that the event does not hit")
	assert.Equal(t, "it was stopped", r.Unfinished)
	assert.Regexp(t, `observed for \d s only`, r.Instances[1].Error)
	assert.Regexp(t, `\| only \| 1 \| \d+\.0 \| http_5xx:\d+ \| over, 1 over \| .* \| opened, of 1: http://w:1:1 \|`, p.out.String())
	assert.Contains(t, p.log.String(), "loadgen: unfinished after 2 events")
}
