package churn

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat/distuv"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/workload"
)

var windows = Windows{Before: 20, Window: 5}

// turn is a successful turn of 100 prompt tokens.
func turn(sent, ttft float64, cached int) workload.Outcome {
	return workload.Outcome{
		Status: api.TurnOK, Sent: time.Duration(sent * float64(time.Second)), TTFT: ttft, Latency: ttft + .1,
		PromptTokens: 100, CachedTokens: cached, HasCached: true,
	}
}

func failedTurn(sent, ended float64) workload.Outcome {
	return workload.Outcome{
		Status: api.TurnError, Class: api.ErrorConnect, Sent: time.Duration(sent * float64(time.Second)),
		Ended: time.Duration(ended * float64(time.Second)), TTFT: math.NaN(), Latency: math.NaN(),
	}
}

// observed returns an instance with ten turns a second, from 20 s before the event to 40 s after it. Between 0 and an
// end, turns are as during says.
func observed(block int, arm string, end float64, during func(sent float64) workload.Outcome) Instance {
	n := Instance{Block: block, Arm: arm, Event: "loss", Seconds: 40}
	for i := -200; i < 400; i++ {
		sent := float64(i) / 10
		if sent >= 0 && sent < end {
			n.Turns = append(n.Turns, during(sent))
		} else {
			n.Turns = append(n.Turns, turn(sent, .2, 80))
		}
	}
	return n
}

func slow(sent float64) workload.Outcome { return turn(sent, 1, 30) }

// The recovery time is the beginning of the first window from which on all are as before: of five seconds with 50
// turns, two may be slow.
func TestRecovery(t *testing.T) {
	for name, row := range map[string]struct {
		end    float64
		during func(float64) workload.Outcome
		ttft   Recovery
		rate   Recovery
		failed int
		lost   float64
	}{
		"no effect":            {end: 0, during: slow},
		"slow for a while":     {end: 7, during: slow, ttft: Recovery{Seconds: 7}, rate: Recovery{Seconds: 7}, lost: 70 * 50},
		"two turns are slow":   {end: .2, during: slow, lost: 0},
		"to the end":           {40, slow, Recovery{35, true}, Recovery{35, true}, 0, 400 * 50},
		"back for a while":     {40, twice, Recovery{Seconds: 32}, Recovery{Seconds: 32}, 0, 170 * 50},
		"fails for a while":    {3, fails, Recovery{Seconds: 3}, Recovery{Seconds: 0}, 30, 0},
		"no turns for a while": {6, hangs, Recovery{Seconds: 6}, Recovery{Seconds: 2}, 0, 0},
	} {
		r := Measure([]Instance{observed(0, "a", row.end, row.during)}, windows)[0]
		require.NotNil(t, r.TTFT.Recovery, name)
		assert.Equal(t, row.ttft, *r.TTFT.Recovery, name)
		assert.Equal(t, row.rate, *r.HitRate.Recovery, name)
		assert.Equal(t, row.failed, r.Failed, name)
		assert.InDelta(t, row.lost, *r.TokensLost, 1e-6, name)
		assert.InDelta(t, .22, *r.TTFT.Limit, 1e-9, name)
		assert.InDelta(t, .72, *r.HitRate.Limit, 1e-9, name)
	}
}

// twice is slow up to 7 s, and again from 22 to 32 s.
func twice(sent float64) workload.Outcome {
	if sent < 7 || sent >= 22 && sent < 32 {
		return slow(sent)
	}
	return turn(sent, .2, 80)
}

func fails(sent float64) workload.Outcome { return failedTurn(sent, sent+.1) }

// hangs is in flight without a first token up to the end of the observation.
func hangs(sent float64) workload.Outcome {
	return workload.Outcome{Sent: time.Duration(sent * float64(time.Second)), TTFT: math.NaN()}
}

// A turn that the event interrupts counts after it, not before.
func TestTurnsAcrossTheEvent(t *testing.T) {
	n := observed(0, "a", 0, nil)
	for i := range 20 {
		across := failedTurn(-3, 2)
		across.TTFT = float64(i) // some had their first token before
		n.Turns = append(n.Turns, across)
	}
	n.Turns = append(n.Turns, failedTurn(-3, -2))
	r := Measure([]Instance{n}, windows)[0]
	assert.Equal(t, 20, r.Failed)
	assert.Equal(t, map[api.ErrorClass]int{api.ErrorConnect: 20}, r.Errors)
	assert.InDelta(t, .2, *r.TTFT.Before, 1e-9)
	assert.Equal(t, Recovery{Seconds: 1}, *r.TTFT.Recovery, "windows from 0 to 5 s have 20 of 70 turns failed")
}

// The limit is the prediction limit where windows before the events scatter, pooled over the instances of an arm.
func TestLimitWithScatter(t *testing.T) {
	noisy := func(block int) Instance {
		n := observed(block, "a", 0, nil)
		for i := range n.Turns {
			window := math.Floor(n.Turns[i].Sent.Seconds() / 5)
			n.Turns[i].TTFT = .2 * math.Exp(.1*math.Mod(window+8, 2)) // 0.2 s and 0.221 s in turns
		}
		return n
	}
	r := Measure([]Instance{noisy(0), noisy(1)}, windows)
	variance := 2 * 4 * .05 * .05 / 6 // 4 windows each, 0.05 on either side of their mean
	const after = 36                  // windows of 5 s in 40 s, a second apart
	quantile := distuv.StudentsT{Sigma: 1, Nu: 6}.Quantile(1 - .05/after)
	assert.InDelta(t, .2*math.Exp(.05+quantile*math.Sqrt(variance*1.25)), *r[1].TTFT.Limit, 1e-9)
	assert.Equal(t, Recovery{}, *r[0].TTFT.Recovery)
	assert.InDelta(t, .72, *r[0].HitRate.Limit, 1e-9, "the hit rate does not scatter")
}

