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
	for _, row := range []struct {
		before lane.Before
		now    api.ModeState
		want   string
	}{
		{lane.Before{Mode: kv, Concurrency: 8, Running: true}, kv, "the lane is restored: KV-aware, 8 conversations, running"},
		{lane.Before{Mode: unknown, Concurrency: 8}, kv, "the lane stays in KV-aware, 8 conversations, stopped"},
		{lane.Before{Mode: unknown, Concurrency: 8}, unknown, "the lane is restored: Mode unknown, 8 conversations, stopped"},
	} {
		assert.Equal(t, row.want, restoredText(row.before, row.now))
	}
}
