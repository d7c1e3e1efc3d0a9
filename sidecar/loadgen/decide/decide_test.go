package decide

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var ttft = Metric{Name: "ttft", LessIsBetter: true}

func planOf(arms int, metrics ...Metric) Plan {
	return Plan{Arms: arms, Metrics: metrics, Alpha: .05, Margin: .05, MaxSeconds: 3600, Known: &Boundaries{}}
}

// abba returns a block of two arms, with values of one metric in the order of its runs.
func abba(outer int, values ...float64) Block {
	b := Block{Seconds: 600}
	for i, v := range values {
		arm := outer
		if i == 1 {
			arm = 1 - outer
		}
		b.Spans = append(b.Spans, Span{
			Arm: arm, At: []float64{-1.5, 0, 1.5}[i], Values: map[string]float64{ttft.Name: math.Exp(v)}, Ended: 100,
		})
	}
	return b
}

// In the two blocks, contrasts B − A are 0.2 and 0.4, and the outer runs differ by 0.1 and by 0.3. Without the slope
// the residual squares are those of (0.2 − 0.3) and (0.4 − 0.3), times 2/3, and (0.1² + 0.3²)/2, over three degrees of
// freedom.
func TestModelEqualsHandComputedFit(t *testing.T) {
	blocks := []Block{abba(0, 1, 1.25, 1.1), abba(1, 3.55, 3, 3.25)}
	d := Decide(planOf(2, ttft), blocks)
	require.Len(t, d.Primary, 1)
	c := d.Primary[0]
	s2 := (2./3*(.01+.01) + (.01+.09)/2) / 3
	assert.InDelta(t, .3, c.Estimate, 1e-9)
	assert.InDelta(t, s2, Variances(planOf(2, ttft), blocks, false)[ttft.Name].Value, 1e-9)
	assert.InDelta(t, 3, c.DF, 0)
	assert.InDelta(t, math.Sqrt(1.5*s2/2), c.SE, 1e-9)
	critical := toStudent(Boundary(.05, []Look{{2, 1. / 3, 3}})[0], 3)
	assert.InDelta(t, .3-critical*c.SE, c.Repeated[0], 1e-9)
	assert.Equal(t, Running, d.Verdict)

	moderated := planOf(2, ttft)
	moderated.Priors = map[string]Variance{ttft.Name: {.01, 5}}
	c = Decide(moderated, blocks).Primary[0]
	assert.InDelta(t, 8, c.DF, 0)
	assert.InDelta(t, math.Sqrt(1.5*(3*s2+5*.01)/8/2), c.SE, 1e-9, "the prior adds its degrees of freedom")
	for _, prior := range []Variance{{s2 / 20, 5}, {}} {
		moderated.Priors[ttft.Name] = prior
		c = Decide(moderated, blocks).Primary[0]
		assert.InDelta(t, 3, c.DF, 0, "the blocks contradict the prior")
		assert.InDelta(t, math.Sqrt(1.5*s2/2), c.SE, 1e-9)
	}
}

// blocksOf draws whole blocks of arms with the given effects.
func blocksOf(seed uint64, n int, noise float64, effects ...float64) (all []Block) {
	rng := rand.New(rand.NewPCG(seed, 1))
	for k := range n {
		b := Block{Seconds: 600}
		arms := make([]int, len(effects))
		for i := range arms {
			arms[i] = i
		}
		for _, r := range Order(seed, arms, k) {
			b.Spans = append(b.Spans, Span{
				Arm: r.Arm, At: r.At, Ended: 100,
				Values: map[string]float64{
					ttft.Name: math.Exp(.1*float64(k) + .002*r.At + effects[r.Arm] + noise*rng.NormFloat64()),
				},
			})
		}
		all = append(all, b)
	}
	return all
}

