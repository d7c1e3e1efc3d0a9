//go:build unix

package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/cmd/loadgen/internal/config"
	"kvbooth/sidecar/loadgen/baseline"
)

// twoRouters returns the flags for a target whose modes have a URL each.
func twoRouters(kv, rr *target) []string {
	for _, s := range []*target{kv, rr} { // slow enough that the lag of a busy machine invalidates no span
		s.words.Store(1)
		s.gap.Store(int64(2 * time.Second))
	}
	return []string{
		"--mode-driver=endpoints", "--mode-endpoints=kv=" + kv.URL + ",round_robin=" + rr.URL, "--start-rate=1000",
		"--target-rps=0",
	}
}

// After a signal the same command resumes the trial of its data directory.
func TestTrialIsResumed(t *testing.T) {
	t.Parallel()
	kv, rr := startTarget(t), startTarget(t)
	dir := filepath.Join(t.TempDir(), "data")
	trial := func() *program {
		args := []string{"trial", "--span=1h", "--max-time=12h", "--concurrency=3"}
		p := newProgram(t, append(args, twoRouters(kv, rr)...)...)
		kv.gap.Store(int64(time.Millisecond)) // for the look at the routers
		rr.gap.Store(int64(time.Millisecond))
		p.dir = dir
		p.serve(kv.URL)
		p.eventually("a span warms up", func() bool { // the first one takes an hour
			s := p.lane().State.Sweep
			return s != nil && s.Progress.Span != nil && s.Progress.Span.Phase == api.SpanWarmingUp
		})
		return p
	}
	p := trial()
	began := p.lane().State.Sweep
	assert.Equal(t, api.LevelsOf(3), began.Request.Levels)
	assert.Equal(t, byCommand, began.By)
	list, err := p.client.Sweeps(t.Context())
	require.NoError(t, err)
	helpShowsDefaults(t, list.Defaults)
	assert.Equal(t, unmeasured, p.stop(os.Interrupt))
	found := "round_robin is NVIDIA Dynamo; all requests went to one worker"
	assert.Contains(t, p.log.String(), found)
	assert.Contains(t, strings.Join(began.Words, " "), "Before the trial: "+found)
	last := "\nloadgen: the trial is unfinished. It has 0 spans so far, kept in " + dir + "; " +
		"run the same command to resume\n"
	assert.True(t, strings.HasSuffix(p.log.String(), last), &p.log)

	run := newProgram(t, "--target-url="+kv.URL, "--requests=5")
	run.dir = dir
	code, _, stderr := run.finish()
	assert.Equal(t, badInput, code)
	assert.Contains(t, stderr, "has an unfinished trial of "+kv.URL+", which would change the load of this run: finish "+
		"it with loadgen trial")

	p = trial()
	assert.Contains(t, p.log.String(), "resuming the trial from ")
	assert.NotContains(t, p.log.String(), "is NVIDIA Dynamo", "it is looked at before a trial begins")
	assert.Equal(t, began.ID, p.lane().State.Sweep.ID)
	_, err = p.client.PatchSweep(t.Context(), began.ID, api.SweepPatch{State: api.SweepCancelled})
	require.NoError(t, err)
	assert.Equal(t, unmeasured, p.code())
	assert.Contains(t, p.log.String(), "loadgen: the trial was cancelled by ")
}

// A router that is killed ends no trial: the span in which its arm answered no turn does not count, and the reason is
// named with the arm.
func TestTrialWithKilledRouter(t *testing.T) {
	t.Parallel()
	kv, router := startTarget(t), startTarget(t)
	p := newProcess(t, append([]string{
		"trial", "--span=1s", "--max-time=1h", "--concurrency=2", "--seed=1", "--no-probe",
	}, twoRouters(kv, router)...)...)
	for _, s := range []*target{kv, router} {
		s.gap.Store(int64(time.Millisecond))
		s.cached.Store(0) // a span that is not cold does not count
	}
	router.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if router.first.Load() == nil { // only probes so far
			router.ServeHTTP(w, r)
			return
		}
		hangUp(w, r)
		go router.Close()
	})
	p.serve(kv.URL)
	p.prints(`span 2, Round-robin at 2: invalid: \S+ does not serve: (\d+ of \d+) turns failed, the latest with connect: `)
	assert.Equal(t, unmeasured, p.stop(os.Interrupt), &p.log)
	assert.Contains(t, p.log.String(), "run the same command to resume")
}

// helpShowsDefaults compares the help of the commands with the defaults of a request.
func helpShowsDefaults(t *testing.T, defaults []api.SweepRequest) {
	t.Helper()
	require.Len(t, defaults, len(api.SweepKinds))
	for _, r := range defaults {
		var out bytes.Buffer
		_, _, err := config.Load([]string{"help", string(r.Kind)}, nil, &out)
		require.NoError(t, err)
		text := strings.Join(strings.Fields(out.String()), " ")
		shows := func(flag, value string) {
			_, text, found := strings.Cut(text, "--"+flag+"=")
			require.True(t, found, flag)
			text, _, _ = strings.Cut(text, " --")
			assert.Contains(t, text, value, "%s --%s", r.Kind, flag)
		}
		length := func(seconds float64) string { // 1h, not 1h0m0s
			text := strings.ReplaceAll((time.Duration(seconds) * time.Second).String(), "m0s", "m")
			return "Default: " + strings.ReplaceAll(text, "h0m", "h") + "."
		}
		shows("span", length(*r.Seconds))
		switch r.Kind {
		case api.SweepTrial:
			shows("primary", "Default: "+*r.Primary+".")
			shows("smallest", fmt.Sprintf("%g is 5 %%", *r.Smallest))
			shows("max-time", length(*r.MaxSeconds))
		case api.SweepLevels:
			shows("repeats", fmt.Sprintf("Default: %d.", *r.Repeats))
			shows("snapshots", fmt.Sprintf("Default: %d.", *r.Snapshots))
			shows("warm-up", length(*r.WarmUp))
		case api.SweepCapacity:
			shows("resolution", fmt.Sprintf("Default: %g, or", *r.Resolution))
			shows("max-time", length(*r.MaxSeconds))
		}
	}
}

