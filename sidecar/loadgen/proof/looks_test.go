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

// A trial's report has every look, as a table and on the page as a chart with both boundaries.
func TestReportOfLooks(t *testing.T) {
	primary := difference(TTFT95, -.194, -.232, -.151, BBetter)
	s := tried(BBetter, &primary)
	s.Trial.Boundaries = [2]float64{-.047619, .05}
	s.Trial.Looks = []api.TrialLook{
		{Pairs: 1, Difference: -.25, Interval: [2]float64{-.6, .4}},
		{Pairs: 2, Difference: -.194, Interval: [2]float64{-.232, -.151}},
	}
	r := NewSweepReport(s)
	md := written(t, r, api.ReportMarkdown)
	assert.Contains(t, md, "The trial is decided once the interval lies on one side of 0, or between −4.8 and +5.0 %, where")
	assert.Contains(t, md, "| 1 | −25.0 % | −60.0 to +40.0 % |\n| 2 | −19.4 % | −23.2 to −15.1 % |\n")
	page := written(t, r, api.ReportHTML)
	assert.Equal(t, 1, selfContained(t, page)["svg"])
	assert.Contains(t, page, "after 2 pairs: −19.4 % (−23.2 to −15.1 %)")
	assert.Contains(t, page, "of no interest: −4.76 to &#43;5 %")
	s.Trial.Looks = nil
	assert.NotContains(t, written(t, NewSweepReport(s), api.ReportMarkdown), "Pair by pair")
}
