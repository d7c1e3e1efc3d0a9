package study

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/closedloop"
)

func TestEmptyRequestIsAsRecorded(t *testing.T) {
	g, err := Request{}.Grid()
	require.NoError(t, err)
	assert.Equal(t, sim.DefaultOptions(sim.H200()), g.Cluster)
	w := closedloop.Recorded()
	w.Arrivals, w.Burstiness, w.MaxInflight = api.ArrivalsPoisson, 1, 1000
	assert.Equal(t, w, g.Workload)
	assert.Equal(t, api.LevelsOf(60, 80, 100, 120, 140, 160, 180), g.Levels)
	assert.Equal(t, []api.Mode{api.ModeKV, api.ModeRoundRobin}, g.Modes)
	assert.Equal(t, []uint64{1, 2, 3, 4, 5, 6}, g.Seeds)
}

func TestGridTakesAllFields(t *testing.T) {
	var r Request
	require.NoError(t, json.Unmarshal([]byte(`{
"profile": "h200-tp1", "levels": ["2/s", 90, "0.5/s", 20, 90], "modes": ["least_loaded", "least_loaded"],
"seeds": 2, "first_seed": 7, "workers": 5, "openings": 0, "opening_tokens": 500,
"turns": {"min": 2, "max": 3}, "output_tokens": {"mean": 100, "cv": 0.1}, "max_tokens": 200,
"question_tokens": {"mean": 30, "cv": 0.2}, "think_time": 1.5, "max_batch_size": 128,
"block_size": 64, "kv_tokens": 100000, "overlap_weight": 2, "temperature": 0.5,
"speculation": "eagle3", "start_rate": 3, "arrivals": "gamma", "burstiness": 0.5, "max_inflight": 80, "router_decode_active_request_weight": 60,
"router_track_output_blocks": true, "router_assume_kv_reuse": false
	}`), &r))
	g, err := r.Grid()
	require.NoError(t, err)
	p := sim.H200()
	p.Workers, p.MaxSequences, p.KV.BlockTokens, p.KV.Blocks = 5, 128, 64, 1562
	o := sim.DefaultOptions(p)
	o.Speculation, o.OverlapWeight, o.Temperature = api.SpeculationEagle3, 2, .5
	o.Router.DecodeActiveRequestWeight, o.Router.TrackOutputBlocks, o.Router.AssumeKVReuse = 60, true, false
	assert.Equal(t, Grid{
		Cluster: o, Levels: append(api.LevelsOf(20, 90), api.AtRate(.5), api.AtRate(2)),
		Modes: []api.Mode{api.ModeLeastLoaded}, Seeds: []uint64{7, 8},
		Sweep: true, LeadIn: true,
		Workload: closedloop.Workload{
			Level: api.AtConversations(60), Turns: api.Range{Min: 2, Max: 3}, OpeningTokens: []int{500},
			QuestionTokens: api.Distribution{Mean: 30, CV: .2}, MaxTokens: 200, Output: &api.Distribution{Mean: 100, CV: .1},
			ThinkTime: 1500 * time.Millisecond, StartRate: 3, Seed: 1,
			Arrivals: api.ArrivalsGamma, Burstiness: .5, MaxInflight: 80,
		},
	}, g)
}

func TestCompleteRequestGivesSameGrid(t *testing.T) {
	full := Request{Workers: new(4)}.Complete(sim.H200())
	before, err := Request{Workers: new(4)}.Grid()
	require.NoError(t, err)
	after, err := full.Grid()
	require.NoError(t, err)
	assert.Equal(t, before, after)
	text, err := json.Marshal(full)
	require.NoError(t, err)
	var fields map[string]any
	require.NoError(t, json.Unmarshal(text, &fields))
	assert.Len(t, fields, 28)
}

func TestGridRefusesFieldsOutOfRange(t *testing.T) {
	for field, text := range map[string]string{
		"profile":                             `{"profile": "tpu"}`,
		"levels":                              `{"levels": []}`,
		"modes":                               `{"modes": ["random"]}`,
		"seeds":                               `{"seeds": 0}`,
		"first_seed":                          `{"first_seed": -1}`,
		"openings":                            `{"openings": -1}`,
		"opening_tokens":                      `{"opening_tokens": 131073}`,
		"turns.min":                           `{"turns": {"min": 4, "max": 3}}`,
		"turns.max":                           `{"turns": {"min": 4, "max": 1001}}`,
		"output_tokens.mean":                  `{"output_tokens": {"mean": -1, "cv": 0}}`,
		"output_tokens.cv":                    `{"output_tokens": {"mean": 1, "cv": 3}}`,
		"max_tokens":                          `{"max_tokens": 0}`,
		"question_tokens.mean":                `{"question_tokens": {"mean": 0, "cv": 0}}`,
		"question_tokens.cv":                  `{"question_tokens": {"mean": 1, "cv": -1}}`,
		"think_time":                          `{"think_time": 3601}`,
		"start_rate":                          `{"start_rate": 0}`,
		"arrivals":                            `{"arrivals": "bursts"}`,
		"burstiness":                          `{"burstiness": 0}`,
		"max_inflight":                        `{"max_inflight": 0}`,
		"workers":                             `{"workers": 0}`,
		"max_batch_size":                      `{"max_batch_size": 513}`,
		"block_size":                          `{"block_size": 2000}`,
		"kv_tokens":                           `{"kv_tokens": 9000}`,
		"overlap_weight":                      `{"overlap_weight": -0.5}`,
		"temperature":                         `{"temperature": 1001}`,
		"speculation":                         `{"speculation": "ngram"}`,
		"router_decode_active_request_weight": `{"router_decode_active_request_weight": -1}`,
	} {
		var r Request
		require.NoError(t, json.Unmarshal([]byte(text), &r), text)
		_, err := r.Grid()
		var refused *api.FieldError
		if assert.ErrorAs(t, err, &refused, text) {
			assert.Equal(t, field, refused.Field, text)
		}
	}
	for _, text := range []string{
		`{"levels": [20, 0]}`, `{"levels": ["0/s"]}`, `{"levels": ["10001/s"]}`, `{"levels": [100001]}`, `{"kv_tokens": 100000000}`,
		`{"kv_tokens": 50000, "turns": {"min": 50, "max": 50}, "output_tokens": {"mean": 0, "cv": 0}}`,
	} {
		var r Request
		require.NoError(t, json.Unmarshal([]byte(text), &r), text)
		_, err := r.Grid()
		assert.Error(t, err, text)
	}
	small := sim.H200()
	small.MaxBatchedTokens = 4096
	_, err := Request{MaxBatchSize: new(256)}.GridOn(small)
	assert.ErrorContains(t, err, "max_batch_size: 256 is not allowed")
	_, err = Request{KVTokens: new(400_000)}.GridOn(small)
	assert.ErrorContains(t, err, "kv_tokens: 400000 is not allowed: less than 395182")
}

func TestPresetsAreValid(t *testing.T) {
	p := sim.H200()
	for i, preset := range Presets(p) {
		assert.Equal(t, PresetNames[i], preset.Name)
		found, err := FindPreset(preset.Name, p)
		require.NoError(t, err)
		assert.Equal(t, preset, found)
		_, err = found.Request.Grid()
		assert.NoError(t, err, preset.Name)
	}
	_, err := FindPreset("half-the-price", p)
	assert.ErrorContains(t, err, `preset: "half-the-price" is not allowed: one of as-recorded, `)
}