// Results are found by name among the recorded ones and in a data directory that is in use, and in files of this and of
// other programs.
func TestCompare(t *testing.T) {
	t.Parallel()
	const recorded = "h200x3-tp1-llama70b-fp8"
	b := baseline.Builtin()[slices.IndexFunc(baseline.Builtin(), func(b api.Baseline) bool { return b.Name == recorded })]
	p := start(t, "http://127.0.0.1:1")
	b.Name = "ours"
	_, err := p.client.SaveBaseline(t.Context(), b)
	require.NoError(t, err)
	dir := t.TempDir()
	file := filepath.Join(dir, "ours.csv")
	page := filepath.Join(dir, "report.html")
	table := filepath.Join(dir, "report.tsv")
	f, err := os.Create(file)
	require.NoError(t, err)
	require.NoError(t, baseline.WriteCSV(f, b))
	require.NoError(t, f.Close())
	arms := filepath.Join(dir, "arms.tsv")
	require.NoError(t, os.WriteFile(arms, []byte("side\tconcurrency\tmode\tspeculation\tarm\tttft_p95\n"+
		"alpha\t60\tkv\toff\talpha\t0.4\nround robin\t60\tunknown\toff\tround robin\t0.6\n"+
		"gamma\t60\tunknown\toff\tgamma\t0.5\n"), 0o600))
	const (
		imports  = "../../loadgen/baseline/testdata/import/"
		guidellm = imports + "guidellm.json"
		aiperf   = imports + "aiperf-8.json"
		twice    = recorded + " " + recorded
		modes    = " --a-mode=round_robin --b-mode=kv"
	)
	for _, row := range []struct {
		args string
		want []string
	}{
		{twice + modes + " --format=tsv", []string{"\t"}},
		{twice + modes + " --levels=60-160/20 --output=" + table, []string{"over 6 levels"}},
		{table + " " + table + modes, []string{"over 6 levels", "32.0 %"}},
		{"ours " + file + modes + " --data-dir=" + p.dir + " --output=" + page, []string{"ours B", "32.0 %"}},
		{
			recorded + "," + file + " " + recorded + modes,
			[]string{"Mean of 2 results: " + recorded + " and ours", "- **Averaged, ", "| ours |"},
		},
		{guidellm + " " + aiperf + modes, []string{"GuideLLM", "AIPerf"}},
		{
			imports + "vllm-bench-chat-4.json " + imports + "aiperf-4.json --a-mode=unknown --b-mode=unknown/off",
			[]string{"the routing mode of one of them is unknown", "defined differently"},
		},
		{arms + " " + arms + " --a-mode=gamma --b-mode=round robin", []string{"# round robin against gamma"}},
	} {
		code, stdout, stderr := command(t, compareArgs(row.args)...)
		assert.Equal(t, success, code, stderr)
		for _, want := range row.want {
			assert.Contains(t, stdout, want)
		}
	}
	for _, row := range [][2]string{
		{recorded + ",h100x8-tp2-llama70b-fp8 ours", "a: levels: 20, 30, "},
		{recorded + "," + recorded + " ours", `a: "` + recorded + `" twice is not allowed`},
		{"ours " + recorded, `a: "ours" is not allowed: a readable file, or one of the baselines: h100x8-tp2-llama70b-fp8, ` +
			recorded},
		{recorded + " " + file, "a_mode: "},
		{recorded + " " + guidellm, "b: " + guidellm + ": mode is required"},
		{twice + " --a-mode=kv --b-mode=least_loaded", "b_mode: least_loaded is not allowed"},
		{twice + " --a-mode=sideways --b-mode=kv", "a_mode: sideways is not allowed: what " + recorded +
			" has: round_robin with speculation not_recorded; "},
		{recorded + " " + aiperf + " --a-mode=kv --b-mode=gamma", "b: " + aiperf + ": mode: "},
		{arms + " " + arms + " --a-mode=kv --b-mode=unknown/off", "b_mode: unknown/off is not allowed: what arms has: " +
			`arm "alpha"; arm "gamma"; arm "round robin"`},
		{recorded + " " + page + " --a-mode=kv", "b: " + page + ": "},
	} {
		code, stdout, stderr := command(t, compareArgs(row[0])...)
		assert.Equal(t, badInput, code, stderr)
		assert.Contains(t, stderr, "loadgen: "+row[1])
		assert.Empty(t, stdout)
	}
	assert.True(t, exists(page))
	p.endsWell()
}

// compareArgs returns the arguments of loadgen compare. A mode may contain a space.
func compareArgs(text string) []string {
	results, flags, _ := strings.Cut(text, " --")
	args := append([]string{"compare"}, strings.Fields(results)...)
	for _, flag := range strings.Split(flags, " --") {
		if flag != "" {
			args = append(args, "--"+flag)
		}
	}
	return args
}
