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
	// Graphs is the resource that the driver switches, in the latest version that it reads.
	Graphs = schema.GroupVersionResource{Group: "nvidia.com", Version: "v1beta1", Resource: "dynamographdeployments"}
	// v1alpha1 is the version of Graphs in operators before 1.2, such as that of Dynamo 0.9.
	v1alpha1 = schema.GroupVersionResource{Group: Graphs.Group, Version: "v1alpha1", Resource: Graphs.Resource}
	// Versions lists the versions of Graphs that the driver reads and patches, the latest first.
	Versions = []schema.GroupVersionResource{Graphs, v1alpha1}

	pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
)

// GraphKind is the kind of Graphs.
const GraphKind = "DynamoGraphDeployment"

const (
	// routerMode is the variable with the routing mode of Dynamo's frontend.
	routerMode = "DYN_ROUTER_MODE"
	// routerFlag is the argument that overrides the variable.
	routerFlag = "--router-mode"
	// graphLabel is the label of the pods of a graph.
	graphLabel = "nvidia.com/dynamo-graph-deployment-name"
	// switching is the annotation of a switch in progress, see [note].
	switching = "kvbooth.io/switch"
	// nonceVariable gets a new value to start another generation.
	nonceVariable = "KVBOOTH_ROLLOUT"
	// mainContainer is the container in which a component's process runs.
	mainContainer = "main"

	groveAnnotation       = "nvidia.com/enable-grove"
	queueAnnotation       = "nvidia.com/kai-scheduler-queue"
	strategyAnnotation    = "nvidia.com/deployment-strategy"
	surgeAnnotation       = "nvidia.com/deployment-rolling-update-max-surge"
	unavailableAnnotation = "nvidia.com/deployment-rolling-update-max-unavailable"
)

// graph is the part of a DynamoGraphDeployment that the driver reads.
type graph struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Env        []corev1.EnvVar `json:"env"`
		Components []component     `json:"components"`
		Topology   topology        `json:"topologyConstraint"`
	} `json:"spec"`
	Status status `json:"status"`

	version schema.GroupVersionResource // API version in which the object was read; patches use it too
}

type component struct {
	Name        string                 `json:"name"`
	Type        string                 `json:"type"`
	Replicas    *int                   `json:"replicas"`
	Multinode   multinode              `json:"multinode"`
	Topology    topology               `json:"topologyConstraint"`
	PodTemplate corev1.PodTemplateSpec `json:"podTemplate"`

	path string        // path of the main container in the object
	env  []environment // its variables; the first list with a name overrides, new ones go into the last
}

type multinode struct {
	NodeCount int `json:"nodeCount"`
}

