//go:build chart

package chart

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// rendered gives the objects of the chart with a Dynamo, by "Kind name".
func rendered(t *testing.T, set ...string) map[string]*unstructured.Unstructured {
	t.Helper()
	objects, _, err := helm.Render(t.Context(), Options{Set: append([]string{"serving.create=true"}, set...)})
	require.NoError(t, err)
	all := map[string]*unstructured.Unstructured{}
	for _, object := range objects {
		all[title(object)] = object
	}
	return all
}

// at follows a path of keys and indices.
func at(t *testing.T, object any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch step := step.(type) {
		case string:
			from, _ := object.(map[string]any)
			require.Contains(t, from, step, "%v", path)
			object = from[step]
		case int:
			from, _ := object.([]any)
			require.Greater(t, len(from), step, "%v", path)
			object = from[step]
		}
	}
	return object
}

// container is the main container of a graph's component: 0 the frontend, 1 the workers.
func container(t *testing.T, graph *unstructured.Unstructured, component int) any {
	t.Helper()
	return at(t, graph.Object, "spec", "components", component, "podTemplate", "spec", "containers", 0)
}

// The workers' flags for events and metrics have the names that each version of Dynamo defines, as found in its wheels.
func TestEventsFlag(t *testing.T) {
	for version, want := range map[string][]any{
		"1.2.1": {"--publish-events-and-metrics"},
		"1.3.1": {"--publish-kv-events"},
		"1.5.1": {"--publish-kv-events"},
		"1.6.1": {"--publish-kv-events", "--publish-metrics"},
		"2.0.0": {"--publish-kv-events", "--publish-metrics"},
	} {
		worker := container(t, rendered(t, "serving.dynamo.version="+version)["DynamoGraphDeployment kvbooth"], 1)
		args, _ := at(t, worker, "args").([]any)
		assert.Equal(t, want, slices.DeleteFunc(slices.Clone(args),
			func(arg any) bool { return !strings.HasPrefix(arg.(string), "--publish") }), version)
		assert.Equal(t, "nvcr.io/nvidia/ai-dynamo/tensorrtllm-runtime:"+version, at(t, worker, "image"))
	}
}

// The mode is set in the graph's environment only, so that one patch of it restarts frontend and workers.
func TestMode(t *testing.T) {
	all := rendered(t, "serving.mode=least-loaded", "serving.twin.enabled=true", "serving.twin.workers=2")
	for name, want := range map[string]string{"kvbooth": "least-loaded", "kvbooth-twin": "kv"} {
		graph := all["DynamoGraphDeployment "+name]
		require.NotNil(t, graph)
		assert.Equal(t, map[string]any{"name": "DYN_ROUTER_MODE", "value": want}, at(t, graph.Object, "spec", "env", 0))
		for component := range 2 {
			env, _ := at(t, container(t, graph, component), "env").([]any)
			assert.False(t, slices.ContainsFunc(env, func(e any) bool { return at(t, e, "name") == "DYN_ROUTER_MODE" }), name)
		}
	}
	assert.EqualValues(t, 2, at(t, all["DynamoGraphDeployment kvbooth-twin"].Object, "spec", "components", 1, "replicas"))
}

// The recorded demo's queue, workers of two nodes, end user, corpus and namespace are where they take effect.
func TestRecordedDemo(t *testing.T) {
	cases, err := Cases(root)
	require.NoError(t, err)
	c := cases[slices.IndexFunc(cases, func(c Case) bool { return c.Name == "the recorded demo" })]
	c.Options.APIVersions = served
	objects, _, err := helm.Render(t.Context(), c.Options)
	require.NoError(t, err)
	graph := find(objects, GraphKind, "kvbooth", "kvbooth")
	require.NotNil(t, graph)
	assert.Equal(t, "booth", graph.GetAnnotations()["nvidia.com/kai-scheduler-queue"])
	assert.EqualValues(t, 2, at(t, graph.Object, "spec", "components", 1, "multinode", "nodeCount"))
	assert.EqualValues(t, "8", at(t, container(t, graph, 1), "resources", "limits", "nvidia.com/gpu"))
	assert.NotContains(t, rendered(t)["DynamoGraphDeployment kvbooth"].GetAnnotations(), "nvidia.com/kai-scheduler-queue")

	pods, err := Pods(objects, "kvbooth")
	require.NoError(t, err)
	secrets := map[string][]string{}
	for _, p := range pods {
		for _, e := range p.Template.Spec.Containers[0].Env {
			if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
				secrets[p.Owner] = append(secrets[p.Owner],
					e.Name+"="+e.ValueFrom.SecretKeyRef.Name+"/"+e.ValueFrom.SecretKeyRef.Key)
			}
		}
	}
	assert.Equal(t, []string{
		"LOADGEN_FOLLOWUP_API_KEY=serverless-inference/key", "LOADGEN_CORPUS_S3_ACCESS_KEY=spaces/access-key",
		"LOADGEN_CORPUS_S3_SECRET_KEY=spaces/secret-key",
	}, secrets["StatefulSet kvbooth-loadgen"])
	assert.Contains(t, secrets["StatefulSet kvbooth-member"], "LOADGEN_FOLLOWUP_API_KEY=serverless-inference/key")
}

