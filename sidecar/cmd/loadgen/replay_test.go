//go:build unix

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The recording of a recorder that was killed is played, and the log names what is missing.
func TestReplayOfKilledRecorder(t *testing.T) {
	t.Parallel()
	live := start(t, startTarget(t).URL)
	file := filepath.Join(t.TempDir(), "run")
	recorder := newProcess(t, "record", file, "--from="+live.address, "--for=2h")
	recorder.start()
	recorder.prints("(recorded) 0s of 2h")
	recorder.kill()

	player := newProgram(t, "replay", file)
	player.start("--listen=" + player.listen)
	player.connect("")
	player.prints(`the recording is damaged; the rest of it is played" file=\S+ problem="(\d+) lines are whole; what follows`)
	shown, err := player.client.Snapshot(t.Context())
	require.NoError(t, err)
	assert.NotNil(t, shown.Replay)
	_, err = player.client.Settings(t.Context())
	require.NoError(t, err)
	assert.Equal(t, success, player.stop(os.Interrupt))
}
