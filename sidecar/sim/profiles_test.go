package sim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

func TestBuiltInProfiles(t *testing.T) {
	assert.Equal(t, []string{"h100-tp2", "h100-tp4", "h200-tp1"}, ProfileNames())
	for _, row := range []struct {
		name             string
		workers, gpus    int
		calibrated, base bool
	}{
		{"h200-tp1", 3, 1, true, true},
		{"h100-tp2", 4, 2, false, true},
		{"h100-tp4", 2, 4, false, false},
	} {
		p, err := LoadProfile(row.name)
		require.NoError(t, err)
		assert.Equal(t, row.name, p.Name)
		assert.Equal(t, row.workers, p.Workers)
		assert.Equal(t, row.gpus, p.TensorParallel)
		assert.Len(t, p.Speculation, 4)
		for kind := range p.Speculation {
			calibrated := row.calibrated && kind == api.SpeculationNotRecorded
			assert.Equal(t, calibrated, p.CalibratedFor(kind), "%s, %s", row.name, kind)
		}
		assert.Equal(t, row.base, p.Baseline != "")
		if row.base {
			assert.FileExists(t, "../loadgen/baseline/data/"+p.Baseline+".csv")
		}
	}
	_, err := LoadProfile("../h200")
	assert.EqualError(t, err, "profile: ../h200 is not allowed: h100-tp2, h100-tp4, h200-tp1")
}

// TestCacheSizesFitMemory checks that a cache takes 90 % of the memory that the weights leave.
func TestCacheSizesFitMemory(t *testing.T) {
	const gib = 1 << 30
	for name, memory := range map[string]float64{"h200-tp1": 131.3, "h100-tp2": 74.5, "h100-tp4": 74.5} {
		p, err := LoadProfile(name)
		require.NoError(t, err)
		bandwidth := map[string]float64{"H200": 4800, "H100": 3350}[p.GPU]
		assert.Equal(t, Memory{GPU: memory, Weights: 71, Bandwidth: bandwidth}, p.Memory)
		want := .9 * (float64(p.TensorParallel)*memory - 71) * gib / float64(p.KV.BytesPerToken*p.KV.BlockTokens)
		assert.InEpsilon(t, want, p.KV.Blocks, .001, name)
	}
}

func TestParseProfileNamesWrongField(t *testing.T) {
	good, err := os.ReadFile("profiles/h200-tp1.yaml")
	require.NoError(t, err)
	for _, row := range []struct{ intent, from, to, field string }{
		{"an unknown key", "gpu: H200", "gpu: H200\ngpus: 3", "profile"},
		{"a key twice", "gpu: H200", "gpu: H200\ngpu: H100", "profile"},
		{"a word for a number", "workers: 3", "workers: three", "profile"},
		{"a second document", "name: h200-tp1", "name: a\n---\nname: b", "profile"},
		{"a name that is a path", "name: h200-tp1", "name: ../a", "name"},
		{"no basis", "basis: >-\n  Times", "model_basis: >-\n  Times", "profile"},
		{"no model", "model: meta-llama/Llama-3.1-70B-Instruct", "", "model"},
		{"calibrated without a baseline", "baseline: h200x3-tp1-llama70b-fp8", "", "baseline"},
		{"no workers", "workers: 3", "workers: 0", "workers"},
		{"too many workers", "workers: 3", "workers: 1025", "workers"},
		{"a missing number", "  blocks: 11119", "", "kv.blocks"},
		{"no GPU memory", "gpu: 131.3, ", "", "memory.gpu"},
		{"a cache larger than the memory", "  blocks: 11119", "  blocks: 12400", "memory.gpu"},
		{"no bandwidth", "bandwidth: 4800", "bandwidth: 0", "memory.bandwidth"},
		{"negative weights", "weights: 71", "weights: -1", "memory.weights"},
		{"no room to prefill", "max_batched_tokens: 16384", "max_batched_tokens: 256", "max_batched_tokens"},
		{"a negative time", "base: 22.7", "base: -1", "step.base"},
		{"not a number", "base: 22.7", "base: .nan", "step.base"},
		{"steps that could be negative", "jitter: 0.02", "jitter: 0.5", "step.jitter"},
		{"a reversed range", "min: 33, max: 63", "min: 63, max: 33", "step.floors[0].sequences.max"},
		{"fewer acceptances than tokens", "[0.86, 0.83, 0.80]", "[0.86, 0.83]", "speculation.not_recorded.acceptance"},
		{"an acceptance above 1", "[0.86, 0.83, 0.80]", "[0.86, 1.83, 0.80]", "speculation.not_recorded.acceptance[1]"},
		{"an unknown kind", "  off:", "  medusa:", "speculation"},
		{"no deployment as recorded", "  not_recorded:", "  eagle:", "speculation"},
	} {
		text := strings.Replace(string(good), row.from, row.to, 1)
		require.NotEqual(t, string(good), text, row.intent)
		_, err := ParseProfile([]byte(text))
		refuses(t, row.field, err, row.intent)
	}
	_, err = ParseProfile(nil)
	assert.Error(t, err)
}

