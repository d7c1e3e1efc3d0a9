//go:build dynamo

package dynamo

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
)

// The load generator distributes the turns for round-robin. The trial ends with a verdict or at its time limit, and
// with a report in both cases.
func TestTrialOnDynamoEndsWithReport(t *testing.T) {
	b := startBooth(t)
	s := b.trial(t, 5*time.Minute)
	require.Equal(t, api.SweepDone, s.State, s.Reason)
	require.NotNil(t, s.Trial.Primary, "two blocks must fit into its time")
	require.NotEqual(t, "running", s.Trial.Verdict)
	var report bytes.Buffer
	require.NoError(t, b.client.SweepReport(t.Context(), &report, s.ID, api.ReportMarkdown))
	for _, want := range append(s.Words, "# ", "nonce") {
		assert.Contains(t, report.String(), want)
	}
	t.Log(strings.Join(s.Words, "\n"))
}

// trial runs a trial of kv and round-robin within a time limit, and returns it after its end.
func (b *booth) trial(t *testing.T, limit time.Duration) api.Sweep {
	t.Helper()
	s, err := b.client.StartSweep(t.Context(), api.DefaultLane, api.SweepRequest{
		Kind: api.SweepTrial, Levels: []int{12}, Modes: []api.ModeState{{Mode: api.ModeRoundRobin}, {Mode: api.ModeKV}},
		Seconds: new(5.), MaxSeconds: new(limit.Seconds()),
	})
	require.NoError(t, err)
	wait.Within(t, 5*time.Minute+limit, "the trial ends", func() (any, bool) {
		s, err = b.client.Sweep(t.Context(), s.ID)
		require.NoError(t, err)
		return s.Progress, s.State != api.SweepRunning
	})
	for _, span := range s.Spans {
		t.Logf("span %d, %s, %s: %d turns in %.0f s, by %s, %s", span.Number, span.Arm, span.Mode.Mode, span.Turns,
			span.Until.Sub(span.CountedFrom).Seconds(), span.Cold, span.Spoiled)
	}
	return s
}