func TestVerdicts(t *testing.T) {
	failing := func(blocks []Block, arm, failed int) []Block {
		for i := range blocks {
			for j := range blocks[i].Spans {
				if blocks[i].Spans[j].Arm == arm {
					blocks[i].Spans[j].Failed = failed
				}
			}
		}
		return blocks
	}
	late := blocksOf(1, 2, .001, 0, -.3)
	for i := range late {
		for j := range late[i].Spans {
			late[i].Spans[j].Late = map[string]float64{ttft.Name: .5}
		}
	}
	wide := []Block{
		abba(0, 1, 1.5, 2), abba(0, 1, 2.5, 1), abba(1, 1, 2, 3), abba(1, 0, 2, 1), abba(0, 1, 1, 3), abba(0, 1, 1, 3),
	}
	for _, test := range []struct {
		name   string
		blocks []Block
		want   Verdict
		best   int
		looks  int
	}{
		{"one block is no look", blocksOf(1, 1, .001, 0, -.3), Running, -1, 0},
		{"B at the first look", blocksOf(1, 2, .001, 0, -.3), Better, 1, 1},
		{"A at the first look", blocksOf(2, 2, .001, 0, .3), Better, 0, 1},
		{"blocks after the end are ignored", blocksOf(2, 6, .001, 0, .3), Better, 0, 1},
		{"within the margin", blocksOf(1, 2, .001, 0, .001), NoDifference, 0, 1},
		{"the time is over", wide, TimeOver, -1, 5},
		{"the faster arm fails more often", failing(blocksOf(1, 2, .001, 0, -.3), 1, 20), TradeOff, 1, 1},
		{"the slower arm fails more often", failing(blocksOf(1, 2, .001, 0, -.3), 0, 20), Better, 1, 1},
		{"the slower arm seems to fail more often", failing(blocksOf(1, 2, .001, 0, -.3), 0, 5), Better, 1, 1},
		{"the load generator may be that late", late, Running, 1, 1},
		{"the best of three", blocksOf(3, 4, .001, 0, -.3, -.2), Better, 1, 1},
		{"the best of three fails more often", failing(blocksOf(3, 4, .001, 0, -.3, -.2), 1, 20), TradeOff, 1, 2},
		{"one of three equal ones fails more often", failing(blocksOf(3, 4, .001, 0, 0, 0), 1, 20), FailuresDiffer, 0, 2},
		{"two of four are within the margin", blocksOf(3, 4, .002, 0, -.3, -.3, 0), NoDifference, 2, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			arms := 2
			for _, s := range test.blocks[0].Spans {
				arms = max(arms, s.Arm+1)
			}
			d := Decide(planOf(arms, ttft), test.blocks)
			assert.Equal(t, test.want, d.Verdict)
			assert.Len(t, d.Looks, test.looks)
			if test.best >= 0 && arms == 2 || test.want == Better {
				assert.Equal(t, test.best, d.Best)
				assert.Contains(t, d.MayBeBest, d.Best)
			}
			assert.Equal(t, d.Verdict.Over() && arms == 2, d.Final != nil)
		})
	}
}

// Arms leave a trial for the best once another is better, and one for the whole order once all of their pairs are
// decided. Pairs keep the interval of their last look. An arm may be the best while no pair's interval excludes that.
func TestArmsLeave(t *testing.T) {
	noisy := func(seed uint64, left []int, block int) Block {
		rng := rand.New(rand.NewPCG(seed, uint64(block)))
		b := Block{Seconds: 100 * float64(Plan{}.lengthOf(len(left)))}
		for _, r := range Order(seed, left, block) {
			v := []float64{0, .01, -.1, -.5}[r.Arm] + .02*rng.NormFloat64()
			b.Spans = append(b.Spans, Span{Arm: r.Arm, At: r.At, Ended: 100, Values: map[string]float64{ttft.Name: math.Exp(v)}})
		}
		return b
	}
	for _, wholeOrder := range []bool{false, true} {
		p := planOf(4, ttft)
		p.WholeOrder, p.MaxSeconds = wholeOrder, 8000
		var blocks []Block
		d := Decide(p, nil)
		for !d.Verdict.Over() {
			blocks = append(blocks, noisy(3, d.Left, len(blocks)))
			d = Decide(p, blocks)
			for arm := range p.Arms {
				beaten := slices.ContainsFunc(d.Primary, func(c Comparison) bool {
					_, loser, ok := c.Better()
					return ok && loser == arm
				})
				assert.Equal(t, len(d.Looks) > 0 && !beaten, slices.Contains(d.MayBeBest, arm), "%d of %v", arm, d.Primary)
			}
		}
		assert.Equal(t, []int{3, 2}, []int{d.Best, d.RunnerUp})
		assert.Equal(t, []int{3}, d.MayBeBest)
		require.Len(t, d.Primary, 6, "every pair")
		for _, c := range d.Primary {
			last := len(blocks)
			for _, arm := range []int{c.A, c.B} {
				if n := d.LeftAfter[arm]; n > 0 {
					last = min(last, n)
				}
			}
			assert.False(t, math.IsInf(c.Repeated[0], 0))
			assert.LessOrEqual(t, c.Blocks, last)
		}
		if !wholeOrder {
			assert.Equal(t, Better, d.Verdict)
			assert.Equal(t, []int{3}, d.Left)
			continue
		}
		assert.Equal(t, Ordered, d.Verdict)
		assert.Empty(t, d.Left)
		assert.Less(t, d.LeftAfter[3], len(blocks), "all pairs of the best are decided before the others")
		assert.Less(t, len(blocks[len(blocks)-1].Spans), 4)
		same := d.Primary[0]
		assert.True(t, same.Within(p.Margin))
		assert.Zero(t, same.Shown)
		reversed := same.Reversed()
		assert.InDelta(t, -same.Repeated[1], reversed.Repeated[0], 0)
	}
}