// Dashboards begin with the namespace of the serving cluster, be they the app's or a sidecar's.
func TestDashboardsNamespace(t *testing.T) {
	for config, set := range map[string][]string{
		"kvbooth-grafana-dashboards": {"serving.name=booth", "serving.namespace=dynamo-workload", "prometheus.create=true"},
		"kvbooth-gtc-demo": {
			"serving.name=booth", "grafana.namespace=dynamo-workload",
			"grafana.enabled=false", "grafana.existing.enabled=true", "prometheus.url=http://p:9090",
		},
	} {
		objects, _, err := helm.Render(t.Context(), Options{Set: set})
		require.NoError(t, err)
		for name, text := range configMap(t, objects, config) {
			var dashboard map[string]any
			require.NoError(t, json.Unmarshal([]byte(text), &dashboard), name)
			i := slices.IndexFunc(list(at(t, dashboard, "templating", "list")),
				func(v fields) bool { return v["name"] == "namespace" })
			assert.Equal(t, map[string]any{"text": "dynamo-workload", "value": "dynamo-workload"}, at(t, dashboard,
				"templating", "list", i, "current"), name)
		}
	}
	assert.Nil(t, rendered(t)["ConfigMap kvbooth-grafana-dashboards"], "all namespaces where no Prometheus is known")
}

// A roll-out requests no GPUs beyond those in use, unless serving.exactGPUs is false.
func TestExactGPUs(t *testing.T) {
	metadata := func(set ...string) any {
		return at(t, rendered(t, set...)["DynamoGraphDeployment kvbooth"].Object, "spec", "components", 1,
			"podTemplate", "metadata")
	}
	assert.Equal(t, map[string]any{
		"nvidia.com/deployment-rolling-update-max-surge": "0", "nvidia.com/deployment-rolling-update-max-unavailable": "100%",
	}, at(t, metadata(), "annotations"))
	assert.NotContains(t, metadata("serving.exactGPUs=false"), "annotations")
}

// The pods of the graph mount everything read-only, and wait for each model that the Job fetches.
func TestModel(t *testing.T) {
	nfs := []string{
		"model.create=true", "model.volume.nfs.server=nfs.example.com", "model.volume.nfs.path=/share",
		"serving.variants={off,draft}",
	}
	all := rendered(t, nfs...)
	volume, claim := all["PersistentVolume kvbooth-model-nfs-pvc"], all["PersistentVolumeClaim model-nfs-pvc"]
	require.NotNil(t, volume)
	require.NotNil(t, claim)
	assert.Equal(t, volume.GetName(), at(t, claim.Object, "spec", "volumeName"))
	assert.Equal(t, map[string]any{"namespace": "kvbooth", "name": "model-nfs-pvc"}, at(t, volume.Object, "spec",
		"claimRef"))
	for component := range 2 {
		pod := at(t, all["DynamoGraphDeployment kvbooth"].Object, "spec", "components", component, "podTemplate", "spec")
		assert.Equal(t, map[string]any{"claimName": "model-nfs-pvc", "readOnly": true}, at(t, pod, "volumes", 0,
			"persistentVolumeClaim"))
		assert.Equal(t, map[string]any{"name": "models", "mountPath": "/models", "readOnly": true}, at(t, pod,
			"containers", 0, "volumeMounts", 0))
		waits, _ := at(t, pod, "initContainers", 0, "args").([]any)
		assert.Equal(t, []any{
			"/models/Llama-3.1-70B-Instruct-FP8/.kvbooth.json",
			"/models/Llama-3.1-8B-Instruct-FP8/.kvbooth.json",
		}, waits[1:])
	}

	job := func(all map[string]*unstructured.Unstructured) *unstructured.Unstructured {
		for name, object := range all {
			if strings.HasPrefix(name, "Job ") {
				return object
			}
		}
		return nil
	}
	first := job(all)
	require.NotNil(t, first)
	args, _ := at(t, first.Object, "spec", "template", "spec", "containers", 0, "args").([]any)
	assert.Equal(t, []any{"nvidia/Llama-3.1-70B-Instruct-FP8@main", "nvidia/Llama-3.1-8B-Instruct-FP8@main"},
		args[len(args)-2:])
	assert.NotContains(t, first.Object["spec"], "activeDeadlineSeconds")
	assert.Equal(t, first.GetName(), job(rendered(t, nfs...)).GetName(), "the same task is the same Job")
	assert.NotEqual(t, first.GetName(), job(rendered(t, append(nfs, "model.revision=abc")...)).GetName(),
		"a Job cannot be changed")

	all = rendered(t, "model.create=true", "model.volume.existingClaim=mine")
	assert.Nil(t, all["PersistentVolumeClaim mine"])
	assert.NotNil(t, job(all))
	assert.Nil(t, job(rendered(t)), "no download unless asked for")
}