// topology is a constraint of Grove: the pods of a graph or of a component must be within one domain.
type topology struct {
	Name   string `json:"clusterTopologyName"`
	Domain string `json:"packDomain"` // such as rack or host; "" sets no constraint
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
	if u.GroupVersionKind().Version == v1alpha1.Version {
		read = readV1alpha1
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

func readV1alpha1(u *unstructured.Unstructured) (*graph, error) {
	var e graphV1alpha1
	if err := convert(u, &e); err != nil {
		return nil, err
	}
	return e.graph()
}

// ReadAll converts the objects of a list to T. The error names the first object that is invalid.
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

// convert converts by way of JSON, since fields of other versions may have other types.
func convert(u *unstructured.Unstructured, into any) error {
	text, err := u.MarshalJSON()
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// constraints describes the topology constraints; "" where there are none.
func (g *graph) constraints() string {
	var all []string
	if d := g.Spec.Topology.Domain; d != "" {
		all = append(all, fmt.Sprintf("all pods within one %s", d))
	}
	for _, c := range g.Spec.Components {
		if d := c.Topology.Domain; d != "" {
			all = append(all, fmt.Sprintf("each replica of %s within one %s", c.Name, d))
		}
	}
	text := strings.Join(all, ", ")
	if name := g.Spec.Topology.Name; name != "" && text != "" {
		text += fmt.Sprintf(" (topology %s)", name)
	}
	return text
}

// grove reports whether Grove rolls the graph out: by its annotation, or else by constraints, which only Grove has.
func (g *graph) grove() bool {
	if value := g.Annotations[groveAnnotation]; value != "" {
		return strings.EqualFold(value, "true")
	}
	return g.constraints() != ""
}

// id returns namespace and name.
func (g *graph) id() string { return g.Namespace + "/" + g.Name }

// frontend returns the component that routes, and its index, -1 where there is none.
func (g *graph) frontend() (component, int) {
	i := slices.IndexFunc(g.Spec.Components, func(c component) bool { return strings.EqualFold(c.Type, "frontend") })
	if i < 0 {
		return component{}, -1
	}
	return g.Spec.Components[i], i
}

// picker describes the endpoint picker that chooses the worker of each request instead of a frontend, "" where a
// frontend chooses. It is a component of that type, or runs outside the graph; then the frontends' mode is direct.
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

// isRouter reports whether a component passes requests on.
func (c component) isRouter() bool {
	return slices.Contains([]string{"frontend", "epp"}, strings.ToLower(c.Type))
}

// isWorker reports whether a component serves the model. A component of another type counts if it uses GPUs.
func (c component) isWorker() bool {
	switch strings.ToLower(c.Type) {
	case "worker", "prefill", "decode", "main":
		return true
	case "frontend", "epp", "planner":
		return false
	}
	return gpusIn(c.PodTemplate.Spec).count > 0 || len(c.PodTemplate.Spec.ResourceClaims) > 0
}

// count returns the number of replicas.
func (c component) count() int {
	if c.Replicas == nil {
		return 1
	}
	return *c.Replicas
}

// nodes returns the number of pods of a replica, each on its own node.
func (c component) nodes() int { return max(1, c.Multinode.NodeCount) }

// pods returns the number of pods of a component.
func (c component) pods() int { return c.count() * c.nodes() }

// workers counts the replicas that serve the model. A replica registers once with the frontend, on any number of nodes.
func (g *graph) workers() (n int) {
	for _, c := range g.Spec.Components {
		if c.isWorker() {
			n += c.count()
		}
	}
	return n
}

// workerPods counts the pods that serve the model.
func (g *graph) workerPods() (n int) {
	for _, c := range g.Spec.Components {
		if c.isWorker() {
			n += c.pods()
		}
	}
	return n
}

// podCount counts the pods of the graph.
func (g *graph) podCount() (n int) {
	for _, c := range g.Spec.Components {
		n += c.pods()
	}
	return n
}

// main returns the index of the container in which a component's process runs, -1 where there
// is none.
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

// valueOf returns a variable and its index, -1 where it is missing.
func valueOf(env []corev1.EnvVar, name string) (string, int) {
	i := slices.IndexFunc(env, func(e corev1.EnvVar) bool { return e.Name == name })
	if i < 0 {
		return "", -1
	}
	return env[i].Value, i
}

// frontendEnv returns the frontend's own environment.
func (g *graph) frontendEnv() []corev1.EnvVar {
	f, _ := g.frontend()
	if i := f.main(); i >= 0 {
		return f.PodTemplate.Spec.Containers[i].Env
	}
	return nil
}

// fixed returns the routing mode in the frontend's arguments, "" where they set none.
func (g *graph) fixed() string {
	f, _ := g.frontend()
	if i := f.main(); i >= 0 {
		return flagOf(f.PodTemplate.Spec.Containers[i])
	}
	return ""
}

// flagOf returns the routing mode in the arguments of a container, "" where there is none.
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

// mode returns the routing mode that the object sets. An argument of the frontend overrides
// its environment, which overrides the graph's. Dynamo's default is round-robin. The mode of
// an endpoint picker is unknown.
func (g *graph) mode() api.Mode {
	if g.picker() != "" {
		return api.ModeUnknown
	}
	text := g.fixed()
	for _, env := range [][]corev1.EnvVar{g.frontendEnv(), g.Spec.Env} {
		if value, i := valueOf(env, routerMode); text == "" && i >= 0 {
			text = value
		}
	}
	return modeOf(cmp.Or(text, spellings[api.ModeRoundRobin]))
}

// spellings maps the routing modes to Dynamo's names.
var spellings = map[api.Mode]string{
	api.ModeKV: "kv", api.ModeRoundRobin: "round-robin", api.ModeLeastLoaded: "least-loaded",
}

// modeOf parses Dynamo's name of a mode. Some versions have an underscore for the hyphen. A
// mode without a spelling is unknown.
func modeOf(text string) api.Mode {
	text = strings.ReplaceAll(strings.ToLower(strings.TrimSpace(text)), "_", "-")
	for mode, spelling := range spellings {
		if spelling == text {
			return mode
		}
	}
	return api.ModeUnknown
}

// spell returns the name of a mode in the object's spelling: a graph with an underscore keeps it.
func (g *graph) spell(m api.Mode) string {
	for _, env := range [][]corev1.EnvVar{g.frontendEnv(), g.Spec.Env} {
		if value, i := valueOf(env, routerMode); i >= 0 && strings.Contains(value, "_") {
			return strings.ReplaceAll(spellings[m], "-", "_")
		}
	}
	return spellings[m]
}

// ready reports whether the operator finds the object ready, at a generation or a later one.
func (s status) ready(generation int64) bool {
	i := slices.IndexFunc(s.Conditions, func(c metav1.Condition) bool { return c.Type == "Ready" })
	return s.ObservedGeneration >= generation && s.State == "successful" &&
		i >= 0 && s.Conditions[i].Status == metav1.ConditionTrue &&
		(s.Conditions[i].ObservedGeneration == 0 || s.Conditions[i].ObservedGeneration >= generation) &&
		!slices.Contains([]string{"Pending", "InProgress"}, s.RollingUpdate.Phase)
}

// why returns the operator's message about a graph that is not ready.
func (s status) why() string {
	for _, c := range s.Conditions {
		if c.Type == "Ready" && c.Status != metav1.ConditionTrue {
			return c.Message
		}
	}
	return ""
}

// author returns the last client that changed the specification, as recorded by the API
// server; "" where it is unknown.
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

// note is the annotation of a switch in progress.
type note struct {
	By      string        `json:"by"`   // the load generator, as host:port
	From    api.ModeState `json:"from"` // restored by a roll-back
	To      api.ModeState `json:"to"`
	Restart string        `json:"restart,omitempty"` // id of the requested restart
	// Newest is the creation time of the newest pod before the restart, by the API server's clock.
	Newest   time.Time `json:"newest,omitzero"`
	Deadline time.Time `json:"deadline"`
	Back     bool      `json:"back,omitempty"` // the switch is a roll-back
}

// note returns the switch in the annotation; ok is false where there is none.
func (g *graph) note() (n note, ok bool) {
	text, found := g.Annotations[switching]
	return n, found && json.Unmarshal([]byte(text), &n) == nil
}
