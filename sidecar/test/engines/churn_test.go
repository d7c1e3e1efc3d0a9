//go:build engines

package engines

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/figure"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/loadgen/churn"
	"kvbooth/sidecar/process"
	"kvbooth/sidecar/test/boothtest"
)

const (
	churnWindow = 5.  // seconds
	churnBefore = 25. // seconds
	churnAfter  = 70. // seconds
	// downFor is the time after which a killed engine is started again.
	downFor = 15 * time.Second
)

// engine starts one simulated engine in a process of its own. Two of three hold all conversations.
func engine(t *testing.T, bin string) *boothtest.Part {
	t.Helper()
	port := boothtest.FreePort(t, 9700)
	p := &boothtest.Part{
		Listens: process.Loopback(port), Ready: "http://" + boothtest.AnyPort + "/health",
		Command: process.Command{
			Name: "an engine", Path: filepath.Join(bin, "booth"), Log: boothtest.Log(t, fmt.Sprintf("engine-%d", port)),
			Args: []string{
				"cluster", "--workers-only", "--engine=vllm", "--workers=1", "--kv-blocks=600", "--speculation=off", "--port=0",
				fmt.Sprintf("--worker-port=%d", port), "--event-port=0", "--replay-port=0",
			},
		},
	}
	p.Run(t)
	return p
}

// counts are the counters of an engine's page.
type counts struct{ prompt, cached, turns, ttft float64 }

// reading is what all engines counted between two readings of their pages.
type reading struct {
	at time.Time
	counts
}

var (
	prompts = regexp.MustCompile(`(?m)^vllm:prefix_cache_queries_total\{[^}]*\} (\S+)$`)
	hitsOf  = regexp.MustCompile(`(?m)^vllm:prefix_cache_hits_total\{[^}]*\} (\S+)$`)
	firsts  = regexp.MustCompile(`(?m)^vllm:time_to_first_token_seconds_count\{[^}]*\} (\S+)$`)
	ttfts   = regexp.MustCompile(`(?m)^vllm:time_to_first_token_seconds_sum\{[^}]*\} (\S+)$`)
)

// read returns the counters of an engine; false while it does not serve.
func read(t *testing.T, address string) (c counts, ok bool) {
	client := &http.Client{Timeout: time.Second}
	res, err := client.Get("http://" + address + "/metrics")
	if err != nil {
		return c, false
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return c, false
	}
	value := func(re *regexp.Regexp) float64 {
		found := re.FindSubmatch(text)
		if found == nil {
			return 0 // no turn yet
		}
		v, err := strconv.ParseFloat(string(found[1]), 64)
		assert.NoError(t, err)
		return v
	}
	return counts{value(prompts), value(hitsOf), value(firsts), value(ttfts)}, true
}

// watch reads the pages of engines twice a second until ctx ends.
func watch(ctx context.Context, t *testing.T, engines []*boothtest.Part) (all []reading) {
	last := make([]counts, len(engines))
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return all
		case <-tick.C:
		}
		r := reading{at: time.Now()}
		for i, e := range engines {
			now, ok := read(t, e.Address())
			if !ok {
				continue
			}
			if now.prompt < last[i].prompt {
				last[i] = counts{} // it was started again
			}
			r.prompt += now.prompt - last[i].prompt
			r.cached += now.cached - last[i].cached
			r.turns += now.turns - last[i].turns
			r.ttft += now.ttft - last[i].ttft
			last[i] = now
		}
		all = append(all, r)
	}
}

// between sums readings.
func sumBetween(all []reading, from, until time.Time) (c counts) {
	for _, r := range all {
		if !r.at.Before(from) && r.at.Before(until) {
			c.prompt, c.cached = c.prompt+r.prompt, c.cached+r.cached
			c.turns, c.ttft = c.turns+r.turns, c.ttft+r.ttft
		}
	}
	return c
}

// back returns the beginning of the first window after an event from which on a figure of the engines is as before; the
// end of the observation where the last window is not.
func back(all []reading, event time.Time, asBefore func(counts) bool) float64 {
	recovered := churnAfter
	for from := churnAfter - churnWindow; from >= 0; from -= churnWindow / 5 {
		begins := event.Add(time.Duration(from * float64(time.Second)))
		if !asBefore(sumBetween(all, begins, begins.Add(time.Duration(churnWindow*float64(time.Second))))) {
			break
		}
		recovered = from
	}
	return recovered
}

