package twin

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbooth/sidecar/api"
)

func TestHeadlineOfPairs(t *testing.T) {
	running := api.State{Phase: api.PhaseRunning}
	metric := func(a, b float64, interval *[2]float64) []api.PairedMetric {
		return []api.PairedMetric{{Metric: "ttft", A: &a, B: &b, Difference: new(b - a), Interval: interval}}
	}
	for name, test := range map[string]struct {
		change   func(*api.Twin)
		state    api.State
		problems []string
		text     string
		kind     api.HeadlineKind
		certain  bool
	}{
		"kv is the subject": {
			nil, running, nil, "KV-aware: first token 25.0 % sooner than round-robin", api.HeadlineBetter, true,
		},
		"kv on the other lane": {
			func(t *api.Twin) {
				t.A.Mode, t.B.Mode = t.B.Mode, t.A.Mode
				t.Metrics = metric(.3, .4, &[2]float64{.05, .15})
			}, running, nil, "KV-aware: first token 25.0 % sooner than round-robin", api.HeadlineBetter, true,
		},
		"later": {
			func(t *api.Twin) { t.Metrics = metric(.4, 1, &[2]float64{.4, .8}) }, running, nil,
			"KV-aware: the first token takes 2.5 times as long as under round-robin", api.HeadlineWorse, true,
		},
		"not certain": {
			func(t *api.Twin) { t.Metrics = metric(.4, .3, &[2]float64{-.25, .05}) }, running, nil,
			"Not certain yet: first token 25.0 % sooner under KV-aware so far", api.HeadlineUncertain, false,
		},
		"no interval": {
			func(t *api.Twin) { t.Metrics = metric(.4, .3, nil) }, running, nil,
			"Not certain yet: first token 25.0 % sooner under KV-aware so far", api.HeadlineUncertain, false,
		},
		"no difference": {
			func(t *api.Twin) {
				t.A.Mode = api.ModeKV
				t.Metrics = metric(.4, .402, &[2]float64{-.01, .015})
			}, running, nil,
			"KV-aware on lane main: no difference of 5 % or more from KV-aware on lane twin", api.HeadlineSame, true,
		},
		"clusters that differ": {
			func(t *api.Twin) { t.Evidence = api.EvidenceDiffer }, running, nil,
			"KV-aware: first token 25.0 % sooner than round-robin", api.HeadlineUncertain, false,
		},
		"settling": {
			func(t *api.Twin) { t.Since = nil }, running, nil,
			"Settling: waiting for turns on both lanes", api.HeadlineWaiting, false,
		},
		"stopped": {nil, api.State{Phase: api.PhaseStopped}, nil, "The workload is stopped", api.HeadlineWaiting, false},
		"unreachable": {
			nil, running, []string{"refused"}, "A target does not serve", api.HeadlineWaiting, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			twin := api.Twin{
				A: api.TwinSide{Lane: "main", Mode: api.ModeRoundRobin}, B: api.TwinSide{Lane: "twin", Mode: api.ModeKV},
				Since: &noon, Pairs: 100, Metrics: metric(.4, .3, &[2]float64{-.15, -.05}),
			}
			if test.change != nil {
				test.change(&twin)
			}
			h := headline(&twin, [2]api.State{test.state, test.state}, test.problems, timesLeft{})
			assert.Equal(t, test.text, h.Text)
			assert.Equal(t, test.kind, h.Kind)
			assert.Equal(t, test.certain, h.Certain)
		})
	}
}
