//go:build verify

package proof

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat"

	"kvbooth/internal/figure"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/proof"
)

// One of five arms has sooner first tokens, since its prefill takes less time, or since its router knows the caches.
// The spans are a closed loop's, with the warm-up and the length that they need. They scatter half as much as those in
// the model of package decisions.
func TestBestOfFiveArmsIsFound(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		prefill float64 // factor of the other arms
		mode    api.Mode
		trials  int // each with spans of its own
		least   int // trials that find it
	}{
		{"prefill of the others 1.6 times as long", 1.6, api.ModeRoundRobin, 40, 36},
		{"prefill of the others 1.25 times as long", 1.25, api.ModeRoundRobin, 40, 0},
		{"kv among round-robin", 1, api.ModeKV, 40, 36},
		{"equal arms", 1, api.ModeRoundRobin, 100, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := fiveArms{differ: test.prefill > 1 || test.mode == api.ModeKV}
			for i := range test.trials {
				c.run(t, uint64(i), test.prefill, test.mode)
			}
			slices.Sort(c.minutes)
			figure.Report(t, "one of five arms, %s, mean TTFT %+.1f %%: better than all others in %d of %d trials, wrong in "+
				"%d, after %.0f minutes (median; 90 %% by %.0f); spans scatter by %.3f", test.name,
				100*math.Expm1(stat.Mean(c.logs[true], nil)-stat.Mean(c.logs[false], nil)), c.found, test.trials, c.wrong,
				c.minutes[test.trials/2], c.minutes[test.trials*9/10], stat.StdDev(c.logs[false], nil))
			n := float64(test.trials)
			assert.LessOrEqual(t, float64(c.wrong), .05*n+3*math.Sqrt(.05*.95*n), "three standard errors above 5 %%")
			assert.GreaterOrEqual(t, c.found, test.least)
		})
	}
}

// fiveArms collects the results of many trials of five arms.
type fiveArms struct {
	differ       bool
	found, wrong int
	minutes      []float64
	logs         map[bool][]float64 // of the spans' mean TTFT, of the better arm and of the others
}

// run runs a trial of 90 minutes at most.
func (c *fiveArms) run(t *testing.T, seed uint64, prefill float64, mode api.Mode) {
	t.Helper()
	p := plan(60, int(seed), api.ModeRoundRobin, api.ModeRoundRobin)
	p.More, p.MaxTime = []api.ModeState{p.A, {Mode: mode, Speculation: p.A.Speculation}, p.A}, 5400
	e, spans := runSeveral(t, p, prefill)
	c.minutes = append(c.minutes, e.minutes)
	if c.logs == nil {
		c.logs = map[bool][]float64{}
	}
	for arm, logs := range spans {
		c.logs[arm == best] = append(c.logs[arm == best], logs...)
	}
	better, mistaken := 0, false
	for _, pair := range e.Ranking.Pairs {
		winner := proof.Arm(pair.A)
		if pair.Primary.Outcome == string(proof.BBetter) {
			winner = proof.Arm(pair.B)
		}
		switch {
		case !decided(pair.Primary.Outcome):
		case c.differ && winner == best:
			better++
		default:
			mistaken = true
		}
	}
	if mistaken {
		c.wrong++
	} else if better == len(p.More)+1 {
		c.found++
	}
}

// best is the arm that differs from the others.
const best = proof.Arm("d")

// runSeveral runs a trial of more than two arms, each span on a cluster of its own. It returns the logarithms of the
// spans' mean TTFT.
func runSeveral(t *testing.T, p proof.Plan, prefill float64) (e ended, ttft map[proof.Arm][]float64) {
	t.Helper()
	machine, err := proof.New(p)
	require.NoError(t, err)
	ttft = map[proof.Arm][]float64{}
	for {
		s, ok := machine.Next()
		if !ok {
			e.TrialState = machine.State()
			return e, ttft
		}
		one := setting{
			concurrency: p.Level.Conversations(), mode: s.Mode.Mode, draws: s.Seed, system: p.Seed<<20 + uint64(s.Number),
			prefill: prefill,
		}
		if s.Arm == best {
			one.prefill = 1
		}
		r, err := span(one, math.Ceil(1.2*s.Seconds*(1+s.RunIn))+20)
		require.NoError(t, err)
		r = cut(t, r, s)
		ttft[s.Arm] = append(ttft[s.Arm], math.Log(meanTTFT(r)))
		elapsed := restart.Seconds() + r.Until
		require.Empty(t, machine.Add(proof.Result{Recording: r, Elapsed: elapsed}))
		e.minutes += elapsed / 60
	}
}

// meanTTFT returns the mean over the first tokens that count.
func meanTTFT(r proof.Recording) float64 {
	var all []float64
	for _, turn := range r.Turns {
		if turn.FirstToken >= r.CountedFrom && turn.FirstToken < r.Until {
			all = append(all, turn.FirstToken-turn.Sent)
		}
	}
	return stat.Mean(all, nil)
}
