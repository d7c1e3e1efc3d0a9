//go:build verify

package proof

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbooth/internal/figure"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/proof"
)

const (
	places = 9 // the pilot and four pairs
	drift  = .1
)

// drifting is a cluster whose steps take 10 % longer at the end of a trial than at its
// beginning, from span to span: some spans of each mode for each place in time.
type drifting map[api.Mode][places][]proof.Recording

func newDrifting(t *testing.T, n int) drifting {
	t.Helper()
	var settings []setting
	modes := []api.Mode{api.ModeKV, api.ModeRoundRobin}
	for _, mode := range modes {
		for place := range places {
			for i := range n {
				settings = append(settings, setting{
					concurrency: 60, mode: mode, draws: uint64((place+1)/2*1000 + i), system: uint64(len(settings) + 1),
					slower: 1 + drift*float64(place)/(places-1),
				})
			}
		}
	}
	all, d := spans(t, long(60)*(1+drift), settings), drifting{}
	for _, mode := range modes {
		var of [places][]proof.Recording
		for place := range places {
			of[place], all = all[:n], all[n:]
		}
		d[mode] = of
	}
	return d
}

// wrong counts the trials that end with another verdict than allowed. In turns, a
// span's place in time is its number; mode after mode, all of A come first.
func (d drifting) wrong(t *testing.T, a, b api.Mode, primary proof.Metric, inTurns bool, right func(proof.Verdict) bool) (wrong int) {
	t.Helper()
	for i := range trials {
		rng := rand.New(rand.NewPCG(uint64(i), 11))
		draws, others := rng.Perm(len(d[a][0])), rng.Perm(len(d[a][0]))
		p := plan(60, i, a, b)
		p.Primary = primary
		s := run(t, p, func(s proof.Span) proof.Recording {
			place, pair := min(s.Number, places-1), (s.Number+1)/2
			if !inTurns && s.Number > 0 {
				place = pair
				if s.Arm == proof.ArmB {
					place += places / 2
				}
			}
			draws := draws
			if a == b && s.Arm == proof.ArmB {
				// Of the few spans of a place, hardly any two pairs of 400 trials are the same
				// so. Without the conversations in common, arms differ by more, not by less.
				draws = others
			}
			return d[s.Mode.Mode][min(place, places-1)][draws[pair%len(draws)]]
		}, nil)
		if !right(s.Verdict) {
			wrong++
		}
	}
	return wrong
}

// With a drift of 10 % over the trial, modes in turns are still told apart, and a mode
// is not found to differ from itself. Measured one mode after the other, it is: in
// throughput, which is known well enough to show it; what TTFT p95 makes of it is printed.
func TestDrift(t *testing.T) {
	t.Parallel()
	d := newDrifting(t, 14)
	equal := func(v proof.Verdict) bool { return !decided(v) }
	better := func(v proof.Verdict) bool { return v == proof.BBetter }
	for _, primary := range []proof.Metric{proof.TTFT95, proof.Throughput} {
		inTurns := d.wrong(t, api.ModeKV, api.ModeKV, primary, true, equal)
		after := d.wrong(t, api.ModeKV, api.ModeKV, primary, false, equal)
		figure.Report(t, "drift of 10 %%, kv against itself, %s: wrong in %d of %d trials in turns, in %d mode after mode",
			primary, inTurns, trials, after)
		assert.LessOrEqual(t, inTurns, most)
		if primary == proof.Throughput {
			assert.Greater(t, after, most)
		}
	}
	inTurns := d.wrong(t, api.ModeRoundRobin, api.ModeKV, proof.TTFT95, true, better)
	t.Logf("round-robin against kv, TTFT p95: in turns wrong or open in %d of %d", inTurns, trials)
	assert.LessOrEqual(t, inTurns, trials*5/100)
}
