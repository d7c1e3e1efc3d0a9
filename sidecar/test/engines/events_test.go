//go:build engines

package engines

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/figure"
	"kvbooth/internal/wait"
	"kvbooth/sidecar/booth/httpd"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/test/boothtest"
)

// served sends a chat request with the opening of a group, and returns the worker that answered.
func served(t *testing.T, url string, group, question int) string {
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"model": simulatedModel, "max_tokens": 5, "messages": []map[string]string{
			{"role": "system", "content": strings.Repeat(fmt.Sprintf("group %d ", group), 150)},
			{"role": "user", "content": fmt.Sprintf("question %d", question)},
		},
	})
	require.NoError(t, err)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/chat/completions",
		strings.NewReader(string(body)))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, http.StatusOK, answer.StatusCode)
	return answer.Header.Get(httpd.WorkerHeader)
}

// vllm-router with kv_aware sends a prompt to the worker that has published the blocks of its opening.
func TestKVAwareFollowsEvents(t *testing.T) {
	bin := boothtest.Programs(t)
	e := boothtest.SimulatedEngines(t, bin, "vllm")
	r := find(t, "vllm-router")
	var events []string
	for _, address := range e.Events {
		events = append(events, "tcp://"+address)
	}
	router, _ := begun(t, r, local.RouterStart{
		Policy: "kv_aware", Workers: e.Workers, Events: events, BlockTokens: 32,
	}, nil)
	url := router.URL()
	group := 0
	ask := func() (worker, chosen string) {
		group++
		worker = e.Workers[group%len(e.Workers)]
		require.Equal(t, worker, served(t, "http://"+worker, group, 0))
		return worker, served(t, url, group, 1)
	}
	wait.Eventually(t, "the router has subscribed", func() (any, bool) {
		worker, chosen := ask()
		return chosen, chosen == worker && group > len(e.Workers)
	})
	const groups = 12
	followed := 0
	for range groups {
		if worker, chosen := ask(); chosen == worker {
			followed++
		}
	}
	assert.Equal(t, groups, followed)
	figure.Report(t, "%s, kv_aware: %d of %d prompts went to the worker that published their openings",
		r.ID, followed, groups)
}
