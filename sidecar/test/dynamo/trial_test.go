//go:build dynamo

package dynamo

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/test/boothtest"
)

// The load generator distributes the turns for round-robin. The trial ends with a verdict or at its time limit, and
// with a report in both cases.
func TestTrialOnDynamoEndsWithReport(t *testing.T) {
	b := startBooth(t)
	s := boothtest.Trial(t, b.client, 5*time.Minute, api.SweepRequest{
		Levels: api.LevelsOf(12), Modes: []api.ModeState{{Mode: api.ModeRoundRobin}, {Mode: api.ModeKV}}, Seconds: new(5.),
	})
	require.NotNil(t, s.Trial.Primary, "two blocks must fit into its time")
	require.NotEqual(t, "running", s.Trial.Verdict)
	var report bytes.Buffer
	require.NoError(t, b.client.SweepReport(t.Context(), &report, s.ID, api.ReportMarkdown))
	for _, want := range append(s.Words, "# ", "nonce") {
		assert.Contains(t, report.String(), want)
	}
	t.Log(strings.Join(s.Words, "\n"))
}
