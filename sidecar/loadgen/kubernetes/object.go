package kubernetes

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kvbooth/sidecar/api"
)

var (
	// Graphs are the deployments that the driver switches, in the latest version that it reads.
	Graphs = schema.GroupVersionResource{Group: "nvidia.com", Version: "v1beta1", Resource: "dynamographdeployments"}
	// earlier is the version of Graphs that operators before 1.2 serve, such as that of Dynamo 0.9.
	earlier = schema.GroupVersionResource{Group: Graphs.Group, Version: "v1alpha1", Resource: Graphs.Resource}
	// Versions are those of Graphs that the driver reads and patches, the latest first.
	Versions = []schema.GroupVersionResource{Graphs, earlier}

	pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
)

// GraphKind is the kind of Graphs.
const GraphKind = "DynamoGraphDeployment"

const (
	// routerMode is the variable that Dynamo's frontend takes its routing mode from.
	routerMode = "DYN_ROUTER_MODE"
	// routerFlag is the argument that counts more than the variable.
	routerFlag = "--router-mode"
	// ofGraph is the label by which the pods of a graph are found.
	ofGraph = "nvidia.com/dynamo-graph-deployment-name"
	// switching is the annotation that tells of a switch under way, see [note].
	switching = "kvbooth.io/switch"
	// nonceVariable gets a new value where only another generation frees a roll-out.
	nonceVariable = "KVBOOTH_ROLLOUT"
	// mainContainer is the container of a component that its process runs in.
	mainContainer = "main"

	groveAnnotation       = "nvidia.com/enable-grove"
	queueAnnotation       = "nvidia.com/kai-scheduler-queue"
	strategyAnnotation    = "nvidia.com/deployment-strategy"
	surgeAnnotation       = "nvidia.com/deployment-rolling-update-max-surge"
	unavailableAnnotation = "nvidia.com/deployment-rolling-update-max-unavailable"
)

// graph is what is read of a DynamoGraphDeployment.
type graph struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Env        []corev1.EnvVar `json:"env"`
		Components []component     `json:"components"`
	} `json:"spec"`
	Status status `json:"status"`

	version schema.GroupVersionResource // in which it was read, and is patched
}

type component struct {
	Name        string                 `json:"name"`
	Type        string                 `json:"type"`
	Replicas    *int                   `json:"replicas"`
	Multinode   multinode              `json:"multinode"`
	PodTemplate corev1.PodTemplateSpec `json:"podTemplate"`

	path string        // of the main container in the object
	env  []environment // of its own; of two with a variable the first counts, and new variables go into the last
}

type multinode struct {
	NodeCount int `json:"nodeCount"`
}

// environment is a list of variables, and its path in the object.
type environment struct {
	path string
	all  []corev1.EnvVar
}

type status struct {
	ObservedGeneration int64              `json:"observedGeneration"`
	State              string             `json:"state"`
	Conditions         []metav1.Condition `json:"conditions"`
	RollingUpdate      struct {
		Phase string `json:"phase"`
	} `json:"rollingUpdate"`
	Restart struct {
		ObservedID string `json:"observedID"`
		Phase      string `json:"phase"`
	} `json:"restart"`
}

func readGraph(u *unstructured.Unstructured) (*graph, error) {
	read := readLatest
	if u.GroupVersionKind().Version == earlier.Version {
		read = readEarlier
	}
	g, err := read(u)
	if err != nil {
		return nil, fmt.Errorf("DynamoGraphDeployment %s/%s cannot be read: %w", u.GetNamespace(), u.GetName(), err)
	}
	if _, i := g.frontend(); i < 0 && g.picker() == "" {
		return nil, fmt.Errorf("DynamoGraphDeployment %s has no component of type frontend", g.id())
	}
	return g, nil
}

func readLatest(u *unstructured.Unstructured) (*graph, error) {
	g := &graph{version: Graphs}
	err := convert(u, g)
	for i := range g.Spec.Components {
		c := &g.Spec.Components[i]
		if at := c.main(); at >= 0 {
			c.path = fmt.Sprintf("/spec/components/%d/podTemplate/spec/containers/%d", i, at)
			c.env = []environment{{c.path + "/env", c.PodTemplate.Spec.Containers[at].Env}}
		}
	}
	return g, err
}

func readEarlier(u *unstructured.Unstructured) (*graph, error) {
	var e earlierGraph
	if err := convert(u, &e); err != nil {
		return nil, err
	}
	return e.graph()
}

