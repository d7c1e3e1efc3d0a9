//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/cmd/loadgen/internal/config"
	"kvbooth/sidecar/loadgen/baseline"
)

// twoRouters are the flags for a target whose modes have an address each.
func twoRouters(t *testing.T, kv, rr *target) []string {
	t.Helper()
	for _, s := range []*target{kv, rr} { // so slow that a busy machine's lag spoils no span
		s.words.Store(1)
		s.gap.Store(int64(800 * time.Millisecond))
	}
	return []string{
		"--mode-driver=endpoints", "--mode-endpoints=kv=" + kv.URL + ",round_robin=" + rr.URL, "--target-url=" + kv.URL, "--listen=127.0.0.1:0",
		"--start-rate=1000", "--target-rps=0", "--turns-min=1", "--turns-max=1",
	}
}

// A sweep from the command line runs to its end by itself, and leaves its report on the
// terminal and in files, one of which can be compared again.
func TestSweepOnTheCommandLine(t *testing.T) {
	t.Parallel()
	kv, rr := startTarget(t), startTarget(t)
	dir := t.TempDir()
	document, page := filepath.Join(dir, "sweep.json"), filepath.Join(dir, "sweep.html")
	args := append([]string{
		"sweep", "--levels=4", "--modes=round_robin,kv", "--repeats=1", "--warm-up=0s", "--span=1s", "--snapshots=1",
		"--data-dir=" + filepath.Join(dir, "data"), "--output=" + document + "," + page,
	}, twoRouters(t, kv, rr)...)
	code, stdout, stderr := finish(t, command(t, args...))
	require.Equal(t, success, code, stderr)
	assert.Contains(t, stdout, "\n# ", "a report in Markdown")
	shown := regexp.MustCompile(`span \d, ([\w-]+) at (\d): TTFT p95 \d+ ms`).FindAllStringSubmatch(stderr, -1)
	var spans []string
	for _, s := range shown {
		spans = append(spans, s[1]+" "+s[2])
	}
	assert.ElementsMatch(t, []string{"KV-aware 4", "Round-robin 4"}, spans, stderr)

	html, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.True(t, strings.HasSuffix(strings.TrimSpace(string(html)), "</html>"))
	data, err := os.ReadFile(document)
	require.NoError(t, err)
	var r struct {
		Sides []struct{ Rows []api.BaselineRow }
	}
	require.NoError(t, json.Unmarshal(data, &r))
	require.Len(t, r.Sides, 2)
	for _, s := range r.Sides {
		require.Len(t, s.Rows, 1)
	}

	code, stdout, stderr = finish(t, command(t, "compare", document, document, "--a-mode=round_robin", "--b-mode=kv", "--format=json"))
	require.Equal(t, success, code, stderr)
	again := r
	require.NoError(t, json.Unmarshal([]byte(stdout), &again))
	for i, s := range again.Sides {
		assert.True(t, slices.EqualFunc(s.Rows, r.Sides[i].Rows, func(a, b api.BaselineRow) bool {
			return a.Concurrency == b.Concurrency && *a.TTFT.P95 == *b.TTFT.P95
		}), "the figures are those of the sweep")
	}
}

