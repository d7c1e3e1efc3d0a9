//go:build verify

package compare

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
)

// measured is a result of round figures, so that a case says only what differs.
func measured(change func(*result)) result {
	quantiles := func(v float64) api.Quantiles { return api.Quantiles{P50: new(v), P95: new(2 * v), N: 234} }
	r := result{
		turns: 234, hit: .85, stay: .8, ttft: quantiles(.25), tpot: quantiles(.026),
		spread: 4, rate: 2200, prompt: 5200, output: 830, uncached: 780,
	}
	if change != nil {
		change(&r)
	}
	return r
}

// pairOf has as many runs of the core as there are seeds, all alike but for hit rate, share that
// stays and spread, whose standard deviations are .5 points, 1 point and .2.
func pairOf(core, dynamo func(*result)) *pair {
	p := &pair{setting: setting{60, api.ModeKV, 3}, profile: sim.H200(), real: measured(dynamo)}
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

func TestBounds(t *testing.T) {
	for _, row := range []struct {
		intent      string
		change      func(*result)
		unmet, open []string // one for each bound
	}{
		{"the same", nil, nil, nil},
		{"hit rate within the bound, above", func(r *result) { r.hit += .0199 }, nil, nil},
		{"hit rate within the bound, below", func(r *result) { r.hit -= .0199 }, nil, nil},
		{"beyond the bound, by no more than chance", func(r *result) { r.hit += .021 }, nil, []string{"hit rate: 2.1 points apart, of which chance makes up to 1.15 points; allowed are 2 points"}},
		{"hit rate too high", func(r *result) { r.hit += .04 }, []string{"hit rate: 4 points"}, nil},
		{"hit rate too low", func(r *result) { r.hit -= .04 }, []string{"hit rate: 4 points"}, nil},
		{"too many stay", func(r *result) { r.stay += .11 }, []string{"same worker again: 11 points"}, nil},
		{"spread within the bound", func(r *result) { r.spread *= 1.19 }, nil, nil},
		{"spread beyond the bound, by no more than chance", func(r *result) { r.spread *= 1.25 }, nil, []string{"in-flight spread: 25 % apart, of which chance makes up to 14.3 %; allowed are 20 %"}},
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
	unmet, _ := pairOf(nil, func(r *result) { r.failed = map[api.ErrorClass]int{api.ErrorTimeout: 2, api.ErrorStall: 1} }).judge()
	contain(t, unmet, []string{"turns failed: 1 stall, 2 timeout"})
}

// contain checks that each line has the words wanted of it.
func contain(t *testing.T, lines, words []string) {
	t.Helper()
	require.Len(t, lines, len(words))
	for i := range words {
		assert.Contains(t, lines[i], words[i])
	}
}

// Each reason has to fit what was measured.
func TestReasons(t *testing.T) {
	for _, row := range []struct {
		intent            string
		simulated, dynamo func(*result)
		want              string // "" for no line
	}{
		{"alike", func(r *result) { r.ttft.P50 = new(.26) }, nil, ""},
		{"the simulated frontend and engine", func(r *result) { r.ttft.P50 = new(.3) }, nil, "TTFT p50: the simulation adds the recorded frontend's 30 ms"},
		{"one reason for two", func(r *result) { r.ttft.P50, r.ttft.P95 = new(.3), new(.9) }, nil, "TTFT p50 and TTFT p95: the simulation adds"},
		{"less to prefill", func(r *result) { r.ttft.P50, r.uncached = new(.2), 500 }, nil, "fewer tokens to prefill, 500 a turn against 780"},
		{"waiting behind prefills", nil, func(r *result) { r.ttft.P95 = new(.9) }, "TTFT p95: mock workers take the prefills"},
		{"a prefill's own base", nil, func(r *result) { r.tpot.P50 = new(.03) }, "with a base of its own of 60 ms"},
		{"slower than the mock workers", func(r *result) { r.tpot.P50 = new(.03) }, nil, "against what is known of both"},
		{"a closed loop", func(r *result) { r.tpot.P50, r.rate = new(.023), 2470 }, nil, "output tokens/s: the loop is closed"},
		{"no closed loop explains it", func(r *result) { r.rate = 3000 }, nil, "output tokens/s: more than TTFT and TPOT explain"},
		{"hit rates at different turns", func(r *result) { r.hit, r.prompt = .9, 4000 }, nil, "hit rate: the prompts differ, 4000 tokens against 5200"},
		{"nothing known", func(r *result) { r.stay = .5 }, nil, "same worker again: against what is known of both"},
		{"spread", func(r *result) { r.spread = 4.5 }, nil, ""},
		{"more spread than chance gives", func(r *result) { r.spread = 7 }, nil, "in-flight spread: against what is known"},
		{"not measured", func(r *result) { r.tpot.P50 = nil }, nil, ""},
	} {
		t.Run(row.intent, func(t *testing.T) {
			got := pairOf(row.simulated, row.dynamo).reasons()
			if row.want == "" {
				assert.Empty(t, got)
				return
			}
			assert.Contains(t, got, row.want)
		})
	}
}

// Under round-robin timing alone makes turns come back to their worker.
func TestReasonOfRoundRobin(t *testing.T) {
	p := pairOf(func(r *result) { r.stay = .34 }, func(r *result) { r.stay = .44 })
	p.mode = api.ModeRoundRobin
	assert.Contains(t, p.reasons(), "same worker again: which conversation ends next decides it")
}

func TestTable(t *testing.T) {
	p := pairOf(func(r *result) { r.stay += .03125; r.tpot = api.Quantiles{} }, func(r *result) { r.mistrust = "in 3 of 180 seconds: it is 9 ms late" })
	got := p.table(recorded(p.profile, p.setting))
	var rows []string
	for line := range strings.Lines(got) {
		rows = append(rows, strings.Join(strings.Fields(line), " "))
	}
	assert.Equal(t, []string{
		"",
		"60 conversations, kv, 3 workers: 12 runs of the core, 234 turns of the real one",
		"core its runs real Dynamo difference bound recorded",
		"hit rate 85.0 % 84.5 % – 85.5 % 85.0 % +0.0 ± 1.1 points 2 points: met 91.6 %",
		"same worker again 83.1 % 82.2 % – 84.1 % 80.0 % +3.1 ± 2.3 points 3 points: open —",
		"in-flight spread 4.0 3.8 – 4.2 4.0 +0 ± 11 % 20 %: met —",
		"TTFT p50 250 ms 250 ms – 250 ms 250 ms +0 % 249 ms",
		"TTFT p95 500 ms 500 ms – 500 ms 500 ms +0 % 446 ms",
		"TPOT p50 — — – — 26.0 ms — 26.2 ms",
		"output tokens/s 2200 2200 – 2200 2200 +0 % 2263",
		"Times: the load generator mistrusted itself in 3 of 180 seconds: it is 9 ms late.",
	}, rows)
}

// Between two recorded levels the table says so; beyond them it has nothing.
func TestRecorded(t *testing.T) {
	between := recorded(sim.H200(), setting{65, api.ModeKV, 3})
	assert.Contains(t, lookedUp(between.TTFT.P50, milliseconds), "(interpolated)")
	beyond := recorded(sim.H200(), setting{900, api.ModeKV, 3})
	assert.Equal(t, missing, lookedUp(beyond.TTFT.P50, milliseconds))
	other := recorded(sim.H200(), setting{60, api.ModeKV, 5})
	assert.Equal(t, missing, lookedUp(other.TTFT.P50, milliseconds), "with five workers nothing was")
	none := recorded(sim.H200(), setting{60, api.ModeLeastLoaded, 3})
	assert.Equal(t, missing, lookedUp(none.OutputTokensPerSecond, plain))
}
