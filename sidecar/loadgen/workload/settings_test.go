package workload

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/corpus"
)

// Check applies the ranges of the API, whose error names the field, and limits of its own.
func TestCheckNamesTheInvalidField(t *testing.T) {
	for want, change := range map[string]func(*Settings){
		"": func(s *Settings) {
			s.Level, s.Turns, s.Openings = api.AtConversations(200), api.Range{Min: 1, Max: 50}, 1_000_000
			s.OutputTokens, s.TargetRPS, s.ThinkTime = api.Distribution{}, 0, 0
		},
		"concurrency: 0":          func(s *Settings) { s.Level = api.AtConversations(0) },
		"concurrency: 201":        func(s *Settings) { s.Level = api.AtConversations(201) },
		"turns.min: 6":            func(s *Settings) { s.Turns.Min = 6 },
		"max_tokens: 131073":      func(s *Settings) { s.MaxTokens = 131073 },
		"output_tokens.mean: NaN": func(s *Settings) { s.OutputTokens.Mean = math.NaN() },
		"output_tokens.cv: -1":    func(s *Settings) { s.OutputTokens.CV = -1 },
		"openings: -2":            func(s *Settings) { s.Openings = -2 },
		"openings: 1000001":       func(s *Settings) { s.Openings = 1_000_001 },
		"start_rate: 0":           func(s *Settings) { s.StartRate = 0 },
		"target_rps: -1":          func(s *Settings) { s.TargetRPS = -1 },
		"think_time: 1h0m1s":      func(s *Settings) { s.ThinkTime = time.Hour + time.Second },
	} {
		s := booth(180)
		change(&s)
		err := s.Check(200)
		if want == "" {
			assert.NoError(t, err)
			continue
		}
		require.ErrorAs(t, err, new(*api.FieldError), want)
		assert.ErrorContains(t, err, want+" is not allowed: ")
	}
}

func TestApplyChangesAllOrNothing(t *testing.T) {
	s := booth(60)
	same, err := s.Apply(api.WorkloadPatch{}, 200)
	require.NoError(t, err)
	assert.Equal(t, s, same)

	concurrency, turns, maxTokens, rate, rps := 100, api.Range{Min: 2, Max: 2}, 64, 3., 7.
	next, err := s.Apply(api.WorkloadPatch{
		Level: new(api.AtConversations(concurrency)), Turns: &turns, MaxTokens: &maxTokens, StartRate: &rate, TargetRPS: &rps,
	}, 200)
	require.NoError(t, err)
	assert.Equal(t, Settings{
		Level: api.AtConversations(100), Turns: turns, MaxTokens: 64,
		OutputTokens: s.OutputTokens, StartRate: 3, TargetRPS: 7,
	}, next)

	// The number of a baseline is that of the corpus's texts, which AsMany is at its time.
	c := &corpus.Corpus{Starters: make([]corpus.Starter, 7)}
	assert.Equal(t, 7, AsMany.Of(c))
	for n, want := range map[int]Openings{0: OneEach, 10: 10, 1000: 1000} {
		own, err := s.Apply(api.WorkloadPatch{Openings: &n}, 200)
		require.NoError(t, err)
		assert.Equal(t, want, own.Openings)
		assert.Equal(t, n, own.Openings.Of(c))
	}
	few := -1
	_, err = s.Apply(api.WorkloadPatch{Openings: &few}, 200)
	require.ErrorContains(t, err, "openings: -1 is not allowed: 0 to 1000000")

	concurrency = 201
	kept, err := s.Apply(api.WorkloadPatch{Level: new(api.AtConversations(concurrency)), MaxTokens: &maxTokens}, 200)
	assert.ErrorContains(t, err, "concurrency: 201 is not allowed")
	assert.Equal(t, s, kept, "all or nothing")
}
