//go:build kubernetes

package kubernetes

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/booth/httpd"
	"kvbooth/sidecar/loadgen/cluster"
)

// get gives a document of the frontend, with its status.
func get(t *testing.T, url string, to any) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	if response.StatusCode == http.StatusOK {
		require.NoError(t, json.Unmarshal(text, to))
	}
	return response.StatusCode
}

// cached asks the same as ever, and gives how many of the prompt's tokens a cache held.
func cached(t *testing.T, url string) int {
	t.Helper()
	var models struct{ Data []struct{ ID string } }
	require.Equal(t, http.StatusOK, get(t, url+"/v1/models", &models))
	body, err := json.Marshal(map[string]any{
		"model": models.Data[0].ID, "max_tokens": 3,
		"messages": []map[string]string{{"role": "user", "content": strings.Repeat("What does a cache of keys and values hold? ", 60)}},
	})
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/chat/completions", bytes.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	var answer struct {
		Usage struct {
			Prompt struct {
				Cached int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		}
	}
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.NoError(t, json.NewDecoder(response.Body).Decode(&answer))
	return answer.Usage.Prompt.Cached
}

// serving waits until the frontend lists so many instances in a mode, and gives their ids.
func serving(t *testing.T, url, mode string, n int) (ids []string) {
	t.Helper()
	wait.Within(t, within, "the pods serve the mode", func() (any, bool) {
		var state struct{ Mode string }
		if get(t, url+"/sim/v1/state", &state) != http.StatusOK || state.Mode != mode {
			return nil, false
		}
		var err error
		ids, err = cluster.Probe(t.Context(), url, nil)
		return nil, err == nil && len(ids) == n
	})
	return ids
}

// The simulated cluster is in the mode of the pods, as warm as they are, and lists those that are ready.
func TestFrontendFollows(t *testing.T) {
	c := deploy(t, 3, inPlace, OperatorOptions{})
	url := c.Frontend(t, "booth", func(o *httpd.Options) { o.Speed = 10 })
	ids := serving(t, url, "round_robin", 3)

	// Another frontend: the workers are the same, and so is what they hold.
	kv := c.change(frontendMode, "kv")
	c.await("the frontend is another", settled(kv))
	require.Equal(t, ids, serving(t, url, "kv", 3))
	require.Zero(t, cached(t, url))
	require.Positive(t, cached(t, url))
	again := c.change(`{"op": "add", "path": "/spec/components/0/podTemplate/spec/containers/0/env/-", "value": {"name": "NONCE", "value": %q}}`, "1")
	c.await("the frontend is another again", settled(again))
	require.Equal(t, ids, serving(t, url, "kv", 3))
	require.Positive(t, cached(t, url), "the caches stayed warm")

	// Other workers: other instances, with empty caches.
	restarted := c.change(restartWith, "switch-1")
	c.await("the restart is completed", settled(restarted))
	for _, id := range serving(t, url, "kv", 3) {
		require.NotContains(t, ids, id)
	}
	require.Zero(t, cached(t, url), "the caches are empty")

	// Workers that never become ready are not listed.
	c.change(workerImage, "broken")
	c.waiting("ImagePullBackOff", 3)
	require.Empty(t, serving(t, url, "kv", 0))
	back := c.change(workerImage, "trtllm")
	c.await("the workers are back", settled(back))
	serving(t, url, "kv", 3)

	// Without a frontend nothing answers.
	pod := c.pods(frontend)[0]
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	require.NoError(t, c.Client().Delete(ctx, &pod))
	wait.Within(t, within, "the frontend is not ready", func() (any, bool) {
		return nil, get(t, url+"/health", nil) == http.StatusServiceUnavailable
	})
	serving(t, url, "kv", 3)
	require.Error(t, c.Client().Get(ctx, client.ObjectKeyFromObject(&pod), &pod))
}
