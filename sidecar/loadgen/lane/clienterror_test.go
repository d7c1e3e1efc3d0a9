package lane

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// The level of an error is the worst of its shares of the metric's p50, of every difference shown, and of the distance
// to the SLO. The reason has both numbers.
func TestLevelOfTheClientError(t *testing.T) {
	difference := func(outcome api.Outcome, was float64) *api.Comparison {
		c := api.Column{TTFT: api.LookedUpPair{P95: api.LookedUp{
			Value: &was, Error: new(.001), Improvement: &api.Improvement{Outcome: outcome},
		}}}
		return &api.Comparison{Settling: true, Columns: []api.Column{c}}
	}
	const isAtMost, cannot = "the load generator's own error is at most ", "TTFT cannot be judged: "
	const within, fine = "; the intervals include it", isAtMost + "4.0 ms of 250 ms TTFT (p50)"
	for name, row := range map[string]struct {
		error  float64 // of a TTFT of 250 and 300 ms
		slo    float64
		c      *api.Comparison
		want   api.Verdict
		reason string
	}{
		"below 2 %":  {.004, 0, nil, api.VerdictFine, fine},
		"2 %":        {.005, 0, nil, api.VerdictNoticeable, isAtMost + "5.0 ms of 250 ms TTFT (p50)" + within},
		"13 ms late": {.013, .6, nil, api.VerdictNoticeable, isAtMost + "13.0 ms of 250 ms TTFT (p50)" + within},
		"half":       {.126, 0, nil, api.VerdictBottleneck, cannot + isAtMost + "126 ms of 250 ms TTFT (p50); " + remedy},
		"below a tenth of a difference": {
			.003, 0, difference(api.OutcomeWorse, .25), api.VerdictFine, isAtMost + "3.0 ms of 250 ms TTFT (p50)",
		},
		"a tenth of a difference": {
			.004, 0, difference(api.OutcomeWorse, .25), api.VerdictNoticeable,
			isAtMost + "5.0 ms of 50.0 ms difference in TTFT" + within,
		},
		"of a difference that is not shown": {.004, 0, difference(api.OutcomeNoDifference, .25), api.VerdictFine, fine},
		"withheld": {
			.004, 0, difference(api.OutcomeWithheld, .296), api.VerdictBottleneck,
			cannot + isAtMost + "5.0 ms of 4.0 ms difference in TTFT; " + remedy,
		},
		"a threshold within it": {
			.004, .2975, nil, api.VerdictBottleneck,
			cannot + isAtMost + "4.0 ms of 2.5 ms distance of TTFT from its SLO; " + remedy,
		},
		"a threshold above it": {.004, .3, nil, api.VerdictFine, fine},
	} {
		t.Run(name, func(t *testing.T) {
			m := api.Metrics{TTFT: api.Quantiles{P50: new(.25), P95: new(.3), P50Error: new(.001), P95Error: &row.error}}
			if row.c != nil {
				row.c.Live = m
			}
			all := Judge("main", &m, row.c, api.SLO{TTFT: row.slo})
			require.Len(t, all, 1)
			h := Verdict(api.ClientHealth{Verdict: api.VerdictFine}, all)
			assert.Equal(t, row.want, h.Verdict)
			assert.Equal(t, row.reason, h.Reason)
		})
	}
}

// The error of a TPOT goes both ways, so that a threshold on either side may be within it.
func TestTPOTIsUndecidableOnBothSidesOfItsSLO(t *testing.T) {
	for threshold, want := range map[float64]api.Verdict{
		.0297: api.VerdictFine, .0299: api.VerdictBottleneck, .0301: api.VerdictBottleneck, .0303: api.VerdictFine,
	} {
		m := api.Metrics{TPOT: api.Quantiles{P50: new(.025), P95: new(.03), P50Error: new(.0002), P95Error: new(.0002)}}
		all := Judge("main", &m, nil, api.SLO{TPOT: threshold})
		assert.Equal(t, want, all[0].Level, threshold)
	}
}

// The snapshot rates a lag by the figures that it has. During a simulation, the advice is to cancel that first.
func TestSnapshotJudgesTheClient(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		b.start(3)
		pass(65 * time.Second)
		client := func(late time.Duration) api.ClientHealth {
			b.delay(late)
			return b.view.Snapshot().Client
		}
		h := client(500 * time.Microsecond)
		assert.Equal(t, api.VerdictFine, h.Verdict, h.Reason)
		assert.Len(t, h.Metrics, len(api.Times))
		h = client(13 * time.Millisecond) // of a TTFT of 200 ms and an ITL of 40 ms
		assert.Equal(t, api.VerdictNoticeable, h.Verdict, h.Reason)
		assert.True(t, b.view.Noticeable(new(constantLag(13*time.Millisecond))))
		assert.False(t, b.view.Noticeable(new(constantLag(time.Millisecond))))
		b.locked(func() { b.health.Simulating = true })
		h = client(30 * time.Millisecond)
		assert.Equal(t, api.VerdictBottleneck, h.Verdict)
		assert.Contains(t, h.Reason, "ITL cannot be judged: ")
		assert.Contains(t, h.Reason, "cancel the what-if simulation")
		assert.Equal(t, h, b.view.Status().Client)
		b.stop()
		assert.Equal(t, b.verdict(), b.view.Snapshot().Client, "nothing is measured")
	})
}
