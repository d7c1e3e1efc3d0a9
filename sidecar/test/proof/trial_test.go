//go:build verify

package proof

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"gonum.org/v1/gonum/stat"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/proof"
	"kvbooth/sidecar/test/montecarlo"
	"kvbooth/sidecar/test/virtual"
)

const (
	trials = 400
	most   = 29 // largest plausible number of wrong differences at a nominal 5 %, which is 20
)

// alike is a mode that is compared with itself.
type alike struct {
	mode    api.Mode
	scatter float64 // standard deviation of the logarithm of the spans' duration
}

// Trials of a mode with itself find a difference in at most 5 % of cases, with every primary metric and in every other
// metric, also if restarts make each span some percent faster or slower.
func TestEqualModesAreRarelyCalledDifferent(t *testing.T) {
	t.Parallel()
	montecarlo.Run(t, "equal modes", map[string]alike{
		"kv": {api.ModeKV, 0}, "kv, spans scatter by 3 %": {api.ModeKV, .03}, "round-robin": {api.ModeRoundRobin, 0},
	}, func(t *testing.T, of alike, r *montecarlo.Results) {
		rng := rand.New(rand.NewPCG(9, 9))
		s := virtual.Setting{Concurrency: 60, Mode: of.mode}
		pool := arms(t, size(t), s, s, func(_, _ int, s *virtual.Setting) {
			s.SlowerGPU = math.Exp(of.scatter * rng.NormFloat64())
		})
		trialsOf := func(name string, primary proof.Metric, together bool) *montecarlo.Cell {
			c := r.Cell(name)
			for i := range trials {
				p := plan(60, i, of.mode, of.mode)
				p.Primary, p.Together = primary, together
				count(c, run(t, p, pool.draw(i, true, together)))
			}
			c.AtMost(t, "a difference", most)
			return c
		}
		for _, m := range []proof.Metric{proof.MeanTTFT, proof.TTFT95, proof.TPOT95, proof.Throughput} {
			trialsOf(m.Name(), m, false).AtMost(t, "a difference in another metric", most)
		}
		trialsOf("together", proof.MeanTTFT, true)
	})
}

// With a drift of 1 % per span, in which all steps of the engine become slower, equal modes are not called different.
func TestDriftMakesNoDifference(t *testing.T) {
	t.Parallel()
	const blocks, variants = 5, 6
	var settings []virtual.Setting
	for i := range blocks * variants {
		for _, at := range []float64{0, 1.5, 3} { // of the runs of a block, in spans
			settings = append(settings, virtual.Setting{
				Concurrency: 60, Mode: api.ModeKV, Draws: uint64(i + 1), System: uint64(len(settings) + 1), Ramped: true,
				SlowerGPU: math.Exp(.01 * (4*float64(i/variants) + at)),
			})
		}
	}
	all := spans(t, 1.6*long(60), settings)
	montecarlo.Run(t, "drift of 1 % a span, kv against itself", montecarlo.Each("%s", proof.MeanTTFT, proof.Throughput),
		func(t *testing.T, m proof.Metric, r *montecarlo.Results) {
			c := r.Cell(m.Name())
			for i := range trials {
				variant := rand.New(rand.NewPCG(uint64(i), 11)).Perm(variants)
				p := plan(60, i, api.ModeKV, api.ModeKV)
				p.Primary = m
				count(c, run(t, p, places(3, func(_, block, place int) proof.Recording {
					return all[3*(variants*min(block, blocks-1)+variant[block%variants])+place]
				})))
			}
			c.AtMost(t, "a difference", most)
		})
}

// value returns a metric of TTFT over all spans of an arm as trials compute it: the mean over spans on the logarithmic
// scale.
func value(p pool, arm int, m proof.Metric) float64 {
	sum, n := 0., 0.
	for i := range p {
		for _, r := range p[i][arm] {
			all := ttft(r, r.CountedFrom, math.Inf(1))
			v := all[len(all)*95/100]
			if m == proof.MeanTTFT {
				v = stat.Mean(all, nil)
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
	montecarlo.Run(t, "round-robin against kv", montecarlo.Each("%d", levels...),
		func(t *testing.T, concurrency int, r *montecarlo.Results) {
			const n = trials / 2
			routers := arms(t, size(t), virtual.Setting{Concurrency: concurrency, Mode: api.ModeRoundRobin},
				virtual.Setting{Concurrency: concurrency, Mode: api.ModeKV}, func(int, int, *virtual.Setting) {})
			for _, m := range []proof.Metric{proof.MeanTTFT, proof.TTFT95} {
				truth := value(routers, 1, m)/value(routers, 0, m) - 1
				for _, together := range []bool{false, true} {
					how := "in turns"
					if together {
						how = "together"
					}
					c := r.Cell(fmt.Sprintf("%s, %s, truly %+.1f %%", m.Name(), how, 100*truth))
					for i := range n {
						p := plan(concurrency, i, api.ModeRoundRobin, api.ModeKV)
						p.Together, p.Primary = together, m
						against(c, run(t, p, routers.draw(i, false, together)), truth, m)
					}
					c.AtMost(t, "wrong", n*5/100)
					if concurrency <= 120 {
						c.AtLeast(t, "right", n*90/100)
					}
				}
			}
		})
}

// against counts the result of a trial of two modes whose relative difference is known.
func against(c *montecarlo.Cell, e ended, truth float64, m proof.Metric) {
	count(c, e)
	better := proof.ABetter
	if (truth < 0) == m.LessIsBetter() {
		better = proof.BBetter
	}
	c.Count("right", e.Verdict == string(better))
	c.Count("wrong", e.Verdict != string(better) && decided(e.Verdict))
	if f := e.Final; f != nil && decided(e.Verdict) {
		c.Mean("estimate / truth", math.Log1p(f.Difference)/math.Log1p(truth))
		c.Count(montecarlo.Covers, f.Interval[0] <= truth && truth <= f.Interval[1])
	}
}
