package kubernetes

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"kvbooth/sidecar/api"
)

func recorded(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	return string(text)
}

// graphOf returns a graph that is ready, with a frontend and further components.
func graphOf(components string) string {
	return `
apiVersion: nvidia.com/v1beta1
kind: DynamoGraphDeployment
metadata: {name: booth, namespace: default, generation: 1}
spec:
  components:
  - {name: Frontend, type: frontend, podTemplate: {spec: {containers: [{name: main}]}}}
` + components + `
status:
  observedGeneration: 1
  state: successful
  conditions: [{type: Ready, status: "True"}]
`
}

// worker returns a component w of a type, with further fields of it, of its pods and of their container.
func worker(kind, fields, pod, container string) string {
	return fmt.Sprintf("  - {name: w, type: %s, %s podTemplate: {spec: {%s containers: [{name: main, %s}]}}}",
		kind, fields, pod, container)
}

// claiming returns a graph whose workers each get a claim from the template named gpus.
func claiming(replicas int) string {
	return graphOf(worker("worker", fmt.Sprintf("replicas: %d, ", replicas),
		"resourceClaims: [{name: gpus, resourceClaimTemplateName: gpus}], ", "resources: {claims: [{name: gpus}]}"))
}

// extended returns a graph of two workers with two GPUs each.
func extended(resource string) string {
	return graphOf(worker("worker", "replicas: 2, ", "", "resources: {limits: {"+resource+": \"2\"}}"))
}

func template(version, request string) string {
	return "{apiVersion: resource.k8s.io/" + version + ", kind: ResourceClaimTemplate, metadata: {name: gpus, " +
		"namespace: default}, spec: {spec: {devices: {requests: [{name: a, " + request + "}]}}}}"
}

// deviceClass returns a class of devices of a driver.
func deviceClass(name, driver string) string {
	return fmt.Sprintf("{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: %s}, spec: {selectors: "+
		"[{cel: {expression: 'device.driver == %q'}}]}}", name, driver)
}

// slice returns the devices of a driver on a node, as "name/type" each.
func slice(driver string, generation int, devices ...string) string {
	var list []string
	for _, d := range devices {
		name, kind, _ := strings.Cut(d, "/")
		list = append(list, fmt.Sprintf("{name: %s, attributes: {type: {string: %s}}}", name, kind))
	}
	return fmt.Sprintf("{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: %s-%d}, spec: {driver: "+
		"%[1]s, nodeName: n1, pool: {name: n1, generation: %[2]d}, devices: [%[3]s]}}",
		driver, generation, strings.Join(list, ", "))
}

const (
	// idle has 8 free GPUs of NVIDIA and 2 of AMD.
	idle = "{apiVersion: v1, kind: Node, metadata: {name: n1}, " +
		"status: {allocatable: {nvidia.com/gpu: \"8\", amd.com/gpu: \"2\"}}}"
	// held is a device that another pod uses.
	held = "{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: other, namespace: x}, " +
		"status: {allocation: {devices: {results: [{driver: gpu.nvidia.com, pool: n1, device: g0}]}}}}"

	servicesGraph = `
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: booth, namespace: default, generation: 1}
spec:
  envs: [{name: DYN_ROUTER_MODE, value: kv}]
  services:
    Frontend: {componentType: frontend, extraPodSpec: {mainContainer: {image: "frontend:0.9.0"}}}
    Prefill:
      componentType: worker
      subComponentType: prefill
      replicas: 2
      multinode: {nodeCount: 2}
      annotations: {nvidia.com/deployment-rolling-update-max-surge: "0"}
      resources: {limits: {gpu: "4"}}
      extraPodSpec: {mainContainer: {image: "runtime:0.9.0"}}
    Decode: {componentType: worker, resources: {requests: {custom: {nvidia.com/gpu: "1"}}}, extraPodSpec: {mainContainer: {image: "runtime:0.9.0"}}}
status: {state: successful, conditions: [{type: Ready, status: "True"}]}
`
)

