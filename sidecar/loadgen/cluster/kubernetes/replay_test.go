package kubernetes

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"
)

// frame is a recorded status of the operator.
type frame struct {
	at         float64
	Gen        int64             `json:"gen"`
	Obs        *int64            `json:"obs"`
	State      string            `json:"state"`
	Conditions [][]any           `json:"conds"`
	Roll       map[string]any    `json:"roll"`
	Restart    map[string]any    `json:"restart"`
	Components map[string]string `json:"comp"`
}

// count returns the replicas of a component: all, updated and ready.
func (f frame) count(component string) (all, updated, ready int) {
	for _, word := range strings.Fields(f.Components[component]) {
		name, value, _ := strings.Cut(word, "=")
		n, _ := strconv.Atoi(value)
		switch name {
		case "r":
			all = n
		case "u":
			updated = n
		case "rdy":
			ready = n
		}
	}
	return all, updated, ready
}

// timeline holds the operator's statuses by generation. The first generation is that before the
// first patch.
type timeline [][]frame

// read reads timelines. Each continues the previous one.
func read(t *testing.T, names ...string) timeline {
	t.Helper()
	var all timeline
	for _, name := range names {
		text, err := os.ReadFile("testdata/timelines/" + name + ".log")
		require.NoError(t, err)
		for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
			at, object, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
			var f frame
			require.NoError(t, json.Unmarshal([]byte(object), &f), "%s: %s", name, lines.Text())
			f.at, _ = strconv.ParseFloat(at, 64)
			switch last := len(all) - 1; {
			case last < 0 || all[last][0].Gen < f.Gen:
				all = append(all, []frame{f})
			case all[last][0].Gen == f.Gen && all[last][0].at <= f.at:
				all[last] = append(all[last], f)
			}
		}
	}
	return all
}

// replay is an API server with one graph and its pods, whose status follows a timeline. Each
// patch of the specification starts the next generation of the timeline. It is safe for
// concurrent use.
type replay struct {
	mu            sync.Mutex // guards all fields below
	t             *testing.T
	timeline      timeline
	object        *unstructured.Unstructured // without status
	before        *unstructured.Unstructured // of the previous generation
	patched       time.Time
	previousPatch time.Time // when the previous generation was patched
	part          int       // index in the timeline
	patches       [][]operation
	deny          map[string]error // by verb and resource
}

func newReplay(t *testing.T, object *unstructured.Unstructured, names ...string) *replay {
	r := &replay{
		t: t, object: object, before: object, previousPatch: time.Now().Add(-2 * time.Hour),
		patched: time.Now().Add(-time.Hour), deny: map[string]error{},
	}
	if len(names) > 0 {
		r.timeline = read(t, names...)
		object.SetGeneration(r.timeline[0][0].Gen)
	}
	return r
}

// client returns a client of the replay, with further objects.
func (r *replay) client(objects ...runtime.Object) *fake.FakeDynamicClient {
	kinds := map[schema.GroupVersionResource]string{
		Graphs: "DynamoGraphDeploymentList", v1alpha1: "DynamoGraphDeploymentList", pods: "PodList", nodes: "NodeList",
		reviews: "SelfSubjectAccessReviewList",
	}
	for _, version := range allocationVersions {
		group := schema.GroupVersion{Group: "resource.k8s.io", Version: version}
		kinds[group.WithResource("resourceslices")] = "ResourceSliceList"
		kinds[group.WithResource("resourceclaims")] = "ResourceClaimList"
	}
	c := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, objects...)
	on := func(verb, resource string, react func(clienttesting.Action) (runtime.Object, error)) {
		c.PrependReactor(verb, resource, func(a clienttesting.Action) (bool, runtime.Object, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if err := r.deny[verb+" "+resource]; err != nil {
				return true, nil, err
			}
			if resource == Graphs.Resource && a.GetResource().Version != r.object.GroupVersionKind().Version {
				return true, nil, apierrors.NewNotFound(a.GetResource().GroupResource(), "")
			}
			o, err := react(a)
			return true, o, err
		})
	}
	on("get", Graphs.Resource, func(clienttesting.Action) (runtime.Object, error) { return r.graph(), nil })
	on("list", Graphs.Resource, func(clienttesting.Action) (runtime.Object, error) {
		return &unstructured.UnstructuredList{Items: []unstructured.Unstructured{*r.graph()}}, nil
	})
	on("patch", Graphs.Resource, func(a clienttesting.Action) (runtime.Object, error) {
		return r.patch(a.(clienttesting.PatchAction).GetPatch())
	})
	on("list", pods.Resource, func(clienttesting.Action) (runtime.Object, error) { return r.pods(), nil })
	return c
}

