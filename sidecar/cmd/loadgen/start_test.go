//go:build unix

package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
)

const someTarget = "--target-url=http://127.0.0.1:1"

// exists reports whether there is such a file.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// A refused start prints one line, returns the exit code for bad input and leaves no file. (The tests of config cover
// the refused configurations.)
func TestRefusals(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = taken.Close() })
	server := startTarget(t)
	for name, row := range map[string]struct {
		args        []string
		env         string
		listen, dir string // empty: one that can be used
		want        string
	}{
		"a configuration that is refused": {
			args: []string{someTarget}, env: "LOADGEN_CONCURRENCY=0",
			want: "concurrency: 0 is not allowed: a whole number, 1 to 100000 (from LOADGEN_CONCURRENCY)\n",
		},
		"a default that is no baseline": {
			args: []string{someTarget, "--default-baseline=none"},
			want: "default_baseline: none is not allowed: \"this target\", or a baseline in data_dir or built in: ",
		},
		"not an address of this machine": {
			args: []string{someTarget}, listen: "192.0.2.1:8088", env: "LOADGEN_TOKEN=0123456789abcdef",
			want: "listen: 192.0.2.1:8088 is unavailable: bind: ",
		},
		"a port that another program has": {
			args: []string{someTarget}, listen: taken.Addr().String(),
			want: "listen: " + taken.Addr().String() + " is unavailable: bind: address already in use; " +
				"stop the program that uses it, or choose another address with --listen\n",
		},
		"a data directory that is none": {
			args: []string{someTarget}, dir: "/dev/null/data",
			want: "data_dir: /dev/null/data cannot be used: making the data directory: " +
				"mkdir /dev/null: not a directory; ",
		},
		"no simulated cluster": {
			args: []string{"--target-url=" + server.URL, "--mode-driver=simulated"},
			want: "mode.driver: simulated is not allowed: manual or pinned, since the target is no simulated cluster; " +
				server.URL + "/sim/v1/state: answered 404 Not Found\n",
		},
		"an output that cannot be written": {
			args: []string{someTarget, "--output=/dev/null/report.html", "--duration=1s"},
			want: "output: /dev/null/report.html is not allowed: " +
				"a file whose name ends in .json, .csv, .html, .xml, .prom or .series.csv that can be written; not a directory",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProgram(t, row.args...)
			p.environ = append(p.environ, row.env)
			if row.listen != "" {
				p.listen = row.listen
			}
			if row.dir != "" {
				p.dir = row.dir
			}
			code, stdout, stderr := p.finish()
			assert.Equal(t, badInput, code)
			assert.Empty(t, stdout)
			assert.True(t, strings.HasPrefix(stderr, "loadgen: "), stderr)
			assert.Contains(t, stderr, row.want)
			assert.Equal(t, 1, strings.Count(stderr, "\n"), "one error on one line: %s", stderr)
			assert.False(t, exists(p.dir), "nothing starts")
		})
	}
}

func TestCommandsThatStartNothing(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"The configuration is valid.\n": {"check", someTarget, "--start"},
		"loadgen ":                      {"version"},
		"loadgen check --target":        {"--help"},
	} {
		p := newProgram(t, args...)
		code, stdout, stderr := p.finish()
		assert.Equal(t, success, code)
		assert.Contains(t, stdout, want)
		assert.Empty(t, stderr)
		assert.False(t, exists(p.dir))
	}
}

// A corpus that cannot be read after the database was opened leaves no database. (The tests of source cover unreadable
// corpora.)
func TestCorpusThatCannotBeRead(t *testing.T) {
	t.Parallel()
	p := newProgram(t, someTarget, "--corpus-file=/none")
	code, _, stderr := p.finish()
	assert.Equal(t, badInput, code)
	assert.Contains(t, stderr, "loadgen: corpus.file: the corpus /none cannot be read: no such file or directory\n")
	assert.False(t, exists(p.dir))
}

// A file that is no store is named in the error, and is not changed.
func TestUnusableStore(t *testing.T) {
	t.Parallel()
	p := newProgram(t, someTarget)
	p.dir = t.TempDir()
	path, text := filepath.Join(p.dir, "kvbooth.db"), strings.Repeat("not a database\n", 100)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	code, _, stderr := p.finish()
	assert.Equal(t, badInput, code)
	assert.Contains(t, stderr, "loadgen: data_dir: "+p.dir+" cannot be used: opening the store "+path)
	assert.Contains(t, stderr, "; move it out of the directory, or ")
	assert.Equal(t, text, content(t, path))
}

// A second load generator on one data directory reports the first, whatever address it was given, and does not
// disturb it.
func TestSecondOnOneDirectory(t *testing.T) {
	t.Parallel()
	first := start(t, "http://127.0.0.1:1")
	address := strings.TrimPrefix(first.address, "http://")
	for _, listen := range []string{"127.0.0.1:0", address} {
		second := newProgram(t, someTarget)
		second.dir, second.listen = first.dir, listen
		code, _, stderr := second.finish()
		assert.Equal(t, badInput, code)
		assert.Equal(t, fmt.Sprintf("loadgen: the data directory %s is in use by process %d at %s: "+
			"stop it, or choose another directory\n", first.dir, os.Getpid(), address), stderr)
	}
	assert.True(t, first.status().Store.OK)
	first.endsWell()

	again := newProgram(t)
	again.dir = first.dir
	again.serve("http://127.0.0.1:1").endsWell()
}

// A signal ends the process while answers and a stream are in progress. The store is closed, the turns are canceled,
// and the summary is printed.
func TestSignalEndsTheProcess(t *testing.T) {
	t.Parallel()
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			server := startTarget(t)
			p := newProcess(t, "--concurrency=4", "--start").serve(server.URL)
			p.eventually("conversations have ended", func() bool { return p.lane().Totals.Conversations > 3 })
			server.words.Store(1e6)
			begun, ended := make(chan struct{}, 1), make(chan error, 1)
			go func() {
				for _, err := range p.client.Stream(t.Context()) {
					select {
					case begun <- struct{}{}:
					default:
					}
					if err != nil {
						ended <- err
					}
				}
			}()
			wait.Receive(t, "a snapshot", begun)
			p.eventually("four answers are without end", func() bool { return server.inside.Load() == 4 })

			require.Equal(t, success, p.stop(signal), "%s", &p.log)
			assert.False(t, exists(filepath.Join(p.dir, "kvbooth.db-wal")), "a store that was closed has no log")
			require.ErrorIs(t, wait.Receive(t, "the end of the stream", ended), api.ErrUnavailable)
			p.eventually("the target has no request", func() bool { return server.inside.Load() == 0 })
			assert.Contains(t, p.out.String(), "ended by a signal")
			assert.Regexp(t, `Turns +\d+ completed, 0 failed`, p.out.String())

			again := newProgram(t)
			again.dir = p.dir
			again.serve(server.URL)
			assert.Contains(t, again.turns(), ",cancelled,")
			for _, c := range again.conversations() {
				assert.NotNil(t, c.Ended, c.ID)
			}
			again.endsWell()
		})
	}
}

// A second signal ends the process at once, here during a call that does not end.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	p := newProcess(t).serve("http://127.0.0.1:1")
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
	p.client = nil // it no longer answers
	p.eventually("the API is closed", func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
	require.NoError(t, p.cmd.Process.Signal(os.Interrupt))
	assert.Equal(t, -1, p.code(), "the signal ends it")
}
