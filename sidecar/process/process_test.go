//go:build unix

package process_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/process"
	"kvbooth/sidecar/process/processtest"
)

func start(t *testing.T, c process.Command) *process.Process {
	t.Helper()
	p, err := process.Start(c)
	require.NoError(t, err)
	t.Cleanup(p.Kill)
	return p
}

// setUp returns the path of a log and a holder of connections.
func setUp(t *testing.T) (log string, holder *processtest.Holder) {
	t.Helper()
	return filepath.Join(t.TempDir(), "logs", "log"), processtest.NewHolder(t)
}

func shell(log, script string, args ...string) process.Command {
	args = append([]string{"-c", script}, args...)
	return process.Command{Name: "shell", Path: "/bin/sh", Args: args, Log: log}
}

// commandLine returns the words of a command, for use in a shell.
func commandLine(c process.Command) []string { return append([]string{c.Path}, c.Args...) }

func TestStopLetsChildFinish(t *testing.T) {
	log, holder := setUp(t)
	p := start(t, processtest.Hold(log, holder.Address()))
	held := holder.Accept()

	p.Stop(wait.Context(t))
	assert.Equal(t, "stopping\n", held.Rest())
	assert.Zero(t, p.ExitCode())
	assert.NoError(t, p.Wait())
	p.Stop(wait.Context(t)) // a second call has no effect
}

// TestStopKillsAtDeadline checks that a process that continues is killed when the context ends.
func TestStopKillsAtDeadline(t *testing.T) {
	log, holder := setUp(t)
	p := start(t, processtest.Hold(log, holder.Address(), "stubborn"))
	held := holder.Accept()
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		p.Stop(ctx)
	}()
	assert.Equal(t, "stopping", held.Line())
	cancel()
	wait.Receive(t, "the process is killed", stopped)
	assert.Empty(t, held.Rest())
	assert.ErrorContains(t, p.Wait(), "hold exited: signal: killed")
	assert.Equal(t, -1, p.ExitCode())
}

// TestGroupIsStopped checks that children of a child end with it.
func TestGroupIsStopped(t *testing.T) {
	log, holder := setUp(t)
	for _, test := range []struct {
		intent string
		end    func(*process.Process)
		output string
	}{
		{"stopped", func(p *process.Process) { p.Stop(wait.Context(t)) }, "stopping\n"},
		{"killed", func(p *process.Process) { p.Kill() }, ""},
	} {
		t.Run(test.intent, func(t *testing.T) {
			hold := commandLine(processtest.Hold(log, holder.Address()))
			p := start(t, shell(log, `"$0" "$@" & "$0" "$@" & wait`, hold...))
			first, second := holder.Accept(), holder.Accept()
			test.end(p)
			// When the leader has ended, members that have not finished are killed.
			assert.Contains(t, []string{"", test.output}, first.Rest())
			assert.Contains(t, []string{"", test.output}, second.Rest())
		})
	}
}

func TestWaitQuotesLastLines(t *testing.T) {
	log, _ := setUp(t)
	const script = `for i in 1 2 3 4 5 6 7 8 9 10 11 12 13; do echo "line $i"; done; echo "port taken" >&2; exit 3`
	p := start(t, shell(log, script))
	err := p.Wait()
	assert.ErrorContains(t, err, "shell exited: exit status 3; last lines of "+log+":\n  line 3\n")
	assert.ErrorContains(t, err, "\n  line 13\n  port taken")

	again := start(t, shell(log, "true"))
	require.NoError(t, again.Wait())
	assert.EqualError(t, again.Ended(t.Context()), "shell exited unexpectedly; see "+log)
	content, err := os.ReadFile(log)
	require.NoError(t, err)
	assert.Contains(t, string(content), "line 1\n", "a log is appended to")
}

