//go:build compare

package compare

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/closedloop"
	"kvbooth/sidecar/test/boothtest"
	"kvbooth/sidecar/test/dynamo"
)

// Flags of a comparison, as in: go test -tags=compare ./sidecar/test/compare -run=TestCompare -v -args -levels=60
// -span=5m. With -artifacts and -outputdir=DIR before -args, logs and turns are kept.
var (
	levels  = flag.String("levels", "60,120,180", "conversations to keep in progress")
	modes   = flag.String("modes", "kv,round_robin", "modes of the router: kv, round_robin, least_loaded")
	workers = flag.String("workers", "3,5", "workers of the cluster")
	span    = flag.Duration("span", 5*time.Minute, "what is measured, in each run")
	warmUp  = flag.Duration("warm-up", time.Minute, "before it, once all conversations have begun")
	seed    = flag.Uint64("seed", 1, "of the conversations")
)

const (
	firstPort    = 21000 // of Dynamo's processes, not those of a running booth
	portsEach    = 200   // per setting, since several are measured at a time
	settleWithin = 3 * time.Minute
	sampleEvery  = time.Second
	storedWithin = 500 * time.Millisecond // turns are committed within 200 ms
)

// settings returns all settings. The flag -parallel sets how many are measured at a time.
func settings(t *testing.T) (all []setting) {
	for level := range strings.SplitSeq(*levels, ",") {
		for mode := range strings.SplitSeq(*modes, ",") {
			for n := range strings.SplitSeq(*workers, ",") {
				s := setting{mode: api.Mode(mode)}
				for text, to := range map[string]*int{level: &s.level, n: &s.workers} {
					var err error
					*to, err = strconv.Atoi(text)
					require.NoError(t, err)
				}
				all = append(all, s)
			}
		}
	}
	return all
}

// TestCompare prints a table for each setting, and fails if a difference exceeds its bound by more than chance, or if
// turns failed.
func TestCompare(t *testing.T) {
	profile, bin := sim.H200(), boothtest.Programs(t)
	fmt.Fprintf(t.Output(), `The core of the simulated cluster, in virtual time, against
NVIDIA Dynamo %s with mock workers.
Both use the profile %s; neither reuses the blocks of answers.
Each run: cold caches, the recorded workload with seed %d, %v of warm-up, %v measured. Both have the same conversations.
As many turns of the core are measured, after as many; it runs with %d seeds of its own.
Differences are the core's mean minus the real figure; ± is the 95 %% prediction interval of a run of the core.
Recorded: %s, the reference for timing. Its engines reuse answers.
`, local.DynamoVersion, profile.Name, *seed, *warmUp, *span, coreSeeds, profile.Baseline)
	for i, s := range settings(t) {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			p := &pair{setting: s}
			w, err := workloadOf(s.level, *seed, fixedQuestion)
			require.NoError(t, err)
			o := sim.DefaultOptions(profile)
			o.Profile.Workers, o.ForgetAnswers = s.workers, true
			p.real = startDynamo(t, bin, s, w, firstPort+i*portsEach).observe(t)
			p.core, err = core(s, o, w, true, part{p.real.before, p.real.turns})
			require.NoError(t, err)
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

// startDynamo starts a real Dynamo whose router is in the setting's mode, and a load generator for it.
func startDynamo(t *testing.T, bin string, s setting, w closedloop.Workload, port int) *run {
	d := dynamo.Start(t, port, func(o *local.Options) {
		o.Mode, o.Workers = strings.ReplaceAll(string(s.mode), "_", "-"), s.workers
		o.LogDir = t.ArtifactDir()
	})
	var pages []string
	for _, w := range d.Workers() {
		pages = append(pages, w.MetricsURL)
	}
	_, client := boothtest.Loadgen(t, bin, "loadgen", "", "--target-url="+d.URL(), "--target-model="+dynamo.Model,
		"--cluster-metrics-urls="+strings.Join(pages, ","), "--start", "--target-rps=0",
		"--concurrency="+w.Level.String(), "--start-rate="+number(w.StartRate), "--seed="+strconv.FormatUint(
			w.Seed, 10),
		fmt.Sprintf("--turns-min=%d", w.Turns.Min), fmt.Sprintf("--turns-max=%d", w.Turns.Max),
		"--followup-text="+sameSentence,
		"--output-tokens-mean="+number(w.Output.Mean), "--output-tokens-cv="+number(w.Output.CV), // ends mock answers
		"--mode-driver=manual", "--mode-mode="+string(s.mode), "--mode-offers="+string(s.mode))
	return &run{client: client}
}

func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// run is a load generator with its cluster.
type run struct {
	client *api.Client

	samples   int
	spreads   []float64
	last      api.LaneSnapshot
	mistrusts int    // samples with an unreliable client
	mistrust  string // the reason in the last of them
}

// observe waits until all conversations have begun and the warm-up is over, and returns the figures of the span.
func (r *run) observe(t *testing.T) result {
	wait.Within(t, settleWithin, "all conversations have begun", func() (any, bool) {
		s, err := r.client.Status(t.Context())
		return err, err == nil && s.Lanes[0].State.Step.Settled != nil
	})
	from := time.Now().Add(*warmUp)
	to := from.Add(*span)
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for now := time.Now(); now.Before(to.Add(storedWithin)); now = <-tick.C {
		if !now.Before(from) && now.Before(to) {
			r.sample(t)
		}
	}
	return r.collect(t, from, to)
}

// sample records the client's health.
func (r *run) sample(t *testing.T) {
	s, err := r.client.Snapshot(t.Context())
	require.NoError(t, err)
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

// collect reads the turns and computes the result.
func (r *run) collect(t *testing.T, from, to time.Time) result {
	var raw bytes.Buffer
	require.NoError(t, r.client.TurnsCSV(t.Context(), &raw, "", 0))
	require.NoError(t, os.WriteFile(filepath.Join(t.ArtifactDir(), "turns.csv"), raw.Bytes(), 0o600))
	turns, err := api.ReadTurns(&raw)
	require.NoError(t, err)
	got := summarize(turns, from, to)
	require.NotZero(t, got.turns, "no turn ended well in the span; failed: %s. %s", classes(got.failed),
		r.last.Target.Problem)
	got.spread = stat.Mean(r.spreads, nil)
	if r.mistrusts > 0 {
		got.mistrust = fmt.Sprintf("in %d of %d seconds: %s", r.mistrusts, r.samples, r.mistrust)
	}
	return got
}
