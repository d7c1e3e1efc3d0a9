package main

import (
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/process"
)

// fleetOf is a load generator with members of its own, by its processes.
type fleetOf struct{ *program }

// startFleet starts one. Its address is the same after its coordinator was killed.
func startFleet(t *testing.T, args ...string) fleetOf {
	t.Helper()
	server := startTarget(t)
	server.gap.Store(int64(20 * time.Millisecond)) // so that a conversation is in progress when it is looked at
	p := newProgram(t)
	p.cmd.Env = append(p.cmd.Env, natsPath(t))
	f := fleetOf{p}
	t.Cleanup(f.leavesNothing) // after the kill of [program.start]
	ports, err := process.FreePorts(21_000+rand.IntN(2_000), 1)
	require.NoError(t, err)
	p.start(server.URL, append([]string{"--members=2", "--concurrency=8", "--start-rate=1000", "--target-rps=0", "--listen=" + process.Loopback(ports[0])}, args...)...)
	return f
}

// natsPath is a PATH with a NATS server and nothing else.
func natsPath(t *testing.T) string {
	t.Helper()
	server, err := process.FindNATS(filepath.Join("..", "..", "..", "bin"))
	if err != nil {
		t.Skip("no nats-server")
	}
	server, err = filepath.Abs(server)
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.Symlink(server, filepath.Join(dir, "nats-server")))
	return "PATH=" + dir
}

// processes are those that have the data directory in their arguments or environment, or were
// started by one that has, by what they are.
func (f fleetOf) processes() map[string]int {
	f.t.Helper()
	all, err := procfs.AllProcs()
	require.NoError(f.t, err)
	found := map[string]int{}
	for _, p := range all {
		line, err := p.CmdLine()
		if err != nil || len(line) < 2 { // it has ended
			continue
		}
		env, _ := p.Environ()
		switch {
		case strings.HasSuffix(line[0], "nats-server") && strings.HasPrefix(line[2], f.dir):
			found["nats-server"] = p.PID
		case line[1] == "member" && slices.Contains(env, f.home()):
			for _, v := range env {
				if name, ok := strings.CutPrefix(v, "LOADGEN_MEMBERS_NAME="); ok {
					found[name] = p.PID
				}
			}
		case slices.Contains(line, "--data-dir="+f.dir) && slices.Contains(line, "--members-count=0"):
			found["coordinator"] = p.PID
		}
	}
	return found
}

// home is a variable that the processes of this test alone have.
func (f fleetOf) home() string {
	return f.cmd.Env[slices.IndexFunc(f.cmd.Env, func(v string) bool { return strings.HasPrefix(v, "HOME=") })]
}

func (f fleetOf) leavesNothing() {
	f.t.Helper()
	f.until("no process is left", func() bool { return len(f.processes()) == 0 })
}

// kill9 kills a process as a crash would.
func (f fleetOf) kill9(name string) {
	f.t.Helper()
	pid := f.processes()[name]
	require.NotZero(f.t, pid, name)
	require.NoError(f.t, syscall.Kill(pid, syscall.SIGKILL))
}

// holding are the leases of the members that hold conversations, by name.
func (f fleetOf) holding() map[string]string {
	leases := map[string]string{}
	s, err := f.client.Snapshot(f.t.Context())
	if err != nil { // it is down
		return nil
	}
	for _, m := range s.Members {
		if m.Conversations > 0 {
			leases[m.Name] = m.ID
		}
	}
	return leases
}

// goesOn waits until both members hold conversations and turns end; actual concurrency is as
// it should be.
func (f fleetOf) goesOn() {
	f.t.Helper()
	f.until("both members hold conversations", func() bool { return len(f.holding()) == 2 })
	f.until("concurrency is what it is to be", func() bool {
		s, err := f.client.Status(f.t.Context())
		return err == nil && s.Lanes[0].State.Concurrency.Actual == 8
	})
	n := f.lane().Totals.OK
	f.until("turns end", f.serves(n+20))
}

// A load generator with members is up with one command, what is killed of it comes back while
// the run goes on, and one Ctrl-C ends all of it. No conversation is held twice.
func TestFleet(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	assert.Equal(t, []string{"coordinator", "member-1", "member-2", "nats-server"}, slices.Sorted(maps.Keys(f.processes())))
	_, err := f.client.Start(t.Context(), api.DefaultLane, api.StartRequest{})
	require.NoError(t, err)
	f.goesOn()

	lease := f.holding()["member-1"]
	f.kill9("member-1")
	f.until("it is said", func() bool {
		return strings.Contains(f.log.String(), "loadgen: member-1 exited: signal: killed; see "+f.dir+"/logs/member-1.log; restarting member-1 in 1s\n") &&
			strings.Contains(f.log.String(), "loadgen: member-1 is running again\n")
	})
	f.until("a new one has its name", func() bool { now := f.holding()["member-1"]; return now != "" && now != lease })
	f.goesOn()

	f.kill9("nats-server")
	f.says(`loadgen: the NATS server is running again\n`)
	f.goesOn()

	f.kill9("coordinator")
	f.says(`loadgen: the coordinator is running again\n`)
	f.until("it answers", func() bool { return f.client.Ready(t.Context()) == nil })
	f.goesOn()

	f.holdsNothingTwice()
	assert.Equal(t, success, f.stop(os.Interrupt), "%s", &f.log)
	f.leavesNothing()
	f.tellsNobodyTheToken()
}

