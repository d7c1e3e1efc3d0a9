//go:build engines

package engines

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/figure"
	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/loadgen/report"
	"kvbooth/sidecar/process"
	"kvbooth/sidecar/test/boothtest"
)

// noDelay is the option without which HAProxy holds the chunks of a stream for about 200 ms.
const noDelay = "option http-no-delay"

// haproxy starts an HAProxy that sends requests to the workers in turn, with another option in place of noDelay.
func haproxy(t *testing.T, option string, workers []string) *boothtest.Part {
	t.Helper()
	p, _ := begun(t, find(t, "haproxy"), local.RouterStart{Workers: workers}, func(config string) string {
		return strings.Replace(config, noDelay, option, 1)
	})
	return p
}

// nginx starts an nginx that sends all requests of a conversation to one worker.
func nginx(t *testing.T, workers []string) *boothtest.Part {
	t.Helper()
	p, _ := begun(t, find(t, "nginx"), local.RouterStart{Policy: "hash", Workers: workers}, nil)
	return p
}

// Names of the arms, by what they do.
const (
	inTurn    = "in turn"
	bySession = "by session"
	shuffled  = "shuffled"
)

func haproxyArm(t *testing.T, p *boothtest.Part) map[string]any {
	return map[string]any{"name": inTurn, "url": p.URL(), "worker_header": find(t, "haproxy").Worker}
}

func nginxArm(t *testing.T, p *boothtest.Part) map[string]any {
	return map[string]any{"name": bySession, "url": p.URL(), "worker_header": find(t, "nginx").Worker}
}

// simulated starts simulated engines, and returns their addresses.
func simulated(t *testing.T, bin string) []string {
	t.Helper()
	return boothtest.SimulatedAs(t, bin, "vllm", "--speculation=off").Workers
}

const (
	proxySpan  = 6 // seconds
	trialLimit = 2 * time.Minute
)

// configured writes a configuration with arms over workers, and returns the flags of a load generator with it. Its
// conversations are short, and each has an opening of its own: where turns move, their worker computes it anew.
func configured(t *testing.T, workers []string, arms ...map[string]any) (flags []string) {
	t.Helper()
	pages := []string{"no-target"}
	for _, w := range workers {
		pages = append(pages, "http://"+w)
	}
	config, err := json.Marshal(map[string]any{
		"arms": arms, "target": map[string]any{"session": "header:" + find(t, "nginx").Session("hash")},
		"cluster": map[string]any{"metrics_urls": pages},
	})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "loadgen.yaml")
	require.NoError(t, os.WriteFile(file, config, 0o600)) // JSON is YAML, too
	return []string{
		"--config=" + file, "--preset=demo", "--openings=0", "--think-time=0s", "--max-tokens=24",
		"--output-tokens-mean=0", "--turns-min=3", "--turns-max=4", "--concurrency=6", "--start-rate=100",
	}
}

// trialReport runs a trial on the command line to its end, and returns its report.
func trialReport(t *testing.T, bin string, flags []string) (r report.Results) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "trial.json")
	c := exec.CommandContext(t.Context(), filepath.Join(bin, "loadgen"), append([]string{
		"trial", "--listen=" + boothtest.AnyPort, "--data-dir=" + t.TempDir(), "--seed=1", "--output=" + file,
		fmt.Sprintf("--span=%ds", proxySpan), "--max-time=" + trialLimit.String(),
	}, flags...)...)
	c.Env = process.Environment()
	printed, err := c.CombinedOutput()
	const noAnswer = 4 // exit code
	if err != nil {
		require.Equal(t, noAnswer, c.ProcessState.ExitCode(), "%s", printed)
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err, "%s", printed)
	require.NoError(t, json.Unmarshal(text, &r))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s", printed)
		}
	})
	return r
}

