//go:build verify

package compare

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

var noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// at is a turn that ended well so many seconds after noon.
func at(seconds int, conversation string, number int, worker string, prompt, cached int) api.Turn {
	return api.Turn{
		Conversation: conversation, Number: number, Worker: worker, Status: api.TurnOK, Ended: noon.Add(time.Duration(seconds) * time.Second),
		TTFT: new(float64(seconds) / 100), TPOT: new(.025), PromptTokens: &prompt, CachedTokens: &cached, OutputTokens: new(100),
	}
}

func TestSummarise(t *testing.T) {
	failed := at(15, "c", 1, "1", 1000, 0)
	failed.Status, failed.ErrorClass = api.TurnError, api.ErrorStall
	cancelled := at(15, "d", 1, "1", 1000, 0)
	cancelled.Status = api.TurnCancelled
	turns := []api.Turn{
		at(5, "a", 1, "1", 1000, 0),     // before the span, and tells where a was
		at(10, "a", 2, "1", 2000, 1000), // stayed
		at(19, "a", 3, "2", 3000, 2000), // left
		at(12, "b", 3, "1", 1000, 1000), // where b was is not known
		at(20, "a", 4, "2", 9000, 0),    // after the span
		failed, cancelled,
	}
	r := summarise(turns, noon.Add(10*time.Second), noon.Add(20*time.Second))
	assert.Equal(t, 1, r.before)
	assert.Equal(t, 3, r.turns)
	assert.Equal(t, map[api.ErrorClass]int{api.ErrorStall: 1}, r.failed)
	assert.InDelta(t, 4000./6000, r.hit, 1e-9, "of tokens, not of turns")
	assert.InDelta(t, .5, r.stay, 1e-9)
	assert.InDelta(t, 30, r.rate, 1e-9, "300 tokens in 10 s")
	assert.InDelta(t, 2000, r.prompt, 1e-9)
	assert.InDelta(t, 100, r.output, 1e-9)
	assert.InDelta(t, 2000./3, r.uncached, 1e-9)
	assert.InDelta(t, .12, *r.ttft.P50, 1e-9)
	assert.InDelta(t, .025, *r.tpot.P50, 1e-9)

	r = summarise(nil, noon, noon.Add(time.Second))
	assert.Zero(t, r.turns)
	assert.True(t, math.IsNaN(r.hit) && math.IsNaN(r.stay), "not known without turns")
	assert.Nil(t, r.ttft.P50)
}

// header is what the load generator writes, in its order.
const header = "lane,conversation,turn,request_id,step,status,error_class,started,ended,ttft_seconds,tpot_seconds,prompt_tokens,cached_tokens,output_tokens,worker\r\n"

func TestReadTurns(t *testing.T) {
	turns, err := api.ReadTurns(strings.NewReader(header +
		"main,c-1,2,c-1-2,1,ok,,2026-11-01T12:00:00Z,2026-11-01T12:00:20.5Z,.25,.026,4000,3200,830,77\r\n" +
		"main,c-2,1,c-2-1,1,error,timeout,2026-11-01T12:00:00Z,2026-11-01T12:02:00Z,,,,,,\r\n"))
	require.NoError(t, err)
	require.Len(t, turns, 2)
	want := api.Turn{
		Conversation: "c-1", Number: 2, Status: api.TurnOK, Started: noon, Ended: noon.Add(20500 * time.Millisecond),
		TTFT: new(.25), TPOT: new(.026), PromptTokens: new(4000), CachedTokens: new(3200), OutputTokens: new(830), Worker: "77",
	}
	assert.Equal(t, want, turns[0])
	assert.Equal(t, api.ErrorTimeout, turns[1].ErrorClass)
	assert.Nil(t, turns[1].PromptTokens, "an empty field is not known")
}

func TestReadTurnsRefuses(t *testing.T) {
	for _, row := range []struct{ intent, text, want string }{
		{"nothing at all", "", "empty"},
		{"another table", "a,b\n1,2\n", "no column"},
		{"a broken number", header + "main,c-1,two,c-1-2,1,ok,,,,,,,,,\r\n", "line 2, turn"},
		{"a short line", header + "main\r\n", "wrong number of fields"},
	} {
		t.Run(row.intent, func(t *testing.T) {
			_, err := api.ReadTurns(strings.NewReader(row.text))
			require.Error(t, err)
			assert.ErrorContains(t, err, row.want)
		})
	}
}