// patch applies a JSON Patch like the API server.
func (r *replay) patch(text []byte) (runtime.Object, error) {
	var ops []operation
	require.NoError(r.t, json.Unmarshal(text, &ops))
	p, err := jsonpatch.DecodePatch(text)
	require.NoError(r.t, err)
	was, _ := r.object.MarshalJSON()
	is, err := p.Apply(was)
	if err != nil {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: Graphs.Group, Kind: "DynamoGraphDeployment"},
			r.object.GetName(), nil)
	}
	r.patches = append(r.patches, ops)
	next := &unstructured.Unstructured{}
	require.NoError(r.t, next.UnmarshalJSON(is))
	r.become(next)
	return r.graph(), nil
}

// become replaces the object. A new specification is another generation.
func (r *replay) become(next *unstructured.Unstructured) {
	if fmt.Sprint(next.Object["spec"]) != fmt.Sprint(r.object.Object["spec"]) {
		next.SetGeneration(r.object.GetGeneration() + 1)
		r.before, r.previousPatch, r.patched = r.object, r.patched, time.Now()
		r.part++
	}
	r.object = next
}

// now returns the frame in force, and the last one before the last patch.
func (r *replay) now() (now, before frame) {
	part := min(r.part, len(r.timeline)-1)
	frames := r.timeline[part]
	now = frames[0]
	for _, f := range frames {
		if r.part == 0 || time.Since(r.patched).Seconds() >= f.at-frames[0].at {
			now = f
		}
	}
	if part > 0 {
		before = r.timeline[part-1][len(r.timeline[part-1])-1]
	}
	return now, before
}

// later calls change after d, as another client.
func (r *replay) later(d time.Duration, change func()) {
	time.AfterFunc(d, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		change()
	})
}

// settled reports whether the operator has made its last change.
func (r *replay) settled() bool {
	part := min(r.part, len(r.timeline)-1)
	frames := r.timeline[part]
	return time.Since(r.patched).Seconds() >= frames[len(frames)-1].at-frames[0].at
}

// graph returns the object with its current status.
func (r *replay) graph() *unstructured.Unstructured {
	o := r.object.DeepCopy()
	if r.timeline == nil {
		return o
	}
	f, before := r.now()
	at := func(generation any) int64 { // converts the timeline's generation to the object's
		n, _ := generation.(float64)
		return o.GetGeneration() + int64(n) - f.Gen
	}
	status := map[string]any{"state": f.State, "rollingUpdate": f.Roll}
	if f.Obs != nil {
		status["observedGeneration"] = at(float64(*f.Obs))
	}
	var conditions []any
	for _, c := range f.Conditions {
		conditions = append(conditions, map[string]any{
			"type": c[0], "status": c[1], "reason": c[2], "message": c[3], "observedGeneration": at(c[4]),
		})
	}
	status["conditions"] = conditions
	if f.Restart != nil {
		id := f.Restart["observedID"]
		if asked, _, _ := unstructured.NestedString(o.Object, "spec", "restart", "id"); before.Restart == nil ||
			before.Restart["observedID"] != id {
			id = asked
		}
		status["restart"] = map[string]any{"observedID": id, "phase": f.Restart["phase"]}
	}
	if o.GroupVersionKind().Version == v1alpha1.Version { // its status has neither
		delete(status, "observedGeneration")
		delete(status, "restart")
	}
	o.Object["status"] = status
	o.SetResourceVersion(fmt.Sprint(r.part, "-", f.at, "-", len(r.patches)))
	return o
}

