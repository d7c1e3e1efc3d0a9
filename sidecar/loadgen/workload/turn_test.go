package workload

import (
	"testing"
	"testing/synctest"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/corpus"

	"github.com/stretchr/testify/assert"
)

// A turn has the figures of its result. What the result lacks is absent.
func TestOutcomeOfATurn(t *testing.T) {
	sent := time.Unix(1000, 0)
	ended := sent.Add(time.Second)
	chunks := []chat.Chunk{{At: 200 * time.Millisecond}, {At: 300 * time.Millisecond}, {At: 400 * time.Millisecond}}
	for name, row := range map[string]struct {
		result chat.Result
		want   Turn
	}{
		"all is known": {
			chat.Result{
				Chunks: chunks, Content: "a b c", FinishReason: "stop", FirstAnswer: 300 * time.Millisecond, Worker: "w",
				Usage: &chat.Usage{Prompt: 1, Completion: 3, Cached: 8, HasCached: true},
				Timing: chat.Timing{
					TTFT: .1, PredictedHitRatio: .5, QueueDepth: 7, HasTTFT: true, HasPredicted: true, HasQueueDepth: true,
				},
			},
			Turn{Chunks: 3, ITL: []chat.Gap{{Seconds: .1, Tokens: 1}, {Seconds: .1, Tokens: 1}}, Turn: api.Turn{
				Status: api.TurnOK, TTFT: new(.2), FirstAnswer: new(.3), TPOT: new(.1), ITLP50: new(.1), ITLP95: new(.1),
				Latency: new(.4), PromptTokens: new(1), CachedTokens: new(8), OutputTokens: new(3), TokenSource: "usage",
				FinishReason: "stop", Worker: "w", PredictedRatio: new(.5), QueueDepth: new(7), ServerTTFT: new(.1),
				AssistantMessage: "a b c",
			}},
		},
		"one token, without a count of tokens": {
			chat.Result{Chunks: chunks[:1], FirstAnswer: chunks[0].At, Usage: &chat.Usage{}},
			Turn{Chunks: 1, Turn: api.Turn{
				Status: api.TurnOK, TTFT: new(.2), Latency: new(.2), OutputTokens: new(1), TokenSource: "chunks",
			}},
		},
		"an error": {
			chat.Result{Err: &chat.Error{Class: api.ErrorConnect, Message: "refused"}},
			Turn{Turn: api.Turn{
				Status: api.TurnError, ErrorClass: api.ErrorConnect, ErrorMessage: "refused", OutputTokens: new(0),
				TokenSource: "chunks",
			}},
		},
		"canceled": {
			chat.Result{Cancelled: true},
			Turn{Turn: api.Turn{Status: api.TurnCancelled, OutputTokens: new(0), TokenSource: "chunks"}},
		},
	} {
		row.result.Sent, row.want.Started = sent, sent
		row.result.Ended, row.want.Ended = ended, ended
		var turn Turn
		turn.end(&row.result, 0)
		assert.Equal(t, row.want, turn, name)
	}
}

// A turn has the step in which it begins.
func TestTurnBeginsInAStep(t *testing.T) {
	step := api.StepRecord{
		ID:          4,
		Level:       api.AtConversations(60),
		Arm:         "a",
		Mode:        api.ModeKV,
		Speculation: api.SpeculationOff,
		Settled:     new(time.Unix(1, 0)),
	}
	var settled, settling LiveTurn
	settled.Begin(step)
	step.Settled = nil
	settling.Begin(step)
	want := api.Turn{Step: 4, Level: api.AtConversations(60), Arm: "a", Mode: api.ModeKV, Speculation: api.SpeculationOff}
	assert.Equal(t, []api.Turn{want, want}, []api.Turn{settled.Turn.Turn, settling.Turn.Turn})
	assert.Equal(t, []bool{true, false}, []bool{settled.Settled, settling.Settled})
}

// After a change that affects draws, the workload is uniform again when no earlier conversation is in progress.
func TestUniformAfterAChange(t *testing.T) {
	for name, row := range map[string]struct {
		change  func(r *testRun)
		uniform bool
	}{
		"the start rate":    {func(r *testRun) { s := booth(10); s.StartRate = 20; r.Set(s) }, true},
		"the turns":         {func(r *testRun) { s := booth(10); s.Turns.Max = 6; r.Set(s) }, false},
		"the limit":         {func(r *testRun) { s := booth(10); s.MaxTokens = 900; r.Set(s) }, false},
		"the lengths":       {func(r *testRun) { s := booth(10); s.Output = nil; r.Set(s) }, false},
		"the openings":      {func(r *testRun) { s := booth(10); s.Openings = 2; r.Set(s) }, false},
		"the corpus in use": {func(r *testRun) { r.SetCorpus(r.corpus) }, true},
		"another corpus": {func(r *testRun) {
			r.SetCorpus(&corpus.Corpus{Name: "other", Starters: r.corpus.Starters[:1]})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := run(t, &server{}, booth(10))
				advance(2 * time.Second)
				assert.True(t, r.Uniform())
				row.change(r)
				assert.Equal(t, row.uniform, r.Uniform())
				advance(15 * time.Minute)
				assert.True(t, r.Uniform())
				r.stop()
			})
		})
	}
}
