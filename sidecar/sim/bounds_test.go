package sim

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// TestConstantBounds checks the bounds against the GPU's data sheet and the model.
func TestConstantBounds(t *testing.T) {
	low := map[string]float64{
		"step.host": 0, "step.host_per_sequence": 0, "step.base": 15.88, "step.per_sequence": 0,
		"step.per_context_token": 3.413e-5, "step.per_prefill_token": .07135, "step.per_chunk_context": 1.325e-6,
		"speculation.not_recorded.tokens_per_step": 1,
	}
	p, other := H200(), H200()
	for _, c := range p.Constants() {
		if want, ok := low[c.Name]; ok {
			assert.InDelta(t, want, c.Low, .0005*want, c.Name)
			delete(low, c.Name)
		}
		assert.Less(t, c.Low, c.High, c.Name)
		assert.NotEmpty(t, c.Why, c.Name)
		before, middle := c.Get(&p), (c.Low+c.High)/2
		c.Set(&other, middle)
		assert.InDelta(t, middle, c.Get(&other), 1e-6*middle, c.Name)
		assert.Equal(t, before, c.Get(&p), "%s of another profile", c.Name)
	}
	assert.Empty(t, low)
	assert.Equal(t, H200(), p)

	// Two GPUs read and compute at the same time.
	h100, err := LoadProfile("h100-tp2")
	require.NoError(t, err)
	for i, c := range h100.Constants()[2:6] {
		ratio := []float64{2 * 3350. / 4800, 1, 2 * 3350. / 4800, 2}[i]
		assert.InDelta(t, p.Constants()[2:][i].Low/ratio, c.Low, 1e-9, c.Name)
	}
}

func TestValidateRefusesConstantsAndSources(t *testing.T) {
	for _, row := range []struct {
		intent, field string
		change        func(*Profile)
	}{
		{"faster than the memory", "step.base", func(p *Profile) { p.Step.Base = 15 }},
		{"faster than the arithmetic", "step.per_prefill_token", func(p *Profile) { p.Step.PerPrefillToken = .05 }},
		{"more tokens than are drafted", "speculation.not_recorded.acceptance[0]", func(p *Profile) {
			p.Speculation[api.SpeculationNotRecorded] = Speculation{
				DraftTokens: 1, Acceptance: []float64{1.5}, StepScale: 1, Basis: "test",
			}
		}},
		{"no source", "sources.step.base", func(p *Profile) { delete(p.Sources, "step.base") }},
		{"a source of an unknown constant", "sources", func(p *Profile) { p.Sources["step.bass"] = Source{Fitted, "test"} }},
		{"no origin", "sources.hand_over.origin", func(p *Profile) { p.Sources["hand_over"] = Source{"", "test"} }},
		{"no text", "sources.hand_over.from", func(p *Profile) { p.Sources["hand_over"] = Source{Fitted, ""} }},
		{"fitted without a baseline", "sources.step.host.origin", func(p *Profile) { p.Calibrated, p.Baseline = false, "" }},
	} {
		p := H200()
		row.change(&p)
		refuses(t, row.field, p.Validate(), row.intent)
	}
}
