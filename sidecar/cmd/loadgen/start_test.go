//go:build unix

package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

const someTarget = "--target-url=http://127.0.0.1:1"

// What cannot be run is said in one line, with exit code 2, and leaves nothing.
// (What configurations are refused, the tests of config hold.)
func TestRefusals(t *testing.T) {
	t.Parallel()
	yaml := filepath.Join(t.TempDir(), "booth.yaml")
	require.NoError(t, os.WriteFile(yaml, []byte("slo:\n  ttft: 1s\n  ttfb: 1s\n"), 0o600))
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = taken.Close() })
	server := startTarget(t)
	for name, row := range map[string]struct {
		args []string
		env  string
		want string
	}{
		"no target": {want: "target.url is required: an http:// or https:// URL"},
		"unknown field in the file": {
			args: []string{someTarget, "--config=" + yaml},
			want: "slo.ttfb: unknown field; did you mean slo.ttft? (from " + yaml + ", line 3)",
		},
		"value out of range": {
			args: []string{someTarget}, env: "LOADGEN_CONCURRENCY=0",
			want: "concurrency: 0 is not allowed: a whole number, 1 to 100000 (from LOADGEN_CONCURRENCY)",
		},
		"not an address of this machine": {
			args: []string{someTarget, "--listen=192.0.2.1:8088"}, env: "LOADGEN_TOKEN=0123456789abcdef",
			want: "listen: 192.0.2.1:8088 is unavailable: bind: ",
		},
		"a data directory that is none": {
			args: []string{someTarget, "--data-dir=/dev/null/data", "--listen=127.0.0.1:0"},
			want: "data_dir: /dev/null/data cannot be used: making the data directory: mkdir /dev/null: not a directory; make it writable",
		},
		"a port that another program has": {
			args: []string{someTarget, "--listen=" + taken.Addr().String()},
			want: "listen: " + taken.Addr().String() + " is unavailable: bind: address already in use; stop the program that uses it, or choose another address with --listen\n",
		},
		"no simulated cluster": {
			args: []string{"--target-url=" + server.URL, "--listen=127.0.0.1:0", "--mode-driver=simulated"},
			want: "mode.driver: simulated is not allowed: manual or pinned, since the target is no simulated cluster; " +
				server.URL + "/sim/v1/state: answered 404 Not Found\n",
		},
		"a condition that is none": {
			args: []string{someTarget, "--fail-if=ttft_p96>1s"},
			want: "fail_if: ttft_p96>1s is not allowed: a list, each a name, one of > >= < <=, and a value, without spaces: ttft_p50, ttft_p95,",
		},
		"an output that is none": {
			args: []string{someTarget, "--output=report.pdf"},
			want: "output: report.pdf is not allowed: a list, each a file whose name ends in .json, .csv or .html",
		},
		"an output that cannot be written": {
			args: []string{someTarget, "--listen=127.0.0.1:0", "--output=/dev/null/report.html", "--duration=1s"},
			want: "output: /dev/null/report.html is not allowed: a file whose name ends in .json, .csv or .html that can be written; not a directory",
		},
		"a configuration to check": {args: []string{"check", "--concurrency=0"}, want: "concurrency: 0 is not allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := command(t, append([]string{"--data-dir=" + filepath.Join(t.TempDir(), "data")}, row.args...)...)
			cmd.Env = append(cmd.Env, row.env)
			code, stdout, stderr := finish(t, cmd)
			assert.Equal(t, badInput, code)
			assert.Empty(t, stdout)
			assert.True(t, strings.HasPrefix(stderr, "loadgen: "), stderr)
			assert.Contains(t, stderr, row.want)
			assert.Equal(t, 1, strings.Count(stderr, "\n"), "one error on one line: %s", stderr)
			assert.False(t, exists(strings.TrimPrefix(cmd.Args[1], "--data-dir=")), "nothing starts")
		})
	}
}

