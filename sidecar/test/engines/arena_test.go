//go:build engines

package engines

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/figure"
	"kvbooth/internal/output"
	"kvbooth/internal/wait"
	"kvbooth/sidecar/loadgen/report"
	"kvbooth/sidecar/process"
	"kvbooth/sidecar/test/boothtest"
)

// An arena that is stopped leaves nothing running, and the same command goes on with its trial. Its report has every
// router with what it adds, beside the plain round-robin and the best placement.
func TestArena(t *testing.T) {
	bin := boothtest.Programs(t)
	file := filepath.Join(t.TempDir(), "ranking.json")
	args := []string{
		"arena", "--routers=smg,envoy:hash", "--workers=3", "--concurrency=6", "--cache-dir=" + t.TempDir(),
		"--output=" + file, "--", "--seed=1", "--span=6s", "--max-time=" + trialLimit.String(), "--openings=0",
		"--think-time=0s", "--max-tokens=24", "--output-tokens-mean=0", "--turns-min=3", "--turns-max=4",
	}
	arena := func(ctx context.Context, out *output.Buffer) (code int) {
		c := exec.CommandContext(ctx, filepath.Join(bin, "booth"), args...)
		c.Env, c.Stdout, c.Stderr = process.Environment(), out, out
		c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
		_ = c.Run() // its exit code says more
		return c.ProcessState.ExitCode()
	}
	const badInput, undecided = 2, 4
	var refused output.Buffer
	args = append(args, "--span=1ms")
	assert.Equal(t, badInput, arena(t.Context(), &refused))
	assert.Contains(t, refused.String(), "nothing was started: loadgen: span: 1ms is not allowed")
	args = args[:len(args)-1]
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var first output.Buffer
	ended := make(chan int, 1)
	go func() { ended <- arena(ctx, &first) }()
	wait.Within(t, 10*time.Minute, "the first span", func() (any, bool) {
		return first.String(), strings.Contains(first.String(), "span 1, ")
	})
	stop()
	assert.Equal(t, undecided, wait.Receive(t, "the arena ends", ended), first.String())
	for _, address := range regexp.MustCompile(`127\.0\.0\.1:\d+`).FindAllString(first.String(), -1) {
		_, err := net.Dial("tcp", address)
		assert.Error(t, err, "nothing is left running")
	}

	var second output.Buffer
	code := arena(t.Context(), &second)
	assert.Contains(t, []int{0, undecided}, code, second.String())
	assert.Contains(t, second.String(), "resuming the trial")
	text, err := os.ReadFile(file)
	require.NoError(t, err, second.String())
	var r report.Results
	require.NoError(t, json.Unmarshal(text, &r))
	var names []string
	for _, side := range r.Sides {
		names = append(names, side.Mode.Arm)
		if side.Mode.Arm != "best placement" {
			assert.Regexp(t, `TTFT -?\d+\.\d ms later than from an idle engine`, strings.Join(side.Routers, ""), side.Mode.Arm)
		}
	}
	assert.ElementsMatch(t, []string{"smg cache_aware", "envoy hash", "plain round-robin", "best placement"}, names)
	figure.Report(t, "%s", strings.Join(r.Words, " "))
	assert.Greater(t, hits(t, &r, "best placement"), hits(t, &r, "plain round-robin"))
}