// checkReport checks what a report of a trial of two arms has: both arms with the figures of their spans, and each span
// with the turns of its arm's workers.
func checkReport(t *testing.T, r *report.Results, served map[string][]string) {
	t.Helper()
	require.NotNil(t, r.Sweep)
	require.NotNil(t, r.Sweep.Trial)
	assert.NotEmpty(t, r.Words)
	assert.NotEmpty(t, r.Sweep.Trial.Looks, "two blocks fit into the time")
	assert.NotNil(t, r.Sweep.Trial.Primary)
	assert.NotNil(t, r.Sweep.Trial.Failures)
	require.Len(t, r.Sides, 2)
	for _, side := range r.Sides {
		require.Len(t, side.Rows, 1, side.Mode.Arm)
		row := side.Rows[0]
		assert.NotNil(t, row.TTFT.P95, side.Mode.Arm)
		assert.NotNil(t, row.TPOT.P95, side.Mode.Arm)
		assert.NotNil(t, row.OutputTokensPerSecond, side.Mode.Arm)
		assert.NotNil(t, row.KVHitRatio, side.Mode.Arm)
	}
	for i := range r.Sweep.Spans {
		s := &r.Sweep.Spans[i]
		if s.Spoiled != "" {
			continue
		}
		workers := served[s.Mode.Arm]
		assert.Subset(t, workers, slices.Collect(maps.Keys(s.TurnsByWorker)), "span %d of %s", s.Number, s.Mode.Arm)
		assert.Equal(t, len(workers), s.Workers, "span %d of %s", s.Number, s.Mode.Arm)
		turns := 0
		for _, n := range s.TurnsByWorker {
			turns += n
		}
		assert.GreaterOrEqual(t, turns, s.Turns, "span %d of %s: the worker of each turn is known", s.Number, s.Mode.Arm)
		assert.Empty(t, s.Doubts, "span %d of %s", s.Number, s.Mode.Arm)
	}
}

// hits returns the hit rate that the turns of an arm had.
func hits(t *testing.T, r *report.Results, arm string) float64 {
	t.Helper()
	for _, side := range r.Sides {
		if side.Mode.Arm == arm {
			return *side.Rows[0].KVHitRatio
		}
	}
	t.Fatalf("no arm %s", arm)
	return 0
}

// A proxy that keeps conversations at their workers is found better than one that moves each turn, or the trial ends
// undecided. Each has workers of its own, which the turns name.
func TestTrialOverProxies(t *testing.T) {
	bin := boothtest.Programs(t)
	served := map[string][]string{inTurn: simulated(t, bin), bySession: simulated(t, bin)}
	r := trialReport(t, bin, configured(t, slices.Concat(served[inTurn], served[bySession]),
		haproxyArm(t, haproxy(t, noDelay, served[inTurn])), nginxArm(t, nginx(t, served[bySession]))))
	figure.Report(t, "HAProxy in turn and nginx by session: %s", strings.Join(r.Words, " "))
	checkReport(t, &r, served)
	betterBySession(t, &r, inTurn)
	for i := range r.Sweep.Spans {
		if s := &r.Sweep.Spans[i]; s.Mode.Arm == inTurn {
			served := slices.Sorted(maps.Values(s.TurnsByWorker))
			assert.LessOrEqual(t, served[len(served)-1]-served[0], len(served), "span %d: turns in turn", s.Number)
		}
	}
}

// An HAProxy that holds the chunks of streams is named; one that does not is not.
func TestHeldStreamsAreNamed(t *testing.T) {
	bin, held := boothtest.Programs(t), "came in bursts: the server or a proxy buffers its streams"
	workers := simulated(t, bin)
	run := func(option string) report.Run {
		url := haproxy(t, option, workers).URL()
		return measure(t, bin, []string{"--target-url=" + url, "--cluster-metrics-urls=no-target"})
	}
	plain := run("")
	unknown := plain.Metrics.TPOT.Unknown
	figure.Report(t, "HAProxy without http-no-delay: TPOT of %d of %d turns unknown", unknown, plain.Turns.OK)
	assert.Contains(t, strings.Join(plain.Target.Notices, " "), held)
	assert.Greater(t, unknown, plain.Turns.OK/2)
	quick := run(noDelay)
	assert.NotContains(t, strings.Join(quick.Target.Notices, " "), held)
}

