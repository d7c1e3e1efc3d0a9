package main

import (
	"maps"
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

	"kvbooth/sidecar/process"
)

// fleetProcess is a load generator with members, all in processes of their own.
type fleetProcess struct{ *program }

// newFleet returns one with two members, not yet started.
func newFleet(t *testing.T, args ...string) fleetProcess {
	t.Helper()
	server, err := process.FindNATS(filepath.Join("..", "..", "..", "bin"))
	if err != nil {
		t.Skip("no nats-server: go tool mage build")
	}
	server, err = filepath.Abs(server)
	require.NoError(t, err)
	path := t.TempDir() // with a NATS server alone
	require.NoError(t, os.Symlink(server, filepath.Join(path, "nats-server")))
	args = append([]string{"--members=2", "--concurrency=8", "--start-rate=1000", "--target-rps=0"}, args...)
	p := newProcess(t, args...)
	p.cmd.Env = append(p.cmd.Env, "PATH="+path)
	f := fleetProcess{p}
	t.Cleanup(f.leavesNoProcess) // after the kill of [program.launch]
	return f
}

// startFleet starts one against a target whose answers take 60 ms, so that conversations are in progress.
func startFleet(t *testing.T) fleetProcess {
	t.Helper()
	server := startTarget(t)
	server.gap.Store(int64(20 * time.Millisecond))
	f := newFleet(t, "--start")
	f.serve(server.URL)
	f.runs()
	return f
}

// processes are the ids of the parts, by name. They have the data directory in their arguments or environment.
func (f fleetProcess) processes() map[string]int {
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
		case line[1] == "member" && slices.Contains(env, f.environ[0]): // the HOME of this test
			for _, v := range env {
				if name, ok := strings.CutPrefix(v, "LOADGEN_MEMBERS_NAME="); ok {
					found[name] = p.PID
				}
			}
		case slices.Contains(line, "--data-dir="+f.dir):
			found["loadgen"] = p.PID
		}
	}
	return found
}

func (f fleetProcess) leavesNoProcess() {
	f.t.Helper()
	f.client = nil // it no longer answers
	f.eventually("no process is left", func() bool { return len(f.processes()) == 0 })
}

// kill9 kills a part like a crash, and waits until it has restarted.
func (f fleetProcess) kill9(part, name string) {
	f.t.Helper()
	pid := f.processes()[part]
	require.NotZero(f.t, pid, part)
	require.NoError(f.t, syscall.Kill(pid, syscall.SIGKILL))
	f.prints(name + ` is running again`)
}

// runs waits until both members are present, the concurrency is reached and turns end.
func (f fleetProcess) runs() {
	f.t.Helper()
	f.eventually("both members are present", func() bool {
		s, err := f.client.Snapshot(f.t.Context())
		return err == nil && len(s.Members) == 2 && s.Lanes[0].State.Concurrency.Actual == 8
	})
	n := f.lane().Totals.OK
	f.eventually("turns end", f.serves(n+20))
}

// One command starts a load generator with members. A killed part restarts while the run continues, and one signal ends
// all parts. No log contains the token. (sidecar/test/members covers kills of every part under load.)
func TestFleet(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	assert.Equal(t, []string{"loadgen", "member-1", "member-2", "nats-server"}, slices.Sorted(maps.Keys(f.processes())))
	f.kill9("member-1", "member-1")
	assert.Contains(t, f.log.String(), "member-1 exited: signal: killed; see "+f.dir+"/logs/member-1.log")
	f.runs()
	f.kill9("nats-server", "the NATS server")
	f.runs()
	assert.Equal(t, success, f.stop(os.Interrupt), "%s", &f.log)
	f.leavesNoProcess()
	f.hidesTheToken()
}

// hidesTheToken requires that other users cannot read the token of the NATS server.
func (f fleetProcess) hidesTheToken() {
	path := filepath.Join(f.dir, "nats", "nats-server.conf")
	info, err := os.Stat(path)
	require.NoError(f.t, err)
	assert.Equal(f.t, os.FileMode(0o600), info.Mode().Perm())
	_, after, ok := strings.Cut(content(f.t, path), `token: "`)
	require.True(f.t, ok)
	token, _, _ := strings.Cut(after, `"`)
	require.GreaterOrEqual(f.t, len(token), 26)
	assert.NotContains(f.t, f.log.String(), token)
	logs, err := filepath.Glob(filepath.Join(f.dir, "logs", "*.log"))
	require.NoError(f.t, err)
	require.Len(f.t, logs, 3)
	for _, log := range logs {
		assert.NotContains(f.t, content(f.t, log), token, log)
	}
}

// No part outlives the load generator.
func TestFleetEndsWhole(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	f.client = nil // it no longer answers
	f.kill()
	f.leavesNoProcess()
}

// A load generator with members ends with the output and the exit code of one without, including refusals.
func TestFleetEndsAsOneProcess(t *testing.T) {
	t.Parallel()
	server := startTarget(t)
	for name, row := range map[string]struct {
		args           []string
		env            string
		code           int
		stdout, stderr []string
	}{
		"a run that fails": {
			args: []string{"--requests=20", "--fail-if=error_rate<1%"}, code: failed,
			stdout: []string{"completed, "}, stderr: []string{"the run failed: a --fail-if condition was met"},
		},
		"a key that is none": {
			args: []string{"--members-nats-url=nats://127.0.0.1:1", "--members-nats-nkey-file=/dev/null"}, code: badInput,
			stderr: []string{"members.nats.nkey_file"},
		},
		"no NATS server": {env: "PATH=", code: badInput, stderr: []string{"go tool mage build", "--members-nats-url"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, append(row.args, "--target-url="+server.URL, "--turns-min=1", "--turns-max=2")...)
			if row.env != "" {
				f.cmd.Env = append(f.cmd.Env, row.env, process.NATSVariable+"=")
			}
			code, stdout, stderr := f.finish()
			assert.Equal(t, row.code, code, stderr)
			for _, want := range row.stdout {
				assert.Contains(t, stdout, want)
			}
			for _, want := range row.stderr {
				assert.Contains(t, stderr, want)
			}
		})
	}
}
