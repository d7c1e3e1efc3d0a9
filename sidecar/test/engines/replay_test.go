//go:build engines

package engines

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/figure"
	"kvbooth/sidecar/loadgen/report"
	"kvbooth/sidecar/test/boothtest"
)

// asked is a request of a chat: its prompt contains the turns before.
type asked struct {
	session, turn     int
	at, input, output int // ms, tokens
	blocks            []int
}

// chats returns chats behind four system prompts of 1,024 tokens, in the order of their times.
func chats(blockTokens int) (all []asked) {
	rng := rand.New(rand.NewPCG(5, 5))
	fresh := 0
	fill := func(blocks []int, tokens int) []int { // full blocks, and one for the rest
		blocks = slices.Clone(blocks)
		for len(blocks) < (tokens+blockTokens-1)/blockTokens {
			fresh++
			blocks = append(blocks, fresh)
		}
		return blocks
	}
	var system [4][]int
	for i := range system {
		system[i] = fill(nil, 1024)
	}
	for session := range 20 {
		r := asked{session: session, at: rng.IntN(60_000), input: 1024, blocks: system[rng.IntN(len(system))]}
		for r.turn = range 1 + rng.IntN(5) {
			full := r.input / blockTokens
			r.input += 200 + rng.IntN(700)
			r.output = 12 + rng.IntN(28)
			r.blocks = fill(r.blocks[:full], r.input)
			all = append(all, r)
			r.blocks = r.blocks[:r.input/blockTokens]
			r.input += r.output
			r.blocks = fill(r.blocks, r.input)
			r.at += 6000 + rng.IntN(9000)
		}
	}
	slices.SortFunc(all, func(a, b asked) int { return a.at - b.at })
	return all
}

// traces are the forms of a trace, with the tokens of a block that each usually has.
var traces = map[string]struct {
	blockTokens int
	line        func(all []asked, i int) map[string]any
}{
	"Mooncake": {512, func(all []asked, i int) map[string]any {
		r := all[i]
		return map[string]any{
			"timestamp": r.at, "input_length": r.input, "output_length": r.output, "hash_ids": r.blocks,
		}
	}},
	"Dynamo": {64, func(all []asked, i int) map[string]any {
		r := all[i]
		const epoch = 1_777_312_800_000
		return map[string]any{"timestamp": r.at, "event": map[string]any{
			"schema": "dynamo.request.trace.v1", "event_type": "request_end", "event_time_unix_ms": epoch + r.at + 500,
			"agent_context": map[string]any{"session_id": fmt.Sprint(r.session)},
			"request": map[string]any{
				"request_id": fmt.Sprint(i), "request_received_ms": epoch + r.at, "output_tokens": r.output, "total_time_ms": 500,
				"replay": map[string]any{
					"trace_block_size": 64, "input_length": r.input, "input_sequence_hashes": r.blocks[:r.input/64],
				},
			},
		}}
	}},
	"Bailian": {16, func(all []asked, i int) map[string]any {
		r, parent := all[i], -1
		for k := range i {
			if all[k].session == r.session {
				parent = k
			}
		}
		return map[string]any{
			"chat_id": i, "parent_chat_id": parent, "timestamp": float64(r.at) / 1000, "input_length": r.input,
			"output_length": r.output, "type": "text", "turn": r.turn + 1, "hash_ids": r.blocks,
		}
	}},
}

// Traces of three forms are replayed on one worker of the simulated cluster, and one of them on a vLLM engine.
// Lengths agree with the trace, and the hit rate with that of an unlimited cache and of the simulation.
func TestReplayAgreesWithTrace(t *testing.T) {
	bin := boothtest.Programs(t)
	targets := map[string]func(*testing.T) string{
		"simulated worker": func(t *testing.T) string { return "http://" + simulated(t, bin)[0] },
		"vLLM":             func(t *testing.T) string { return "http://" + engines(t, bin)[0] },
	}
	for target, start := range targets {
		t.Run(target, func(t *testing.T) {
			url := start(t)
			for form, trace := range traces {
				// The forms are read alike for each target: one of them, but in a long run.
				if target == "vLLM" && form != "Mooncake" && os.Getenv(minutes) == "" {
					continue
				}
				t.Run(form, func(t *testing.T) {
					path := filepath.Join(t.TempDir(), "trace.jsonl")
					var lines bytes.Buffer
					all := chats(trace.blockTokens)
					for i := range all {
						require.NoError(t, json.NewEncoder(&lines).Encode(trace.line(all, i)))
					}
					require.NoError(t, os.WriteFile(path, lines.Bytes(), 0o600))
					replays(t, bin, url, path)
				})
			}
		})
	}
}

// replays replays a trace on a target and in a simulation, and compares their figures.
func replays(t *testing.T, bin, url, path string) {
	t.Helper()
	dir := t.TempDir()
	run := func(program string, args ...string) {
		printed, err := exec.CommandContext(t.Context(), filepath.Join(bin, program), args...).CombinedOutput()
		require.NoError(t, err, "%s", printed)
	}
	run("loadgen", "--listen", boothtest.AnyPort, "--target-url", url, "--trace", path, "--data-dir", dir,
		"--output", filepath.Join(dir, "run.json"))
	run("booth", "simulate", "--trace", path, "--workers", "1", "--modes", "kv", "--output", filepath.Join(dir, "sim.csv"))
	data, err := os.ReadFile(filepath.Join(dir, "run.json"))
	require.NoError(t, err)
	var r report.Run
	require.NoError(t, json.Unmarshal(data, &r))
	data, err = os.ReadFile(filepath.Join(dir, "sim.csv"))
	require.NoError(t, err)
	rows := strings.Split(string(data), "\n")
	column := slices.Index(strings.Split(rows[0], ","), "kv_hit_percent")
	var computed float64
	_, err = fmt.Sscan(strings.Split(rows[1], ",")[column], &computed)
	require.NoError(t, err)

	f := r.Fidelity
	require.NotNil(t, f.TheoreticalHitRatio)
	figure.Report(t, "%s: %d turns, sent %.2f ms after their times (p50); input %.1f %% and output %.1f %% of the "+
		"trace's tokens; hit rate %.1f %%, unlimited %.1f %%, simulated %.1f %%", t.Name(), r.Turns.OK, 1000*r.Late.P50,
		100**f.Input, 100**f.Output, 100**r.KVHitRatio.Value, 100**f.TheoreticalHitRatio, computed)
	assert.Zero(t, r.Turns.Failed)
	assert.InDelta(t, 1, *f.Input, .01)
	assert.InDelta(t, 1, *f.Output, .01)
	assert.InDelta(t, *f.TheoreticalHitRatio, *r.KVHitRatio.Value, .02)
	assert.InDelta(t, 100**f.TheoreticalHitRatio, computed, .1)
}