// TestNeedsAndFindings covers graphs of each form.
func TestNeedsAndFindings(t *testing.T) {
	const gpus4 = "resources: {requests: {nvidia.com/gpu: \"4\"}}"
	for name, tt := range map[string]struct {
		graph    string
		needs    string // pods/workers, and the GPUs of all and of each pod
		unknown  bool   // the number of GPUs is
		problems int
		found    []string // severity and words of findings
		objects  []string // besides idle
	}{
		"several nodes for each replica": {
			graph: recorded(t, "multinode.json"), needs: "5/1 16 nvidia.com/gpu by 4", problems: 1, found: []string{
				"ok: 1 × decode (4 pods and 16 GPUs each)",
				"problem: the rollout of decode starts 4 additional pod(s) and needs 16 free GPU(s); 8 are free",
			},
		},
		"two replicas of two nodes, surge of one": {
			graph: strings.Replace(graphOf(worker("worker", "replicas: 2, multinode: {nodeCount: 2}, ", "", gpus4)),
				"podTemplate: {spec: { ", "podTemplate: {metadata: {annotations: {"+surgeAnnotation+": \"1\"}}, spec: {", 1),
			needs: "5/2 16 nvidia.com/gpu by 4", found: []string{"ok: needs 8 free GPU(s); 8 are free"},
		},
		"Grove with topology constraints": {
			graph: recorded(t, "dgd_grove_alpha.json"), needs: "5/3 24 nvidia.com/gpu by 8", found: []string{
				"ok: Grove replaces the pods of a component in place: a rollout needs no extra GPUs",
				"ok: Grove places by constraints: all pods within one rack, each replica of VllmDecodeWorker within one block, " +
					"each replica of VllmPrefillWorker within one host (topology grove-topology)",
			},
		},
		"Grove by its constraints alone": {
			graph: graphOf(worker("worker", "replicas: 3, topologyConstraint: {packDomain: rack}, ", "", gpus4)),
			needs: "4/3 12 nvidia.com/gpu by 4", found: []string{"ok: each replica of w within one rack", "ok: in place"},
		},
		"a graph without Grove": {
			graph: strings.Replace(graphOf(worker("worker", "replicas: 3, ", "", gpus4)), "metadata: {",
				"metadata: {annotations: {nvidia.com/enable-grove: \"false\"}, ", 1),
			needs: "4/3 12 nvidia.com/gpu by 4", found: []string{"ok: needs 4 free GPU(s); 8 are free"},
		},
		"an endpoint picker": {
			graph: recorded(t, "gaie.json"), needs: "2/1 0  by 0", problems: 1, found: []string{"problem: the router is the " +
				"endpoint picker Epp, not the frontend: the mode cannot be switched by patching the frontend"},
		},
		"an endpoint picker outside of the graph": {
			graph: strings.Replace(graphOf(worker("worker", "", "", "")), "{name: main}",
				"{name: main, env: [{name: DYN_ROUTER_MODE, value: direct}]}", 1),
			needs: "2/1 0  by 0", problems: 1, found: []string{"problem: the router is an endpoint picker, not the frontend"},
		},
		"workers of type main": {graph: recorded(t, "typemain.json"), needs: "2/1 4 nvidia.com/gpu by 4"},
		"v1alpha1": {graph: servicesGraph, needs: "6/3 17 nvidia.com/gpu by 4", found: []string{
			"ok: 1 × Decode, 1 × Frontend, 2 × Prefill (2 pods and 8 GPUs each)", "ok: mode KV-aware, in spec.envs",
			"ok: Prefill is rolled out without extra GPUs", "ok: Decode starts 1 additional pod(s) and needs 1 free GPU(s)",
		}},
		"workers of another type, by their GPUs": {
			graph: graphOf(worker("default", "", "", gpus4)), needs: "2/1 4 nvidia.com/gpu by 4",
		},
		"no worker": {
			graph: graphOf(worker("planner", "", "", "")), needs: "2/0 0  by 0", problems: 1,
			found: []string{"problem: no component of default/booth is a worker"},
		},
		"no replicas of the worker": {
			graph: graphOf(worker("worker", "replicas: 0, ", "", "")), needs: "1/0 0  by 0", problems: 1,
			found: []string{"problem: no component of default/booth is a worker with replicas"},
		},
		"GPUs of AMD": {graph: extended("amd.com/gpu"), needs: "3/2 4 amd.com/gpu by 2", found: []string{"ok: 2 are free"}},
		"GPUs of Intel": {
			graph: extended("gpu.intel.com/xe"), needs: "3/2 4 gpu.intel.com/xe by 2", problems: 1,
			found: []string{"problem: 0 are free"},
		},
		"MIG instances": {graph: extended("nvidia.com/mig-2g.20gb"), needs: "3/2 4 nvidia.com/mig-2g.20gb by 2", problems: 1},
		"no GPUs": {
			graph: extended("rdma/hca"), needs: "3/2 0  by 0",
			found: []string{"ok: w is rolled out without extra GPUs"},
		},
		"claims of NVIDIA": {
			graph: claiming(2), needs: "3/2 8 gpu.nvidia.com by 4",
			found: []string{"ok: needs 4 free GPU(s); 4 are free"}, objects: []string{
				template("v1", "exactly: {deviceClassName: gpu.nvidia.com, count: 4}"), slice("gpu.nvidia.com", 1, "removed/gpu"),
				slice("gpu.nvidia.com", 2, "g0/gpu", "g1/gpu", "g2/gpu", "g3/gpu", "g4/gpu", "m0/mig"), held,
			},
		},
		"claims of AMD, in an older version of the API": {
			graph: claiming(2), needs: "3/2 8 gpu.amd.com by 4", problems: 1, found: []string{"problem: 0 are free"},
			objects: []string{
				template("v1beta1", "deviceClassName: gpu.amd.com, count: 4"), slice("gpu.amd.com", 1, "g0/", "g1/"),
			},
		},
		"claims of Intel, one device where no count is given": {
			graph: claiming(3), needs: "4/3 3 gpu.intel.com by 1", found: []string{"ok: 1 are free"},
			objects: []string{
				template("v1", "exactly: {deviceClassName: gpu.intel.com}}, {name: nic, exactly: {deviceClassName: rdma}"),
				slice("gpu.intel.com", 1, "g0/"), deviceClass("rdma", "dranet"),
			},
		},
		"a class of the cluster's own": {graph: claiming(1), needs: "2/1 2 gpu.nvidia.com by 2", objects: []string{
			template("v1", "exactly: {deviceClassName: large, count: 2}"), slice("gpu.nvidia.com", 1, "g0/gpu", "g1/gpu"),
			deviceClass("large", "gpu.nvidia.com"),
		}},
		"a claim that two pods share": {
			graph: graphOf(worker("worker", "replicas: 2, ", "resourceClaims: [{name: gpus, resourceClaimName: one}], ", "")),
			needs: "3/2 2 gpu.nvidia.com by 2",
			objects: []string{"{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: one, namespace: " +
				"default}, spec: {devices: {requests: [{name: a, exactly: {deviceClassName: gpu.nvidia.com, count: 2}}]}}}"},
		},
		"a template that is not there": {graph: claiming(2), needs: "3/2 0  by 0", unknown: true, found: []string{
			"warning: the number of GPUs is unknown: resourceclaimtemplate default/gpus: ",
			"warning: the rollout of w starts 1 additional pod(s), whose GPUs are unknown",
		}},
		"all devices of a node": {
			graph: claiming(2), needs: "3/2 0 gpu.nvidia.com by 0", unknown: true,
			found:   []string{"warning: takes all of the devices"},
			objects: []string{template("v1", "exactly: {deviceClassName: gpu.nvidia.com, allocationMode: All}")},
		},
		"alternatives of different numbers": {
			graph: claiming(2), needs: "3/2 0  by 0", unknown: true,
			found: []string{"warning: leaves the number to the scheduler"}, objects: []string{template("v1",
				"firstAvailable: [{deviceClassName: gpu.nvidia.com, count: 1}, {deviceClassName: mig.nvidia.com, count: 2}]")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := object(tt.graph)
			objects := []runtime.Object{object(idle)}
			for _, text := range tt.objects {
				objects = append(objects, object(text))
			}
			d := New(t.Context(), newReplay(t, o).client(objects...),
				Options{Namespace: o.GetNamespace(), Name: o.GetName(), Modes: []api.ModeState{kv}})
			needs, found, err := d.Look(t.Context())
			require.NoError(t, err)
			g, err := readGraph(o)
			require.NoError(t, err)
			problems := 0
			var lines []string
			for _, f := range found {
				lines = append(lines, string(f.Severity)+": "+f.Found)
				if f.Severity == Problem {
					problems++
				}
			}
			assert.Equal(t, tt.needs,
				fmt.Sprintf("%d/%d %d %s by %d", needs.Pods, g.workers(), needs.GPUs, needs.Kind, needs.Each))
			assert.Equal(t, tt.unknown, needs.Unknown != "", needs.Unknown)
			assert.Equal(t, tt.problems, problems, lines)
			for _, want := range tt.found {
				severity, text, _ := strings.Cut(want, ": ")
				assert.True(t, slices.ContainsFunc(lines, func(line string) bool {
					return strings.HasPrefix(line, severity+": ") && strings.Contains(line, text)
				}), "no finding %q: %q", want, lines)
			}
		})
	}
}

