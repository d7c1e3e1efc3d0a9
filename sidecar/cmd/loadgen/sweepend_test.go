//go:build unix

package main

import (
	"bytes"
	"fmt"
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
	assert.Equal(t, []int{3}, began.Request.Levels)
	assert.Equal(t, byCommand, began.By)
	list, err := p.client.Sweeps(t.Context())
	require.NoError(t, err)
	helpShowsDefaults(t, list.Defaults)
	assert.Equal(t, unmeasured, p.stop(os.Interrupt))
	last := "\nloadgen: the trial is unfinished. It has 0 spans so far, kept in " + dir + "; " +
		"run the same command to resume\n"
	assert.True(t, strings.HasSuffix(p.log.String(), last), &p.log)

	p = trial()
	assert.Contains(t, p.log.String(), "resuming the trial from ")
	assert.Equal(t, began.ID, p.lane().State.Sweep.ID)
	_, err = p.client.PatchSweep(t.Context(), began.ID, api.SweepPatch{State: api.SweepCancelled})
	require.NoError(t, err)
	assert.Equal(t, unmeasured, p.code())
	assert.Contains(t, p.log.String(), "loadgen: the trial was cancelled by ")
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
			shows("resolution", fmt.Sprintf("Default: %d.", *r.Resolution))
			shows("max-time", length(*r.MaxSeconds))
		}
	}
}

// compareFiles runs loadgen compare.
func compareFiles(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errors bytes.Buffer
	code = run(t.Context(), append([]string{"compare"}, args...), []string{"HOME=" + t.TempDir()}, &out, &errors)
	return code, out.String(), errors.String()
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
	file, page := filepath.Join(t.TempDir(), "ours.csv"), filepath.Join(t.TempDir(), "report.html")
	table := filepath.Join(t.TempDir(), "report.tsv")
	f, err := os.Create(file)
	require.NoError(t, err)
	require.NoError(t, baseline.WriteCSV(f, b))
	require.NoError(t, f.Close())
	arms := filepath.Join(t.TempDir(), "arms.tsv")
	require.NoError(t, os.WriteFile(arms, []byte("side\tconcurrency\tmode\tspeculation\tarm\tttft_p95\n"+
		"alpha\t60\tkv\toff\talpha\t0.4\nround robin\t60\tunknown\toff\tround robin\t0.6\n"+
		"gamma\t60\tunknown\toff\tgamma\t0.5\n"), 0o600))
	const guidellm = "../../loadgen/baseline/testdata/import/guidellm.json"
	aiperf := filepath.Join(filepath.Dir(guidellm), "aiperf-8.json")
	vllmChat := filepath.Join(filepath.Dir(guidellm), "vllm-bench-chat-4.json")
	aiperf4 := filepath.Join(filepath.Dir(guidellm), "aiperf-4.json")
	for _, row := range []struct {
		args []string
		code int
		want []string
	}{
		{[]string{recorded, recorded, "--a-mode=round_robin", "--b-mode=kv", "--format=tsv"}, success, []string{"\t"}},
		{
			[]string{recorded, recorded, "--a-mode=round_robin", "--b-mode=kv", "--levels=60-160/20", "--output=" + table},
			success,
			[]string{"over 6 levels"},
		},
		{[]string{table, table, "--a-mode=round_robin", "--b-mode=kv"}, success, []string{"over 6 levels", "32.0 %"}},
		{
			[]string{"ours", file, "--a-mode=round_robin", "--b-mode=kv", "--data-dir=" + p.dir, "--output=" + page},
			success,
			[]string{"ours B", "32.0 %"},
		},
		{
			[]string{recorded + "," + file, recorded, "--a-mode=round_robin", "--b-mode=kv"},
			success,
			[]string{"Mean of 2 results: " + recorded + " and ours", "- **Averaged, ", "| ours |"},
		},
		{[]string{recorded + ",h100x8-tp2-llama70b-fp8", "ours"}, badInput, []string{"a: levels: 20, 30, "}},
		{[]string{recorded + "," + recorded, "ours"}, badInput, []string{`a: "` + recorded + `" twice is not allowed`}},
		{[]string{guidellm, aiperf, "--a-mode=round_robin", "--b-mode=kv"}, success, []string{"GuideLLM", "AIPerf"}},
		{
			[]string{"ours", recorded},
			badInput,
			[]string{`a: "ours" is not allowed: a readable file, or one of the baselines: h100x8-tp2-llama70b-fp8, ` + recorded},
		},
		{[]string{recorded, file}, badInput, []string{"a_mode: "}},
		{[]string{recorded, guidellm}, badInput, []string{"b: " + guidellm + ": mode is required"}},
		{
			[]string{recorded, recorded, "--a-mode=kv", "--b-mode=least_loaded"},
			badInput,
			[]string{"b_mode: least_loaded is not allowed"},
		},
		{
			[]string{vllmChat, aiperf4, "--a-mode=unknown", "--b-mode=unknown/off"},
			success,
			[]string{"the routing mode of one of them is unknown", "defined differently"},
		},
		{
			[]string{recorded, recorded, "--a-mode=sideways", "--b-mode=kv"},
			badInput,
			[]string{"a_mode: sideways is not allowed: what " + recorded + " has: round_robin with speculation not_recorded; "},
		},
		{[]string{recorded, aiperf, "--a-mode=kv", "--b-mode=gamma"}, badInput, []string{"b: " + aiperf + ": mode: "}},
		{[]string{arms, arms, "--a-mode=gamma", "--b-mode=round robin"}, success, []string{"# round robin against gamma"}},
		{
			[]string{arms, arms, "--a-mode=kv", "--b-mode=unknown/off"},
			badInput,
			[]string{`b_mode: unknown/off is not allowed: what arms has: arm "alpha"; arm "gamma"; arm "round robin"`},
		},
		{[]string{recorded, page, "--a-mode=kv"}, badInput, []string{"b: " + page + ": "}},
	} {
		code, stdout, stderr := compareFiles(t, row.args...)
		assert.Equal(t, row.code, code, stderr)
		for _, want := range row.want {
			if code == success {
				assert.Contains(t, stdout, want)
			} else {
				assert.Contains(t, stderr, "loadgen: "+want)
				assert.Empty(t, stdout)
			}
		}
	}
	assert.True(t, exists(page))
	p.endsWell()
}
