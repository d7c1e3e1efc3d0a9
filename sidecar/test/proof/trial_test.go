//go:build verify

package proof

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/proof"
)

const (
	trials = 400
	most   = 29 // of them that may find a difference where there is none, at a nominal 5 %, which is 20
)

// Trials of a mode against itself find a difference in no more than 5 % of cases, in the
// metric that decides and in any of the others. Since the true difference is none, that is the
// coverage of the intervals over all looks together, too.
func TestNoDifference(t *testing.T) {
	t.Parallel()
	for _, mode := range []api.Mode{api.ModeKV, api.ModeRoundRobin} {
		t.Run(string(mode), func(t *testing.T) {
			alike := arms(t, size(t), long(60), setting{concurrency: 60, mode: mode}, func(int, *setting, *setting) {})
			for _, primary := range proof.Metrics {
				wrong, others := 0, 0
				verdicts := map[proof.Verdict]int{}
				for i := range trials {
					p := plan(60, i, mode, mode)
					p.Primary = primary
					missed := false
					s := run(t, p, alike.draw(i, true), func(s proof.State) {
						for _, o := range s.Others {
							missed = missed || decided(o.Outcome)
						}
					})
					verdicts[s.Verdict]++
					if decided(s.Verdict) {
						wrong++
					}
					if missed {
						others++
					}
				}
				t.Logf("%-24s decides: wrong in %2d of %d trials; in another metric in %2d; %v", primary, wrong, trials, others, verdicts)
				assert.LessOrEqual(t, wrong, most, primary)
				assert.LessOrEqual(t, others, most, "beside %s", primary)
			}
			wrong := 0
			for i := range trials {
				p := plan(60, i, mode, mode)
				p.Together = true
				if decided(run(t, p, alike.draw(i, true), nil).Verdict) {
					wrong++
				}
			}
			t.Logf("both arms together: %-24s wrong in %d of %d", proof.TTFT95, wrong, trials)
			assert.LessOrEqual(t, wrong, most, "together")
		})
	}
}

// A cluster that comes back from each change of mode by 1 % faster or slower, as the
// method allows for, does not make it find differences either. What happens beyond that is shown.
func TestNoDifferenceThoughRestartsDiffer(t *testing.T) {
	t.Parallel()
	sizes := []float64{.01}
	if os.Getenv("BENCH") != "" {
		sizes = append(sizes, .02, .05)
	}
	for _, deviation := range sizes {
		rng := rand.New(rand.NewPCG(9, 9))
		different := func(_ int, a, b *setting) {
			a.slower, b.slower = math.Exp(deviation*rng.NormFloat64()), math.Exp(deviation*rng.NormFloat64())
		}
		alike := arms(t, size(t), long(60)*1.1, setting{concurrency: 60, mode: api.ModeKV}, different)
		for _, primary := range proof.Metrics {
			wrong := 0
			for i := range trials {
				p := plan(60, i, api.ModeKV, api.ModeKV)
				p.Primary = primary
				if decided(run(t, p, alike.draw(i, true), nil).Verdict) {
					wrong++
				}
			}
			t.Logf("spans by %.0f %% faster or slower: %-24s wrong in %d of %d", 100*deviation, primary, wrong, trials)
			if deviation <= .01 {
				assert.LessOrEqual(t, wrong, most, primary)
			}
		}
	}
}

// compared is what many trials of round-robin against kv came to.
type compared struct {
	truth                 float64 // relative difference in TTFT p95 over all spans
	right, wrong, covered int
	median, late          float64 // minutes
}

// both are the arms of round-robin and kv at a concurrency.
func both(t *testing.T, concurrency, pairs int) pool {
	t.Helper()
	return arms(t, pairs, long(concurrency), setting{concurrency: concurrency}, func(_ int, a, b *setting) {
		a.mode, b.mode = api.ModeRoundRobin, api.ModeKV
	})
}

