package stats

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/decide"
)

// First tokens count from a time on, of their own step alone. A value that comes late belongs to the batch in progress.
func TestFirstTokensThatCount(t *testing.T) {
	w, m := NewWindow(t0, slo), NewMeter(t0)
	w.BeginStep(2, nil)
	w.FirstToken(2, at(1), .1)
	w.CountFrom(at(10))
	w.FirstToken(2, at(9.9), .1)
	w.FirstToken(1, at(11), .1)
	w.FirstToken(2, at(11), math.NaN())
	values, batches := w.FirstTokens()
	assert.Zero(t, values)
	assert.Zero(t, batches)
	for i := range 50 {
		w.FirstToken(2, at(12+float64(i)*.2), .2)
	}
	w.AdvanceLive(m, at(39))
	assert.InDelta(t, .2, *w.Live(m, at(39), 2).Window.Metrics.TTFT.Mean, 1e-9, "so far")
	w.AdvanceLive(m, at(40))
	w.FirstToken(2, at(39), .4)
	values, batches = w.FirstTokens()
	assert.Equal(t, 51, values)
	assert.Equal(t, 1, batches)
	s, ok := w.Series()
	assert.True(t, ok)
	assert.Equal(t, 50, s.N)
	assert.Equal(t, at(40), s.Until)
	assert.Equal(t, liveBatch, s.Batch)
	assert.InDelta(t, .2, s.Average, 1e-9)
	w.BeginStep(3, nil)
	_, ok = w.Series()
	assert.False(t, ok)
}

func TestShareOfFailedTurns(t *testing.T) {
	w := NewWindow(t0, slo)
	assert.Zero(t, w.FailedShare(at(1)))
	for i, status := range []api.TurnStatus{api.TurnOK, api.TurnOK, api.TurnOK, api.TurnError, api.TurnCancelled} {
		w.Add(&api.Turn{Ended: at(float64(i)), Number: 1, Status: status}, nil)
	}
	assert.InDelta(t, .25, w.FailedShare(at(5)), 1e-9)
	assert.Zero(t, w.FailedShare(at(70)))
}

// A slow change of the speed is an error of the reference: the interval never gets shorter than that allows.
func TestContrastAllowsForWander(t *testing.T) {
	is := decide.Mean{N: 1e6, Batch: decide.Variance{Value: .01, DF: 1e6}}
	assert.Greater(t, Contrast(is, decide.Mean{N: math.Inf(1)}), 1.96*liveWander)
	assert.Less(t, Contrast(is, decide.Mean{N: math.Inf(1)}), 4*liveWander)
	few := decide.Mean{N: 2, Batch: decide.Variance{Value: .01, DF: 3}}
	assert.Greater(t, Contrast(is, few), Contrast(is, decide.Mean{N: 2, Batch: decide.Variance{Value: .01, DF: 30}}))
}

// The design effect of another setting's series is that of their batches, at least the one that is assumed.
func TestDesignEffectOfSeries(t *testing.T) {
	assert.EqualValues(t, designEffect, DesignEffect(nil))
	calm := []Series{{Mean: []float64{1, 1.1, 1, 1.1}, Independent: .01}}
	assert.EqualValues(t, designEffect, DesignEffect(calm))
	swinging := []Series{{Mean: []float64{1, 1.5, 1, 1.5}, Independent: .01}}
	assert.Greater(t, DesignEffect(swinging), 5.)
}

// The last five minutes are compared with the batches before them.
func TestStepThatHasChanged(t *testing.T) {
	s := Series{Batch: liveBatch, Independent: .001}
	for i := range 20 {
		s.Mean = append(s.Mean, .01*float64(i%2))
	}
	_, changed := s.Changed(nil)
	assert.False(t, changed)
	for i := 10; i < 20; i++ {
		s.Mean[i] += .5
	}
	d, changed := s.Changed(nil)
	assert.True(t, changed)
	assert.InDelta(t, .5, d, 1e-9)
	s.Mean = s.Mean[7:]
	_, changed = s.Changed(nil)
	assert.False(t, changed, "too few batches before the last five minutes")
}