// A trial that ends at the first look has Student's interval. The estimate of one that ends later is corrected toward
// the truth.
func TestFinalIsMedianUnbiased(t *testing.T) {
	first := Decide(planOf(2, ttft), blocksOf(1, 2, .001, 0, -.3))
	c := first.Primary[0]
	half := toStudent(1.959964, c.DF) * c.SE
	assert.InDelta(t, c.Estimate, first.Final.Estimate, 1e-6)
	assert.InDelta(t, c.Estimate-half, first.Final.Interval[0], 1e-5)
	assert.InDelta(t, c.Estimate+half, first.Final.Interval[1], 1e-5)

	for seed := range uint64(50) {
		d := Decide(planOf(2, ttft), blocksOf(seed, 6, .06, 0, -.14))
		if d.Verdict != Better || len(d.Looks) < 2 {
			continue
		}
		assert.Greater(t, d.Final.Estimate, d.Primary[0].Estimate, "seed %d: nearer to zero", seed)
		assert.Less(t, d.Final.Interval[0], d.Final.Estimate)
		assert.Less(t, d.Final.Estimate, d.Final.Interval[1])
		return
	}
	t.Fatal("no trial stopped at a later look")
}

// Another metric that an arm lacks in a run is compared for the other arms.
func TestOtherMetricThatAnArmLacks(t *testing.T) {
	for lacking := range 3 {
		blocks := blocksOf(7, 4, .02, 0, -.1, -.2)
		for i := range blocks {
			for j := range blocks[i].Spans {
				s := &blocks[i].Spans[j]
				if s.Arm != lacking || i%2 == 0 {
					s.Values["tpot"] = math.Exp(.5 * float64(s.Arm))
				}
			}
		}
		d := Decide(planOf(3, ttft, Metric{Name: "tpot", LessIsBetter: true}), blocks)
		require.Len(t, d.Others, 1)
		c := d.Others[0]
		assert.NotContains(t, []int{c.A, c.B}, lacking)
		assert.InDelta(t, .5*float64(c.B-c.A), c.Estimate, 1e-9)
		assert.Equal(t, 1, c.Shown)
	}
}

// An arm that seems to give shorter answers is not better before that is certain, or no longer seems so.
func TestUnlikeAnswersPostponeTheVerdict(t *testing.T) {
	tokens := Metric{Name: "tokens"}
	for name, test := range map[string]struct {
		shorter, scatter float64
		want             []Verdict // after two and more blocks
	}{
		"certain at once": {.2, .01, []Verdict{TradeOff}},
		"certain later":   {.1, .025, []Verdict{Running, Running, TradeOff}},
		"within 5 %":      {.04, .01, []Verdict{Better}},
		"not certain":     {.09, .3, []Verdict{Better}},
	} {
		t.Run(name, func(t *testing.T) {
			p := planOf(2, ttft)
			p.Guards = []Metric{tokens}
			blocks, rng := blocksOf(1, 5, .001, 0, -.3), rand.New(rand.NewPCG(1, 2))
			for i := range blocks {
				for j := range blocks[i].Spans {
					s := &blocks[i].Spans[j]
					s.Values[tokens.Name] = 100 * math.Exp(-test.shorter*float64(s.Arm)+test.scatter*rng.NormFloat64())
				}
			}
			var got []Verdict
			for n := 2; n <= len(blocks) && (len(got) == 0 || !got[len(got)-1].Over()); n++ {
				got = append(got, Decide(p, blocks[:n]).Verdict)
			}
			assert.Equal(t, test.want, got)
		})
	}
}