// LiteLLM is an arm with a key and a model of its own. Its /health needs the key, and is not asked. It sends turns to
// workers at random, and is not found better than nginx.
func TestTrialOverLiteLLM(t *testing.T) {
	bin := boothtest.Programs(t)
	workers, router := simulated(t, bin), find(t, "litellm")
	key := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(key, []byte(router.Key), 0o600))
	proxy, _ := begun(t, router, local.RouterStart{Workers: workers}, func(config string) string {
		return strings.ReplaceAll(config, `"model_name":"`+simulatedModel, `"model_name":"simulated`)
	})
	response, err := http.Get(proxy.URL() + "/health")
	require.NoError(t, err)
	response.Body.Close()
	require.GreaterOrEqual(t, response.StatusCode, http.StatusBadRequest, "/health without the key")
	r := trialReport(t, bin, configured(t, workers, map[string]any{
		"name": shuffled, "url": proxy.URL(), "api_key_file": key, "model": "simulated",
	}, nginxArm(t, nginx(t, workers))))
	figure.Report(t, "LiteLLM at random and nginx by session: %s", strings.Join(r.Words, " "))
	checkReport(t, &r, map[string][]string{shuffled: workers, bySession: workers})
	betterBySession(t, &r, shuffled)
	for _, side := range r.Sides {
		if side.Mode.Arm == shuffled {
			assert.Contains(t, strings.Join(side.Routers, " "), "litellm")
		}
	}
	log, err := os.ReadFile(proxy.Command.Log)
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(string(log), "GET /health HTTP"), "only this test asks for it")
}

// betterBySession checks that the arm B, which keeps conversations at their workers, is found better, or that the trial
// ends undecided. Its hit rate is higher in any case.
func betterBySession(t *testing.T, r *report.Results, other string) {
	t.Helper()
	assert.Equal(t, api.SweepDone, r.Sweep.State, r.Sweep.Reason)
	assert.Contains(t, []string{"b_better", "time_over"}, r.Sweep.Trial.Verdict)
	assert.Negative(t, r.Sweep.Trial.Primary.Difference, "mean TTFT by session")
	const least = .1
	assert.Greater(t, hits(t, r, bySession), hits(t, r, other)+least)
}

