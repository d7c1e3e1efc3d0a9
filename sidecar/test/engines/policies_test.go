//go:build engines

package engines

import (
	"cmp"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/figure"
	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/httpd"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/test/boothtest"
)

// routerMinutes names the variable with the time that each router serves. Default: 1.
const routerMinutes = "ROUTER_MINUTES"

// predictions are the shadow's policies that say what a router's policy finds in the caches. Those of a router that
// looks at the prompts have none: the shadow's best is above all of them.
var predictions = map[string]string{
	"sglang:random": "random", "sglang:manual": "sticky", "sglang:cache_aware": "",
	"smg:round_robin": "round_robin", "smg:consistent_hashing": "sticky", "smg:cache_aware": "",
	"vllm-router:consistent_hash": "sticky", "vllm-router:cache_aware": "", "vllm-router:kv_aware": "",
	"envoy:round_robin": "round_robin", "envoy:hash": "sticky", "litellm:simple-shuffle": "random",
	"haproxy:round_robin": "round_robin", "nginx:hash": "sticky",
}

// Each router serves for minutes without an error of its own making, all of them at the same time on engines of their
// own, and what its turns find in the caches is what the shadow predicts for its policy.
func TestPoliciesFindWhatIsPredicted(t *testing.T) {
	minutes, err := strconv.Atoi(cmp.Or(os.Getenv(routerMinutes), "1"))
	require.NoError(t, err, routerMinutes)
	bin, clients := boothtest.Programs(t), map[string]*api.Client{}
	for text := range predictions {
		r, policy, err := local.FindRouter("", text)
		require.NoError(t, err)
		clients[text] = policyLoad(t, bin, r, policy)
	}
	start := time.Now()
	for text, prediction := range predictions {
		t.Run(text, func(t *testing.T) {
			var s api.Shadow
			wait.Within(t, time.Duration(minutes+5)*time.Minute, "the time is over", func() (any, bool) {
				s, err = clients[text].Shadow(t.Context(), api.DefaultLane)
				require.NoError(t, err)
				return s.Message, time.Since(start) > time.Duration(minutes)*time.Minute && s.Measured.HitRatio != nil
			})
			checkPolicy(t, text, prediction, clients[text], &s)
		})
	}
}

// checkPolicy checks that no turn failed, and compares the hit rate of the last minute with the shadow's.
func checkPolicy(t *testing.T, text, prediction string, client *api.Client, s *api.Shadow) {
	t.Helper()
	turns, failed := boothtest.Turns(t, client, api.DefaultLane, 0), 0
	for i := range turns {
		if turns[i].Status == api.TurnError {
			failed++
		}
	}
	assert.Zero(t, failed)
	predicted, found := cmp.Or(prediction, "best_placement"), math.NaN()
	for _, p := range s.Policies {
		if p.Policy == predicted && p.Figures.HitRatio != nil {
			found = *p.Figures.HitRatio
		}
	}
	figure.Report(t, "%s: %d turns, %d failed; hit rate %.1f %%, %s %.1f %%", text, len(turns), failed,
		100**s.Measured.HitRatio, predicted, 100*found)
	points := .03
	switch prediction {
	case "":
		assert.LessOrEqual(t, *s.Measured.HitRatio, found+points)
		return
	case "random", "round_robin": // a minute has some 200 turns, which find their last one by chance
		points = .09
	}
	assert.InDelta(t, found, *s.Measured.HitRatio, points)
}

// policyLoad starts a router in front of simulated engines, and a load generator whose conversations have openings of
// their own.
func policyLoad(t *testing.T, bin string, r *local.Router, policy string) *api.Client {
	t.Helper()
	e := boothtest.SimulatedEngines(t, bin, "vllm")
	start := local.RouterStart{Policy: policy, Workers: e.Workers, BlockTokens: 32}
	pages := "no-target"
	for i, w := range e.Workers {
		pages += ",http://" + w
		start.Events = append(start.Events, "tcp://"+e.Events[i])
	}
	p, _ := begun(t, r, start, nil)
	key := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(key, []byte(cmp.Or(r.Key, "none")), 0o600))
	flags := []string{
		"--start", "--target-url=" + p.URL(), "--target-api-key-file=" + key, "--cluster-metrics-urls=" + pages,
		"--target-worker-header=" + cmp.Or(r.Worker, httpd.WorkerHeader), "--preset=demo", "--openings=0",
		"--max-tokens=40", "--output-tokens-mean=0", "--concurrency=6", "--think-time=500ms",
	}
	if header := r.Session(policy); header != "" {
		flags = append(flags, "--target-session=header:"+header)
	}
	_, client := boothtest.Loadgen(t, bin, "loadgen", "a-token-for-the-operators", flags...)
	return client
}