// An arm that is gone is compared with none, also where it never ran. Its runs count in nothing, and what the others
// show does not depend on them.
func TestGoneArmsCountInNothing(t *testing.T) {
	p := planOf(4, ttft)
	p.WholeOrder = true
	without := func(blocks []Block, from int) []Block {
		for i := range blocks {
			if i >= from {
				blocks[i].Spans = slices.DeleteFunc(blocks[i].Spans, func(s Span) bool { return s.Arm == 0 })
			}
			if i == from {
				blocks[i].Gone = []int{0}
			}
			for j := range blocks[i].Spans {
				if s := &blocks[i].Spans[j]; s.Arm == 0 {
					s.Values, s.Failed = nil, 90
				}
			}
		}
		return blocks
	}
	never := Decide(p, without(blocksOf(3, 4, .001, 0, -.3, -.2, 0), 0))
	later := Decide(p, without(blocksOf(3, 4, .001, 0, -.3, -.2, 0), 1))
	for _, d := range []Decision{never, later} {
		assert.Equal(t, Ordered, d.Verdict)
		assert.Equal(t, []int{1, 2}, []int{d.Best, d.RunnerUp})
		require.Len(t, d.Primary, 3)
		for _, c := range append(d.Primary, d.Failures...) {
			assert.NotZero(t, c.A)
		}
	}
	assert.Equal(t, never.Primary, later.Primary)
}

// A difference in another metric is shown exactly where its interval leaves out 0. Guards are one-sided.
func TestOtherMetricsByTheirIntervals(t *testing.T) {
	tpot, rate := Metric{Name: "tpot", LessIsBetter: true}, Metric{Name: "rate"}
	blocks := blocksOf(1, 2, .001, 0, -.3)
	for i := range blocks {
		for j := range blocks[i].Spans {
			s := &blocks[i].Spans[j]
			sign := []float64{1, -1}[j%2]
			s.Values["rate"] = 100 * math.Exp(.2*float64(s.Arm)+.001*sign)
			s.Values["tpot"] = math.Exp(.01 * sign)
		}
	}
	d := Decide(planOf(2, ttft, rate, tpot, Metric{Name: "missing"}), blocks)
	require.Len(t, d.Others, 2)
	assert.Equal(t, 1, d.Others[0].Shown, "the rate of B is higher")
	assert.Equal(t, 0, d.Others[1].Shown)
	assert.True(t, d.Others[0].NotWorse(.05, true))
	assert.False(t, d.Others[0].NotWorse(.05, false), "A's rate is lower by 18 %")
	assert.Equal(t, d.Others[1].Narrow[1] < math.Log1p(.05), d.Others[1].NotWorse(.05, true), "more is worse")
	between := 0
	for seed := range uint64(40) {
		blocks := blocksOf(seed, 4, .03, 0, -.3)
		for i := range blocks {
			for j := range blocks[i].Spans {
				s := &blocks[i].Spans[j]
				s.Values["rate"], s.Values["tpot"] = 1/s.Values[ttft.Name], s.Values[ttft.Name]*math.Exp(.22*float64(s.Arm))
			}
		}
		p := planOf(2, ttft, rate, tpot)
		p.Alpha = .025
		d := Decide(p, blocks)
		c := d.Others[1]
		if c.Repeated[0] < 0 && c.Repeated[1] > 0 && d.Primary[0].Shown != 0 {
			between++
		}
		assert.Equal(t, c.Repeated[1] < 0, c.Shown < 0, "seed %d", seed)
		assert.Equal(t, c.Repeated[0] > 0, c.Shown > 0, "seed %d", seed)
	}
	assert.Positive(t, between)
	assert.InDelta(t, math.Expm1(.2), rate.Shown(.2), 1e-12)
	assert.InDelta(t, .2, Metric{Share: true}.Shown(.2), 0)
}

