package sweep

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/lane"
)

// A lane whose mode was unknown before a sweep is not called restored.
func TestRestoredText(t *testing.T) {
	kv, unknown := api.ModeState{Mode: api.ModeKV}, api.ModeState{Mode: api.ModeUnknown}
	before := lane.Before{Mode: kv, Level: api.AtConversations(8), Running: true}
	assert.Equal(t, "the lane is restored: KV-aware, 8 conversations, running", restoredText(before, kv))
	before = lane.Before{Mode: unknown, Level: api.AtConversations(8)}
	assert.Equal(t, "the lane stays in KV-aware, 8 conversations, stopped", restoredText(before, kv))
	assert.Equal(t, "the lane is restored: Mode unknown, 8 conversations, stopped", restoredText(before, unknown))
}
