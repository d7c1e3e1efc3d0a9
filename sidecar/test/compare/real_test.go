//go:build compare

package compare

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/httpd"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/test/boothtest"
	"kvbooth/sidecar/test/dynamo"
)

// What is measured, as in: go test -tags=compare ./sidecar/test/compare -v -args -levels=60 -span=30s.
// With -artifacts and -outputdir=DIR before -args, logs and turns are kept.
var (
	levels   = flag.String("levels", "60,120", "conversations to keep in progress")
	modes    = flag.String("modes", "kv,round_robin", "modes of the router: kv, round_robin, least_loaded")
	span     = flag.Duration("span", 3*time.Minute, "what is measured, in each run")
	warmUp   = flag.Duration("warm-up", 2*time.Minute, "before it, once all conversations have begun; after a short one most are at the same turn, and the shares are those of that turn")
	seed     = flag.Uint64("seed", 1, "of the workload")
	together = flag.Bool("together", true, "run both clusters at the same time; one after the other takes twice as long and leaves each the whole machine")
)

const (
	firstPort    = 21000 // away from those of a booth that may run
	settleWithin = 3 * time.Minute
	sampleEvery  = time.Second
	tellEvery    = 30 * time.Second
	storedWithin = 500 * time.Millisecond // turns are committed within 200 ms
)

// TestCompare prints a table for each setting and fails where a bound is broken by
// more than chance may make up, or where turns failed.
func TestCompare(t *testing.T) {
	profile, bin := sim.H200(), boothtest.Programs(t)
	fmt.Fprintf(t.Output(), `Simulated cluster against NVIDIA Dynamo %s with %d mock workers, both from the profile %s; neither finds the blocks of answers again.
Each run: cold caches, seed %d, %v of warm-up, %v measured; both at the same time: %v.
Differences are simulated less real; ± is the 95 %% interval that chance leaves. Recorded: %s, the truth for timing. Its engines find answers again.
`, local.DynamoVersion, profile.Workers, profile.Name, *seed, *warmUp, *span, *together, profile.Baseline)
	for level := range strings.SplitSeq(*levels, ",") {
		for mode := range strings.SplitSeq(*modes, ",") {
			n, err := strconv.Atoi(level)
			require.NoError(t, err)
			s := setting{n, api.Mode(mode)}
			t.Run(s.String(), func(t *testing.T) {
				p := measure(t, bin, s, profile)
				fmt.Fprint(t.Output(), p.table(recorded(profile, s)))
				unmet, undecided := p.judge()
				for _, text := range undecided {
					t.Logf("open, since chance may make up what is beyond the bound; a longer -span decides: %s", text)
				}
				for _, text := range unmet {
					t.Errorf("not met: %s", text)
				}
			})
		}
	}
}

// starter starts one side: its cluster and a load generator against it.
type starter func(t *testing.T, bin string, s setting, profile sim.Profile) *run

// measure measures both sides in one setting.
func measure(t *testing.T, bin string, s setting, profile sim.Profile) *pair {
	var results []result
	groups := [][]starter{{startSimulated, startDynamo}}
	if !*together {
		groups = [][]starter{{startSimulated}, {startDynamo}}
	}
	for _, group := range groups {
		t.Run("", func(t *testing.T) { // what is started ends with it
			var runs []*run
			for _, start := range group {
				runs = append(runs, start(t, bin, s, profile))
			}
			results = append(results, observe(t, runs)...)
		})
	}
	require.Len(t, results, 2)
	return &pair{setting: s, profile: profile, simulated: results[0], real: results[1]}
}

// startSimulated starts a simulated cluster, which forgets the blocks of answers as
// the mock workers do, with a load generator against it.
func startSimulated(t *testing.T, bin string, s setting, profile sim.Profile) *run {
	o := sim.DefaultOptions(profile)
	o.Mode, o.Seed, o.ForgetAnswers = s.mode, *seed, true
	server, err := httpd.New(httpd.Options{Cluster: o, Engine: "trtllm", Speed: 1})
	require.NoError(t, err)
	t.Cleanup(server.Close)
	serve := func(h http.Handler) string {
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		return s.URL
	}
	var pages []string
	for i := range server.Workers() {
		pages = append(pages, serve(server.Worker(i))+"/metrics")
	}
	return startLoadgen(t, "simulated", bin, s, profile.Model, serve(server.Frontend()), pages)
}

