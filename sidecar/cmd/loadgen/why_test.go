package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbooth/sidecar/api"
)

// The command why prints what became of the prompt tokens, or why that is not known.
func TestWhy(t *testing.T) {
	shown := api.Shadow{
		Arm: "mine", Source: api.ShadowText, Requests: 9, PromptTokens: 900, Seconds: 60,
		Causes: []api.HitCause{
			{Kind: api.CauseFound, Share: .4, Text: "40.0 % were found"},
			{Kind: api.CauseElsewhere, Share: .6, Text: "60.0 % are on other workers", Remedy: "see its policy"},
		},
		Work:     &api.ShadowWork{Text: "worker a computed 90.0 %", Remedy: "copy the beginning"},
		TTFT:     (&api.FirstTokenParts{Engine: .08, Queue: new(.02), Prefill: new(.05)}).Split(.1),
		Policies: []api.ShadowPolicy{{Policy: "best_placement", Figures: api.ShadowFigures{HitRatio: new(.9)}}},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "/api/v1/shadow", r.URL.Path)
		w.Header().Set("Content-Type", "application/json")
		assert.NoError(t, json.NewEncoder(w).Encode(shown))
	}))
	defer server.Close()
	code, stdout, _ := command(t, "why", "--from="+server.URL)
	assert.Equal(t, success, code)
	assert.Equal(t, `Arm in force: mine
900 prompt tokens of 9 requests in the last 60 s
    40.0 %  found       40.0 % were found
    60.0 %  elsewhere   60.0 % are on other workers
                        see its policy
The best placement would have found 90.0 %.
Work: worker a computed 90.0 %; copy the beginning.
Mean TTFT 100 ms
      20.0 ms  router   router, network and load generator: what was measured, less the engines' TTFT
      20.0 ms  queue    waiting at the engine
      50.0 ms  prefill  computing the tokens of the prompt that were not cached, up to the first token
      10.0 ms  rest     unexplained: the engines' TTFT, less the parts above
`, stdout)
	_, stdout, _ = command(t, "why", "--from="+server.URL, "--format=json")
	assert.Contains(t, stdout, `"program": "`+api.Program()+`",`)
	shown = api.Shadow{Source: api.ShadowNone, Message: "no cluster data"}
	code, _, stderr := command(t, "why", "--from="+server.URL)
	assert.Equal(t, badInput, code)
	assert.Contains(t, stderr, "not known: no cluster data")
	code, _, stderr = command(t, "why", "--from=http://127.0.0.1:1")
	assert.Equal(t, badInput, code)
	assert.Contains(t, stderr, "from: http://127.0.0.1:1 is not allowed: a running load generator")
}