// TestHeldGPUs counts the GPUs of pods with a node, and a shared claim once.
func TestHeldGPUs(t *testing.T) {
	n := Needs{devices: devices{templates: map[string]gpus{"own": {count: 2}}, claims: map[string]gpus{"one": {count: 4}}}}
	own, one := "own", "one"
	at := func(node string, phase corev1.PodPhase, claims ...corev1.PodResourceClaim) corev1.Pod {
		return corev1.Pod{
			Spec:   corev1.PodSpec{NodeName: node, ResourceClaims: claims},
			Status: corev1.PodStatus{Phase: phase},
		}
	}
	template := corev1.PodResourceClaim{ResourceClaimTemplateName: &own}
	shared := corev1.PodResourceClaim{ResourceClaimName: &one}
	got := n.Held([]corev1.Pod{
		at("n1", corev1.PodRunning, template, shared), at("n2", corev1.PodRunning, template, shared),
		at("", corev1.PodPending, template), at("n1", corev1.PodSucceeded, template),
	})
	assert.EqualValues(t, 8, got)
	pending := at("", corev1.PodPending, template, shared)
	assert.Equal(t, "6 GPU(s)", n.Lacks(pending, "0/1 nodes are available: 1 cannot allocate all claims."))
	assert.Empty(t, n.Lacks(pending, `persistentvolumeclaim "models" not found`))
}

