package cluster

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// The headers of the target go to no other host, and do not replace those of the request.
func TestCallSendsHeadersOfTargetToTargets(t *testing.T) {
	for _, row := range []struct{ address, key string }{
		{"http://kv:8000/policy", "secret"},
		{"http://KV:8000/policy", "secret"},
		{"https://arm:443/policy", "secret"},
		{"http://kv:8001/policy", ""},
		{"http://arm/policy", ""},
		{"http://other:8000/policy", ""},
	} {
		t.Run(row.address, func(t *testing.T) {
			var got http.Header
			transport := &fakeTransport{do: func(r *http.Request) (*http.Response, error) {
				got = r.Header
				return answers(http.StatusOK, "")(r)
			}}
			call := Call{
				Request: Request{URL: row.address, Headers: map[string]string{"x-tenant": "own"}},
				Sender: Sender{
					Client:  &http.Client{Transport: transport},
					Headers: map[string]string{"Api-Key": "secret", "X-Tenant": "target"},
					Targets: []string{kvURL, "https://arm/v1"},
				},
			}
			require.NoError(t, call.Switch(t.Context(), Arm{}, Arm{}, nil))
			require.Equal(t, "own", got.Get("X-Tenant"))
			require.Equal(t, row.key, got.Get("Api-Key"))
		})
	}
}
