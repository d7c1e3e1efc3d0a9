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

// TestAnswersMatchDynamo checks that the cluster accepts and refuses the requests that a real Dynamo accepts and
// refuses, with the same status, structure and message. Exchanges with deliberate differences name their reason.
func TestAnswersMatchDynamo(t *testing.T) {
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
			assert.NotEqual(t, e.Status, e.Ours.Status, "%s: the difference has Dynamo's own status", e.Name)
			assert.Equal(t, e.Ours.Status, status, "%s: %s", e.Name, answer)
			if status >= http.StatusBadRequest {
				require.NotEmpty(t, e.Ours.Message, e.Name)
				hasMessage := strings.HasPrefix(message(t, answer), e.Ours.Message)
				assert.True(t, hasMessage, "%s: %s", e.Name, answer)
			}
			continue
		}
		assert.Equal(t, e.Status, status, "%s: %s", e.Name, answer)
		assert.Equal(t, httpdtest.Shape(e.Answer), httpdtest.Shape(answer), e.Name)
		if status < http.StatusBadRequest || len(e.Answer) == 0 {
			continue
		}
		want, got := message(t, e.Answer), message(t, answer)
		assert.Equal(t, httpdtest.Common(want), httpdtest.Common(got), "%s: %s", e.Name, answer)
	}
}

// message returns the message of an error and checks that its type and code match its status.
func message(t *testing.T, answer []byte) string {
	t.Helper()
	var p httpdtest.Problem
	require.NoError(t, json.Unmarshal(answer, &p), "%s", answer)
	require.Equal(t, http.StatusText(p.Code), p.Type)
	require.NotEmpty(t, p.Message)
	return p.Message
}