// The commands that start nothing leave nothing, either.
func TestCommandsThatStartNothing(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"The configuration is valid.\n": {"check", someTarget, "--start"},
		"loadgen ":                      {"version"},
		"--target-url=URL":              {"--help"},
	} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			cmd := command(t, append(args, "--data-dir="+filepath.Join(t.TempDir(), "data"))...)
			code, stdout, stderr := finish(t, cmd)
			assert.Equal(t, success, code)
			assert.Contains(t, stdout, want)
			assert.Empty(t, stderr)
			assert.False(t, exists(strings.TrimPrefix(cmd.Args[len(cmd.Args)-1], "--data-dir=")))
		})
	}
}

// A store that something else has written is named, and left as it is.
func TestStoreThatIsNone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, content := filepath.Join(dir, "kvbooth.db"), strings.Repeat("not a database\n", 100)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	code, _, stderr := finish(t, command(t, someTarget, "--listen=127.0.0.1:0", "--data-dir="+dir))
	assert.Equal(t, badInput, code)
	assert.Contains(t, stderr, "loadgen: data_dir: "+dir+" cannot be used: opening the store "+path)
	assert.Contains(t, stderr, "choose another directory with --data-dir\n")
	left, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, content, string(left))
}

// A second load generator on one data directory is told of the first, whether or
// not it was given the same address, and does not disturb it.
func TestSecondOnOneDirectory(t *testing.T) {
	t.Parallel()
	first := start(t, "http://127.0.0.1:1")
	address := strings.TrimPrefix(first.address, "http://")
	for _, listen := range []string{"127.0.0.1:0", address} {
		code, _, stderr := finish(t, command(t, someTarget, "--listen="+listen, "--data-dir="+first.dir))
		assert.Equal(t, badInput, code)
		assert.Equal(t, fmt.Sprintf("loadgen: the data directory %s is in use by process %d at %s: stop it, or choose another directory\n",
			first.dir, first.cmd.Process.Pid, address), stderr)
	}
	assert.Equal(t, first.address, "http://"+address)
	assert.True(t, first.status().Store.OK)
	first.endsWell()

	again := start(t, "http://127.0.0.1:1", "--data-dir="+first.dir, "--listen="+address)
	assert.Equal(t, success, again.stop(os.Interrupt), "%s", &again.log)
}

// A signal ends it within seconds, whatever is under way; the store is closed, and what was under way is told as cancelled.
func TestSignal(t *testing.T) {
	t.Parallel()
	server := startTarget(t)
	p := start(t, server.URL, "--concurrency=4", "--start")
	p.until("conversations have ended", func() bool { return p.lane().Totals.Conversations > 3 })
	server.words.Store(1e6)
	first, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		tell := sync.OnceFunc(func() { close(first) })
		for _, err := range p.client.Stream(t.Context()) {
			tell()
			if err != nil {
				ended <- err
			}
		}
	}()
	<-first
	p.until("every answer goes on without end", func() bool { return server.inside.Load() == 4 })

	require.Equal(t, success, p.stop(os.Interrupt), "%s", &p.log)
	assert.False(t, exists(filepath.Join(p.dir, "kvbooth.db-wal")), "the log of a store that was closed is gone")
	require.ErrorIs(t, <-ended, api.ErrUnavailable)
	until(t, "the target is left in peace", func() bool { return server.inside.Load() == 0 })

	again := start(t, server.URL, "--data-dir="+p.dir)
	assert.Contains(t, again.turns(), ",cancelled,")
	for _, c := range again.conversations() {
		assert.NotNil(t, c.Ended, c.ID)
	}
	again.endsWell()
}

// The second Ctrl-C waits for nobody: here, for a call that does not end.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	p := start(t, "http://127.0.0.1:1")
	address := strings.TrimPrefix(p.address, "http://")
	half, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer half.Close()
	fmt.Fprintf(half, "POST /api/v1/workload/start HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"+
		"Expect: 100-continue\r\nContent-Length: 100\r\n\r\n{", address)
	answer, err := bufio.NewReader(half).ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, answer, "100 Continue", "the call is being read")
	require.NoError(t, p.cmd.Process.Signal(os.Interrupt))
	until(t, "it stops", func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
	require.NoError(t, p.cmd.Process.Signal(os.Interrupt))
	assert.Equal(t, -1, p.code(), "the signal ends it")
}
