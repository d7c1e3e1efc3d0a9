//go:build engines

package engines

import (
	"encoding/json"
	"fmt"
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
	"kvbooth/sidecar/booth/httpd"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/process"
	"kvbooth/sidecar/test/boothtest"
)

// blockTokens is the block size of the simulated engines.
const blockTokens = 32

// flaw is a fault of routing that is made on purpose.
type flaw struct {
	name    string
	router  string
	engines []string                 // further flags of the engines
	change  func(*local.RouterStart) // of the router
	flags   []string                 // of the load
	session bool                     // requests name their conversation

	kind   api.HitCauseKind
	reason api.HitReason
}

var flaws = []flaw{
	{
		name: "the router gets no events", router: "vllm-router:kv_aware", kind: api.CauseElsewhere,
		reason: api.ReasonEmptyIndex, flags: []string{"--concurrency=9"},
		change: func(s *local.RouterStart) {
			for i := range s.Events {
				s.Events[i] = "tcp://127.0.0.1:1"
			}
		},
	},
	{
		name: "the router has another block size", router: "vllm-router:kv_aware", kind: api.CauseElsewhere,
		reason: api.ReasonEmptyIndex, flags: []string{"--concurrency=9"},
		change: func(s *local.RouterStart) { s.BlockTokens = blockTokens / 2 },
	},
	{
		name: "small caches", router: "nginx:hash", kind: api.CauseEvicted, engines: []string{"--kv-blocks=400"},
		flags: []string{"--concurrency=18", "--think-time=1s"}, session: true,
	},
	{
		name: "sessions are not sent", router: "smg:consistent_hashing", kind: api.CauseElsewhere,
		reason: api.ReasonNoSession, flags: []string{"--concurrency=6"},
	},
	{
		name: "the policy ignores prompts", router: "smg:round_robin", kind: api.CauseElsewhere, reason: api.ReasonBlind,
		flags: []string{"--concurrency=6"},
	},
	{
		name: "imbalance", router: "smg:cache_aware", kind: api.CauseSpilled, flags: []string{"--concurrency=60"},
	},
	{
		name: "one hot prefix", router: "sglang:cache_aware", flags: []string{"--concurrency=8", "--openings=1"},
	},
}

// The command why names the fault that was made first among the losses, with a share that counting the stored turns
// confirms.
func TestWhyNamesFlaws(t *testing.T) {
	bin := boothtest.Programs(t)
	loads := map[string]load{}
	for i := range flaws {
		loads[flaws[i].name] = flawed(t, bin, &flaws[i])
	}
	for i := range flaws {
		f := &flaws[i]
		t.Run(f.name, func(t *testing.T) {
			client, url := loads[f.name].client, loads[f.name].url
			wait.Within(t, 4*time.Minute, "most of a minute is over", func() (any, bool) {
				s, err := client.Shadow(t.Context(), api.DefaultLane)
				require.NoError(t, err)
				return s.Message, s.Seconds > 55 && len(s.Causes) > 0 // so that all turns are in the window
			})
			command := exec.CommandContext(t.Context(), filepath.Join(bin, "loadgen"), "why", "--format=json",
				"--from="+url)
			command.Env = append(process.Environment(), "LOADGEN_TOKEN=a-token-for-the-operators")
			command.Stderr = os.Stderr
			printed, err := command.Output()
			require.NoError(t, err)
			var s api.Shadow
			asked := time.Now()
			require.NoError(t, json.Unmarshal(printed, &s))
			checkFlaw(t, f, &s, counted(boothtest.Turns(t, client, api.DefaultLane, 0), asked.Add(-window)))
		})
	}
}

func checkFlaw(t *testing.T, f *flaw, s *api.Shadow, own byHand) {
	t.Helper()
	var lines []string
	for _, c := range s.Causes {
		lines = append(lines, fmt.Sprintf("%.1f %% %s %s: %s", 100*c.Share, c.Kind, c.Reason, c.Text))
	}
	figure.Report(t, "%s: %d turns\n  %s\n  counted: %v\n  work: %+v", f.name, s.Requests, strings.Join(lines, "\n  "),
		own, s.Work)
	if f.kind == "" {
		require.NotEmpty(t, s.Work.Hot)
		assert.Greater(t, s.Work.Hot[0].Share, .9)
		assert.NotEmpty(t, s.Work.Text)
		assert.InDelta(t, own.busiest, s.Work.Hot[0].WorkerShare, .03)
		return
	}
	losses := slices.DeleteFunc(slices.Clone(s.Causes), func(c api.HitCause) bool {
		return c.Kind == api.CauseFound || c.Kind == api.CauseNew
	})
	require.NotEmpty(t, losses)
	assert.Equal(t, f.kind, losses[0].Kind)
	assert.Equal(t, f.reason, losses[0].Reason)
	share := losses[0].Share
	if f.kind == api.CauseEvicted { // the stored turns do not show why a worker did not find what it had computed
		for _, c := range losses[1:] {
			if c.Kind == api.CauseUnexplained {
				share += c.Share
			}
		}
	}
	assert.InDelta(t, own.shares[f.kind], share, .03)
}

