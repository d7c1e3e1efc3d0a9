package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"kvbooth/sidecar/api"
)

// Of an iteration the kernels are what the model holds to grow with the work, and of
// its base no more than reading the weights takes.
func TestKernels(t *testing.T) {
	p := timed()
	reading := p.reading()
	assert.InDelta(t, 71.0*(1<<30)/4.8e12*1000, reading, 1e-9, "71 GiB at 4.8 TB/s")
	kernels := func(it Iteration) float64 { return p.Step.Kernels(it, reading) }
	assert.InDelta(t, reading+.5+.035, kernels(Iteration{Sequences: 1, ContextTokens: 1000}), 1e-9)
	assert.InDelta(t, reading+20, kernels(Iteration{Sequences: 40}), 1e-9, "the floor of 92 ms adds no kernels")
	assert.InDelta(t, reading+.118*100, kernels(Iteration{PrefillTokens: 100}), 1e-9, "nor does that of a prefill")
	small := p.Step
	small.Base = 5
	assert.InDelta(t, 5, small.Kernels(Iteration{}, reading), 1e-9, "no more than there is")
	h100, err := LoadProfile("h100-tp2")
	assert.NoError(t, err)
	assert.InDelta(t, 71.0/2*(1<<30)/3.35e12*1000, h100.reading(), 1e-9, "each GPU reads its half, both at once")
}

// GPUs show 40 to 80 % at the recorded levels, less below, nothing when idle: in
// every mode, each worker's over a minute.
func TestUtilisation(t *testing.T) {
	for _, mode := range []api.Mode{api.ModeKV, api.ModeRoundRobin} {
		least, most := 1.0, 0.0 // of the recorded levels
		for _, concurrency := range []int{60, 80, 100, 120, 140, 160, 180} {
			for _, u := range utilisation(t, mode, concurrency) {
				least, most = min(least, u), max(most, u)
			}
		}
		t.Logf("%s: %.0f to %.0f %% at 60 to 180", mode, 100*least, 100*most)
		assert.Greater(t, least, .4, mode)
		assert.Less(t, most, .8, mode)
		for _, concurrency := range []int{1, 2, 3, 5} {
			mean := 0.0
			for _, u := range utilisation(t, mode, concurrency) {
				mean += u / 3
			}
			t.Logf("%s: %.0f %% at %d", mode, 100*mean, concurrency)
			assert.Greater(t, mean, .05, "%s at %d", mode, concurrency)
			assert.Less(t, mean, .45, "%s at %d: hardly more than reading the weights over and over", mode, concurrency)
			assert.Less(t, mean, least, "%s at %d", mode, concurrency)
		}
		for _, u := range utilisation(t, mode, 0) {
			assert.Zero(t, u, mode)
		}
	}
}

// utilisation is the share of a minute, after two that settle it, in which each
// worker's GPUs run kernels.
func utilisation(t *testing.T, mode api.Mode, concurrency int) (shares []float64) {
	t.Helper()
	o := DefaultOptions(H200())
	o.Mode = mode
	l := newClosedLoop(t, o, concurrency, tenStarters)
	const settled, over = 2 * time.Minute, time.Minute
	l.run(settled)
	l.cluster.Advance(settled)
	before := l.cluster.Workers()
	l.cluster.Advance(settled + over)
	for i, w := range l.cluster.Workers() {
		kernels := w.Kernels + w.Launched - before[i].Kernels - before[i].Launched
		assert.LessOrEqual(t, w.Kernels, w.Busy)
		shares = append(shares, kernels.Seconds()/over.Seconds())
	}
	return shares
}
