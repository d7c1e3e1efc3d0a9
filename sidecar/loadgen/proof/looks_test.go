package proof

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// Looks are what the trial knew at the time, also of one that was read back.
func TestLooks(t *testing.T) {
	trial := newTrial(t, func(p *Plan) { p.Smallest = .001 })
	assert.Empty(t, trial.Looks())
	var seen []Difference
	for len(drive(t, trial, .98, 1)) > 0 && len(trial.Done) < 12 {
		if s := trial.State(); s.Primary != nil && s.Pairs > len(seen) {
			seen = append(seen, *s.Primary)
		}
	}
	require.Greater(t, len(seen), 3)
	data, err := json.Marshal(trial)
	require.NoError(t, err)
	again := new(Trial)
	require.NoError(t, json.Unmarshal(data, again))
	assert.Equal(t, seen, again.Looks())
}

// An interval that touches neither boundary decides for no difference, on both ends.
func TestBoundaries(t *testing.T) {
	for _, m := range []Metric{TTFT95, Throughput, Goodput} {
		b := Plan{Primary: m, Smallest: .05}.Boundaries()
		assert.InDelta(t, .05, b[1], 1e-12)
		assert.Equal(t, NoDifference, m.outcome(scaledDifference(m, b[0])+1e-9, scaledDifference(m, b[1])-1e-9, .05))
		assert.Equal(t, Running, m.outcome(scaledDifference(m, b[0])-1e-9, scaledDifference(m, b[1])-1e-9, .05))
		assert.Equal(t, Running, m.outcome(scaledDifference(m, b[0])+1e-9, scaledDifference(m, b[1])+1e-9, .05))
	}
	assert.InDelta(t, -.05/1.05, Plan{Primary: TTFT95, Smallest: .05}.Boundaries()[0], 1e-12)
	assert.InDelta(t, -.05, Plan{Primary: Goodput, Smallest: .05}.Boundaries()[0], 1e-12)
}

// scaledDifference brings a difference as it is shown to the scale it is decided on.
func scaledDifference(m Metric, shown float64) float64 {
	if m.Share() {
		return shown
	}
	return m.scaled(1 + shown)
}

// A trial's page has every look as a chart, with both boundaries.
func TestChartOfLooks(t *testing.T) {
	s := looked()
	page := written(t, NewSweepReport(s), api.ReportHTML)
	assert.Equal(t, 1, selfContained(t, page)["svg"])
	assert.Contains(t, page, "after 2 pairs: −19.4 % (−23.2 to −15.1 %)")
	assert.Contains(t, page, "of no interest: −4.76 to &#43;5 %")
	s.Trial.Looks = nil
	assert.NotContains(t, text(t, NewSweepReport(s)), "Pair by pair")
}
