package process_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/process/processtest"
)

// TestGroupEndsWithItsLeader checks that a child that exits by itself leaves no processes behind.
func TestGroupEndsWithItsLeader(t *testing.T) {
	log, holder := setUp(t)
	gate := filepath.Join(t.TempDir(), "gate")
	require.NoError(t, syscall.Mkfifo(gate, 0o600))
	script := `"$0" "$@" & read -r _ < ` + gate + `; exit 7`
	hold := processtest.Hold(log, holder.Address(), "stubborn")
	p := start(t, shell(log, script, commandLine(hold)...))
	held := holder.Accept()

	require.NoError(t, os.WriteFile(gate, []byte("open\n"), 0o600))
	assert.Equal(t, 7, p.ExitCode())
	assert.Empty(t, held.Rest())
	assert.ErrorContains(t, p.Ended(t.Context()), "exit status 7")
}

// TestChildrenEndWithKilledParent kills the process that started a child. The child must be killed, or stopped if it
// has children of its own.
func TestChildrenEndWithKilledParent(t *testing.T) {
	for option, output := range map[string]string{"": "", "parents": "stopping\n", "runs": ""} {
		log, holder := setUp(t)
		parent := start(t, processtest.Parent(log, holder.Address(), option))
		held := holder.Accept()

		require.NoError(t, syscall.Kill(parent.PID(), syscall.SIGKILL)) // only this process: the child has its own group
		assert.Equal(t, output, held.Rest())
	}
}
