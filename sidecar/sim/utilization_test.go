package sim

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestKernelsExcludeHostAndFloors checks that kernels contain neither the host's time nor the extra time of a floor.
func TestKernelsExcludeHostAndFloors(t *testing.T) {
	p := timed()
	p.Step.Host = 20
	kernels := p.Step.Kernels
	assert.InDelta(t, 41+.25+.035, kernels(Iteration{Sequences: 1, ContextTokens: 1000}), 1e-9)
	assert.InDelta(t, 41+10, kernels(Iteration{Sequences: 40}), 1e-9, "the floor of 92 ms adds no kernels")
	assert.InDelta(t, 41+.118*100, kernels(Iteration{PrefillTokens: 100}), 1e-9, "the prefill floor adds none either")
}

func TestWeightsAreReadByAllGPUs(t *testing.T) {
	p := H200()
	assert.InDelta(t, 71.0*(1<<30)/4.8e12*1000, p.reading(), 1e-9, "71 GiB at 4.8 TB/s")
	h100, err := LoadProfile("h100-tp2")
	assert.NoError(t, err)
	assert.InDelta(t, 71.0/2*(1<<30)/3.35e12*1000, h100.reading(), 1e-9, "each GPU reads its half")
}