// An engine is killed and started again behind two real routers. The hit rate recovers when it does by the counters of
// the engines, and no turn fails without the event.
func TestChurnAgreesWithEngines(t *testing.T) {
	bin := boothtest.Programs(t)
	var engines []*boothtest.Part
	var workers []string
	for range 3 {
		e := engine(t, bin)
		engines, workers = append(engines, e), append(workers, e.Address())
	}
	blocks := os.Getenv("CHURN_BLOCKS")
	if blocks == "" {
		blocks = "1"
	}
	control := boothtest.Control(t, map[string]*boothtest.Part{"engine": engines[0]})
	script := filepath.Join(t.TempDir(), "events.yaml")
	require.NoError(t, os.WriteFile(script, fmt.Appendf(nil, `
- name: kill an engine for 15 s
  worker: %q
  run: [sh, -c, "curl -sf -X POST %[2]s/engine/kill && sleep %.0[3]f && curl -sf -X POST %[2]s/engine/start"]
  undo_request: "%[2]s/engine/start"
`, workers[0], control, downFor.Seconds()), 0o600))
	router, page := begun(t, find(t, "sglang"), local.RouterStart{Policy: "cache_aware", Workers: workers}, nil)
	pages := []string{"no-target", page}
	for _, w := range workers {
		pages = append(pages, "http://"+w)
	}
	cacheAware := map[string]any{"name": "sglang cache_aware", "url": router.URL(), "metrics_urls": pages}
	flags := configured(t, workers, cacheAware, nginxArm(t, nginx(t, workers)))
	ctx, cancel := context.WithCancel(t.Context())
	var all []reading
	var wg sync.WaitGroup
	wg.Go(func() { all = watch(ctx, t, engines) })
	file := filepath.Join(boothtest.Results(t), "churn.json")
	c := exec.CommandContext(ctx, filepath.Join(bin, "loadgen"), append([]string{"churn"}, append(flags,
		"--listen="+boothtest.AnyPort, "--data-dir="+t.TempDir(), "--seed=1", "--output="+file, "--events="+script,
		"--blocks="+blocks, "--warm-up=10s", fmt.Sprintf("--before=%gs", churnBefore), fmt.Sprintf("--after=%gs", churnAfter),
		fmt.Sprintf("--window=%gs", churnWindow), "--concurrency=12", "--opening-tokens=1500", "--turns-min=8",
		"--turns-max=12")...)...)
	c.Env = process.Environment()
	var printed strings.Builder
	c.Stdout, c.Stderr = &printed, &printed
	err := c.Run()
	cancel()
	wg.Wait()
	require.NoError(t, err, printed.String())
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var report churn.Report
	require.NoError(t, json.Unmarshal(text, &report))
	t.Log(printed.String()[strings.Index(printed.String(), "# Churn"):])
	agreesWithEngines(t, all, &report)
}

// agreesWithEngines compares the recovery times of a report with those by the counters of the engines.
func agreesWithEngines(t *testing.T, all []reading, report *churn.Report) {
	t.Helper()
	for i := range report.Instances {
		n := &report.Instances[i]
		before := sumBetween(all, n.At.Add(-time.Duration(churnBefore*float64(time.Second))), n.At)
		rate, wait := before.cached/before.prompt, before.ttft/before.turns
		require.NotNil(t, n.HitRate.Recovery)
		require.NotNil(t, n.TTFT.Recovery)
		hit := func(margin float64) float64 {
			return back(all, n.At, func(c counts) bool { return c.cached/c.prompt >= *n.HitRate.Limit+margin })
		}
		allowed := wait * *n.TTFT.Limit / *n.TTFT.Before
		ttft := back(all, n.At, func(c counts) bool { return c.ttft/c.turns <= allowed })
		figure.Report(t, "%s, block %d: hit rate %.3f before, by the engines %.3f; %.3f or more after %.0f s, by the "+
			"engines after %.0f s (a point lower or higher: %.0f to %.0f s); TTFT p95 %.0f ms before, up to %.0f ms after "+
			"%.0f s, mean by the engines after %.0f s; %.0f prompt tokens lost; %d of %d turns failed %v; breakers of "+
			"others %v",
			n.Arm, n.Block+1, *n.HitRate.Before, rate, *n.HitRate.Limit, n.HitRate.Recovery.Seconds, hit(0), hit(-.01),
			hit(.01), 1000**n.TTFT.Before, 1000**n.TTFT.Limit, n.TTFT.Recovery.Seconds, ttft, *n.TokensLost, n.Failed, n.Turns,
			n.Errors, n.Opened)
		assert.InDelta(t, rate, *n.HitRate.Before, .03, "the hit rate before")
		// Turns count when they are sent, and by the engines when they are scheduled.
		assert.GreaterOrEqual(t, n.HitRate.Recovery.Seconds, hit(-.01)-churnWindow)
		assert.LessOrEqual(t, n.HitRate.Recovery.Seconds, hit(.01)+churnWindow)
	}
}
