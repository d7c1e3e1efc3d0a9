package sim

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Of an iteration the kernels are what the model holds to grow with the work, and of
// its base no more than reading the weights takes.
func TestKernels(t *testing.T) {
	p := timed()
	reading := p.reading()
	assert.InDelta(t, 71.0*(1<<30)/4.8e12*1000, reading, 1e-9, "71 GiB at 4.8 TB/s")
	kernels := func(it Iteration) float64 { return p.Step.Kernels(it, reading) }
	assert.InDelta(t, reading+.25+.035, kernels(Iteration{Sequences: 1, ContextTokens: 1000}), 1e-9)
	assert.InDelta(t, reading+10, kernels(Iteration{Sequences: 40}), 1e-9, "the floor of 92 ms adds no kernels")
	assert.InDelta(t, reading+.118*100, kernels(Iteration{PrefillTokens: 100}), 1e-9, "nor does that of a prefill")
	small := p.Step
	small.Base = 5
	assert.InDelta(t, 5, small.Kernels(Iteration{}, reading), 1e-9, "no more than there is")
	h100, err := LoadProfile("h100-tp2")
	assert.NoError(t, err)
	assert.InDelta(t, 71.0/2*(1<<30)/3.35e12*1000, h100.reading(), 1e-9, "each GPU reads its half, both at once")
}