// pods returns the pods by the components' counts: updated ones of the object as it is now, others
// of the previous generation. Old pods are ready first.
func (r *replay) pods() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	if r.timeline == nil {
		return list
	}
	f, _ := r.now()
	for _, name := range []string{"Frontend", "TRTLLMWorker"} {
		all, updated, ready := f.count(name)
		for i := range max(all, updated) {
			from, created, id := r.before, r.previousPatch, fmt.Sprintf("%d-%d", r.part-1, i)
			if i >= all-updated {
				from, created, id = r.object, r.patched, fmt.Sprintf("%d-%d", r.part, i-max(0, all-updated))
			}
			p := pod(r.t, from, name, id, i < ready)
			p.SetCreationTimestamp(metav1.NewTime(created.Add(time.Second)))
			list.Items = append(list.Items, p)
		}
	}
	return list
}

// pod makes a pod of a component. An image named broken does not start.
func pod(t *testing.T, object *unstructured.Unstructured, name, id string, isReady bool) unstructured.Unstructured {
	t.Helper()
	g, err := readGraph(object)
	require.NoError(t, err)
	c := g.Spec.Components[slices.IndexFunc(g.Spec.Components, func(c component) bool { return c.Name == name })]
	container := c.PodTemplate.Spec.Containers[c.main()]
	p := corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "booth-" + strings.ToLower(name) + "-" + id, UID: types.UID(name + id), Namespace: g.Namespace,
			Labels: map[string]string{graphLabel: g.Name, componentLabel: name},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Image: container.Image, Env: slices.Concat(g.Spec.Env, container.Env), Args: container.Args,
		}}},
	}
	waiting := &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
	if strings.Contains(container.Image, "broken") {
		waiting, isReady = &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}, false
	}
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}
	if !isReady {
		ready.Status = corev1.ConditionFalse
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Waiting: waiting}}}
	}
	p.Status.Conditions = []corev1.PodCondition{ready}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&p)
	require.NoError(t, err)
	return unstructured.Unstructured{Object: content}
}

// object parses YAML or JSON of tests.
func object(text string) *unstructured.Unstructured {
	json, err := yaml.YAMLToJSON([]byte(text))
	o := &unstructured.Unstructured{}
	if err == nil {
		err = o.UnmarshalJSON(json)
	}
	if err != nil {
		panic(fmt.Sprintf("%v in %s", err, text))
	}
	return o
}

// booth returns the graph of the timelines. where selects the environment with the mode: the
// graph's, or the frontend's.
func booth(where, mode string) *unstructured.Unstructured {
	return object(`
apiVersion: nvidia.com/v1beta1
kind: DynamoGraphDeployment
metadata: {name: booth, namespace: default, labels: {app: booth}, generation: 1, resourceVersion: "1"}
spec:
  env: ` + envOf(where, "graph", mode) + `
  components:
  - name: Frontend
    type: frontend
    replicas: 1
    podTemplate: {spec: {containers: [{name: main, image: "runtime:1.6.1", env: ` + envOf(where, "frontend", mode) + `}]}}
  - name: TRTLLMWorker
    type: worker
    replicas: 3
    podTemplate: {spec: {containers: [{name: main, image: "runtime:1.6.1", env: [], args: [--model-path, llama]}]}}
`)
}

// envOf returns the environment of a place, with the mode if where selects the place.
func envOf(where, place, mode string) string {
	if where != place {
		return "[]"
	}
	return "[{name: " + routerMode + ", value: " + mode + "}]"
}

// componentsOf returns the components of a graph.
func componentsOf(o *unstructured.Unstructured) []any {
	return o.Object["spec"].(map[string]any)["components"].([]any)
}

// boothV1alpha1 returns the same graph in v1alpha1, with the mode in the environment of the graph, of the frontend or
// of the frontend's container.
func boothV1alpha1(where, mode string) *unstructured.Unstructured {
	return object(`
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: booth, namespace: default, labels: {app: booth}, generation: 1, resourceVersion: "1"}
spec:
  envs: ` + envOf(where, "graph", mode) + `
  services:
    Frontend:
      componentType: frontend
      replicas: 1
      envs: ` + envOf(where, "frontend", mode) + `
      extraPodSpec: {mainContainer: {image: "runtime:0.9.0", env: ` + envOf(where, "container", mode) + `}}
    TRTLLMWorker:
      componentType: worker
      replicas: 3
      resources: {limits: {gpu: "1"}}
      extraPodSpec: {mainContainer: {image: "runtime:0.9.0", env: [], args: [--model-path, llama]}}
`)
}