// Clustered failures are as certain as the runs agree. They replace a verdict of no difference where they are certain
// over all looks, and postpone it where they are certain at this look alone.
func TestClusteredFailuresNeedAgreement(t *testing.T) {
	of := func(failed ...int) []Block {
		blocks := blocksOf(1, 2, .001, 0, 0)
		for i := range blocks {
			for j := range blocks[i].Spans {
				blocks[i].Spans[j].Failed = failed[i*3+j]
			}
		}
		return blocks
	}
	outer := Order(1, []int{0, 1}, 0)[0].Arm
	for _, test := range []struct {
		name   string
		failed []int
		want   Verdict
	}{
		{"none", []int{0, 0, 0, 0, 0, 0}, NoDifference},
		{"many", []int{20, 0, 20, 0, 20, 0}, FailuresDiffer},
		{"some", []int{5, 0, 5, 0, 5, 0}, Running},
		{"all in one run", []int{20, 0, 0, 0, 0, 0}, NoDifference},
		{"both alike", []int{5, 5, 5, 5, 5, 5}, NoDifference},
		{"one", []int{1, 0, 0, 0, 0, 0}, NoDifference},
	} {
		d := Decide(planOf(2, ttft), of(test.failed...))
		assert.Equal(t, test.want, d.Verdict, test.name)
		more := 0
		if test.want == FailuresDiffer {
			more = 1
		}
		assert.Equal(t, more, d.MoreFailures(1-outer, outer), test.name)
		assert.Equal(t, -more, d.MoreFailures(outer, 1-outer), test.name)
	}
}

// A time that is shown to be better makes a trade-off only once failures are certain over all looks, and no look ends
// the trial while they seem to differ. At the time limit it is then undecided.
func TestFailuresBesideTheFirstMetric(t *testing.T) {
	failing := func(n, failed int) []Block {
		blocks := blocksOf(1, n, .001, 0, -.3)
		for i := range blocks {
			for j := range blocks[i].Spans {
				if s := &blocks[i].Spans[j]; s.Arm == 1 {
					s.Failed = failed
				}
			}
		}
		return blocks
	}
	d := Decide(planOf(2, ttft), failing(6, 5))
	assert.Equal(t, TradeOff, d.Verdict)
	require.Len(t, d.Looks, 2, "the first look postpones the verdict")
	c := d.Failures[0]
	assert.InDelta(t, .05, c.Estimate, 1e-9)
	p := 26. / 902 // B has five of the nine runs
	se := math.Sqrt(p * (1 - p) * (1./400 + 1./500))
	assert.InDelta(t, se, c.SE, 1e-9, "binomial, since the runs agree")
	critical := toStudent(Boundary(.05, d.Looks)[1], 7)
	assert.InDelta(t, .05-critical*se, c.Repeated[0], 1e-9)

	short := planOf(2, ttft)
	short.MaxSeconds = 1200
	assert.Equal(t, TimeOver, Decide(short, failing(2, 2)).Verdict, "failures are as likely as not chance")
	assert.Equal(t, Better, Decide(short, failing(2, 1)).Verdict)
}

// Means of times are those of successful turns unless the arms' shares of failed turns certainly differ, by more than 1
// point.
func TestMeanOfSuccessfulTurns(t *testing.T) {
	of := func(failedA, failedB int) []Block {
		blocks := blocksOf(1, 2, .001, 0, .3)
		for i := range blocks {
			for j := range blocks[i].Spans {
				s := &blocks[i].Spans[j]
				s.Failed, s.Ended = []int{failedA, failedB}[s.Arm], 1000
				s.Succeeded = map[string]float64{ttft.Name: s.Values[ttft.Name] * math.Exp(-.6*float64(s.Arm))}
			}
		}
		return blocks
	}
	for _, test := range []struct {
		a, b int
		want bool
	}{{0, 0, false}, {0, 9, true}, {49, 40, true}, {40, 60, true}, {40, 90, false}, {90, 40, false}} {
		d := Decide(planOf(2, ttft), of(test.a, test.b))
		assert.Equal(t, test.want, d.Succeeded, "%v", test)
		assert.Equal(t, test.want, d.Primary[0].Estimate < 0)
	}
	stored := of(40, 49)
	stored[0].Spans[0].Succeeded = nil
	assert.True(t, Decide(planOf(2, ttft), stored).Succeeded, "runs without failures have no value of their own")
}