// byHand are shares of the prompt tokens of turns, counted from the stored turns alone.
type byHand struct {
	turns   int
	shares  map[api.HitCauseKind]float64
	busiest float64 // share of the turns at the worker with the most
}

// window is the time that the command why is about.
const window = time.Minute

// counted divides the prompt tokens of the turns that ended after a moment. Conversations share nothing: what was
// computed before is the latest earlier prompt of the conversation with its answer, in whole blocks.
func counted(turns []api.Turn, from time.Time) byHand {
	slices.SortFunc(turns, func(a, b api.Turn) int { return a.Started.Compare(b.Started) })
	type place struct{ conversation, worker string }
	had := map[place]int{}
	sums, workers, prompt, n := map[api.HitCauseKind]int{}, map[string]int{}, 0, 0
	for i := range turns {
		turn := &turns[i]
		if turn.Status != api.TurnOK || turn.PromptTokens == nil || turn.CachedTokens == nil ||
			turn.OutputTokens == nil {
			continue
		}
		anywhere, own := had[place{turn.Conversation, ""}], had[place{turn.Conversation, turn.Worker}]
		for _, worker := range []string{"", turn.Worker} {
			had[place{turn.Conversation, worker}] = (*turn.PromptTokens + *turn.OutputTokens) / blockTokens * blockTokens
		}
		if turn.Ended.Before(from) {
			continue
		}
		n++
		workers[turn.Worker]++
		prompt += *turn.PromptTokens
		sums[api.CauseFound] += *turn.CachedTokens
		sums[api.CauseElsewhere] += max(0, anywhere-max(own, *turn.CachedTokens))
		sums[api.CauseEvicted] += max(0, own-*turn.CachedTokens)
	}
	b := byHand{turns: n, shares: map[api.HitCauseKind]float64{}}
	for kind, sum := range sums {
		b.shares[kind] = float64(sum) / float64(prompt)
	}
	b.shares[api.CauseSpilled] = b.shares[api.CauseElsewhere]
	for _, k := range workers {
		b.busiest = max(b.busiest, float64(k)/float64(n))
	}
	return b
}

// load is a running load generator.
type load struct {
	client *api.Client
	url    string
}

// flawed starts engines, a router and a load generator with a flaw.
func flawed(t *testing.T, bin string, f *flaw) load {
	t.Helper()
	r, policy, err := local.FindRouter("", f.router)
	require.NoError(t, err)
	e := boothtest.SimulatedEngines(t, bin, "vllm", f.engines...)
	start := local.RouterStart{Policy: policy, Workers: e.Workers, BlockTokens: blockTokens}
	pages := "no-target"
	for i, w := range e.Workers {
		pages += ",http://" + w
		start.Events = append(start.Events, "tcp://"+e.Events[i])
	}
	if f.change != nil {
		f.change(&start)
	}
	p, page := begun(t, r, start, nil)
	if page != "" {
		pages += "," + page
	}
	flags := []string{
		"--start", "--target-url=" + p.URL(), "--cluster-metrics-urls=" + pages, "--preset=demo", "--max-tokens=40",
		"--target-worker-header=" + httpd.WorkerHeader, "--output-tokens-mean=0", "--think-time=200ms", "--openings=0",
	}
	if f.session {
		flags = append(flags, "--target-session=header:"+r.Session(policy))
	}
	part, client := boothtest.Loadgen(t, bin, "loadgen", "a-token-for-the-operators", append(flags, f.flags...)...)
	return load{client, part.URL()}
}

// The mean TTFT behind a router is the sum of what the router, the queue and the prefill take, within 10 %: the times
// of the engines leave that little unexplained.
func TestTTFTIsSplit(t *testing.T) {
	bin := boothtest.Programs(t)
	workers := engines(t, bin)
	pages := "no-target,http://" + strings.Join(workers, ",http://")
	for _, policy := range []string{"round_robin", "cache_aware"} {
		t.Run(policy, func(t *testing.T) {
			_, client := boothtest.Loadgen(t, bin, "loadgen", "a-token-for-the-operators", "--start",
				"--target-url="+sglang(t, policy, workers...), "--model="+model, "--cluster-metrics-urls="+pages,
				"--preset=demo", "--openings=0", "--think-time=500ms", "--max-tokens=12", "--output-tokens-mean=0",
				"--concurrency=1")
			start := time.Now()
			var s api.Shadow
			wait.Within(t, 4*time.Minute, "the time is over", func() (any, bool) {
				var err error
				s, err = client.Shadow(t.Context(), api.DefaultLane)
				require.NoError(t, err)
				return s.Message, time.Since(start) > 75*time.Second && len(s.TTFT) > 0
			})
			sum, parts := 0., map[string]float64{}
			for _, p := range s.TTFT {
				sum += p.Seconds
				parts[p.Name] = p.Seconds
			}
			figure.Report(t, "%s: TTFT %.1f ms: %.1f router, %.1f queue, %.1f prefill, %.1f unexplained (%.1f %%)", policy,
				1e3*sum, 1e3*parts["router"], 1e3*parts["queue"], 1e3*parts["prefill"], 1e3*parts["rest"],
				100*parts["rest"]/sum)
			assert.Greater(t, parts["prefill"], 0.)
			assert.InDelta(t, 0, parts["rest"], .1*sum)
		})
	}
}
