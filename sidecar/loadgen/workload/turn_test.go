package workload

import (
	"math"
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

// The content of an answer ends before its stream does. A turn that was cancelled, or is in flight, has no end.
func TestEndOfAnOutcome(t *testing.T) {
	origin := time.Unix(1000, 0)
	for name, row := range map[string]struct {
		turn        api.Turn
		end, waited float64 // NaN: there is none
	}{
		"an answer":            {api.Turn{Status: api.TurnOK, TTFT: new(.5), Latency: new(1.5)}, 3.5, 1.5},
		"without content":      {api.Turn{Status: api.TurnOK}, 5, 3},
		"failed":               {api.Turn{Status: api.TurnError, TTFT: new(.5), Latency: new(1.5)}, 5, 3},
		"cancelled":            {api.Turn{Status: api.TurnCancelled, TTFT: new(.5)}, math.NaN(), math.NaN()},
		"in flight, no tokens": {api.Turn{}, math.NaN(), math.NaN()},
	} {
		row.turn.Started, row.turn.Ended = origin.Add(2*time.Second), origin.Add(5*time.Second)
		o := OutcomeOf(&row.turn, origin)
		end, ok := o.End()
		assert.Equal(t, !math.IsNaN(row.end), ok, name)
		assert.InDelta(t, row.end, end, 0, name)
		assert.InDelta(t, row.waited, o.Took(), 0, name)
		assert.Equal(t, row.turn.TTFT == nil, o.Waiting(), name)
		if !o.Waiting() {
			assert.InDelta(t, 2.5, o.FirstToken(), 0, name)
		}
	}
}

// An answer in one chunk without a count of tokens may have any number, and its TPOT is unknown; that of one token has
// none. An unknown TPOT meets no objective.
func TestUnknownTPOTMeetsNothing(t *testing.T) {
	for name, row := range map[string]struct {
		turn           api.Turn
		unknown, meets bool
	}{
		"known":            {api.Turn{TPOT: new(.02), OutputTokens: new(9), TokenSource: "usage"}, false, true},
		"slow":             {api.Turn{TPOT: new(.09), OutputTokens: new(9), TokenSource: "usage"}, false, false},
		"one token":        {api.Turn{OutputTokens: new(1), TokenSource: "usage"}, false, true},
		"many in one":      {api.Turn{OutputTokens: new(9), TokenSource: "usage"}, true, false},
		"one chunk of any": {api.Turn{OutputTokens: new(1), TokenSource: "chunks"}, true, false},
	} {
		row.turn.Status, row.turn.TTFT = api.TurnOK, new(.3)
		o := OutcomeOf(&row.turn, row.turn.Started)
		assert.Equal(t, row.unknown, o.TPOTUnknown(), name)
		assert.Equal(t, row.meets, o.Meets(api.SLO{TTFT: .3, TPOT: .05}), name)
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
		"the lengths":       {func(r *testRun) { s := booth(10); s.OutputTokens = api.Distribution{}; r.Set(s) }, false},
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
