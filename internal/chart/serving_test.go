//go:build chart

package chart

import (
	"encoding/json"
	"fmt"
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
	all := map[string]*unstructured.Unstructured{}
	for _, object := range render(t, append([]string{"serving.create=true"}, set...)...) {
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
	_, objects := renderCase(t, "the recorded demo")
	graph := find(objects, GraphKind, "kvbooth", "kvbooth")
	require.NotNil(t, graph)
	assert.Equal(t, "booth", graph.GetAnnotations()["nvidia.com/kai-scheduler-queue"])
	assert.EqualValues(t, 2, at(t, graph.Object, "spec", "components", 1, "multinode", "nodeCount"))
	assert.EqualValues(t, "8", at(t, container(t, graph, 1), "resources", "limits", "nvidia.com/gpu"))
	assert.NotContains(t, rendered(t)["DynamoGraphDeployment kvbooth"].GetAnnotations(), "nvidia.com/kai-scheduler-queue")

	secrets := func(owner string) (all []string) {
		for _, e := range containerOf(t, objects, owner).Env {
			if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
				all = append(all, e.Name+"="+e.ValueFrom.SecretKeyRef.Name+"/"+e.ValueFrom.SecretKeyRef.Key)
			}
		}
		return all
	}
	assert.Equal(t, []string{
		"LOADGEN_FOLLOWUP_API_KEY=serverless-inference/key", "LOADGEN_CORPUS_S3_ACCESS_KEY=spaces/access-key",
		"LOADGEN_CORPUS_S3_SECRET_KEY=spaces/secret-key",
	}, secrets("StatefulSet kvbooth-loadgen"))
	assert.Contains(t, secrets("StatefulSet kvbooth-member"), "LOADGEN_FOLLOWUP_API_KEY=serverless-inference/key")
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
		for name, text := range configMap(t, render(t, set...), config) {
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
		graph := rendered(t, set...)["DynamoGraphDeployment kvbooth"]
		return at(t, graph.Object, "spec", "components", 1, "podTemplate", "metadata")
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
	assert.Equal(t, map[string]any{"namespace": "kvbooth", "name": "model-nfs-pvc"},
		at(t, volume.Object, "spec", "claimRef"))
	for component := range 2 {
		pod := at(t, all["DynamoGraphDeployment kvbooth"].Object, "spec", "components", component, "podTemplate", "spec")
		assert.Equal(t, map[string]any{"claimName": "model-nfs-pvc", "readOnly": true},
			at(t, pod, "volumes", 0, "persistentVolumeClaim"))
		assert.Equal(t, map[string]any{"name": "models", "mountPath": "/models", "readOnly": true},
			at(t, pod, "containers", 0, "volumeMounts", 0))
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

// Without members nothing of them is there; those that run elsewhere need the coordinator's way to the server alone.
func TestMembersAreAskedFor(t *testing.T) {
	elsewhere := []string{
		"serving.name=booth", "members.nats.url=nats://nats.dynamo.svc:4222",
		"members.nats.existingSecret=key", "members.nats.nkeyKey=seed", "members.nats.caKey=ca",
	}
	without := []string{"serving.name=booth", "prometheus.create=true", "monitoring.loadgen.enabled=true"}
	for _, set := range [][]string{without, elsewhere} {
		objects := render(t, set...)
		for _, object := range objects {
			require.NotContains(t, []string{"member", "nats"}, object.GetLabels()["app.kubernetes.io/component"], title(object))
		}
		text := configMap(t, objects, "kvbooth-loadgen")["loadgen.yaml"]
		if len(set) == len(without) {
			require.NotContains(t, text, "members:")
			continue
		}
		require.Contains(t, text, "nkey_file: /run/secrets/nats/nkey\n")
		require.Contains(t, text, "ca_file: /run/secrets/nats/ca.crt\n")
		namespaces, _ := egress(t, objects, "kvbooth-loadgen")
		require.Equal(t, []string{"dynamo", "kvbooth"}, namespaces)
	}
}

// Members get the target's keys and no other secret of the load generator, and reach less than it does; whatever the
// names are, the fleet's is one that it takes.
func TestMembersGetWhatTheyNeed(t *testing.T) {
	o := Options{Release: strings.Repeat("long-", 9) + "name", Set: []string{
		"loadgen.config.target.url=https://llm.example.com:8443", "members.replicas=2",
		"loadgen.config.corpus.s3.endpoint=https://texts.example.com:9000", "loadgen.config.corpus.s3.bucket=texts",
	}}
	for i, name := range []string{
		"TARGET_API_KEY", "FOLLOWUP_API_KEY", "CORPUS_S3_ACCESS_KEY", "CORPUS_S3_SECRET_KEY", "METRICS_TOKEN",
	} {
		o.Set = append(o.Set, fmt.Sprintf("loadgen.secretEnv[%d].name=LOADGEN_%s,"+
			"loadgen.secretEnv[%[1]d].secret=keys,loadgen.secretEnv[%[1]d].key=%[2]s", i, name))
	}
	objects, _, err := helm.Render(t.Context(), o)
	require.NoError(t, err)
	i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == "StatefulSet" && strings.HasSuffix(o.GetName(), "-member")
	})
	require.GreaterOrEqual(t, i, 0)
	name := objects[i].GetName()
	member := containerOf(t, objects, title(objects[i]))
	var names []string
	for _, env := range member.Env {
		names = append(names, env.Name)
	}
	require.Equal(t, []string{
		"LOADGEN_MEMBERS_NAME", "LOADGEN_TARGET_API_KEY", "LOADGEN_FOLLOWUP_API_KEY", "LOADGEN_METRICS_TOKEN",
	}, names)
	require.Contains(t, member.Args, "--members-fleet=kvbooth-long-long-long-long-long")
	require.Nil(t, find(objects, "Secret", name, "kvbooth"), "the load generator's token is theirs, too")
	namespaces, ports := egress(t, objects, name)
	require.Equal(t, []string{"kvbooth"}, namespaces)
	require.Equal(t, []string{"8443"}, ports)
	namespaces, ports = egress(t, objects, strings.TrimSuffix(name, "member")+"nats")
	require.Empty(t, namespaces)
	require.Empty(t, ports)
}
