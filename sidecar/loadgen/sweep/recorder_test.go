package sweep

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/workload"
)

// Tokens of a member whose clock differs neither end the recorder nor make it grow beyond the current second.
func TestTokensOfOtherClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder(time.Now(), 0, nil)
		<-time.After(2 * time.Second)
		for at, want := range map[time.Duration][]float64{
			-100 * 365 * 24 * time.Hour: nil, -2 * time.Second: nil, -time.Millisecond: nil,
			0: {7}, time.Second: {0, 7}, 2*time.Second + 1: {0, 0, 7}, 200 * 365 * 24 * time.Hour: {0, 0, 7},
		} {
			r.tokens = nil
			r.Tokens(r.base.Add(at), 7)
			assert.Equal(t, want, r.tokens, at)
		}
	})
}

// A span has the TPOT of a turn as it was measured. Tokens that were not streamed do not divide it, and an unknown one
// meets no SLO.
func TestRecorderKeepsTPOT(t *testing.T) {
	start := time.Now()
	r := newRecorder(start, 0, func(workload.Draw) int64 { return 0 })
	for _, tpot := range []*float64{new(.02), nil} {
		r.Turn(&workload.Turn{Turn: api.Turn{
			Number: 2, Status: api.TurnOK, Started: start, Ended: start.Add(time.Second), TTFT: new(.5), Latency: new(.9),
			OutputTokens: new(500), TPOT: tpot,
		}})
	}
	turns := r.recording(0, 2).Turns
	assert.InDelta(t, .02, turns[0].TPOT, 0)
	assert.Equal(t, []bool{false, true}, []bool{turns[0].TPOTUnknown(), turns[1].TPOTUnknown()})
	slo := api.SLO{TTFT: 1, TPOT: 1}
	assert.Equal(t, []bool{true, false}, []bool{turns[0].Meets(slo), turns[1].Meets(slo)})
}
