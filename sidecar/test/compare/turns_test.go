//go:build verify

package compare

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"kvbooth/sidecar/api"
)

var noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// at returns a turn that succeeded some seconds after noon.
func at(seconds int, conversation string, number int, worker string, prompt, cached int) api.Turn {
	return api.Turn{
		Conversation: conversation, Number: number, Worker: worker, Status: api.TurnOK,
		Ended: noon.Add(time.Duration(seconds) * time.Second), TTFT: new(float64(seconds) / 100), TPOT: new(.025),
		PromptTokens: &prompt, CachedTokens: &cached, OutputTokens: new(100),
	}
}

func TestSummarizeCountsTurnsOfSpan(t *testing.T) {
	failed := at(15, "c", 1, "1", 1000, 0)
	failed.Status, failed.ErrorClass = api.TurnError, api.ErrorStall
	canceled := at(15, "d", 1, "1", 1000, 0)
	canceled.Status = api.TurnCancelled
	turns := []api.Turn{
		at(5, "a", 1, "1", 1000, 0),     // before the span; a is on worker 1
		at(10, "a", 2, "1", 2000, 1000), // on the same worker
		at(19, "a", 3, "2", 3000, 2000), // on another worker
		at(12, "b", 3, "1", 1000, 1000), // b's worker before is not known
		at(20, "a", 4, "2", 9000, 0),    // after the span
		failed, canceled,
	}
	r := summarize(turns, noon.Add(10*time.Second), noon.Add(20*time.Second))
	assert.Equal(t, 1, r.before)
	assert.Equal(t, 3, r.turns)
	assert.Equal(t, map[api.ErrorClass]int{api.ErrorStall: 1}, r.failed)
	assert.InDelta(t, 4000./6000, r.hit, 1e-9, "the ratio is of tokens, not of turns")
	assert.InDelta(t, .5, r.stay, 1e-9)
	assert.InDelta(t, 30, r.rate, 1e-9, "300 tokens in 10 s")
	assert.InDelta(t, .12, *r.ttft.P50, 1e-9)
	assert.InDelta(t, .025, *r.tpot.P50, 1e-9)

	r = summarize(nil, noon, noon.Add(time.Second))
	assert.Zero(t, r.turns)
	assert.True(t, math.IsNaN(r.hit) && math.IsNaN(r.stay), "NaN without turns")
	assert.Nil(t, r.ttft.P50)
}
