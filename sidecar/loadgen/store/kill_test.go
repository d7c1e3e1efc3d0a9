package store

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"kvbooth/sidecar/api"
)

// childDir is the variable that makes the test binary write into a directory until it is killed.
const childDir = "KVBOOTH_STORE_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		child(dir)
	}
	goleak.VerifyTestMain(m)
}

// child reports each turn on standard output once it is committed.
func child(dir string) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second) // in case the parent exits
	defer cancel()
	s, err := Open(ctx, Options{Dir: dir, Owner: "http://127.0.0.1:18088"})
	if err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
	fmt.Println("open")
	for i := 0; ; i++ {
		c := conversation(i)
		s.SaveConversation(c)
		s.SaveStep(api.StepRecord{Lane: c.Lane, ID: int64(i + 1), Started: t0})
		s.SaveTurn(turn(c.ID, 1))
		if err := s.Flush(ctx); err != nil {
			fmt.Println(err)
			os.Exit(1) // the parent has not killed it in time
		}
		fmt.Println(c.ID)
	}
}

func startChild(t *testing.T, dir string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := bufio.NewReader(out)
	first, err := lines.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "open\n", first)
	return cmd, lines
}

func TestCommittedRecordsSurviveKill9(t *testing.T) {
	dir := t.TempDir()
	cmd, lines := startChild(t, dir)

	_, err := Open(t.Context(), Options{Dir: dir})
	var locked *LockedError
	require.ErrorAs(t, err, &locked, "the child holds the directory")
	assert.Equal(t, &LockedError{Path: dir, Owner: "http://127.0.0.1:18088", PID: cmd.Process.Pid}, locked)
	assert.ErrorContains(t, err, fmt.Sprintf("process %d at http://127.0.0.1:18088", cmd.Process.Pid))

	var reported []string
	for len(reported) < 20 {
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		reported = append(reported, strings.TrimSpace(line))
	}
	require.NoError(t, cmd.Process.Kill())
	rest, err := io.ReadAll(lines)
	require.NoError(t, err)
	reported = append(reported, strings.Fields(string(rest))...)
	require.Error(t, cmd.Wait(), "killed")

	s := openTest(t, Options{Dir: dir}, defaultLimits)
	for _, id := range reported {
		c, err := s.Conversation(t.Context(), id)
		require.NoError(t, err)
		assert.Equal(t, api.ConversationCancelled, c.Status, "recovery cancels the conversation of a killed process")
		assert.Equal(t, []api.Turn{turn(id, 1)}, c.Turns)
		assert.Equal(t, 1, c.TurnsDone)
		assert.Equal(t, c.Turns[0].Ended, *c.Ended)
	}
	steps, err := s.Steps(t.Context(), api.DefaultLane)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(steps), len(reported))
	for _, step := range steps {
		assert.NotNil(t, step.Ended)
	}
	last, err := s.MaxStep(t.Context(), api.DefaultLane)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, last, int64(len(reported)))
}

// Locked names the holder if it can be read. It creates no file, and leaves the lock free.
func TestLockedNamesHolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	require.NoError(t, Locked(dir))
	require.NoDirExists(t, dir)
	for owner, want := range map[string]string{"127.0.0.1:18088": " at 127.0.0.1:18088:", "": ":"} {
		s := openTest(t, Options{Dir: dir, Owner: owner}, defaultLimits)
		assert.ErrorContains(t, Locked(dir), fmt.Sprintf("in use by process %d%s", os.Getpid(), want))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "lock.json"), []byte("{"), 0o600)) // as during a write
		_, err := Open(t.Context(), Options{Dir: dir})
		assert.ErrorContains(t, err, "in use by another process:")
		require.NoError(t, s.Close())
		require.NoError(t, Locked(dir))
	}
}