// holdsNothingTwice looks for numbers that two members held.
func (f fleetOf) holdsNothingTwice() {
	all := f.conversations()
	require.Greater(f.t, len(all), 60)
	seen := map[int64]bool{}
	for _, c := range all {
		assert.False(f.t, seen[c.Number], "number %d twice", c.Number)
		seen[c.Number] = true
	}
}

// tellsNobodyTheToken looks at what it has left of the token that its server asked for.
func (f fleetOf) tellsNobodyTheToken() {
	path := filepath.Join(f.dir, "nats", "nats-server.conf")
	info, err := os.Stat(path)
	require.NoError(f.t, err)
	assert.Equal(f.t, os.FileMode(0o600), info.Mode().Perm())
	text, err := os.ReadFile(path)
	require.NoError(f.t, err)
	_, after, ok := strings.Cut(string(text), `token: "`)
	require.True(f.t, ok)
	token, _, _ := strings.Cut(after, `"`)
	require.GreaterOrEqual(f.t, len(token), 26)
	assert.NotContains(f.t, f.log.String(), token)
	logs, err := filepath.Glob(filepath.Join(f.dir, "logs", "*.log"))
	require.NoError(f.t, err)
	require.Len(f.t, logs, 3)
	for _, log := range logs {
		text, err := os.ReadFile(log)
		require.NoError(f.t, err)
		assert.NotContains(f.t, string(text), token, log)
	}
}

// Where the process that the user started is killed, nothing outlives it.
func TestFleetDiesWhole(t *testing.T) {
	t.Parallel()
	f := startFleet(t, "--start")
	f.until("both members hold conversations", func() bool { return len(f.holding()) == 2 })
	f.kill()
	f.leavesNothing()
}

// Another Ctrl-C waits for nobody: here, for a coordinator that does not end.
func TestFleetIsKilled(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	require.NoError(t, syscall.Kill(f.processes()["coordinator"], syscall.SIGSTOP))
	f.client = nil // it does not answer
	f.until("it ends", func() bool {
		select {
		case <-f.ended:
			return true
		default:
			return f.cmd.Process.Signal(os.Interrupt) != nil
		}
	})
	assert.Equal(t, broken, f.code())
	f.leavesNothing()
}

// It ends as its coordinator does: here with what a run was like, and with what is refused.
func TestFleetEndsAsItsCoordinator(t *testing.T) {
	t.Parallel()
	server := startTarget(t)
	path := natsPath(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = taken.Close() })
	for name, row := range map[string]struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		"a run":            {[]string{"--requests=20"}, success, "completed, ", ""},
		"one that fails":   {[]string{"--requests=20", "--fail-if=ttft_p95>0ms"}, failed, "completed, ", "the run failed: a --fail-if condition was met"},
		"an address taken": {[]string{"--listen=" + taken.Addr().String()}, badInput, "", "is unavailable: bind: address already in use"},
		"no directory":     {[]string{"--data-dir=/dev/null/data"}, badInput, "", "data_dir: /dev/null/data cannot be used: "},
		"another's server": {[]string{"--members-nats-url=nats://127.0.0.1:1", "--members-nats-nkey-file=/dev/null"}, badInput, "", "members.nats.nkey_file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "data")
			cmd := command(t, append([]string{"--members=2", "--target-url=" + server.URL, "--listen=127.0.0.1:0", "--data-dir=" + dir, "--turns-min=1", "--turns-max=2"}, row.args...)...)
			cmd.Env = append(cmd.Env, path)
			code, stdout, stderr := finish(t, cmd)
			assert.Equal(t, row.code, code, stderr)
			assert.Contains(t, stdout, row.stdout)
			assert.Contains(t, stderr, row.stderr)
			assert.NotContains(t, stderr, "the coordinator is restarted")
		})
	}
}

// Two do not share a data directory, and the second does not disturb the first.
func TestFleetBesideAnother(t *testing.T) {
	t.Parallel()
	f := startFleet(t, "--start")
	cmd := command(t, "--members=1", someTarget, "--listen=127.0.0.1:0", "--data-dir="+f.dir)
	cmd.Env = append(cmd.Env, natsPath(t))
	code, _, stderr := finish(t, cmd)
	assert.Equal(t, badInput, code)
	assert.Contains(t, stderr, "the data directory "+f.dir+" is in use by process")
	f.goesOn()
	f.endsWell()
}

// Where there is no server, it is said how there is one, and nothing starts.
func TestFleetWithoutServer(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	cmd := command(t, "--members=2", someTarget, "--data-dir="+dir)
	code, _, stderr := finish(t, cmd)
	assert.Equal(t, badInput, code)
	assert.Contains(t, stderr, "go tool mage build")
	assert.Contains(t, stderr, "--members-nats-url")
	assert.False(t, exists(dir))
}
