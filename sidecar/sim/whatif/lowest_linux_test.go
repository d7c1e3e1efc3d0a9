package whatif

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
)

// Every thread of the process has the lowest priority, and the environment of the process has no secret of the load
// generator.
func TestProcessHasLowestPriority(t *testing.T) {
	t.Setenv("LOADGEN_TOKEN", "secret")
	d := running(t, Options{}, "stands back")
	r := small()
	r.Levels, r.Seeds = api.LevelsOf(2000), new(12) // takes longer than this test
	ask(t, d, "ada", r)
	var process string
	wait.Eventually(t, "a process of the lowest priority", func() (any, bool) {
		all := children(t)
		if len(all) == 0 {
			return "no process", false
		}
		process = "/proc/" + strconv.Itoa(all[0])
		threads, err := filepath.Glob(process + "/task/*")
		require.NoError(t, err)
		for _, thread := range threads {
			id, err := strconv.Atoi(filepath.Base(thread))
			require.NoError(t, err)
			attributes, err := unix.SchedGetAttr(id, 0)
			if err != nil {
				return err, false
			}
			nice, err := syscall.Getpriority(syscall.PRIO_PROCESS, id)
			if err != nil || attributes.Policy != unix.SCHED_IDLE || nice != 20-lowest { // Linux counts from the other end
				return fmt.Sprintf("policy %d, priority %d, %v", attributes.Policy, nice, err), false
			}
		}
		return threads, len(threads) > 0
	})
	score, err := os.ReadFile(process + "/oom_score_adj")
	require.NoError(t, err)
	assert.Equal(t, "1000", strings.TrimSpace(string(score)))
	environ, err := os.ReadFile(process + "/environ")
	require.NoError(t, err)
	assert.NotContains(t, string(environ), "LOADGEN")
	assert.Contains(t, string(environ), "GOMAXPROCS=1")
}
