//go:build grafana && kubernetes

package grafana

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/test/boothtest"
	"kvbooth/sidecar/test/kubernetes"
)

// onKubernetes starts a DynamoGraphDeployment in the mode kv on a real control plane, with a simulated cluster as its
// frontend. The image of one of its variants does not exist.
func onKubernetes(t *testing.T, _ string) boothtest.Target {
	t.Helper()
	c := kubernetes.Start(t)
	c.Node(t, "gpu-0", 3)
	c.Operator(t)
	c.Deploy(t, "booth", "kv", 5*time.Second) // long enough to show each step
	variants := filepath.Join(t.TempDir(), "variants.yaml")
	require.NoError(t,
		os.WriteFile(variants, []byte("off: {image: 'runtime:1.6.1'}\ndraft: {image: 'runtime-broken:1.6.1'}\n"), 0o600))
	return boothtest.Target{
		Frontend: host(t, c.Frontend(t, "booth")),
		Loadgen: []string{
			"--mode-driver=kubernetes", "--mode-kubernetes-kubeconfig=" + c.Kubeconfig(), "--mode-kubernetes-name=booth",
			"--mode-kubernetes-variants-file=" + variants, "--deployment-kind=simulated",
		},
	}
}

// TestKubernetes switches the routing mode from a dashboard.
func TestKubernetes(t *testing.T) { run(t, "", "kubernetes", onKubernetes) }