// ReadAll gives the objects of a list as what they are. An error names the one that cannot be read.
func ReadAll[T any](list *unstructured.UnstructuredList) ([]T, error) {
	all := make([]T, len(list.Items))
	for i := range list.Items {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &all[i]); err != nil {
			return nil, fmt.Errorf("%s %s cannot be read: %w", cmp.Or(strings.ToLower(list.Items[i].GetKind()), "object"),
				list.Items[i].GetName(), err)
		}
	}
	return all, nil
}

// convert goes by way of JSON, since fields of other versions may have other types.
func convert(u *unstructured.Unstructured, into any) error {
	text, err := u.MarshalJSON()
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// id is namespace and name.
func (g *graph) id() string { return g.Namespace + "/" + g.Name }

// frontend is the component that routes, with its place; the place is -1 where there is none.
func (g *graph) frontend() (component, int) {
	i := slices.IndexFunc(g.Spec.Components, func(c component) bool { return strings.EqualFold(c.Type, "frontend") })
	if i < 0 {
		return component{}, -1
	}
	return g.Spec.Components[i], i
}

// picker describes the endpoint picker that chooses the worker of each request in the place of a frontend, "" where a
// frontend chooses: a component of that type, or one outside of the graph, whose choice frontends in the mode direct
// follow.
func (g *graph) picker() string {
	for _, c := range g.Spec.Components {
		if strings.EqualFold(c.Type, "epp") {
			return "the endpoint picker " + c.Name
		}
	}
	for _, c := range g.Spec.Components {
		for _, container := range c.PodTemplate.Spec.Containers {
			if c.isRouter() && container.Name != mainContainer && len(c.PodTemplate.Spec.Containers) > 1 {
				continue // a sidecar of the frontend
			}
			value, _ := valueOf(container.Env, routerMode)
			if shared, i := valueOf(g.Spec.Env, routerMode); value == "" && i >= 0 {
				value = shared
			}
			if strings.EqualFold(cmp.Or(flagOf(container), value), "direct") {
				return "an endpoint picker"
			}
		}
	}
	return ""
}

// isRouter says whether a component passes requests on.
func (c component) isRouter() bool {
	return slices.Contains([]string{"frontend", "epp"}, strings.ToLower(c.Type))
}

// isWorker says whether a component serves the model. A component of another type does if it takes GPUs.
func (c component) isWorker() bool {
	switch strings.ToLower(c.Type) {
	case "worker", "prefill", "decode", "main":
		return true
	case "frontend", "epp", "planner":
		return false
	}
	return gpusIn(c.PodTemplate.Spec).count > 0 || len(c.PodTemplate.Spec.ResourceClaims) > 0
}

// count is how many replicas a component has.
func (c component) count() int {
	if c.Replicas == nil {
		return 1
	}
	return *c.Replicas
}

// nodes is how many pods a replica has, each on a node of its own.
func (c component) nodes() int { return max(1, c.Multinode.NodeCount) }

// pods is how many pods a component has.
func (c component) pods() int { return c.count() * c.nodes() }

// workers is how many replicas serve the model. Each registers once with the frontend, however many nodes it spans.
func (g *graph) workers() (n int) {
	for _, c := range g.Spec.Components {
		if c.isWorker() {
			n += c.count()
		}
	}
	return n
}

// workerPods is how many pods serve the model.
func (g *graph) workerPods() (n int) {
	for _, c := range g.Spec.Components {
		if c.isWorker() {
			n += c.pods()
		}
	}
	return n
}

// all is how many pods the graph has.
func (g *graph) all() (n int) {
	for _, c := range g.Spec.Components {
		n += c.pods()
	}
	return n
}

// main is the place of the container that a component's process runs in, -1 where there is
// none.
func (c component) main() int {
	return mainOf(c.PodTemplate.Spec.Containers)
}

func mainOf(containers []corev1.Container) int {
	i := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == mainContainer })
	if i < 0 && len(containers) == 1 {
		return 0
	}
	return i
}

// valueOf gives a variable and its place, -1 where it is not there.
func valueOf(env []corev1.EnvVar, name string) (string, int) {
	i := slices.IndexFunc(env, func(e corev1.EnvVar) bool { return e.Name == name })
	if i < 0 {
		return "", -1
	}
	return env[i].Value, i
}

// own is the frontend's own environment.
func (g *graph) own() []corev1.EnvVar {
	f, _ := g.frontend()
	if i := f.main(); i >= 0 {
		return f.PodTemplate.Spec.Containers[i].Env
	}
	return nil
}

