package cluster

import (
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
)

// redirector records the address in use.
type redirector struct {
	at    string
	takes time.Duration
	err   error
}

func (d *redirector) Redirect(ctx context.Context, address string) error {
	select {
	case <-time.After(d.takes):
	case <-ctx.Done():
		return ctx.Err()
	}
	if d.err == nil {
		d.at = address
	}
	return d.err
}

const (
	kvURL = "http://kv:8000"
	rrURL = "http://rr:8000/v1"
)

func endpoints(t *testing.T, d *redirector, transport http.RoundTripper) *Endpoints {
	t.Helper()
	e, err := NewEndpoints([]Endpoint{{kvOff, kvURL}, {rrOff, rrURL}}, d, &http.Client{Transport: transport})
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

// The switch works in both directions and for each kind of server.
func TestEndpointsSwitchRedirects(t *testing.T) {
	for name, do := range map[string]func(*http.Request) (*http.Response, error){
		"a Dynamo":                frontend(health("1")),
		"a server without health": scene{}.RoundTrip,
		"one with another health": answers(http.StatusOK, `{"status":"ok"}`),
		"one with an empty one":   answers(http.StatusOK, ""),
	} {
		t.Run(name, func(t *testing.T) {
			d, h := &redirector{at: kvURL}, new(reportRecorder)
			e := endpoints(t, d, &fakeTransport{do: do})
			require.Equal(t, "endpoints", e.Name())
			require.Equal(t, []api.ModeState{kvOff, rrOff}, e.Offers())
			require.Empty(t, e.Instance())
			cold, err := e.Switch(t.Context(), kvOff, rrOff, h.report)
			require.NoError(t, err)
			require.False(t, cold, "the caches keep their contents")
			require.Equal(t, rrURL, d.at)
			_, err = e.Switch(t.Context(), rrOff, kvOff, h.report)
			require.NoError(t, err)
			require.Equal(t, kvURL, d.at)
			require.Equal(t, "switching: asking "+rrURL+" whether it serves\nswitching: turns go to "+rrURL+"\n"+
				"switching: asking "+kvURL+" whether it serves\nswitching: turns go to "+kvURL, h.text())
		})
	}
}

func TestEndpointsKeepAddressAfterFailure(t *testing.T) {
	for name, row := range map[string]struct {
		to     api.ModeState
		do     func(*http.Request) (*http.Response, error)
		target redirector
		want   string
	}{
		"no address": {
			to: rrEagle, do: frontend(health("1")),
			want: "kv with speculation off, round_robin with speculation off",
		},
		"no workers": {to: rrOff, do: frontend(health()), want: `lists no worker with the endpoint "generate"`},
		"not ready": {
			to: rrOff, do: answers(http.StatusServiceUnavailable, ""),
			want: "http://rr:8000/v1, the address of Round-robin, cannot serve: http://rr:8000/health: answered 503",
		},
		"no server": {
			to: rrOff, do: refused, target: redirector{err: errors.New("connection refused")},
			want: "cannot serve: connection refused",
		},
		"another model": {
			to: rrOff, do: frontend(health("1")),
			target: redirector{err: errors.New("not the model in use")}, want: "not the model in use",
		},
		"it hangs": {
			to: rrOff, do: frontend(health("1")), target: redirector{takes: time.Hour},
			want: "timed out after 30s",
		},
		"a health of hours": {to: rrOff, do: silent, target: redirector{takes: time.Hour}, want: "timed out after 30s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := row.target
				d.at = kvURL
				begun := time.Now()
				_, err := endpoints(t, &d, &fakeTransport{do: row.do}).Switch(t.Context(), kvOff, row.to, ignoreReport)
				require.ErrorContains(t, err, row.want)
				require.Equal(t, kvURL, d.at)
				require.LessOrEqual(t, time.Since(begun), redirectTimeout)
			})
		})
	}
	_, err := NewEndpoints([]Endpoint{{kvOff, kvURL}, {kvOff, rrURL}}, nil, nil)
	require.ErrorContains(t, err, "a second address for kv")
	_, err = NewEndpoints([]Endpoint{{kvOff, "kv:8000"}}, nil, nil)
	require.ErrorAs(t, err, new(*api.FieldError))
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