func TestSpeculationRates(t *testing.T) {
	p := H200()
	for _, row := range []struct {
		kind               api.Speculation
		tokens, acceptance float64
	}{
		{api.SpeculationNotRecorded, 3.145, .715},
		{api.SpeculationOff, 1, 0},
		{api.SpeculationDraft, 3.777, .555},  // expected acceptance: 0.55 to 0.70
		{api.SpeculationEagle3, 3.105, .702}, // expected acceptance: 0.70 to 0.85
	} {
		s := p.Speculation[row.kind]
		assert.InDelta(t, row.tokens, s.TokensPerStep(), .001, row.kind)
		assert.InDelta(t, row.acceptance, s.AcceptanceRate(), .001, row.kind)
	}
	assert.Equal(t, []int{3, 2, 1, 0}, []int{
		accepted([]float64{.66, .37, .18}, .1), accepted([]float64{.66, .37, .18}, .2),
		accepted([]float64{.66, .37, .18}, .5), accepted([]float64{.66, .37, .18}, .7),
	})
}

func TestOpenProfileByNameOrFile(t *testing.T) {
	p, err := OpenProfile("h100-tp4")
	require.NoError(t, err)
	assert.Equal(t, "h100-tp4", p.Name)

	dir := t.TempDir()
	good, err := os.ReadFile("profiles/h200-tp1.yaml")
	require.NoError(t, err)
	mine := filepath.Join(dir, "mine.yaml")
	renamed := strings.Replace(string(good), "name: h200-tp1", "name: mine", 1)
	require.NoError(t, os.WriteFile(mine, []byte(renamed), 0o600))
	p, err = OpenProfile(mine)
	require.NoError(t, err)
	assert.Equal(t, "mine", p.Name)

	wrong := filepath.Join(dir, "wrong.yaml")
	invalid := strings.Replace(string(good), "workers: 3", "workers: 0", 1)
	require.NoError(t, os.WriteFile(wrong, []byte(invalid), 0o600))
	for nameOrFile, field := range map[string]string{
		"h300": "profile", "nowhere.yaml": "profile", dir + "/nowhere": "profile", wrong: wrong + ": workers",
	} {
		_, err := OpenProfile(nameOrFile)
		refuses(t, field, err, nameOrFile)
	}
}

func TestYAMLRoundTrip(t *testing.T) {
	for _, name := range ProfileNames() {
		p, err := LoadProfile(name)
		require.NoError(t, err)
		text, err := p.YAML()
		require.NoError(t, err)
		again, err := ParseProfile(text)
		require.NoError(t, err, string(text))
		if len(again.Speculation[api.SpeculationOff].Acceptance) == 0 { // an empty list instead of nil
			off := again.Speculation[api.SpeculationOff]
			off.Acceptance = nil
			again.Speculation[api.SpeculationOff] = off
		}
		assert.Equal(t, p, again)
	}
}
