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
	"gonum.org/v1/gonum/stat"

	"kvbooth/internal/figure"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/proof"
)

const (
	trials = 400
	most   = 29 // largest plausible number of wrong differences at a nominal 5 %, which is 20
)

// wrong counts the trials of a mode with itself that find a difference, in the primary metric and in any other.
func wrong(t *testing.T, alike pool, mode api.Mode, change func(*proof.Plan)) (primary, others int) {
	t.Helper()
	for i := range trials {
		p := plan(60, i, mode, mode)
		change(&p)
		e := run(t, p, alike.draw(i, true))
		if decided(e.Verdict) {
			primary++
		}
		if slices.ContainsFunc(e.Others, func(d api.TrialDifference) bool { return decided(d.Outcome) }) {
			others++
		}
	}
	return primary, others
}

// Trials of a mode with itself find a difference in at most 5 % of cases, with every primary metric and in every other
// metric, also if restarts make each span some percent faster or slower.
func TestEqualModesAreRarelyCalledDifferent(t *testing.T) {
	t.Parallel()
	for _, mode := range []api.Mode{api.ModeKV, api.ModeRoundRobin} {
		scatters := []float64{0}
		if mode == api.ModeKV {
			scatters = append(scatters, .03)
		}
		for _, scatter := range scatters {
			t.Run(fmt.Sprint(mode, scatter), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(9, 9))
				s := setting{concurrency: 60, mode: mode}
				alike := arms(t, size(t), s, s, func(_, _ int, s *setting) { s.slower = math.Exp(scatter * rng.NormFloat64()) })
				text := ""
				for _, m := range []proof.Metric{proof.MeanTTFT, proof.TTFT95, proof.TPOT95, proof.Throughput} {
					primary, others := wrong(t, alike, mode, func(p *proof.Plan) { p.Primary = m })
					text += fmt.Sprintf("%s %d, beside it %d; ", m.Name(), primary, others)
					assert.LessOrEqual(t, primary, most, m)
					assert.LessOrEqual(t, others, most, "beside %s", m)
				}
				together, _ := wrong(t, alike, mode, func(p *proof.Plan) { p.Together = true })
				assert.LessOrEqual(t, together, most, "together")
				figure.Report(t, "%s against itself, spans scatter by %.0f %%: a difference in %stogether %d of %d trials",
					mode, 100*scatter, text, together, trials)
			})
		}
	}
}

// With a drift of 1 % per span, in which all steps of the engine become slower, equal modes are not called different.
func TestDriftMakesNoDifference(t *testing.T) {
	t.Parallel()
	const blocks, variants = 5, 6
	var settings []setting
	for i := range blocks * variants {
		for _, at := range []float64{0, 1.5, 3} { // of the runs of a block, in spans
			settings = append(settings, setting{
				concurrency: 60, mode: api.ModeKV, draws: uint64(i + 1), system: uint64(len(settings) + 1),
				slower: math.Exp(.01 * (4*float64(i/variants) + at)),
			})
		}
	}
	all := spans(t, 1.6*long(60), settings)
	for _, m := range []proof.Metric{proof.MeanTTFT, proof.Throughput} {
		found := 0
		for i := range trials {
			rng := rand.New(rand.NewPCG(uint64(i), 11))
			variant := rng.Perm(variants)
			p := plan(60, i, api.ModeKV, api.ModeKV)
			p.Primary = m
			e := run(t, p, func(_, block, place int) proof.Recording {
				return all[3*(variants*min(block, blocks-1)+variant[block%variants])+place]
			})
			if decided(e.Verdict) {
				found++
			}
		}
		figure.Report(t, "drift of 1 %% a span, kv against itself, %s: a difference in %d of %d trials", m.Name(), found,
			trials)
		assert.LessOrEqual(t, found, most)
	}
}

// compared collects the results of many trials of round-robin and kv.
type compared struct {
	truth              float64 // relative difference over all spans
	right, wrong, held int
	median, late       float64 // minutes
	bias               float64 // of the estimates of trials with a verdict, as a share of the truth
}

func compare(t *testing.T, concurrency int, routers pool, n int, m proof.Metric, together bool) (c compared) {
	t.Helper()
	c.truth = value(routers, 1, m)/value(routers, 0, m) - 1
	better := proof.ABetter
	if (c.truth < 0) == m.LessIsBetter() {
		better = proof.BBetter
	}
	var minutes []float64
	verdicts := 0.
	for i := range n {
		p := plan(concurrency, i, api.ModeRoundRobin, api.ModeKV)
		p.Together, p.Primary = together, m
		e := run(t, p, routers.draw(i, false))
		minutes = append(minutes, e.minutes)
		switch {
		case e.Verdict == string(better):
			c.right++
		case decided(e.Verdict):
			c.wrong++
		}
		if f := e.Final; f != nil && decided(e.Verdict) {
			verdicts++
			c.bias += math.Log1p(f.Difference) / math.Log1p(c.truth)
			if f.Interval[0] <= c.truth && c.truth <= f.Interval[1] {
				c.held++
			}
		}
	}
	slices.Sort(minutes)
	c.median, c.late, c.bias = minutes[len(minutes)/2], minutes[len(minutes)*9/10], c.bias/verdicts
	return c
}

// value returns a metric of TTFT over all spans of an arm as trials compute it: the mean over spans on the logarithmic
// scale.
func value(p pool, arm int, m proof.Metric) float64 {
	sum, n := 0., 0.
	for i := range p {
		for _, r := range p[i][arm] {
			var ttft []float64
			for _, turn := range r.Turns {
				if turn.FirstToken() >= r.CountedFrom {
					ttft = append(ttft, turn.TTFT)
				}
			}
			slices.Sort(ttft)
			v := ttft[len(ttft)*95/100]
			if m == proof.MeanTTFT {
				v = stat.Mean(ttft, nil)
			}
			sum, n = sum+math.Log(v), n+1
		}
	}
	return math.Exp(sum / n)
}

// Trials of round-robin and kv are hardly ever decided wrongly, and up to 120 mostly within the hour. BENCH adds
// levels between and above.
func TestDifferenceIsDecidedCorrectly(t *testing.T) {
	t.Parallel()
	levels := []int{60, 120}
	if os.Getenv("BENCH") != "" {
		levels = []int{60, 80, 100, 120, 140, 160, 180}
	}
	for _, concurrency := range levels {
		t.Run(fmt.Sprint(concurrency), func(t *testing.T) {
			const n = trials / 2
			routers := arms(t, size(t), setting{concurrency: concurrency, mode: api.ModeRoundRobin},
				setting{concurrency: concurrency, mode: api.ModeKV}, func(int, int, *setting) {})
			for _, m := range []proof.Metric{proof.MeanTTFT, proof.TTFT95} {
				for _, together := range []bool{false, true} {
					c := compare(t, concurrency, routers, n, m, together)
					how := map[bool]string{false: "in turns", true: "together"}[together]
					figure.Report(t, "round-robin against kv at %d, %s, %s: %+.1f %%, after %.0f minutes (median; 90 %% by "+
						"%.0f); right in %d, wrong in %d of %d; "+
						"estimate %.2f of the truth, interval covers it in %d",
						concurrency, m.Name(), how, 100*c.truth, c.median, c.late, c.right, c.wrong, n, c.bias, c.held)
					assert.LessOrEqual(t, c.wrong, n*5/100)
					if concurrency <= 120 {
						assert.GreaterOrEqual(t, c.right, n*90/100)
					}
				}
			}
		})
	}
}