// fixed is the routing mode that an argument of the frontend fixes, "" where none does.
func (g *graph) fixed() string {
	f, _ := g.frontend()
	if i := f.main(); i >= 0 {
		return flagOf(f.PodTemplate.Spec.Containers[i])
	}
	return ""
}

// flagOf is the routing mode in the arguments of a container, "" where there is none.
func flagOf(c corev1.Container) string {
	words := strings.Fields(strings.Join(slices.Concat(c.Command, c.Args), " "))
	for i, w := range words {
		if name, value, ok := strings.Cut(w, "="); name == routerFlag {
			if !ok && i+1 < len(words) {
				value = words[i+1]
			}
			return cmp.Or(value, "unknown")
		}
	}
	return ""
}

// mode is the routing mode that the object asks for: an argument of the frontend counts more
// than its own environment, that more than the graph's, and without any Dynamo deals requests
// out in turn. What an endpoint picker does is unknown.
func (g *graph) mode() api.Mode {
	if g.picker() != "" {
		return api.ModeUnknown
	}
	text := g.fixed()
	for _, env := range [][]corev1.EnvVar{g.own(), g.Spec.Env} {
		if value, i := valueOf(env, routerMode); text == "" && i >= 0 {
			text = value
		}
	}
	return modeOf(cmp.Or(text, spellings[api.ModeRoundRobin]))
}

// spellings are Dynamo's names of the routing modes.
var spellings = map[api.Mode]string{
	api.ModeKV: "kv", api.ModeRoundRobin: "round-robin", api.ModeLeastLoaded: "least-loaded",
}

// modeOf reads Dynamo's name of a mode, of any of its versions: some have an underscore for the
// hyphen. Modes that the booth does not know are unknown.
func modeOf(text string) api.Mode {
	text = strings.ReplaceAll(strings.ToLower(strings.TrimSpace(text)), "_", "-")
	for mode, spelling := range spellings {
		if spelling == text {
			return mode
		}
	}
	return api.ModeUnknown
}

// spell writes a mode as the object does: a graph that has an underscore keeps it.
func (g *graph) spell(m api.Mode) string {
	for _, env := range [][]corev1.EnvVar{g.own(), g.Spec.Env} {
		if value, i := valueOf(env, routerMode); i >= 0 && strings.Contains(value, "_") {
			return strings.ReplaceAll(spellings[m], "-", "_")
		}
	}
	return spellings[m]
}

// ready says whether the operator finds all well, at a generation or after it.
func (s status) ready(generation int64) bool {
	i := slices.IndexFunc(s.Conditions, func(c metav1.Condition) bool { return c.Type == "Ready" })
	return s.ObservedGeneration >= generation && s.State == "successful" &&
		i >= 0 && s.Conditions[i].Status == metav1.ConditionTrue &&
		(s.Conditions[i].ObservedGeneration == 0 || s.Conditions[i].ObservedGeneration >= generation) &&
		!slices.Contains([]string{"Pending", "InProgress"}, s.RollingUpdate.Phase)
}

// why is what the operator says of a graph that is not ready.
func (s status) why() string {
	for _, c := range s.Conditions {
		if c.Type == "Ready" && c.Status != metav1.ConditionTrue {
			return c.Message
		}
	}
	return ""
}

// author names who changed the specification last, as the API server recorded it; "" where it
// did not.
func (g *graph) author() string {
	var last metav1.ManagedFieldsEntry
	for _, e := range g.ManagedFields {
		if e.Subresource == "" && e.FieldsV1 != nil && strings.Contains(e.FieldsV1.GetRawString(), `"f:spec"`) &&
			(last.Time == nil || e.Time != nil && e.Time.After(last.Time.Time)) {
			last = e
		}
	}
	return last.Manager
}

// note is the annotation of a switch under way.
type note struct {
	By      string        `json:"by"`   // the load generator, as host:port
	From    api.ModeState `json:"from"` // what the graph goes back to
	To      api.ModeState `json:"to"`
	Restart string        `json:"restart,omitempty"` // id of the restart that was asked for
	// Newest is when the newest pod before the restart was created, by the API server's clock.
	Newest   time.Time `json:"newest,omitzero"`
	Deadline time.Time `json:"deadline"`
	Back     bool      `json:"back,omitempty"` // it is the way back of one that failed
}

// note is the switch that the object tells of; ok is false where it tells of none.
func (g *graph) note() (n note, ok bool) {
	text, found := g.Annotations[switching]
	return n, found && json.Unmarshal([]byte(text), &n) == nil
}