// After Ctrl-C the same command goes on, another question is refused, and --anew begins
// another one.
func TestTrialGoesOn(t *testing.T) {
	t.Parallel()
	kv, rr := startTarget(t), startTarget(t)
	dir := filepath.Join(t.TempDir(), "data")
	routers := append(twoRouters(t, kv, rr), "--data-dir="+dir)
	trial := func(args ...string) *program {
		p := newProgram(t)
		p.dir = dir
		p.cmd.Args = append(append(append(p.cmd.Args, "trial", "--span=1h", "--max-time=2h"), routers...), args...)
		require.NoError(t, p.cmd.Start())
		go func() {
			defer close(p.ended)
			_ = p.cmd.Wait()
		}()
		t.Cleanup(p.kill)
		p.address = p.says(`load generator started" address=(https?://\S+)`)
		p.client = p.as("")
		return p
	}
	counts := func(p *program) func() bool {
		return func() bool {
			s := p.lane().State.Sweep
			return s != nil && s.Progress.Span != nil && s.Progress.Span.Phase == api.SpanCounting
		}
	}
	p := trial("--concurrency=3")
	p.until("a span counts", counts(p))
	began := p.lane().State.Sweep
	assert.Equal(t, []int{3}, began.Request.Levels)
	assert.Equal(t, byCommand, began.By)
	assert.Equal(t, unmeasured, p.stop(syscall.SIGINT))
	last := strings.Split(strings.TrimSpace(p.log.String()), "\n")
	assert.Equal(t, "loadgen: the trial is unfinished. It has 0 spans so far, kept in "+dir+"; run the same command to resume", last[len(last)-1])

	code, _, stderr := finish(t, command(t, append([]string{"trial", "--concurrency=4"}, routers...)...))
	assert.Equal(t, badInput, code)
	assert.Contains(t, stderr, "has an unfinished trial with different settings (concurrency is 3 there, not 4)")

	p = trial("--concurrency=3")
	p.says("resuming the trial from ")
	p.until("a span counts", counts(p))
	assert.Equal(t, began.ID, p.lane().State.Sweep.ID)
	_, err := p.client.PatchSweep(t.Context(), began.ID, api.SweepPatch{State: api.SweepPaused})
	require.NoError(t, err)
	p.says("the trial was paused by .*: resume it")
	_, err = p.client.PatchSweep(t.Context(), began.ID, api.SweepPatch{State: api.SweepRunning})
	if err != nil { // the lane is being given back
		p.until("it can go on", func() bool {
			_, err := p.client.PatchSweep(t.Context(), began.ID, api.SweepPatch{State: api.SweepRunning})
			return err == nil
		})
	}
	p.until("a span counts", counts(p))
	assert.Equal(t, unmeasured, p.stop(syscall.SIGTERM))

	p = trial("--concurrency=4", "--anew")
	p.until("a span of another trial counts", counts(p))
	list, err := p.client.Sweeps(t.Context())
	require.NoError(t, err)
	require.Len(t, list.Sweeps, 2)
	assert.Equal(t, []int{4}, list.Sweeps[0].Request.Levels)
	assert.Equal(t, began.ID, list.Sweeps[1].ID)
	assert.Equal(t, api.SweepCancelled, list.Sweeps[1].State)
	helpTellsDefaults(t, list.Defaults)
	_, err = p.client.PatchSweep(t.Context(), p.lane().State.Sweep.ID, api.SweepPatch{State: api.SweepCancelled})
	require.NoError(t, err)
	assert.Equal(t, unmeasured, p.code())
	assert.Contains(t, p.log.String(), "loadgen: the trial was cancelled by ")
}

// helpTellsDefaults holds what the help of the commands says of flags that are left out
// against what is then asked.
func helpTellsDefaults(t *testing.T, defaults []api.SweepRequest) {
	t.Helper()
	require.Len(t, defaults, len(api.SweepKinds))
	for _, r := range defaults {
		var out bytes.Buffer
		_, _, err := config.Load([]string{"help", string(r.Kind)}, nil, &out)
		require.NoError(t, err)
		text := strings.Join(strings.Fields(out.String()), " ")
		says := func(flag, value string) {
			_, text, found := strings.Cut(text, "--"+flag+"=")
			require.True(t, found, flag)
			text, _, _ = strings.Cut(text, " --")
			assert.Contains(t, text, value, "%s --%s", r.Kind, flag)
		}
		length := func(seconds float64) string { // 1h, not 1h0m0s
			text := (time.Duration(seconds) * time.Second).String()
			text = strings.ReplaceAll(text, "m0s", "m")
			return "Default: " + strings.ReplaceAll(text, "h0m", "h") + "."
		}
		says("span", length(*r.Seconds))
		switch r.Kind {
		case api.SweepTrial:
			says("primary", "Default: "+*r.Primary+".")
			says("smallest", fmt.Sprintf("%g is 5 %%", *r.Smallest))
			says("max-time", length(*r.MaxSeconds))
		case api.SweepLevels:
			says("repeats", fmt.Sprintf("Default: %d.", *r.Repeats))
			says("snapshots", fmt.Sprintf("Default: %d.", *r.Snapshots))
			says("warm-up", length(*r.WarmUp))
		case api.SweepCapacity:
			says("resolution", fmt.Sprintf("Default: %d.", *r.Resolution))
			says("max-time", length(*r.MaxSeconds))
		}
	}
}