// TestFeatures reads them from types, arguments, variables and annotations. An undetermined feature is left out.
func TestFeatures(t *testing.T) {
	read := func(text string) string {
		r := newReplay(t, object(text))
		d := r.driver(t.Context(), nil)
		require.Nil(t, d.Features())
		_, err := d.graph(t.Context())
		require.NoError(t, err)
		var all []string
		for _, f := range d.Features() {
			require.Contains(t, f.Evidence, "DynamoGraphDeployment default/booth has ")
			all = append(all, fmt.Sprintf("%s=%t", f.Name, f.InUse))
		}
		return strings.Join(all, " ")
	}
	const aggregated = "planner=false disaggregated=false "
	for _, row := range []struct{ kind, container, want string }{
		{"worker", "args: [--model-path, llama]", aggregated + "kvbm=false nixl=false"},
		{"worker", "args: ['--connector=kvbm']", aggregated + "kvbm=true nixl=false"},
		{"worker", "args: [--connector, kvbm, nixl]", aggregated + "kvbm=true nixl=true"},
		{"worker", "env: [{name: DYN_KVBM_CPU_CACHE_GB, value: '20'}]", aggregated + "kvbm=true nixl=false"},
		{"worker", "env: [{name: DYN_CONNECTOR, value: nixl}]", aggregated + "kvbm=false nixl=true"},
		{"worker", `args: ["--kv-transfer-config={'kv_connector':'NixlConnector'}"]`, aggregated + "kvbm=false nixl=true"},
		{"worker", "args: [--extra-engine-args, engine.yaml]", "planner=false disaggregated=false"},
		{"decode", "args: [--model-path, llama]", "planner=false disaggregated=true kvbm=false"},
		{"worker", "args: [--disaggregation-mode, prefill]", "planner=false disaggregated=true kvbm=false"},
		{"planner", "", "planner=true"},
	} {
		require.Equal(t, row.want, read(graphOf(worker(row.kind, "", "", row.container))), row)
	}
	for annotations, want := range map[string]string{
		"nvidia.com/enable-grove: 'false'":                                        " grove=false",
		"nvidia.com/enable-grove: 'true', nvidia.com/kai-scheduler-queue: dynamo": " grove=true kai=true",
	} {
		text := graphOf(worker("worker", "", "", "args: [--model-path, llama]"))
		text = strings.Replace(text, "generation: 1}", "generation: 1, annotations: {"+annotations+"}}", 1)
		require.Equal(t, aggregated+"kvbm=false nixl=false"+want, read(text))
	}
	earlier, err := boothV1alpha1("graph", "kv").MarshalJSON()
	require.NoError(t, err)
	require.Equal(t, aggregated+"kvbm=false", read(string(earlier)), "NIXL is the standard of some workers")
}

