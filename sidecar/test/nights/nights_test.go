//go:build verify

// Package nights runs a pipeline of nightly gates on the simulated cluster.
package nights

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/test/boothtest"
)

// The pipeline: every night a new cluster, which from one night on takes 8 % longer for everything.
const (
	nights  = 20
	slower  = 12 // the first slower night
	speed   = 5.
	slow    = 1.08
	seconds = 40
)

// TestTwentyNights accepts the first night and runs the gate in each further one. At most one gate fails before the
// cluster gets slower, and one does within two nights. The history then has the mark of the throughput at the first
// slower night.
func TestTwentyNights(t *testing.T) {
	bin, dir := boothtest.Programs(t), t.TempDir()
	loadgen := func(args ...string) (code int, output string) {
		var out, errOut bytes.Buffer
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "loadgen"), append(args, "--data-dir="+dir)...)
		cmd.Stdout, cmd.Stderr = &out, &errOut
		if err := cmd.Run(); err != nil {
			require.ErrorAs(t, err, new(*exec.ExitError), "%s", errOut.String())
		}
		return cmd.ProcessState.ExitCode(), out.String() + errOut.String()
	}
	var fired []int
	for night := 1; night <= nights; night++ {
		t.Run(fmt.Sprint("night ", night), func(t *testing.T) {
			at := speed
			if night >= slower {
				at /= slow
			}
			target := boothtest.SimulatedAs(t, bin, "trtllm", fmt.Sprintf("--speed=%.4f", at))
			args := append([]string{
				"--target-url=http://" + target.Frontend, "--cluster-metrics-urls=" + target.MetricsURLs(),
				"--concurrency=40", "--start-rate=100", "--preset=demo", "--listen=127.0.0.1:0", "--name=nightly",
				fmt.Sprintf("--label=night=%d", night), "--warmup=5s", fmt.Sprintf("--duration=%ds", seconds), "--grace=5s",
			}, target.Loadgen...)
			if night > 1 {
				args = append(args, "--against=accepted", "--fail-if=ttft_mean>+5%,output_tokens_per_second<-3%")
			}
			code, output := loadgen(args...)
			t.Logf("night %d: exit code %d\n%s", night, code, output)
			require.Contains(t, []int{0, 3}, code)
			if code == 3 {
				fired = append(fired, night)
			}
		})
		if night == 1 {
			code, output := loadgen("history", "accept", "latest")
			require.Zero(t, code, output)
		}
	}
	t.Logf("the gate failed in the nights %v", fired)
	before := 0
	for _, night := range fired {
		if night < slower {
			before++
		}
	}
	assert.LessOrEqual(t, before, 1, "false alarms")
	require.Greater(t, len(fired), before)
	assert.LessOrEqual(t, fired[before], slower+1)

	_, output := loadgen("history", "--format=json")
	var h api.RunHistory
	err := json.Unmarshal([]byte(output), &h)
	require.NoError(t, err)
	require.Len(t, h.Series, 1)
	marks := map[string]int{}
	for _, c := range h.Series[0].Changes {
		for i := range h.Runs {
			if h.Runs[i].ID == c.Run {
				marks[c.Figure], err = strconv.Atoi(h.Runs[i].Labels["night"])
				require.NoError(t, err)
			}
		}
	}
	t.Logf("marks: %v", marks)
	assert.Equal(t, slower, marks["output_tokens_per_second"])
	assert.InDelta(t, slower, marks["ttft_mean"], 2, "which scatters by 3 % from night to night")
}
