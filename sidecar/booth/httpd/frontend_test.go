package httpd

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/booth/httpd/httpdtest"
)

// The cluster takes what a real Dynamo takes and refuses what it refuses, with its
// status, its shape and, as far as Dynamo says something of its own, its words.
// Where it does not, the exchange says so, and why.
func TestAnswersAsDynamoDoes(t *testing.T) {
	all, err := httpdtest.Exchanges()
	require.NoError(t, err)
	require.Greater(t, len(all), 100)
	server := httptest.NewServer(newServer(t, nil).Frontend())
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()
	for _, e := range all {
		status, answer, err := e.Ask(t.Context(), server.URL)
		require.NoError(t, err, e.Name)
		if e.Ours != nil {
			require.NotEmpty(t, e.Ours.Why, e.Name)
			assert.NotEqual(t, e.Status, e.Ours.Status, "%s: then nothing is different", e.Name)
			assert.Equal(t, e.Ours.Status, status, "%s: %s", e.Name, answer)
			if status >= http.StatusBadRequest {
				require.NotEmpty(t, e.Ours.Message, e.Name)
				assert.True(t, strings.HasPrefix(message(t, answer), e.Ours.Message), "%s: %s", e.Name, answer)
			}
			continue
		}
		assert.Equal(t, e.Status, status, "%s: %s", e.Name, answer)
		assert.Equal(t, httpdtest.Shape(e.Answer), httpdtest.Shape(answer), e.Name)
		if status < http.StatusBadRequest || len(e.Answer) == 0 {
			continue
		}
		assert.Equal(t, httpdtest.Common(message(t, e.Answer)), httpdtest.Common(message(t, answer)), "%s: %s", e.Name, answer)
	}
}

// message is what an error says. Its type and code belong to its status.
func message(t *testing.T, answer []byte) string {
	t.Helper()
	var p httpdtest.Problem
	require.NoError(t, json.Unmarshal(answer, &p), "%s", answer)
	require.Equal(t, http.StatusText(p.Code), p.Type)
	require.NotEmpty(t, p.Message)
	return p.Message
}