// TestOutputReplacesLog gives a child another output, such as this process's terminal.
func TestOutputReplacesLog(t *testing.T) {
	log, _ := setUp(t)
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	defer out.Close()
	c := shell(log, "echo out; echo err >&2; exit 1")
	c.Output = out
	assert.EqualError(t, start(t, c).Wait(), "shell exited: exit status 1")
	content, err := os.ReadFile(out.Name())
	require.NoError(t, err)
	assert.Equal(t, "out\nerr\n", string(content))
	assert.NoFileExists(t, log)
}

// TestChildHasNoSecrets checks that the environment of a child has no settings of the load generator, and that only
// this user can read its log, even if the log existed with other permissions.
func TestChildHasNoSecrets(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.WriteFile(log, nil, 0o666))
	t.Setenv("LOADGEN_TOKEN", "secret")
	t.Setenv("LOADGEN_TARGET_API_KEY", "secret")
	t.Setenv("OTHER", "kept")
	require.NoError(t, start(t, shell(log, "env")).Wait())
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	assert.Contains(t, string(text), "OTHER=kept\n")
	assert.NotContains(t, string(text), "secret")
	info, err := os.Stat(log)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestStartErrorNamesProgram(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "missing")
	_, err := process.Start(process.Command{Name: "loadgen", Path: missing, Log: filepath.Join(dir, "log")})
	assert.ErrorContains(t, err, "start loadgen: ")
	assert.ErrorIs(t, err, os.ErrNotExist)

	_, err = process.Start(process.Command{Name: "loadgen", Path: "/bin/sh", Log: filepath.Join(dir, "log", "log")})
	assert.ErrorContains(t, err, "start loadgen: ", "a file in place of the log's folder")
}

func TestTailOfMissingEmptyAndLongLogs(t *testing.T) {
	assert.Empty(t, process.Tail(filepath.Join(t.TempDir(), "missing")))
	empty := filepath.Join(t.TempDir(), "empty")
	require.NoError(t, os.WriteFile(empty, []byte("\n\n"), 0o600))
	assert.Empty(t, process.Tail(empty))
	long := filepath.Join(t.TempDir(), "long")
	require.NoError(t, os.WriteFile(long, fmt.Appendf(nil, "%9000d\nlast\n", 1), 0o600))
	assert.Less(t, len(process.Tail(long)), 5000)
}

// TestServiceIsNotReadyAfterExit checks that an exited process is not ready, even if its readiness check succeeds.
func TestServiceIsNotReadyAfterExit(t *testing.T) {
	for name, tt := range map[string]struct {
		script, want string
		permanent    bool
	}{
		"exit code 0":           {"exit 0", "the shell is not ready: shell exited unexpectedly", false},
		"exit code 3":           {"exit 3", "exit status 3", false},
		"refused configuration": {fmt.Sprintf("exit %d", process.Refused), "exit status 2", true},
		"killed by a signal":    {"kill -9 $$", "signal: killed", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := process.Service{
				Name: "the shell", Within: wait.Limit, Say: t.Logf,
				Command: shell(filepath.Join(t.TempDir(), "log"), tt.script),
				Ready:   func(_ context.Context, p *process.Process) error { <-p.Done(); return nil },
			}
			err := s.Start(t.Context())
			require.ErrorContains(t, err, tt.want)
			assert.Equal(t, tt.permanent, errors.As(err, new(process.Permanent)))
		})
	}
}

// Run passes on each line, reports the last one of a failure, and stops the whole group with its context.
func TestRun(t *testing.T) {
	var lines []string
	keep := func(line string) { lines = append(lines, line) }
	require.NoError(t, process.Run(t.Context(), shell("", "echo one; echo two >&2; printf three"), keep))
	require.ElementsMatch(t, []string{"one", "two", "three"}, lines)

	err := process.Run(t.Context(), shell("", "echo no such worker; exit 3"), keep)
	require.ErrorContains(t, err, "exit status 3: no such worker")

	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("given up")
	err = process.Run(ctx, shell("", "echo started; sleep 1000 & wait"), func(string) { cancel(stop) })
	require.ErrorIs(t, err, stop)
}
