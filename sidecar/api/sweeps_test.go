package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

func TestSweepRequestCheck(t *testing.T) {
	many := func(n int) string { // levels
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprint(i + 1)
		}
		return "[" + strings.Join(all, ",") + "]"
	}
	mode := func(m, s string) string { return `{"mode":"` + m + `","speculation":"` + s + `"}` }
	kv, rr, least := mode("kv", "off"), mode("round_robin", "off"), mode("least_loaded", "off")
	var nine []string
	for _, m := range []string{"kv", "round_robin", "least_loaded"} {
		for _, s := range []string{"off", "draft", "eagle3"} {
			nine = append(nine, mode(m, s))
		}
	}
	for text, want := range map[string]string{
		// What is left out has a default.
		`{"kind":"trial"}`:                        "",
		`{"kind":"sweep"}`:                        "",
		`{"kind":"capacity"}`:                     "",
		`{"kind":"sweep","levels":[],"modes":[]}`: "",
		// All that each kind has, at one end of each range or the other.
		`{"kind":"trial","title":"ü","levels":[100000],"modes":[` + rr + `,` + kv + `],"primary":"goodput","smallest":0.001,"span":1,"max_time":604800,"slo":{"ttft":3600,"tpot":0.001},"seed":"18446744073709551615"}`: "",
		`{"kind":"trial","modes":[` + kv + `,` + kv + `],"smallest":0.5}`: "", // the machines' own unrest
		`{"kind":"capacity","modes":[{"mode":"kv"}]}`:                     "", // with the speculation in force
		`{"kind":"sweep","levels":` + many(40) + `,"modes":[` + strings.Join(nine, ",") + `],"repeats":2,"order":"mode_after_mode","warm_up":0,"span":86400,"snapshots":100,"seed":"0"}`: "",
		`{"kind":"sweep","levels":[60],"modes":[` + kv + `],"repeats":100,"order":"interleaved","warm_up":3600,"snapshots":1}`:                                                           "",
		`{"kind":"capacity","levels":[10,180],"modes":[` + rr + `,` + mode("kv", "not_recorded") + `],"resolution":1000,"max_time":1}`:                                                   "",
		`{"kind":"capacity","levels":["2/s","8/s"],"resolution":0.5}`:                                                                                                                    "",
		`{"kind":"capacity","by":"rate"}`:                                                   "",
		`{"kind":"trial","levels":["0.5/s"]}`:                                               "",
		`{"kind":"sweep","levels":["2/s",4]}`:                                               "levels: 4 is not allowed: levels of one kind: numbers of conversations, or rates",
		`{"kind":"sweep","levels":["0/s"]}`:                                                 "levels: 0/s is not allowed: more than 0/s, up to 10000/s",
		`{"kind":"sweep","by":"rate"}`:                                                      `by: "rate" is not allowed: only a capacity search has this field`,
		`{"kind":"capacity","by":"users"}`:                                                  `by: "users" is not allowed: one of conversations, rate`,
		`{"kind":"capacity","by":"rate","levels":[20,40]}`:                                  "levels: 20 is not allowed: rates, such as 2/s, as by is rate",
		`{"kind":"capacity","levels":[20,40],"resolution":0.5}`:                             "resolution: 0.5 is not allowed: a whole number of conversations",
		`{"kind":"capacity","levels":` + many(40) + `,"modes":[` + kv + `],"resolution":1}`: "",

		`{}`:               `kind: "" is not allowed: one of trial, sweep, capacity`,
		`{"kind":"bench"}`: `kind: "bench" is not allowed: one of trial, sweep, capacity`,

		// What another kind has.
		`{"kind":"sweep","primary":"ttft_p95"}`:       `primary: "ttft_p95" is not allowed: only a trial has this field`,
		`{"kind":"capacity","smallest":0.05}`:         `smallest: 0.05 is not allowed: only a trial has this field`,
		`{"kind":"trial","repeats":3}`:                `repeats: 3 is not allowed: only a sweep has this field`,
		`{"kind":"trial","order":"interleaved"}`:      `order: "interleaved" is not allowed: only a sweep has this field`,
		`{"kind":"capacity","warm_up":60}`:            `warm_up: 60 is not allowed: only a sweep or a trial has this field`,
		`{"kind":"capacity","snapshots":3}`:           `snapshots: 3 is not allowed: only a sweep has this field`,
		`{"kind":"sweep","resolution":5}`:             `resolution: 5 is not allowed: only a capacity search has this field`,
		`{"kind":"sweep","max_time":3600}`:            `max_time: 3600 is not allowed: only a trial or a capacity search has this field`,
		`{"kind":"trial","levels":[60],"repeats":-1}`: `repeats: -1 is not allowed: only a sweep has this field`,

		// Lists of the wrong length.
		`{"kind":"trial","levels":[60,120]}`:                                "levels: a list of 2 is not allowed: 1 for a trial",
		`{"kind":"sweep","levels":` + many(41) + `}`:                        "levels: a list of 41 is not allowed: 1 to 40 for a sweep",
		`{"kind":"trial","question":"worst"}`:                               `question: "worst" is not allowed: one of best, order`,
		`{"kind":"capacity","levels":[60]}`:                                 "levels: a list of 1 is not allowed: 2 to 40 for a capacity search",
		`{"kind":"trial","modes":[` + kv + `]}`:                             "modes: a list of 1 is not allowed: 2 to 9 for a trial",
		`{"kind":"trial","modes":[` + kv + `,` + rr + `,` + kv + `]}`:       "modes: kv with speculation off is not allowed: " + api.EachModeOnce,
		`{"kind":"sweep","modes":[` + strings.Repeat(kv+",", 9) + kv + `]}`: "modes: a list of 10 is not allowed: 1 to 9 for a sweep",
		`{"kind":"capacity","modes":[` + kv + `,` + rr + `,` + least + `]}`: "modes: a list of 3 is not allowed: 1 to 2 for a capacity search",

		// Together, each of two modes on a lane.
		`{"kind":"sweep","together":true,"modes":[` + kv + `,` + rr + `],"order":"interleaved"}`: "",
		`{"kind":"sweep","together":false,"modes":[` + kv + `],"order":"mode_after_mode"}`:       "",
		`{"kind":"sweep","together":true,"modes":[` + kv + `,` + rr + `,` + least + `]}`:         "modes: a list of 3 is not allowed: 2 when they run together, one on each lane",
		`{"kind":"sweep","together":true,"modes":[` + kv + `]}`:                                  "modes: a list of 1 is not allowed: 2 when they run together, one on each lane",
		`{"kind":"sweep","together":true,"order":"mode_after_mode"}`:                             "order: mode_after_mode is not allowed: interleaved when the modes run together",
		`{"kind":"capacity","together":true}`:                                                    "together: true is not allowed: only a trial or a sweep has this field",

		// What is in the lists.
		`{"kind":"trial","levels":[0]}`:                                                           "levels: 0 is not allowed: 1 to 100000",
		`{"kind":"sweep","levels":[60,100001]}`:                                                   "levels: 100001 is not allowed: 1 to 100000",
		`{"kind":"sweep","levels":[60,120,60]}`:                                                   "levels: 60 is not allowed: each level once",
		`{"kind":"trial","modes":[` + kv + `,` + mode("random", "off") + `]}`:                     `modes.mode: "random" is not allowed: one of kv, round_robin, least_loaded`,
		`{"kind":"trial","modes":[` + mode("unknown", "off") + `,` + kv + `]}`:                    `modes.mode: "unknown" is not allowed: one of kv, round_robin, least_loaded`,
		`{"kind":"sweep","modes":[` + mode("kv", "ngram") + `]}`:                                  `modes.speculation: "ngram" is not allowed: one of off, draft, eagle3, not_recorded`,
		`{"kind":"sweep","modes":[` + kv + `,` + rr + `,` + kv + `]}`:                             "modes: kv with speculation off is not allowed: " + api.EachModeOnce,
		`{"kind":"capacity","modes":[` + kv + `,` + kv + `]}`:                                     "modes: kv with speculation off is not allowed: " + api.EachModeOnce,
		`{"kind":"sweep","levels":` + many(40) + `,"modes":[` + kv + `,` + rr + `],"repeats":13}`: "repeats: 40 levels × 2 modes × 13 repeats = 1040 spans is not allowed: at most 1000 spans",

		// Words.
		`{"kind":"trial","title":"` + strings.Repeat("x", 201) + `"}`: `title: "` + strings.Repeat("x", 40) + `" is not allowed: one line of at most 200 characters`,
		`{"kind":"trial","title":"a\nb"}`:                             `title: "a\nb" is not allowed: one line of at most 200 characters`,
		`{"kind":"trial","primary":"itl_p95"}`:                        `primary: "itl_p95" is not allowed: one of ttft_mean, ttft_p95, ttft_p50, ttft_p95_turn2+, tpot_p95, output_tokens_per_second, kv_hit_ratio, goodput`,
		`{"kind":"sweep","order":"random"}`:                           `order: "random" is not allowed: one of interleaved, mode_after_mode`,

		// Numbers.
		`{"kind":"trial","smallest":0}`:                    "smallest: 0 is not allowed: 0.001 to 0.5",
		`{"kind":"trial","smallest":0.51}`:                 "smallest: 0.51 is not allowed: 0.001 to 0.5",
		`{"kind":"sweep","repeats":0}`:                     "repeats: 0 is not allowed: 1 to 100",
		`{"kind":"sweep","repeats":101}`:                   "repeats: 101 is not allowed: 1 to 100",
		`{"kind":"sweep","warm_up":-1}`:                    "warm_up: -1 is not allowed: 0 to 3600 seconds",
		`{"kind":"sweep","warm_up":3601}`:                  "warm_up: 3601 is not allowed: 0 to 3600 seconds",
		`{"kind":"trial","span":0.5}`:                      "span: 0.5 is not allowed: 1 to 86400 seconds",
		`{"kind":"capacity","span":86401}`:                 "span: 86401 is not allowed: 1 to 86400 seconds",
		`{"kind":"sweep","snapshots":0}`:                   "snapshots: 0 is not allowed: 1 to 100",
		`{"kind":"sweep","snapshots":101}`:                 "snapshots: 101 is not allowed: 1 to 100",
		`{"kind":"capacity","resolution":0}`:               "resolution: 0 is not allowed: more than 0, up to 1000",
		`{"kind":"capacity","resolution":1001}`:            "resolution: 1001 is not allowed: more than 0, up to 1000",
		`{"kind":"trial","max_time":0}`:                    "max_time: 0 is not allowed: 1 to 604800 seconds",
		`{"kind":"capacity","max_time":604801}`:            "max_time: 604801 is not allowed: 1 to 604800 seconds",
		`{"kind":"trial","slo":{"ttft":0,"tpot":0.06}}`:    "slo.ttft: 0 is not allowed: more than 0, up to 3600 seconds",
		`{"kind":"capacity","slo":{"ttft":0.6}}`:           "slo.tpot: 0 is not allowed: more than 0, up to 3600 seconds",
		`{"kind":"capacity","slo":{"ttft":1,"tpot":3601}}`: "slo.tpot: 3601 is not allowed: more than 0, up to 3600 seconds",
	} {
		var r api.SweepRequest
		require.NoError(t, json.Unmarshal([]byte(text), &r), text)
		err := r.Check()
		if want == "" {
			assert.NoError(t, err, text)
			continue
		}
		assert.EqualError(t, err, want, text)
		var field *api.FieldError
		assert.ErrorAs(t, err, &field, text)
	}
}

// A sweep has ended where nothing more will come.
func TestSweepEnded(t *testing.T) {
	for state, ended := range map[api.SweepState]bool{
		api.SweepRunning: false, api.SweepPaused: false, api.SweepDone: true, api.SweepCancelled: true, api.SweepFailed: true,
	} {
		assert.Equal(t, ended, state.Ended(), state)
	}
}
