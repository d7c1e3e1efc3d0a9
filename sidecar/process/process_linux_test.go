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

// A child that ends by itself leaves none of its own behind either.
func TestGroupEndsWithItsLeader(t *testing.T) {
	log, holder := setUp(t)
	gate := filepath.Join(t.TempDir(), "gate")
	require.NoError(t, syscall.Mkfifo(gate, 0o600))
	script := `"$0" "$@" & read -r _ < ` + gate + `; exit 7`
	p := start(t, shell(log, script, again(processtest.Hold(log, holder.Address(), "stubborn"))...))
	held := holder.Accept()

	require.NoError(t, os.WriteFile(gate, []byte("open\n"), 0o600))
	assert.Equal(t, 7, p.ExitCode())
	assert.Empty(t, held.Rest())
	assert.ErrorContains(t, p.Ended(t.Context()), "exit status 7")
}

// Nothing survives kill -9 of the process that started it: a child is killed, and one that has children of its own is
// asked instead, so that it can end them.
func TestChildrenEndWithTheirParent(t *testing.T) {
	for how, says := range map[string]string{"": "", "parents": "asked\n"} {
		log, holder := setUp(t)
		parent := start(t, processtest.Parent(log, holder.Address(), how))
		held := holder.Accept()

		require.NoError(t, syscall.Kill(parent.PID(), syscall.SIGKILL)) // alone: the child has a group of its own
		assert.Equal(t, says, held.Rest())
	}
}
