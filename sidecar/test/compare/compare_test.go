//go:build verify

package compare

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// measured returns a result of round figures, changed by a test case.
func measured(change func(*result)) result {
	quantiles := func(v float64) api.Quantiles { return api.Quantiles{P50: new(v), P95: new(2 * v), N: 234} }
	r := result{turns: 234, hit: .85, stay: .8, ttft: quantiles(.25), tpot: quantiles(.026), spread: 4, rate: 2200}
	if change != nil {
		change(&r)
	}
	return r
}

// pairOf returns a pair with as many equal runs of the core as there are seeds, except that hit rate, stays and spread
// have standard deviations of 0.5 points, 1 point and 0.2.
func pairOf(core, dynamo func(*result)) *pair {
	p := &pair{setting: setting{60, api.ModeKV, 3}, real: measured(dynamo)}
	for i := range coreSeeds {
		sign := math.Sqrt((coreSeeds-1.)/coreSeeds) * float64(1-2*(i%2))
		p.core = append(p.core, measured(func(r *result) {
			r.hit, r.stay, r.spread = r.hit+.005*sign, r.stay+.01*sign, r.spread+.2*sign
			if core != nil {
				core(r)
			}
		}))
	}
	return p
}

func TestJudgeComparesWithBounds(t *testing.T) {
	for _, row := range []struct {
		intent      string
		change      func(*result)
		unmet, open []string // one for each bound
	}{
		{"the same", nil, nil, nil},
		{"hit rate within the bound, above", func(r *result) { r.hit += .0199 }, nil, nil},
		{"hit rate within the bound, below", func(r *result) { r.hit -= .0199 }, nil, nil},
		{
			"beyond the bound, by no more than chance", func(r *result) { r.hit += .021 }, nil,
			[]string{"hit rate: 2.1 points apart, of which chance makes up to 1.15 points; allowed are 2 points"},
		},
		{"hit rate too high", func(r *result) { r.hit += .04 }, []string{"hit rate: 4 points"}, nil},
		{"hit rate too low", func(r *result) { r.hit -= .04 }, []string{"hit rate: 4 points"}, nil},
		{"too many stay", func(r *result) { r.stay += .11 }, []string{"same worker again: 11 points"}, nil},
		{"spread within the bound", func(r *result) { r.spread *= 1.19 }, nil, nil},
		{
			"spread beyond the bound, by no more than chance", func(r *result) { r.spread *= 1.25 }, nil,
			[]string{"in-flight spread: 25 % apart, of which chance makes up to 14.3 %; allowed are 20 %"},
		},
		{"too much spread", func(r *result) { r.spread *= 2 }, []string{"in-flight spread: 100 % apart"}, nil},
		{"both", func(r *result) { r.hit, r.stay = .5, .5 }, []string{"hit rate", "same worker again"}, nil},
		{"nothing known is not met", func(r *result) { r.stay = math.NaN() }, []string{"same worker again: — apart"}, nil},
		{"timing is not bounded", func(r *result) { r.ttft.P50, r.rate = new(9.), 1 }, nil, nil},
	} {
		t.Run(row.intent, func(t *testing.T) {
			unmet, undecided := pairOf(row.change, nil).judge()
			contain(t, unmet, row.unmet)
			contain(t, undecided, row.open)
		})
	}
	unmet, _ := pairOf(nil,
		func(r *result) { r.failed = map[api.ErrorClass]int{api.ErrorTimeout: 2, api.ErrorStall: 1} }).judge()
	contain(t, unmet, []string{"turns failed: 1 stall, 2 timeout"})
}

// contain checks that each line contains the corresponding word.
func contain(t *testing.T, lines, words []string) {
	t.Helper()
	require.Len(t, lines, len(words))
	for i := range words {
		assert.Contains(t, lines[i], words[i])
	}
}
