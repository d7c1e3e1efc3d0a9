package kubernetes

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"kvbooth/sidecar/api"
)

// object parses YAML or JSON.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	json, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(json); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return o
}

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

// claiming returns a worker whose pods each get a claim from a template.
func claiming(template string, replicas int) string {
	return fmt.Sprintf("  - {name: w, type: worker, replicas: %d, podTemplate: {spec: {resourceClaims: [{name: gpus, "+
		"resourceClaimTemplateName: %s}], "+
		"containers: [{name: main, resources: {claims: [{name: gpus}]}}]}}}", replicas, template)
}

func template(version, name, requests string) string {
	return fmt.Sprintf("{apiVersion: resource.k8s.io/%s, kind: ResourceClaimTemplate, metadata: {name: %s, namespace: "+
		"default}, spec: {spec: {devices: {requests: %s}}}}", version, name, requests)
}

// TestNeedsAndFindings covers graphs of each form.
func TestNeedsAndFindings(t *testing.T) {
	const idle = "{apiVersion: v1, kind: Node, metadata: {name: n1}, " +
		"status: {allocatable: {nvidia.com/gpu: \"8\", amd.com/gpu: \"2\"}}}"
	slice := func(driver string, generation int, devices ...string) string {
		var list []string
		for _, d := range devices {
			name, kind, _ := strings.Cut(d, "/")
			list = append(list, fmt.Sprintf("{name: %s, attributes: {type: {string: %s}}}", name, kind))
		}
		return fmt.Sprintf("{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: %s-%d}, spec: {driver: "+
			"%s, nodeName: n1, pool: {name: n1, generation: %d}, devices: [%s]}}",
			driver, generation, driver, generation, strings.Join(list, ", "))
	}
	const held = "{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: other, namespace: x}, " +
		"status: {allocation: {devices: {results: [{driver: gpu.nvidia.com, pool: n1, device: g0}]}}}}"
	extended := func(resource string) string {
		return graphOf("  - {name: w, type: worker, replicas: 2, podTemplate: {spec: {containers: [{name: main, " +
			"resources: {limits: {" + resource + ": \"2\"}}}]}}}")
	}
	type want struct {
		pods, workers int
		gpus, each    int64
		kind, unknown string
		problems      int
		found         []string // severity and words of a finding
	}
	for name, tt := range map[string]struct {
		graph   string
		objects []string
		want
	}{
		"several nodes for each replica": {recorded(t, "multinode.json"), []string{idle}, want{
			pods: 5, workers: 1, gpus: 16, each: 4, kind: "nvidia.com/gpu", problems: 1,
			found: []string{
				"ok: 1 × decode (4 pods and 16 GPUs each)",
				"problem: the rollout of decode starts 4 additional pod(s) and needs 16 free GPU(s); 8 are free",
			},
		}},
		"two replicas of two nodes, surge of one": {
			graphOf("  - {name: w, type: worker, replicas: 2, multinode: {nodeCount: 2}, podTemplate: {metadata: " +
				"{annotations: {nvidia.com/deployment-rolling-update-max-surge: \"1\"}}, " +
				"spec: {containers: [{name: main, resources: {requests: {nvidia.com/gpu: \"4\"}}}]}}}"),
			[]string{idle},
			want{
				pods: 5, workers: 2, gpus: 16, each: 4, kind: "nvidia.com/gpu",
				found: []string{"ok: needs 8 free GPU(s); 8 are free"},
			},
		},
		"an endpoint picker": {recorded(t, "gaie.json"), nil, want{
			pods: 2, workers: 1, problems: 1,
			found: []string{"problem: the router is the endpoint picker Epp, not the frontend: the mode cannot be switched " +
				"by patching the frontend"},
		}},
		"an endpoint picker outside of the graph": {
			strings.Replace(graphOf("  - {name: w, type: worker, podTemplate: {spec: {containers: [{name: main}]}}}"),
				"{name: main}", "{name: main, env: [{name: DYN_ROUTER_MODE, value: direct}]}", 1),
			nil,
			want{
				pods: 2, workers: 1, problems: 1,
				found: []string{"problem: the router is an endpoint picker, not the frontend"},
			},
		},
		"workers of type main": {
			recorded(t, "typemain.json"),
			[]string{idle},
			want{pods: 2, workers: 1, gpus: 4, each: 4, kind: "nvidia.com/gpu"},
		},
		"v1alpha1": {
			`
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
`,
			[]string{idle},
			want{pods: 6, workers: 3, gpus: 17, each: 4, kind: "nvidia.com/gpu", found: []string{
				"ok: 1 × Decode, 1 × Frontend, 2 × Prefill (2 pods and 8 GPUs each)", "ok: mode KV-aware, in spec.envs",
				"ok: Prefill is rolled out without extra GPUs", "ok: Decode starts 1 additional pod(s) and needs 1 free GPU(s)",
			}},
		},
		"workers of another type, by their GPUs": {
			graphOf("  - {name: w, type: default, podTemplate: {spec: {containers: [{name: main, resources: {limits: " +
				"{nvidia.com/gpu: \"4\"}}}]}}}"),
			[]string{idle},
			want{pods: 2, workers: 1, gpus: 4, each: 4, kind: "nvidia.com/gpu"},
		},
		"no worker": {
			graphOf("  - {name: p, type: planner, podTemplate: {spec: {containers: [{name: main}]}}}"),
			nil,
			want{pods: 2, problems: 1, found: []string{"problem: no component of default/booth is a worker"}},
		},
		"no replicas of the worker": {
			graphOf("  - {name: w, type: worker, replicas: 0, podTemplate: {spec: {containers: [{name: main}]}}}"),
			nil,
			want{pods: 1, problems: 1, found: []string{"problem: no component of default/booth is a worker with replicas"}},
		},
		"GPUs of AMD": {
			extended("amd.com/gpu"),
			[]string{idle},
			want{pods: 3, workers: 2, gpus: 4, each: 2, kind: "amd.com/gpu", found: []string{"ok: 2 are free"}},
		},
		"GPUs of Intel": {
			extended("gpu.intel.com/xe"),
			[]string{idle},
			want{
				pods: 3, workers: 2, gpus: 4, each: 2, kind: "gpu.intel.com/xe", problems: 1,
				found: []string{"problem: 0 are free"},
			},
		},
		"MIG instances": {
			extended("nvidia.com/mig-2g.20gb"),
			[]string{idle},
			want{pods: 3, workers: 2, gpus: 4, each: 2, kind: "nvidia.com/mig-2g.20gb", problems: 1},
		},
		"no GPUs": {
			extended("rdma/hca"), nil,
			want{pods: 3, workers: 2, found: []string{"ok: w is rolled out without extra GPUs"}},
		},
		"claims of NVIDIA": {
			graphOf(claiming("gpus", 2)), []string{
				idle, template("v1", "gpus", "[{name: a, exactly: {deviceClassName: gpu.nvidia.com, count: 4}}]"),
				slice("gpu.nvidia.com", 2, "g0/gpu", "g1/gpu", "g2/gpu", "g3/gpu", "g4/gpu", "m0/mig"), slice("gpu.nvidia.com", 1,
					"removed/gpu"), held,
			}, want{
				pods: 3, workers: 2, gpus: 8, each: 4, kind: "gpu.nvidia.com",
				found: []string{"ok: needs 4 free GPU(s); 4 are free"},
			},
		},
		"claims of AMD, in an older version of the API": {
			graphOf(claiming("gpus", 2)),
			[]string{
				idle, template("v1beta1", "gpus", "[{name: a, deviceClassName: gpu.amd.com, count: 4}]"),
				slice("gpu.amd.com", 1, "g0/", "g1/"),
			},
			want{
				pods: 3, workers: 2, gpus: 8, each: 4, kind: "gpu.amd.com", problems: 1,
				found: []string{"problem: 0 are free"},
			},
		},
		"claims of Intel, one device where no count is given": {
			graphOf(claiming("gpus", 3)),
			[]string{
				idle, template("v1", "gpus",
					"[{name: a, exactly: {deviceClassName: gpu.intel.com}}, {name: nic, exactly: {deviceClassName: rdma}}]"),
				slice("gpu.intel.com", 1,
					"g0/"), "{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: rdma}, " +
					"spec: {selectors: [{cel: {expression: 'device.driver == \"dranet\"'}}]}}",
			},
			want{pods: 4, workers: 3, gpus: 3, each: 1, kind: "gpu.intel.com", found: []string{"ok: 1 are free"}},
		},
		"a class of the cluster's own": {
			graphOf(claiming("gpus", 1)),
			[]string{
				idle, template("v1", "gpus", "[{name: a, exactly: {deviceClassName: large, count: 2}}]"), slice("gpu.nvidia.com", 1,
					"g0/gpu", "g1/gpu"),
				"{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: large}, " +
					"spec: {selectors: [{cel: {expression: 'device.driver == \"gpu.nvidia.com\"'}}]}}",
			},
			want{pods: 2, workers: 1, gpus: 2, each: 2, kind: "gpu.nvidia.com"},
		},
		"a claim that two pods share": {
			graphOf("  - {name: w, type: worker, replicas: 2, podTemplate: {spec: {resourceClaims: [{name: gpus, " +
				"resourceClaimName: one}], containers: [{name: main}]}}}"),
			[]string{"{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: one, namespace: default}, spec: " +
				"{devices: {requests: [{name: a, exactly: {deviceClassName: gpu.nvidia.com, count: 2}}]}}}"},
			want{pods: 3, workers: 2, gpus: 2, each: 2, kind: "gpu.nvidia.com"},
		},
		"a template that is not there": {
			graphOf(claiming("gpus", 2)), []string{idle}, want{
				pods: 3, workers: 2, unknown: "resourceclaimtemplate default/gpus: ",
				found: []string{
					"warning: the number of GPUs is unknown",
					"warning: the rollout of w starts 1 additional pod(s), whose GPUs are unknown",
				},
			},
		},
		"all devices of a node": {
			graphOf(claiming("gpus", 2)),
			[]string{idle, template("v1", "gpus",
				"[{name: a, exactly: {deviceClassName: gpu.nvidia.com, allocationMode: All}}]")},
			want{pods: 3, workers: 2, kind: "gpu.nvidia.com", unknown: "takes all of the devices"},
		},
		"alternatives of different numbers": {
			graphOf(claiming("gpus", 2)),
			[]string{idle, template("v1", "gpus",
				"[{name: a, firstAvailable: [{deviceClassName: gpu.nvidia.com, count: 1}, "+
					"{deviceClassName: mig.nvidia.com, count: 2}]}]")},
			want{pods: 3, workers: 2, unknown: "leaves the number to the scheduler"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := object(t, tt.graph)
			r := newReplay(t, o)
			var objects []runtime.Object
			for _, text := range tt.objects {
				objects = append(objects, object(t, text))
			}
			d := New(t.Context(), r.client(objects...),
				Options{Namespace: o.GetNamespace(), Name: o.GetName(), Modes: []api.ModeState{kv}})
			needs, found, err := d.Look(t.Context())
			require.NoError(t, err)
			g, err := readGraph(o)
			if err != nil || g.workers() != tt.workers {
				t.Errorf("%d workers, want %d, error %v", g.workers(), tt.workers, err)
			}
			if needs.Pods != tt.pods || needs.GPUs != tt.gpus || needs.Each != tt.each || needs.Kind != tt.kind ||
				!strings.Contains(needs.Unknown, tt.unknown) || (tt.unknown == "") != (needs.Unknown == "") {
				t.Errorf("needs %+v, want %+v", needs, tt.want)
			}
			problems := 0
			for _, f := range found {
				if f.Severity == Problem {
					problems++
				}
			}
			if problems != tt.problems {
				t.Errorf("%d problems, want %d: %+v", problems, tt.problems, found)
			}
			for _, words := range tt.found {
				severity, text, _ := strings.Cut(words, ": ")
				if !slices.ContainsFunc(found, func(f Finding) bool {
					return string(f.Severity) == severity &&
						strings.Contains(f.Found, text)
				}) {
					t.Errorf("no finding %q: %+v", words, found)
				}
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
	if got != 8 {
		t.Errorf("%d GPUs are held, want 8", got)
	}
	if text := n.Lacks(at("", corev1.PodPending, template, shared),
		"0/1 nodes are available: 1 cannot allocate all claims."); text != "6 GPU(s)" {
		t.Errorf("Lacks: %q, want 6 GPU(s)", text)
	}
	if text := n.Lacks(at("", corev1.PodPending, template), `persistentvolumeclaim "models" not found`); text != "" {
		t.Errorf("Lacks: %q, want none", text)
	}
}

// TestFeatures reads them from types, arguments, variables and annotations. An undetermined feature is left out.
func TestFeatures(t *testing.T) {
	worker := func(kind, container string) string {
		return "  - {name: w, type: " + kind + ", podTemplate: {spec: {containers: [{name: main, " + container + "}]}}}"
	}
	read := func(text string) string {
		r := newReplay(t, object(t, text))
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
	for text, want := range map[string]string{
		worker("worker", "args: [--model-path, llama]"): aggregated +
			"kvbm=false nixl=false",
		worker("worker", "args: ['--connector=kvbm']"): aggregated +
			"kvbm=true nixl=false",
		worker("worker", "args: [--connector, kvbm, nixl]"): aggregated +
			"kvbm=true nixl=true",
		worker("worker", "env: [{name: DYN_KVBM_CPU_CACHE_GB, value: '20'}]"): aggregated +
			"kvbm=true nixl=false",
		worker("worker", "env: [{name: DYN_CONNECTOR, value: nixl}]"): aggregated +
			"kvbm=false nixl=true",
		worker("worker", `args: ["--kv-transfer-config={'kv_connector':'NixlConnector'}"]`): aggregated +
			"kvbm=false nixl=true",
		worker("worker",
			"args: [--extra-engine-args, engine.yaml]"): "planner=false disaggregated=false",
		worker("decode",
			"args: [--model-path, llama]"): "planner=false disaggregated=true kvbm=false",
		worker("worker",
			"args: [--disaggregation-mode, prefill]"): "planner=false disaggregated=true kvbm=false",
		"  - {name: p, type: planner, podTemplate: {spec: {containers: [{name: main}]}}}": "planner=true",
	} {
		require.Equal(t, want, read(graphOf(text)), text)
	}
	for annotations, want := range map[string]string{
		"nvidia.com/enable-grove: 'false'":                                        " grove=false",
		"nvidia.com/enable-grove: 'true', nvidia.com/kai-scheduler-queue: dynamo": " grove=true kai=true",
	} {
		text := graphOf(worker("worker", "args: [--model-path, llama]"))
		text = strings.Replace(text, "generation: 1}", "generation: 1, annotations: {"+annotations+"}}", 1)
		require.Equal(t, aggregated+"kvbm=false nixl=false"+want, read(text))
	}
	o := boothV1alpha1("graph", "kv")
	earlier, err := o.MarshalJSON()
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
	require.NoError(t, d.patch(t.Context(), g, g.patch(wanted{mode: rr, variant: draft, restart: "again"}, false)))
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
	r := newReplay(t, object(t, recorded(t, "gaie.json")))
	d := r.driver(t.Context(), nil)
	var field *api.FieldError
	if _, err := d.Switch(t.Context(), rr, kv, (&reportRecorder{}).report); !errors.As(err, &field) ||
		!strings.Contains(field.Allowed, "the endpoint picker Epp") || len(r.patches) > 0 {
		t.Errorf("%d patches, error %v; want none and an error with the picker", len(r.patches), err)
	}
	if m, err := d.Current(t.Context()); !errors.As(err, &field) || m != (api.ModeState{}) {
		t.Errorf("Current: %v, %v, want an error", m, err)
	}
}

// TestWaitForEveryNode requires a wait until every pod of every replica is ready, with their number.
func TestWaitForEveryNode(t *testing.T) {
	o := booth("graph", "kv")
	components, _, _ := unstructured.NestedSlice(o.Object, "spec", "components")
	components[1].(map[string]any)["multinode"] = map[string]any{"nodeCount": int64(2)}
	_ = unstructured.SetNestedSlice(o.Object, components, "spec", "components")
	o.Object["status"] = map[string]any{
		"observedGeneration": int64(1), "state": "successful", "conditions": []any{map[string]any{
			"type":   "Ready",
			"status": "True",
		}},
	}
	g, err := readGraph(o)
	require.NoError(t, err)
	v := &watch{Driver: New(t.Context(), nil, Options{}), want: &wanted{mode: kv}}
	var all []corev1.Pod
	add := func(name string, n int) {
		for i := range n {
			p, err := ReadAll[corev1.Pod](&unstructured.UnstructuredList{Items: []unstructured.Unstructured{pod(t, o, name,
				fmt.Sprint(len(all), i), true)}})
			require.NoError(t, err)
			all = append(all, p...)
		}
	}
	add("Frontend", 1)
	add("TRTLLMWorker", 5)
	if got := v.notReady(g, all); got != "5 of 6 worker pods ready" {
		t.Errorf("message with 5 of 6 pods: %q", got)
	}
	add("TRTLLMWorker", 1)
	if got := v.notReady(g, all); got != "" {
		t.Errorf("message with all pods: %q, want none", got)
	}
}
