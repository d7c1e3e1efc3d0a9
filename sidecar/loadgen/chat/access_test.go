package chat

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// recordingTransport records what it receives.
type recordingTransport struct {
	sent   *http.Request
	closed bool
}

func (r *recordingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	r.sent = req
	return &http.Response{}, nil
}

func (r *recordingTransport) CloseIdleConnections() { r.closed = true }

// A transport adds headers to a copy of the request. Its query, where it has one, replaces the request's.
func TestTransport(t *testing.T) {
	for query, want := range map[string]string{"": "q=1", "token=2": "token=2"} {
		var base recordingTransport
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://x/metrics?q=1", nil)
		require.NoError(t, err)
		sender := Transport{&base, Access{Headers: map[string]string{"X-Tenant": "a", "Host": "other"}}, query}
		_, err = sender.RoundTrip(req)
		require.NoError(t, err)
		assert.Equal(t, []string{want, "a", "other"},
			[]string{base.sent.URL.RawQuery, base.sent.Header.Get("X-Tenant"), base.sent.Host})
		assert.Empty(t, req.Header)
		sender.CloseIdleConnections()
		assert.True(t, base.closed)
	}
}

// An unusable certificate is refused with its setting.
func TestAccessRefuses(t *testing.T) {
	for field, access := range map[string]Access{"ca_file": {CA: []byte("x")}, "cert_file": {Cert: []byte("x")}} {
		_, err := access.Client()
		assert.ErrorContains(t, err, field)
	}
}