// A proxy that is killed and started again within a span costs the turns of that time: the span counts with them, or is
// repeated. One that stays away pauses the trial, which names it. Once it serves again, the trial resumes.
func TestTrialWithKilledProxies(t *testing.T) {
	bin := boothtest.Programs(t)
	workers := simulated(t, bin)
	rotation, hash := haproxy(t, noDelay, workers), nginx(t, workers)
	generator, client := boothtest.Loadgen(t, bin, "loadgen", "a-token-for-the-operators",
		configured(t, workers, haproxyArm(t, rotation), nginxArm(t, hash))...)
	pid := generator.PID()
	s, err := client.StartSweep(t.Context(), api.DefaultLane, api.SweepRequest{
		Kind: api.SweepTrial, Levels: api.LevelsOf(6), Modes: []api.ModeState{{Arm: inTurn}, {Arm: bySession}},
		Seconds: new(float64(proxySpan)), MaxSeconds: new(2 * trialLimit.Seconds()), Seed: new(uint64(1)),
	})
	require.NoError(t, err)
	follow := func(limit time.Duration, what string, ok func(api.Sweep) bool) api.Sweep {
		t.Helper()
		wait.Within(t, limit, what, func() (any, bool) {
			s, err = client.Sweep(t.Context(), s.ID)
			require.NoError(t, err)
			return s.SweepSummary, ok(s)
		})
		return s
	}
	runs := func(arm string, phase api.SweepPhase, seconds float64) func(api.Sweep) bool {
		return func(s api.Sweep) bool {
			now := s.Progress.Span
			return now != nil && now.Mode.Arm == arm && now.Phase == phase && now.Seconds >= seconds
		}
	}
	const outage = 3 // seconds
	now := *follow(trialLimit, "a span over HAProxy counts", runs(inTurn, api.SpanCounting, 1)).Progress.Span
	rotation.Kill()
	follow(time.Minute, "the span goes on without HAProxy", func(s api.Sweep) bool {
		return len(s.Spans) > now.Number || runs(inTurn, api.SpanCounting, now.Seconds+outage)(s)
	})
	rotation.Start(t)
	struck := follow(time.Minute, "the span ends", func(s api.Sweep) bool { return len(s.Spans) > now.Number })
	require.Equal(t, api.SweepRunning, struck.State, struck.Reason)
	span := struck.Spans[now.Number]
	require.Equal(t, inTurn, span.Mode.Arm)
	if span.Spoiled == "" {
		assert.Positive(t, span.Failed, "turns of the outage")
	} else {
		assert.Contains(t, span.Spoiled, rotation.URL()+" does not serve")
	}

	follow(trialLimit, "a span over nginx warms up", runs(bySession, api.SpanWarmingUp, 1))
	hash.Kill()
	paused := follow(5*time.Minute, "the trial pauses", func(s api.Sweep) bool { return s.State != api.SweepRunning })
	require.Equal(t, api.SweepPaused, paused.State)
	last := paused.Spans[len(paused.Spans)-1]
	assert.Contains(t, last.Spoiled, hash.URL()+" does not serve", "no turn was answered in the span")
	assert.Contains(t, paused.Reason, bySession)
	assert.Contains(t, paused.Reason, hash.URL())
	figure.Report(t, "killed proxy: %s", paused.Reason)
	unfinished := readReport(t, client, s.ID)
	assert.Equal(t, paused.Reason, unfinished.Sweep.Reason)
	assert.NotEmpty(t, unfinished.Sweep.Unfinished)

	hash.Start(t)
	_, err = client.PatchSweep(t.Context(), s.ID, api.SweepPatch{State: api.SweepRunning})
	require.NoError(t, err)
	follow(2*trialLimit, "the trial decides or has a look", func(s api.Sweep) bool {
		return s.State != api.SweepRunning || len(s.Trial.Looks) > 0
	})
	require.NotEqual(t, api.SweepPaused, s.State, s.Reason)
	if !s.State.Ended() {
		_, err = client.PatchSweep(t.Context(), s.ID, api.SweepPatch{State: api.SweepCancelled})
		require.NoError(t, err)
	}
	assert.Equal(t, pid, generator.PID())
	r := readReport(t, client, s.ID)
	figure.Report(t, "after both: %s", strings.Join(r.Words, " "))
	checkReport(t, &r, map[string][]string{inTurn: workers, bySession: workers})
	turns := boothtest.Turns(t, client, api.DefaultLane, 0)
	for i := range r.Sweep.Spans {
		span := &r.Sweep.Spans[i]
		failed := 0
		for j := range turns {
			u := &turns[j]
			counts := u.Step == span.Step && !u.Ended.Before(span.CountedFrom) && u.Ended.Before(span.Until)
			if counts && u.Status == api.TurnError {
				failed++
			}
		}
		if span.Spoiled == "" {
			assert.Equal(t, failed, span.Failed, "span %d of %s", span.Number, span.Mode.Arm)
		}
	}
}

// readReport reads the report of a sweep from the load generator.
func readReport(t *testing.T, client *api.Client, id string) (r report.Results) {
	t.Helper()
	var text bytes.Buffer
	require.NoError(t, client.SweepReport(t.Context(), &text, id, api.ReportJSON))
	require.NoError(t, json.Unmarshal(text.Bytes(), &r))
	return r
}
