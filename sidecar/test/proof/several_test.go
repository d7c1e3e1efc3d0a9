//go:build verify

package proof

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/proof"
	"kvbooth/sidecar/test/montecarlo"
	"kvbooth/sidecar/test/virtual"
)

// One of five arms has sooner first tokens, since its prefill takes less time, or since its router knows the caches.
// The spans are a closed loop's, with the warm-up and the length that they need. They scatter half as much as those in
// the model of package decisions.
func TestBestOfFiveArmsIsFound(t *testing.T) {
	t.Parallel()
	montecarlo.Run(t, "one of five arms", map[string]fiveArms{
		"prefill of the others 1.6 times as long":  {1.6, api.ModeRoundRobin, 40, 36},
		"prefill of the others 1.25 times as long": {1.25, api.ModeRoundRobin, 40, 0},
		"kv among round-robin":                     {1, api.ModeKV, 40, 36},
		"equal arms":                               {1, api.ModeRoundRobin, 100, 0},
	}, func(t *testing.T, arms fiveArms, r *montecarlo.Results) {
		c, n := r.Cell("trial"), float64(arms.trials)
		for i := range arms.trials {
			arms.run(t, uint64(i), r)
		}
		c.AtMost(t, "some pair wrong", int(.05*n+3*math.Sqrt(.05*.95*n)))
		c.AtLeast(t, "better than all others", arms.least)
	})
}

// fiveArms are arms of which one differs.
type fiveArms struct {
	prefill float64  // factor of the other arms
	mode    api.Mode // of the one that differs
	trials  int      // each with spans of its own
	least   int      // trials that find it
}

// best is the arm that differs from the others.
const best = proof.Arm("d")

// run runs a trial of 90 minutes at most, each span on a cluster of its own.
func (a fiveArms) run(t *testing.T, seed uint64, r *montecarlo.Results) {
	t.Helper()
	p := plan(60, int(seed), api.ModeRoundRobin, api.ModeRoundRobin)
	p.More, p.MaxTime = []api.ModeState{p.A, {Mode: a.mode, Speculation: p.A.Speculation}, p.A}, 5400
	e := run(t, p, func(s proof.Span) (proof.Recording, error) {
		one := virtual.Setting{
			Concurrency: p.Level.Conversations(), Mode: s.Mode.Mode, Draws: s.Seed, System: p.Seed<<20 + uint64(s.Number),
			Prefill: a.prefill, Ramped: true,
		}
		arm := "the other arms"
		if s.Arm == best {
			one.Prefill, arm = 1, "the arm that differs"
		}
		recording, err := span(one, math.Ceil(1.2*s.Seconds*(1+s.RunIn))+20)
		require.NoError(t, err)
		counted := cut(t, recording, s)
		r.Cell(arm).Mean("mean TTFT of a span", stat.Mean(ttft(counted, counted.CountedFrom, counted.Until), nil))
		return recording, nil
	})
	better, mistaken := 0, false
	for _, pair := range e.Ranking.Pairs {
		winner := proof.Arm(pair.A)
		if pair.Primary.Outcome == string(proof.BBetter) {
			winner = proof.Arm(pair.B)
		}
		switch {
		case !decided(pair.Primary.Outcome):
		case (a.prefill > 1 || a.mode == api.ModeKV) && winner == best:
			better++
		default:
			mistaken = true
		}
	}
	c := r.Cell("trial")
	c.Count("some pair wrong", mistaken)
	c.Count("better than all others", !mistaken && better == len(p.More)+1)
	c.Sample("minutes", e.minutes)
}
