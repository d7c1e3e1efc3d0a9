package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/cmd/loadgen/internal/config"
	"kvbooth/sidecar/loadgen/chat"
)

// Readiness and turns of an arm have its own model, key, headers and session. Its /health is not asked for.
func TestArmsSendTheirOwnFields(t *testing.T) {
	type sent struct{ path, model, key, session, tenant string }
	var got []sent
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Model string `json:"model"`
			User  string `json:"user"`
		}
		_ = json.NewDecoder(r.Body).Decode(&body)
		got = append(got, sent{
			r.URL.Path, body.Model, r.Header.Get("Authorization"), r.Header.Get("X-Session") + body.User,
			r.Header.Get("X-Tenant"),
		})
		switch r.URL.Path {
		case "/v1/models":
			fmt.Fprint(w, `{"data":[{"id":"llama"}]}`)
		case "/v1/chat/completions":
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, `data: {"choices":[{"delta":{"content":"a"}}]}`+"\n\n"+
				`data: {"choices":[{"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
		default:
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer server.Close()
	dir := t.TempDir()
	key := filepath.Join(dir, "key")
	require.NoError(t, os.WriteFile(key, []byte("k2\n"), 0o600))
	file := filepath.Join(dir, "arms.yaml")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `
target: {session: "header:X-Session"}
arms:
- {name: plain, url: %q}
- {name: gateway, url: %[1]q, model: id-2, api_key_file: %q, session: "body:user", headers: {x-tenant: t}}
`, server.URL, key), 0o600))
	conf, _, err := config.Load([]string{"--config", file, "--data-dir", dir}, nil, os.Stdout)
	require.NoError(t, err)
	c, err := (&side{conf: conf}).newClient()
	require.NoError(t, err)
	defer c.Close()
	s := c.(*chat.Switch)
	for arm, want := range map[string]sent{
		"gateway": {"/v1/chat/completions", "id-2", "Bearer k2", "c1", "t"},
		"plain":   {"/v1/chat/completions", "llama", "", "c1", ""},
	} {
		require.NoError(t, s.Redirect(t.Context(), arm, 1))
		require.Equal(t, arm, s.InUse())
		hello := []chat.Message{{Role: chat.RoleUser, Text: "Hello."}}
		r := s.Do(t.Context(), chat.Request{Messages: hello, Conversation: "c1", MaxTokens: 1})
		require.True(t, r.OK(), r.Err)
		require.Equal(t, want, got[len(got)-1], arm)
	}
	for _, g := range got {
		require.NotEqual(t, "/health", g.path)
	}
}
