//go:build kubernetes

package kubernetes

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kvbooth/internal/figure"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/churn"
	"kvbooth/sidecar/process"
	"kvbooth/sidecar/test/boothtest"
)

// A worker's pod is deleted twice, and Kubernetes replaces it. The turns in flight on it fail, and all figures are back
// while the turns are still observed.
func TestChurnDeletesPods(t *testing.T) {
	const name, start = "churned", 5 * time.Second
	c := Start(t)
	c.Node(t, "gpu-0", 3)
	c.Operator(t)
	bin := boothtest.Programs(t)
	c.Deploy(t, name, "kv", start)
	s := serving(t, c, bin, name)
	before := workerPods(t, c, name)
	dir := t.TempDir()
	script, document := filepath.Join(dir, "events.yaml"), filepath.Join(dir, "churn.json")
	kubectl := strings.Join(c.Kubectl(), " ")
	pods := fmt.Sprintf("%s get pod --namespace=%s -l %s=%s -o name | grep -v -i frontend | head -1", kubectl, Namespace,
		labelGraph, name)
	require.NoError(t, os.WriteFile(script, fmt.Appendf(nil, "- name: delete a pod\n  run: [sh, -c, %q]\n",
		fmt.Sprintf("%s delete --wait=false --namespace=%s $(%s)", kubectl, Namespace, pods)), 0o600))
	command := exec.CommandContext(t.Context(), filepath.Join(bin, "loadgen"), "churn", "--events="+script,
		"--target-url="+s.target, "--arms=[{\"name\":\"graph\"}]", "--deployment-kind=simulated", "--output="+document,
		"--data-dir="+filepath.Join(dir, "data"), "--listen="+boothtest.AnyPort, "--blocks=2", "--warm-up=10s",
		"--before=20s", "--after=60s", "--window=5s", "--concurrency=12", "--start-rate=100", "--target-rps=0",
		"--think-time=500ms", "--openings=0", "--max-tokens=24", "--output-tokens-mean=8", "--whatif-cpus=0")
	command.Env = process.Environment()
	printed, err := command.CombinedOutput()
	require.NoError(t, err, string(printed))
	var r churn.Report
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &r))
	require.Len(t, r.Instances, 2)
	failed := 0
	for i := range r.Instances {
		e := &r.Instances[i]
		require.Empty(t, e.Error)
		require.NotNil(t, e.TokensLost)
		require.NotNil(t, e.HitRate.Recovery)
		figure.Report(t, "event %d: %d of %d turns failed %v; hit rate %.1f %% before, back after %.0f s; TTFT p95 %.0f ms "+
			"before, back after %.0f s; %.0f prompt tokens lost", i+1, e.Failed, e.Turns, e.Errors, 100**e.HitRate.Before,
			e.HitRate.Recovery.Seconds, 1e3**e.TTFT.Before, e.TTFT.Recovery.Seconds, *e.TokensLost)
		failed += e.Failed
		assert.Equal(t, e.Failed, e.Errors[api.ErrorStream], "streams of the pod that is gone")
		assert.False(t, e.HitRate.Recovery.Censored)
		assert.False(t, e.TTFT.Recovery.Censored)
	}
	assert.Positive(t, failed)
	gone := 0
	after := workerPods(t, c, name)
	for pod := range before {
		if !after[pod] {
			gone++
		}
	}
	assert.Positive(t, gone)
	assert.Len(t, after, len(before))
}

// workerPods returns the names of a graph's pods of workers.
func workerPods(t *testing.T, c *ControlPlane, name string) map[string]bool {
	t.Helper()
	var list corev1.PodList
	require.NoError(t, c.Client().List(t.Context(), &list, client.InNamespace(Namespace),
		client.MatchingLabels{labelGraph: name}))
	all := map[string]bool{}
	for i := range list.Items {
		if pod := &list.Items[i]; pod.DeletionTimestamp == nil && !strings.Contains(strings.ToLower(pod.Name), "frontend") {
			all[pod.Name] = true
		}
	}
	return all
}