// startDynamo starts a real Dynamo whose router has the mode itself, with a load
// generator against it.
func startDynamo(t *testing.T, bin string, s setting, _ sim.Profile) *run {
	d := dynamo.Start(t, firstPort, func(o *local.Options) {
		o.Mode, o.LogDir = strings.ReplaceAll(string(s.mode), "_", "-"), t.ArtifactDir() // as Dynamo spells it
	})
	var pages []string
	for _, w := range d.Workers() {
		pages = append(pages, w.MetricsURL)
	}
	return startLoadgen(t, "real Dynamo", bin, s, dynamo.Model, d.URL(), pages)
}

// run is a load generator against one of the clusters.
type run struct {
	side   string
	client *api.Client

	samples   int
	spreads   []float64
	last      api.LaneSnapshot
	mistrusts int    // samples in which the load generator mistrusted itself
	mistrust  string // why, in the last of them
}

func startLoadgen(t *testing.T, side, bin string, s setting, model, url string, pages []string) *run {
	address := local.Loopback(dynamo.FreePort(t, firstPort))
	p, err := local.Start(local.Command{
		Name: "load generator", Path: filepath.Join(bin, "loadgen"), Log: filepath.Join(t.ArtifactDir(), side+" loadgen.log"),
		Args: []string{
			"--target-url=" + url, "--target-model=" + model, "--cluster-metrics-urls=" + strings.Join(pages, ","),
			"--listen=" + address, "--data-dir=" + t.TempDir(), "--start", "--target-rps=0",
			"--concurrency=" + strconv.Itoa(s.level), "--start-rate=10", "--seed=" + strconv.FormatUint(*seed, 10),
			"--output-tokens-mean=830", "--output-tokens-cv=.15", // mock answers end nowhere by themselves
			"--mode-driver=manual", "--mode-mode=" + string(s.mode), "--mode-offers=" + string(s.mode),
		},
	})
	require.NoError(t, err, side)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		p.Stop(ctx)
	})
	ready, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	require.NoError(t, local.Ready(ready, "http://"+address+"/healthz", p), side)
	client, err := api.NewClient(&http.Client{Timeout: 10 * time.Second}, "http://"+address, "")
	require.NoError(t, err)
	return &run{side: side, client: client}
}

// observe waits until all conversations have begun, lets the warm-up and the span
// pass, and gives what each run measured.
func observe(t *testing.T, runs []*run) (results []result) {
	for _, r := range runs {
		require.Eventually(t, func() bool {
			s, err := r.client.Status(t.Context())
			return err == nil && s.Lanes[0].State.Step.Settled != nil
		}, settleWithin, 200*time.Millisecond, "%s: the conversations did not all begin", r.side)
	}
	from := time.Now().Add(*warmUp)
	to, told := from.Add(*span), time.Time{}
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for now := time.Now(); now.Before(to.Add(storedWithin)); now = <-tick.C {
		if now.Sub(told) >= tellEvery {
			told = now
			t.Logf("%.0f s left", to.Sub(now).Seconds())
		}
		if now.Before(from) || !now.Before(to) {
			continue
		}
		for _, r := range runs {
			r.sample(t)
		}
	}
	for _, r := range runs {
		results = append(results, r.collect(t, from, to))
	}
	return results
}

// sample notes what the load generator sees now.
func (r *run) sample(t *testing.T) {
	s, err := r.client.Snapshot(t.Context())
	require.NoError(t, err, r.side)
	r.last = s.Lanes[0]
	r.samples++
	if spread := r.last.Cluster.Spread; spread != nil {
		r.spreads = append(r.spreads, *spread)
	}
	if s.Client.Verdict == api.VerdictBottleneck {
		r.mistrusts++
		r.mistrust = s.Client.Reason
	}
}

// collect reads the turns and makes the result of them.
func (r *run) collect(t *testing.T, from, to time.Time) result {
	var raw bytes.Buffer
	require.NoError(t, r.client.TurnsCSV(t.Context(), &raw, "", 0), r.side)
	require.NoError(t, os.WriteFile(filepath.Join(t.ArtifactDir(), r.side+" turns.csv"), raw.Bytes(), 0o600))
	turns, err := api.ReadTurns(&raw)
	require.NoError(t, err, r.side)
	got := summarise(turns, from, to)
	require.NotZero(t, got.turns, "%s: no turn ended well in the span; failed: %s. %s", r.side, classes(got.failed), r.last.Target.Problem)
	got.side, got.itl, got.spread = r.side, r.last.Window.Metrics.ITL, mean(r.spreads)
	if r.mistrusts > 0 {
		got.mistrust = fmt.Sprintf("in %d of %d seconds: %s", r.mistrusts, r.samples, r.mistrust)
	}
	return got
}
