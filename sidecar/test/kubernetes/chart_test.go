//go:build kubernetes

package kubernetes

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/chart"
	"kvbooth/internal/source"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/test/boothtest"
)

// install is a release of the chart with a Dynamo and nothing else of the booth.
type install struct {
	plane *ControlPlane
	helm  chart.Helm
	set   []string
}

func (i *install) options() chart.Options {
	return chart.Options{Release: "booth", Namespace: Namespace, Set: i.set}
}

// apply installs or upgrades it, and waits until all of it is ready.
func (i *install) apply(t *testing.T, more ...string) {
	t.Helper()
	// What the load generator has switched is its own until an upgrade forces it.
	printed, err := i.helm.Run(t.Context(), with(i.options(), more...), "upgrade", "--install", "--wait",
		"--wait-for-jobs", "--force-conflicts",
		"--kubeconfig="+i.plane.Kubeconfig(), "--kube-context=booth", "--timeout=2m")
	require.NoError(t, err, printed)
}

// TestChart installs the chart's Dynamo in a cluster with exactly the GPUs that it takes: the load generator finds
// nothing to complain of, switches mode and speculation there, and an upgrade keeps what it has switched to.
func TestChart(t *testing.T) {
	c := Start(t)
	c.Node(t, "gpu-0", 3)
	c.Operator(t)
	root, err := source.Root()
	require.NoError(t, err)
	helm, err := chart.FindHelm(t.Context(), root)
	require.NoError(t, err)
	i := &install{c, helm, []string{
		"serving.create=true", "serving.mode=round-robin", "serving.variants={off,draft}", "model.create=true",
		"model.volume.nfs.server=127.0.0.1", "model.volume.nfs.path=/models",
		"loadgen.enabled=false", "grafana.enabled=false", "doctor.enabled=false",
	}}
	i.apply(t)

	s := serving(t, c, boothtest.Programs(t), "booth")
	flag := "--mode-kubernetes-variants-file=" + i.variants(t)
	said, code := s.check(t, c.Kubeconfig(), flag)
	require.Zero(t, code, said)
	assert.NotContains(t, said, "warning")
	assert.Contains(t, said, "mode Round-robin, in spec.env")
	assert.Contains(t, said, "the workers run the variant off of 2")
	assert.Contains(t, said, "Worker is rolled out without extra GPUs")

	s.run(t, "loadgen", flag)
	wanted := api.ModeState{Mode: api.ModeKV, Speculation: api.SpeculationDraft}
	end, _ := s.switches(t, wanted)
	require.Equal(t, wanted, api.ModeState{Mode: end.Mode, Speculation: end.Speculation}, "%+v", end.ModeChange)

	// An upgrade that changes the workers' arguments leaves mode and speculation as they are.
	i.apply(t, "serving.maxBatch=48")
	g, err := read(s.object(t))
	require.NoError(t, err)
	assert.Equal(t, "kv", g.Spec.Env[0].Value)
	worker := g.Spec.Components[1].PodTemplate.Spec.Containers[0]
	assert.Contains(t, worker.Args, "48")
	assert.Contains(t, worker.Env[0].Value, "draft")

	i.apply(t, "serving.resetMode=true")
	g, err = read(s.object(t))
	require.NoError(t, err)
	assert.Equal(t, "round-robin", g.Spec.Env[0].Value)
	assert.Equal(t, "off", g.Spec.Components[1].PodTemplate.Spec.Containers[0].Env[0].Value)
}

// variants writes the file that the chart gives the load generator.
func (i *install) variants(t *testing.T) (file string) {
	t.Helper()
	objects, _, err := i.helm.Render(t.Context(), i.options())
	require.NoError(t, err)
	for _, object := range objects {
		if object.GetKind() == "ConfigMap" && object.GetName() == "booth-kvbooth-variants" {
			data, _ := object.Object["data"].(map[string]any)
			text, _ := data["variants.yaml"].(string)
			file = filepath.Join(t.TempDir(), "variants.yaml")
			require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		}
	}
	require.NotEmpty(t, file)
	return file
}
