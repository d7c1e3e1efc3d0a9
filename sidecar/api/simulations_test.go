package api_test

import (
	"encoding/json"
	"strings"
	"testing"

	"kvbooth/sidecar/api"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSimulationRequestCheck(t *testing.T) {
	for text, want := range map[string]string{
		`{}`: "",
		`{"levels": [1, 10000], "seeds": 12, "workers": 256, "turns": {"min": 1, "max": 50}, "opening_tokens": 0}`: "",
		`{"levels": [60, 10001]}`:                                          "levels: 10001 is not allowed: 1 to 10000",
		`{"levels": [0]}`:                                                  "levels: 0 is not allowed: 1 to 10000",
		`{"seeds": 13}`:                                                    "seeds: 13 is not allowed: 1 to 12",
		`{"seeds": 0}`:                                                     "seeds: 0 is not allowed: 1 to 12",
		`{"workers": 257}`:                                                 "workers: 257 is not allowed: 1 to 256",
		`{"turns": {"min": 4, "max": 3}}`:                                  "turns.min: 4 is not allowed: 1 to 3",
		`{"turns": {"min": 4, "max": 1001}}`:                               "turns.max: 1001 is not allowed: 1 to 1000",
		`{"question_tokens": {"mean": 0, "cv": 0}}`:                        "question_tokens.mean: 0 is not allowed: 1 to 131072 tokens",
		`{"output_tokens": {"mean": 1, "cv": 2.5}}`:                        "output_tokens.cv: 2.5 is not allowed: 0 to 2",
		`{"start_rate": 0}`:                                                "start_rate: 0 is not allowed: more than 0, up to 1000 conversations per second",
		`{"speculation": "ngram"}`:                                         `speculation: "ngram" is not allowed: one of off, draft, eagle3, not_recorded`,
		`{"modes": ["kv", "kv", "kv", "kv"]}`:                              "modes: a list of 4 is not allowed: at most 3 of them",
		`{"levels": [1` + strings.Repeat(", 1", 40) + `]}`:                 "levels: a list of 41 is not allowed: at most 40 of them",
		`{"router_decode_active_request_weight": -1, "temperature": 1000}`: "router_decode_active_request_weight: -1 is not allowed: 0 to 1000",
	} {
		var r api.SimulationRequest
		require.NoError(t, json.Unmarshal([]byte(text), &r), text)
		err := api.CheckLimits(r)
		if want == "" {
			assert.NoError(t, err, text)
			continue
		}
		assert.EqualError(t, err, want, text)
	}
}

func TestSimulationRequestCheckWork(t *testing.T) {
	r := api.SimulationRequest{
		Levels: api.LevelsOf(5000, 7500),
		Modes:  []api.Mode{api.ModeKV, api.ModeRoundRobin},
		Seeds:  new(6),
	}
	assert.NoError(t, r.CheckWork())
	r.Levels[0].Value++
	assert.EqualError(t, r.CheckWork(), "levels: 12501 conversations over all levels × 2 modes × 6 seeds = 150012 is "+
		"not allowed: at most 150000: ask for lower or fewer levels, or for fewer seeds")
	r.Levels = []api.Level{api.AtConversations(5000), api.AtRate(125)}
	assert.NoError(t, r.CheckWork())
	r.Levels[1].Value++
	assert.ErrorContains(t, r.CheckWork(), "12560 conversations", "a rate counts as its arrivals in a minute")
}
