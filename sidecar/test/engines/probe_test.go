//go:build engines

package engines

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/figure"
	"kvbooth/sidecar/booth/httpd"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/loadgen/cluster/probe"
	"kvbooth/sidecar/process"
	"kvbooth/sidecar/test/boothtest"
)

// does is what a probe finds of a router under a policy; an empty verdict means that it does not look.
type does struct{ affinity, sessions, events probe.Verdict }

var policies = map[string]does{
	"sglang:cache_aware":          {probe.Yes, probe.No, probe.No},
	"sglang:manual":               {probe.No, probe.Yes, probe.No},
	"smg:cache_aware":             {probe.Yes, probe.No, probe.No},
	"smg:consistent_hashing":      {probe.No, probe.Yes, probe.No},
	"smg:round_robin":             {probe.No, probe.No, probe.No},
	"vllm-router:cache_aware":     {probe.Yes, probe.No, probe.No},
	"vllm-router:kv_aware":        {probe.Yes, probe.No, probe.Yes},
	"vllm-router:consistent_hash": {probe.No, probe.Yes, probe.No},
	"envoy:round_robin":           {probe.No, "", probe.No},
	"envoy:hash":                  {probe.No, probe.Yes, probe.No},
	"litellm:simple-shuffle":      {probe.No, probe.No, probe.No},
	"haproxy:round_robin":         {probe.No, "", probe.No},
	"nginx:hash":                  {probe.No, probe.Yes, probe.No},
}

// A probe says of each router in front of engines what its policy does.
func TestProbeKnowsPolicies(t *testing.T) {
	bin := boothtest.Programs(t)
	for text, want := range policies {
		t.Run(text, func(t *testing.T) {
			r, policy, err := local.FindRouter("", text)
			require.NoError(t, err)
			e := boothtest.SimulatedEngines(t, bin, "vllm")
			start := local.RouterStart{Policy: policy, Workers: e.Workers, BlockTokens: 32}
			for _, address := range e.Events {
				start.Events = append(start.Events, "tcp://"+address)
			}
			p, _ := begun(t, r, start, nil)
			header := httpd.WorkerHeader
			if r.Worker != "" {
				header = r.Worker
			}
			args := []string{
				"probe-router", "--format=json", "--target-url=" + p.URL(), "--target-worker-header=" + header,
				"--cluster-metrics-urls=no-target,http://" + strings.Join(e.Workers, ",http://"),
			}
			if session := r.Session(policy); session != "" {
				args = append(args, "--target-session=header:"+session)
			}
			probed := func() []byte {
				c := exec.CommandContext(t.Context(), filepath.Join(bin, "loadgen"), args...)
				c.Env, c.Stderr = append(process.Environment(), "LOADGEN_TARGET_API_KEY="+find(t, "litellm").Key), os.Stderr
				printed, err := c.Output()
				require.NoError(t, err)
				return printed
			}
			printed := probed()
			if r.NeedsEvents(policy) { // the first one ran before the router had subscribed to all of them
				printed = probed()
			}
			var all []struct {
				Report   probe.Report
				Findings []probe.Finding
			}
			require.NoError(t, json.Unmarshal(printed, &all))
			found, said := map[string]probe.Verdict{}, ""
			for _, f := range all[0].Findings {
				found[f.Property] = f.Verdict
				said += "; " + f.Text
			}
			assert.Equal(t, want, does{found["affinity"], found["sessions"], found["events"]}, said)
			assert.False(t, all[0].Report.Held)
			figure.Report(t, "%s, in %.1f s%s", text, all[0].Report.Seconds, said)
		})
	}
}
