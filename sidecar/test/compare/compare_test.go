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
func measured(side string, change func(*result)) result {
	quantiles := func(v float64) api.Quantiles { return api.Quantiles{P50: new(v), P95: new(2 * v), N: 234} }
	r := result{
		side: side, turns: 234, hit: estimate{value: .85, margin: .01, n: 234}, stay: estimate{value: .8, margin: .04, n: 180},
		ttft: quantiles(.25), tpot: quantiles(.026), itl: quantiles(.025), spread: 4, rate: 2200, prompt: 5200, output: 830, uncached: 780,
	}
	if change != nil {
		change(&r)
	}
	return r
}

func pairOf(simulated, dynamo func(*result)) *pair {
	return &pair{
		setting: setting{60, api.ModeKV}, profile: sim.H200(),
		simulated: measured("simulated", simulated), real: measured("real Dynamo", dynamo),
	}
}

func TestBounds(t *testing.T) {
	for _, row := range []struct {
		intent      string
		change      func(*result)
		unmet, open []string // one for each bound
	}{
		{"the same", nil, nil, nil},
		{"hit rate within the bound, above", func(r *result) { r.hit.value += .029 }, nil, nil},
		{"hit rate within the bound, below", func(r *result) { r.hit.value -= .029 }, nil, nil},
		{"beyond the bound, by no more than chance", func(r *result) { r.hit.value += .031 }, nil, []string{"hit rate: 3.1 points apart, of which chance makes up to 1.41 points; allowed are 3 points"}},
		{"hit rate too high", func(r *result) { r.hit.value += .045 }, []string{"hit rate: 4.5 points"}, nil},
		{"hit rate too low", func(r *result) { r.hit.value -= .045 }, []string{"hit rate: 4.5 points"}, nil},
		{"too many stay", func(r *result) { r.stay.value += .11 }, []string{"same worker again: 11 points"}, nil},
		{"both", func(r *result) { r.hit.value, r.stay.value = .5, .5 }, []string{"hit rate", "same worker again"}, nil},
		{"nothing known is not met", func(r *result) { r.stay.value = math.NaN() }, []string{"same worker again: — apart"}, nil},
		{
			"turns failed", func(r *result) { r.failed = map[api.ErrorClass]int{api.ErrorTimeout: 2, api.ErrorStall: 1} },
			[]string{"turns failed (simulated): 1 stall, 2 timeout"},
			nil,
		},
		{"timing is not bounded", func(r *result) { r.ttft.P50, r.rate, r.spread = new(9.), 1, 90 }, nil, nil},
	} {
		t.Run(row.intent, func(t *testing.T) {
			unmet, undecided := pairOf(row.change, nil).judge()
			contain(t, unmet, row.unmet)
			contain(t, undecided, row.open)
		})
	}
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
		{"the simulated frontend and engine", func(r *result) { r.ttft.P50 = new(.3) }, nil, "TTFT p50: the simulation adds the recorded frontend's 33 ms"},
		{"one reason for two", func(r *result) { r.ttft.P50, r.ttft.P95 = new(.3), new(.9) }, nil, "TTFT p50 and TTFT p95: the simulation adds"},
		{"less to prefill", func(r *result) { r.ttft.P50, r.uncached = new(.2), 500 }, nil, "fewer tokens to prefill, 500 a turn against 780"},
		{"waiting behind prefills", nil, func(r *result) { r.ttft.P95 = new(.9) }, "TTFT p95: mock workers take the prefills"},
		{"tokens in one chunk", func(r *result) { r.itl.P50 = new(.022) }, nil, "gives 2.21 tokens in one chunk"},
		{"a prefill's own base", nil, func(r *result) { r.tpot.P50 = new(.03) }, "with a base of its own of 41 ms"},
		{"the floor", func(r *result) { r.tpot.P50 = new(.03) }, nil, "to a floor"},
		{"a closed loop", func(r *result) { r.tpot.P50, r.rate = new(.023), 2470 }, nil, "output tokens/s: the loop is closed"},
		{"no closed loop explains it", func(r *result) { r.rate = 3000 }, nil, "output tokens/s: more than TTFT and TPOT explain"},
		{"hit rates at different turns", func(r *result) { r.hit.value, r.prompt = .9, 4000 }, nil, "hit rate: the prompts differ, 4000 tokens against 5200"},
		{"nothing known", func(r *result) { r.stay.value = .5 }, nil, "same worker again: against what is known of both"},
		{"spread", func(r *result) { r.spread = 5 }, nil, "in-flight spread: it wanders"},
		{"more spread than chance gives", func(r *result) { r.spread = 7 }, nil, "in-flight spread: against what is known"},
		{"not measured", func(r *result) { r.itl.P50 = nil }, nil, ""},
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
	p := pairOf(func(r *result) { r.stay.value = .34 }, func(r *result) { r.stay.value = .44 })
	p.mode = api.ModeRoundRobin
	assert.Contains(t, p.reasons(), "same worker again: which conversation ends next decides it")
}

func TestTable(t *testing.T) {
	p := pairOf(func(r *result) { r.stay.value, r.itl = .9, api.Quantiles{} }, func(r *result) { r.mistrust = "in 3 of 180 seconds: it is 9 ms late" })
	column := recorded(p.profile, p.setting)
	got := p.table(column)
	var rows []string
	for line := range strings.Lines(got) {
		rows = append(rows, strings.Join(strings.Fields(line), " "))
	}
	assert.Equal(t, []string{
		"",
		"60 conversations, kv: 234 turns simulated, 234 real",
		"simulated real Dynamo difference bound recorded",
		"hit rate 85.0 % 85.0 % +0.0 ± 1.4 points 3 points: met 91.6 %",
		"same worker again 90.0 % 80.0 % +10.0 ± 5.7 points 5 points: open —",
		"in-flight spread 4.0 4.0 +0 % —",
		"TTFT p50 250 ms 250 ms +0 % 249 ms",
		"TTFT p95 500 ms 500 ms +0 % 446 ms",
		"ITL p50, last 60 s — 25.0 ms — —",
		"TPOT p50 26.0 ms 26.0 ms +0 % 26.2 ms",
		"output tokens/s 2200 2200 +0 % 2263",
		"Times (real Dynamo): the load generator mistrusted itself in 3 of 180 seconds: it is 9 ms late.",
	}, rows)
}

// Between two recorded levels the table says so; beyond them it has nothing.
func TestRecorded(t *testing.T) {
	between := recorded(sim.H200(), setting{65, api.ModeKV})
	assert.Contains(t, lookedUp(between.TTFT.P50, milliseconds), "(interpolated)")
	beyond := recorded(sim.H200(), setting{900, api.ModeKV})
	assert.Equal(t, missing, lookedUp(beyond.TTFT.P50, milliseconds))
	none := recorded(sim.H200(), setting{60, api.ModeLeastLoaded})
	assert.Equal(t, missing, lookedUp(none.OutputTokensPerSecond, plain))
}