// A trial of modes that the driver does not offer is bad input, once the cluster has told
// them; one whose target never serves has measured nothing.
func TestTrialThatCannotBe(t *testing.T) {
	t.Parallel()
	kv, rr := startTarget(t), startTarget(t)
	args := append([]string{"trial", "--modes=kv,least_loaded", "--data-dir=" + filepath.Join(t.TempDir(), "data")}, twoRouters(t, kv, rr)...)
	code, stdout, stderr := finish(t, command(t, args...))
	assert.Equal(t, badInput, code)
	assert.Contains(t, stderr, "loadgen: modes: least_loaded is not allowed: what the driver endpoints can switch to: kv, round_robin")
	assert.Empty(t, stdout)

	p := newProgram(t)
	p.cmd.Args = append(p.cmd.Args, "trial")
	p.start("http://" + holdPort(t).address())
	p.says("the trial waits: ")
	assert.Equal(t, unmeasured, p.stop(syscall.SIGINT))
	assert.Contains(t, p.log.String(), "loadgen: nothing was measured: the trial had not started (")
}

// Baselines are found by their names, in the data directory of a load generator that runs,
// too, and in files.
func TestCompare(t *testing.T) {
	t.Parallel()
	const recorded = "h200x3-tp1-llama70b-fp8"
	code, stdout, stderr := finish(t, command(t, "compare", recorded, recorded, "--a-mode=round_robin", "--b-mode=kv", "--format=tsv"))
	require.Equal(t, success, code, stderr)
	assert.Contains(t, stdout, "\t")
	b := baseline.Builtin()[slices.IndexFunc(baseline.Builtin(), func(b api.Baseline) bool { return b.Name == recorded })]

	p := start(t, startTarget(t).URL)
	b.Name = "ours"
	_, err := p.client.SaveBaseline(t.Context(), b)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "ours.csv")
	f, err := os.Create(file)
	require.NoError(t, err)
	require.NoError(t, baseline.WriteCSV(f, b))
	require.NoError(t, f.Close())
	page := filepath.Join(t.TempDir(), "report.html")
	code, stdout, stderr = finish(t, command(t, "compare", "ours", file, "--a-mode=round_robin", "--b-mode=kv", "--data-dir="+p.dir, "--output="+page))
	require.Equal(t, success, code, stderr)
	assert.Contains(t, stdout, "ours B")
	assert.Contains(t, stdout, "32.0 %", "as recorded at 60")
	assert.True(t, exists(page))
	p.endsWell()

	const other = "../../loadgen/baseline/testdata/import/guidellm.json"
	code, stdout, stderr = finish(t, command(t, "compare", other, filepath.Join(filepath.Dir(other), "aiperf-8.json"), "--a-mode=round_robin", "--b-mode=kv"))
	require.Equal(t, success, code, stderr)
	assert.Contains(t, stdout, "GuideLLM")
	assert.Contains(t, stdout, "AIPerf")

	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"ours", recorded}, `a: "ours" is not allowed: a readable file, or one of the baselines: h100x8-tp2-llama70b-fp8, ` + recorded},
		{[]string{recorded, file}, "a_mode: "},
		{[]string{recorded, other}, "b: " + other + ": mode is required"},
		{[]string{recorded, recorded, "--a-mode=kv", "--b-mode=least_loaded"}, "b_mode: least_loaded is not allowed"},
		{[]string{recorded, page, "--a-mode=kv"}, "b: " + page + ": "},
	} {
		code, stdout, stderr := finish(t, command(t, append([]string{"compare"}, row.args...)...))
		assert.Equal(t, badInput, code)
		assert.Contains(t, stderr, "loadgen: "+row.want)
		assert.Empty(t, stdout)
	}
}