// TestPatchV1alpha1 writes variants and modes to the paths of v1alpha1.
func TestPatchV1alpha1(t *testing.T) {
	r := newReplay(t, boothV1alpha1("container", "kv"))
	d := r.driver(t.Context(), func(o *Options) { o.Name, o.Selector = "", "app=booth" })
	g, err := d.graph(t.Context())
	require.NoError(t, err)
	draft := &Variant{
		Image: "runtime:0.9.1", Args: []string{"--draft"},
		Env: []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}},
	}
	require.NoError(t, d.patch(t.Context(), g, g.patch(wanted{mode: rr, variant: draft, restart: "again"})))
	services, _, _ := unstructured.NestedMap(r.object.Object, "spec", "services")
	variable := func(name, value string) any { return map[string]any{"name": name, "value": value} }
	worker := services["TRTLLMWorker"].(map[string]any)
	require.Equal(t, map[string]any{"image": "runtime:0.9.1", "args": []any{"--draft"}, "env": []any{}},
		worker["extraPodSpec"].(map[string]any)["mainContainer"])
	require.Equal(t, []any{variable("A", "1"), variable("B", "2")}, worker["envs"])
	env, _, _ := unstructured.NestedSlice(services, "Frontend", "extraPodSpec", "mainContainer", "env")
	require.Equal(t, []any{variable(routerMode, "round-robin")}, env)
	shared, _, _ := unstructured.NestedSlice(r.object.Object, "spec", "envs")
	require.Equal(t, []any{variable(nonceVariable, "again")}, shared)
}

// TestEndpointPickerIsNotSwitched requires no patch of a frontend that does not choose the workers.
func TestEndpointPickerIsNotSwitched(t *testing.T) {
	r := newReplay(t, object(recorded(t, "gaie.json")))
	d := r.driver(t.Context(), nil)
	var field *api.FieldError
	_, err := d.Switch(t.Context(), rr, kv, ignoreReport)
	require.ErrorAs(t, err, &field)
	assert.Contains(t, field.Allowed, "the endpoint picker Epp")
	assert.Empty(t, r.patches)
	m, err := d.Current(t.Context())
	require.ErrorAs(t, err, &field)
	assert.Empty(t, m)
}

// TestWaitForEveryNode requires a wait until every pod of every replica is ready, with their number.
func TestWaitForEveryNode(t *testing.T) {
	o := booth("graph", "kv")
	componentsOf(o)[1].(map[string]any)["multinode"] = map[string]any{"nodeCount": int64(2)}
	o.Object["status"] = map[string]any{
		"observedGeneration": int64(1), "state": "successful",
		"conditions": []any{map[string]any{"type": "Ready", "status": "True"}},
	}
	g, err := readGraph(o)
	require.NoError(t, err)
	v := &watch{Driver: New(t.Context(), nil, Options{}), want: &wanted{mode: kv}}
	var list unstructured.UnstructuredList
	notReady := func(name string, more int) string {
		for range more {
			list.Items = append(list.Items, pod(t, o, name, fmt.Sprint(len(list.Items)), true))
		}
		all, err := ReadAll[corev1.Pod](&list)
		require.NoError(t, err)
		return v.notReady(g, all)
	}
	notReady("Frontend", 1)
	assert.Equal(t, "5 of 6 worker pods ready", notReady("TRTLLMWorker", 5))
	assert.Empty(t, notReady("TRTLLMWorker", 1))
}
