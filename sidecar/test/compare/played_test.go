//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/booth/local/localtest"
)

// The test binary plays the programs that are measured, under their names.
func TestMain(m *testing.M) {
	localtest.Main()
	play := map[string]func([]string) error{"booth": playCluster, "loadgen": playLoadgen}[filepath.Base(os.Args[0])]
	if play != nil {
		fmt.Fprintln(os.Stderr, play(os.Args[1:]))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// playCluster plays booth cluster, which must be asked to forget answers.
func playCluster(args []string) error {
	if args[0] != "cluster" || !slices.Contains(args, "--forget-answers") || !slices.Contains(args, "--seed=7") {
		return fmt.Errorf("arguments %q", args)
	}
	return http.ListenAndServe("127.0.0.1:"+flag(args, "port"), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
}

// playLoadgen plays a load generator with a turn every 20 ms, every third of them
// a first one, that all go to one worker.
func playLoadgen(args []string) error {
	if flag(args, "seed") != "7" || len(strings.Split(flag(args, "cluster-metrics-urls"), ",")) != 3 {
		return fmt.Errorf("arguments %q", args)
	}
	settled := time.Now()
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc(api.Prefix+"/status", answer(api.Status{Lanes: []api.LaneStatus{{State: api.State{Step: api.Step{Settled: &settled}}}}}))
	mux.HandleFunc(api.Prefix+"/snapshot", answer(api.Snapshot{Lanes: []api.LaneSnapshot{{Cluster: api.Cluster{Spread: new(3.)}}}}))
	mux.HandleFunc(api.Prefix+"/turns.csv", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, header)
		at := settled
		for i := 0; at.Before(time.Now()); i++ {
			at = at.Add(20 * time.Millisecond)
			fmt.Fprintf(w, "main,c-%d,%d,,1,ok,,,%s,.25,.026,1000,850,830,1\r\n", i/3, i%3+1, at.Format(time.RFC3339Nano))
		}
	})
	return http.ListenAndServe(flag(args, "listen"), mux)
}

func flag(args []string, name string) string {
	for _, arg := range args {
		if value, ok := strings.CutPrefix(arg, "--"+name+"="); ok {
			return value
		}
	}
	return ""
}

func answer(v any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
}

// played goes to a folder with played programs.
func played(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "bin"), 0o755))
	for _, name := range []string{"booth", "loadgen"} {
		require.NoError(t, os.Symlink(self, filepath.Join(dir, "bin", name)))
	}
	t.Chdir(dir)
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv(local.VenvVariable, localtest.Venv(t))
}

// From the start of both clusters to the table, with played programs.
func TestCompareAll(t *testing.T) {
	played(t)
	o := options{Levels: []int{60}, Modes: []api.Mode{api.ModeKV}, Seconds: 1, Seed: 7, Together: true, Out: "kept"}
	var out, progress bytes.Buffer
	require.NoError(t, compareAll(t.Context(), o, &out, &progress), "%s", &progress)
	assert.Regexp(t, `hit rate +85.0 % +85.0 % +\+0.0 ± 0.0 points +3 points: met +91.6 %`, out.String())
	assert.Regexp(t, `same worker again +100.0 % +100.0 %`, out.String())
	assert.Regexp(t, `in-flight spread +3.0 +3.0`, out.String())
	assert.Contains(t, out.String(), "No bound is broken.")
	assert.Contains(t, progress.String(), "1 of 1: simulated and real Dynamo, 60 conversations, kv: 1 s left")
	for _, name := range []string{"60-kv-simulated/turns.csv", "60-kv-simulated/cluster.log", "60-kv-real-Dynamo/turns.csv", "60-kv-real-Dynamo/frontend.log"} {
		assert.FileExists(t, filepath.Join("kept", name))
	}
	left, err := os.ReadDir(os.TempDir())
	require.NoError(t, err)
	assert.Empty(t, left, "no temporary file is left")
}

// What cannot start is told with the setting, the side and the last lines of its log.
func TestCompareAllSaysWhatFailed(t *testing.T) {
	played(t)
	o := options{Levels: []int{60}, Modes: []api.Mode{api.ModeKV}, Seconds: 1, Seed: 8}
	var out bytes.Buffer
	err := compareAll(t.Context(), o, &out, &out)
	require.ErrorContains(t, err, "60 conversations, kv: simulated: ")
	assert.ErrorContains(t, err, "arguments")
}

// A signal ends everything that was started: Stop waits for each process.
func TestInterrupted(t *testing.T) {
	played(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watched := watch{word: "s left", found: cancel}
	var out bytes.Buffer
	code := run(ctx, []string{"--seed=7", "--levels=60"}, &out, &watched)
	assert.Equal(t, failure, code)
	assert.Contains(t, watched.text.String(), "compare: interrupted")
	left, err := os.ReadDir(os.TempDir())
	require.NoError(t, err)
	assert.Empty(t, left, "no temporary file is left")
}

// watch calls found once a word was written.
type watch struct {
	word  string
	found func()
	once  sync.Once
	text  bytes.Buffer
}

func (w *watch) Write(b []byte) (int, error) {
	w.text.Write(b)
	if strings.Contains(w.text.String(), w.word) {
		w.once.Do(w.found)
	}
	return len(b), nil
}