// Without turns before, or with more than 5 % of them failed, nothing is known.
func TestUnknown(t *testing.T) {
	n := observed(0, "a", 5, slow)
	n.Turns = n.Turns[200:]
	r := Measure([]Instance{n}, windows)[0]
	assert.Equal(t, [2]Figure{}, [2]Figure{r.TTFT, r.HitRate})
	assert.Nil(t, r.TokensLost)
	n = observed(0, "a", 5, slow)
	for i := range 40 {
		n.Turns[5*i] = fails(-20 + float64(i)/2)
	}
	r = Measure([]Instance{n}, windows)[0]
	assert.Nil(t, r.TTFT.Recovery)
	assert.NotNil(t, r.HitRate.Recovery)
}

// A censored time is infinite above and its bound below.
func TestMedian(t *testing.T) {
	inf := math.Inf(1)
	row := func(highs ...float64) (all [][2]float64) {
		for _, v := range highs {
			all = append(all, [2]float64{min(v, 60), v})
		}
		return all
	}
	for _, test := range []struct {
		all  [][2]float64
		want Median
	}{
		{row(5), Median{Instances: 1, Value: new(5.), Low: new(5.), High: new(5.)}},
		{row(4, 2, 3, 1, 5), Median{5, 0, new(3.), new(1.), new(5.), 1 - 2./32}},
		{row(4, 2, 3, 1, 5, inf), Median{6, 1, new(3.5), new(1.), nil, 1 - 2./64}},
		{row(inf, inf, 1), Median{3, 2, nil, new(1.), nil, 1 - 2./8}},
		{row(1, 2, 3, 4, 5, 6, 7, 8, inf), Median{9, 1, new(5.), new(2.), new(8.), 1 - 2*10./512}},
	} {
		m := medianOf(test.all)
		assert.InDelta(t, test.want.Confidence, m.Confidence, 1e-12)
		m.Confidence = test.want.Confidence
		assert.Equal(t, test.want, *m)
	}
	assert.Nil(t, medianOf(nil))
}

// Two arms are compared by the blocks that have both.
func TestCompare(t *testing.T) {
	var all []Instance
	for block := range 6 {
		all = append(all, observed(block, "a", float64(4+block), slow), observed(block, "b", float64(9+2*block), slow))
	}
	all = append(all, observed(6, "b", 30, fails))
	report := Report{Windows: windows, After: 40, Blocks: 7, Arms: []string{"a", "b"}, Events: []string{"loss"}}
	for _, r := range Measure(all, windows) {
		report.Instances = append(report.Instances, Event{Result: r})
	}
	report.Complete()
	require.Len(t, report.Comparisons, 1)
	c := report.Comparisons[0]
	assert.Equal(t, &Median{6, 0, new(7.5), new(5.), new(10.), 1 - 2./64}, c.TTFT, "5 to 10 s later")
	assert.InDelta(t, 50*75, c.TokensLost.Estimate, 1e-6, "10 turns a second, 50 tokens each")
	low, high := c.TokensLost.Interval[0], c.TokensLost.Interval[1]
	deviation := 500 * math.Sqrt(3.5) / math.Sqrt(6) // of the differences 5 to 10 s
	assert.InDelta(t, 2*deviation*distuv.StudentsT{Sigma: 1, Nu: 5}.Quantile(.975), high-low, 1e-6)
	assert.Equal(t, 0., c.Failed.Estimate)
	require.Len(t, report.Summaries, 2)
	a := report.Summaries[0]
	assert.Equal(t, &Median{6, 0, new(6.5), new(4.), new(9.), 1 - 2./64}, a.TTFT)
	assert.InDelta(t, 3250, *a.TokensLost, 1e-6)
	b := report.Summaries[1]
	assert.Equal(t, 7, b.Instances)
	assert.InDelta(t, 300./7, b.Failed, 1e-9)
	assert.Equal(t, map[api.ErrorClass]int{api.ErrorConnect: 300}, b.Errors)
}

// Without an effect, chance keeps a figure from being as before in at most 5 % of the instances.
func TestChanceAlone(t *testing.T) {
	const trials, blocks = 40, 6
	w, late := Windows{Before: 60, Window: 10}, map[string]int{}
	for trial := range trials {
		draw := rand.New(rand.NewPCG(uint64(trial), 7))
		var all []Instance
		for block := range blocks {
			n := Instance{Block: block, Arm: "a", Event: "nothing", Seconds: 120}
			for i := -120; i < 240; i++ {
				cached := 80
				if draw.Float64() < .3 {
					cached = 10
				}
				n.Turns = append(n.Turns, turn((float64(i)+draw.Float64())/2, .2*math.Exp(.5*draw.NormFloat64()), cached))
			}
			all = append(all, n)
		}
		for _, r := range Measure(all, w) {
			if *r.TTFT.Recovery != (Recovery{}) {
				late["TTFT"]++
			}
			if *r.HitRate.Recovery != (Recovery{}) {
				late["hit rate"]++
			}
		}
	}
	const n = trials * blocks
	allowed := n * (.05 + 3*math.Sqrt(.05*.95/n))
	t.Logf("of %d instances: %v", n, late)
	assert.Less(t, float64(late["TTFT"]), allowed)
	assert.Less(t, float64(late["hit rate"]), allowed)
}
