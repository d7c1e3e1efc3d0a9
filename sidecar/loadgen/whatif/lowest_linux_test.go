package whatif

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Every thread of the process gives way to everything else, and no secret of the load
// generator's environment is in it.
func TestProcessStandsBack(t *testing.T) {
	t.Setenv("LOADGEN_TOKEN", "secret")
	d := running(t, Options{}, "stands back")
	r := small()
	r.Levels, r.Seeds = []int{2000}, new(12) // for longer than this test takes
	ask(t, d, "ada", r)
	var process string
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		process = "/proc/" + strconv.Itoa(childNow(c))
		threads, err := filepath.Glob(process + "/task/*")
		require.NoError(c, err)
		require.NotEmpty(c, threads)
		for _, thread := range threads {
			id, err := strconv.Atoi(filepath.Base(thread))
			require.NoError(c, err)
			attributes, err := unix.SchedGetAttr(id, 0)
			require.NoError(c, err)
			assert.EqualValues(c, unix.SCHED_IDLE, attributes.Policy)
			nice, err := syscall.Getpriority(syscall.PRIO_PROCESS, id)
			require.NoError(c, err)
			assert.Equal(c, 20-lowest, nice, "Linux counts from the other end")
		}
	}, soon, 10*time.Millisecond)
	score, err := os.ReadFile(process + "/oom_score_adj")
	require.NoError(t, err)
	assert.Equal(t, "1000", strings.TrimSpace(string(score)))
	environ, err := os.ReadFile(process + "/environ")
	require.NoError(t, err)
	assert.NotContains(t, string(environ), "LOADGEN")
	assert.Contains(t, string(environ), "GOMAXPROCS=1")
}