// With a known variance, two looks or more lose a few per cent of the power of one, which finds 2.80 standard errors in
// 80 % of trials.
func TestDetectable(t *testing.T) {
	p := planOf(2, ttft)
	p.Priors = map[string]Variance{ttft.Name: {.0025, 1e6}}
	got := Detectable(p, .0025, 600)
	se := math.Sqrt(1.5 * .0025 / 6)
	assert.Greater(t, got, 2.80*se)
	assert.Less(t, got, 3.0*se)
	p.Priors = nil
	assert.Greater(t, Detectable(p, .0025, 600), got, "an unknown variance reduces the power")
	assert.InDelta(t, 2*got, Detectable(planWith(p, Variance{1, 1e6}), .01, 600), .01*got)
	assert.True(t, math.IsNaN(Detectable(p, .0025, 1801)), "two blocks do not fit")
}

func planWith(p Plan, prior Variance) Plan {
	p.Priors = map[string]Variance{ttft.Name: prior}
	return p
}

// Variances that agree keep all their degrees of freedom, others have fewer. A trial that stopped early weighs less.
func TestModerate(t *testing.T) {
	assert.Zero(t, Moderate([]Variance{{.01, 5}, {.01, 5}, {0, 5}}))
	same := Moderate([]Variance{{.01, 5}, {.01, 3}, {.01, 7}})
	assert.InDelta(t, 15, same.DF, 1e-9)
	assert.InDelta(t, .01, same.Value, 1e-9)
	assert.InDelta(t, (.001*2+.01*8+.02*8)/18, Moderate([]Variance{{.001, 2}, {.01, 8}, {.02, 8}}).Value, 1e-9)
	differ := Moderate([]Variance{{.001, 10}, {.01, 10}, {.1, 10}, {.01, 10}})
	assert.Less(t, differ.DF, 2.)
	assert.InDelta(t, math.Pi*math.Pi/6, trigamma(1), 1e-9)
	assert.InDelta(t, math.Pi*math.Pi/2, trigamma(.5), 1e-9)
}

// A large difference and none at all are decided soon. One that is hidden by the scatter is undecided in the time.
func TestExpected(t *testing.T) {
	for _, sideBySide := range []bool{false, true} {
		p := Plan{
			Arms: 2, Metrics: []Metric{{Name: "ttft", LessIsBetter: true}}, Alpha: .05, Margin: .05, MaxSeconds: 3600,
			SideBySide: sideBySide,
		}
		for _, row := range []struct {
			estimate, se float64
			want         int
		}{{-.3, .02, 2}, {0, .005, 2}, {-.1, .03, 3}, {-.03, .2, 0}} {
			n := Expected(p, &Comparison{Estimate: row.estimate, SE: row.se}, 2, 600)
			assert.InDelta(t, row.want, n, 1, "%v ± %v", row.estimate, row.se)
		}
		assert.Zero(t, Expected(p, &Comparison{Estimate: -1, SE: .01}, 1, 2000), "two blocks do not fit")
	}
	assert.Less(t, Detectable(Plan{Arms: 2, Metrics: []Metric{{}}, Alpha: .05, MaxSeconds: 3600, SideBySide: true}, .01,
		600),
		Detectable(Plan{Arms: 2, Metrics: []Metric{{}}, Alpha: .05, MaxSeconds: 3600}, .01, 600),
		"four runs in a block give more evidence than three")
}

// Long trials have fewer looks: 16 while their blocks double.
func TestLooksOfLongTrial(t *testing.T) {
	looks := 0
	for n := 1; n <= 1024; n++ {
		if due(n) {
			looks++
		}
		if n <= 32 {
			assert.True(t, due(n))
		}
	}
	assert.Equal(t, 32+5*16, looks)
}