// compare runs trials on spans of both, in turns or together.
func compare(t *testing.T, concurrency int, routers pool, trials int, together bool) (c compared) {
	t.Helper()
	c.truth = value(t, routers.b)/value(t, routers.a) - 1
	better := map[bool]proof.Verdict{true: proof.BBetter, false: proof.ABetter}[c.truth < 0]
	var minutes []float64
	for i := range trials {
		covered := true
		p := plan(concurrency, i, api.ModeRoundRobin, api.ModeKV)
		p.Together = together
		s := run(t, p, routers.draw(i, false), func(s proof.State) {
			in := s.Primary.Interval
			covered = covered && in[0] <= c.truth && c.truth <= in[1]
		})
		if covered {
			c.covered++
		}
		if s.Verdict == better {
			c.right++
		} else if decided(s.Verdict) {
			c.wrong++
		}
		minutes = append(minutes, s.Used/60)
	}
	slices.Sort(minutes)
	c.median, c.late = minutes[len(minutes)/2], minutes[len(minutes)*9/10]
	return c
}

// value is the TTFT p95 of many spans together.
func value(t *testing.T, all []proof.Recording) float64 {
	t.Helper()
	var ttft []float64
	for _, r := range all {
		for _, turn := range cut(t, r, proof.Span{}).Turns {
			if turn.FirstToken >= r.CountedFrom {
				ttft = append(ttft, turn.FirstToken-turn.Sent)
			}
		}
	}
	slices.Sort(ttft)
	return ttft[len(ttft)*95/100]
}

func (c compared) String() string {
	return fmt.Sprintf("TTFT p95 under kv by %+.1f %%: decided after %.0f minutes (median; 90 %% by %.0f)", 100*c.truth, c.median, c.late)
}

// Round-robin against kv at 60 and 120 is decided rightly in 95 of 100 trials, half of
// them within 25 minutes, the pilot included, and within 12 and half of that where both run at
// the same time; the intervals up to then hold the truth in as many.
func TestDifference(t *testing.T) {
	t.Parallel()
	for _, concurrency := range []int{60, 120} {
		t.Run(fmt.Sprint(concurrency), func(t *testing.T) {
			routers := both(t, concurrency, size(t))
			var medians [2]float64
			for i, together := range []bool{false, true} {
				c := compare(t, concurrency, routers, trials, together)
				t.Logf("%s: %v; right in %d, wrong in %d of %d; all intervals hold the truth in %d", how(together), c, c.right, c.wrong, trials, c.covered)
				assert.GreaterOrEqual(t, c.right, trials*95/100, how(together))
				assert.GreaterOrEqual(t, c.covered, trials*95/100, how(together))
				if math.Abs(c.truth) > .1 {
					assert.LessOrEqual(t, c.median, target(together), how(together))
				}
				medians[i] = c.median
			}
			assert.LessOrEqual(t, medians[1], medians[0]/2)
		})
	}
}

// how says how a trial runs its arms.
func how(together bool) string { return map[bool]string{true: "together", false: "in turns"}[together] }

// target is in how many minutes half of the trials are to be decided where the modes differ by more than 10 %.
func target(together bool) float64 { return map[bool]float64{true: 12, false: 25}[together] }

// How long it takes until kv and round-robin are told apart: BENCH prints it for all levels,
// beside what is to be reached where they differ by more than 10 %.
func TestTimeToVerdict(t *testing.T) {
	if os.Getenv("BENCH") == "" {
		t.Skip("only in mage bench: minutes")
	}
	for concurrency := 60; concurrency <= 180; concurrency += 20 {
		routers := both(t, concurrency, max(perTrial, size(t)/2))
		for _, together := range []bool{false, true} {
			c := compare(t, concurrency, routers, 200, together)
			reached := "differs by less than 10 %"
			if math.Abs(c.truth) > .1 {
				reached = fmt.Sprintf("%.0f minutes: %s", target(together), map[bool]string{true: "reached", false: "NOT reached"}[c.median <= target(together)])
			}
			t.Logf("at %3d %s: %v; right %d, wrong %d, open %d of 200; %s", concurrency, how(together), c, c.right, c.wrong, 200-c.right-c.wrong, reached)
			assert.LessOrEqual(t, c.wrong, 10, "at %d, %s", concurrency, how(together))
		}
	}
	t.Log("the specification takes 12 runs of 6 minutes: 72 a level")
}
