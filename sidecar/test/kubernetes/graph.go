package kubernetes

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// What Dynamo's operator writes on what it makes, and reads from a component's podTemplate.
const (
	labelGraph     = "nvidia.com/dynamo-graph-deployment-name"
	labelComponent = "nvidia.com/dynamo-component"
	labelType      = "nvidia.com/dynamo-component-type"
	labelHash      = "nvidia.com/dynamo-worker-hash"

	annotationSurge       = "nvidia.com/deployment-rolling-update-max-surge"
	annotationUnavailable = "nvidia.com/deployment-rolling-update-max-unavailable"
	annotationCurrent     = "nvidia.com/current-worker-hash"

	typeFrontend  = "frontend"
	mainContainer = "main"
)

// The states and phases that the product reads.
const (
	statePending    = "pending"
	stateSuccessful = "successful"

	phasePending    = "Pending"
	phaseInProgress = "InProgress"
	phaseCompleted  = "Completed"

	conditionReady = "Ready"
)

// graph is a DynamoGraphDeployment as far as the operator reads it.
type graph struct {
	Spec struct {
		Env        []corev1.EnvVar `json:"env"`
		Components []component     `json:"components"`
	} `json:"spec"`
	Status status `json:"status"`

	Object *unstructured.Unstructured `json:"-"` // as it was read
}

type component struct {
	Name        string                 `json:"name"`
	Type        string                 `json:"type"`
	Replicas    *int32                 `json:"replicas"`
	PodTemplate corev1.PodTemplateSpec `json:"podTemplate"`
}

// status is the status that the operator writes to a DynamoGraphDeployment.
type status struct {
	ObservedGeneration int64                      `json:"observedGeneration,omitempty"`
	State              string                     `json:"state,omitempty"`
	Conditions         []metav1.Condition         `json:"conditions,omitempty"`
	Components         map[string]componentStatus `json:"components,omitempty"`
	RollingUpdate      *rollingStatus             `json:"rollingUpdate,omitempty"`
}

type componentStatus struct {
	Kind              string   `json:"componentKind"`
	Names             []string `json:"componentNames"`
	Replicas          int32    `json:"replicas"`
	UpdatedReplicas   int32    `json:"updatedReplicas"`
	ReadyReplicas     int32    `json:"readyReplicas"`
	AvailableReplicas *int32   `json:"availableReplicas,omitempty"`
}

type rollingStatus struct {
	Phase             string   `json:"phase"`
	UpdatedComponents []string `json:"updatedComponents,omitempty"`
}

// read reads an object of the API server.
func read(object *unstructured.Unstructured) (graph, error) {
	if object.GroupVersionKind().Version == earlierKind.Version {
		return readEarlier(object)
	}
	g, err := convert[graph](object.Object)
	g.Object = object
	return g, err
}

// readEarlier reads an object of v1alpha1: what is the graph's and the service's goes into the pods, as there.
func readEarlier(object *unstructured.Unstructured) (graph, error) {
	type amounts struct {
		GPU string `json:"gpu"`
	}
	var e struct {
		Spec struct {
			Envs     []corev1.EnvVar `json:"envs"`
			Services map[string]struct {
				ComponentType    string            `json:"componentType"`
				Replicas         *int32            `json:"replicas"`
				Annotations      map[string]string `json:"annotations"`
				Envs             []corev1.EnvVar   `json:"envs"`
				Resources        struct{ Limits amounts }
				ExtraPodMetadata metav1.ObjectMeta `json:"extraPodMetadata"`
				ExtraPodSpec     struct {
					MainContainer corev1.Container `json:"mainContainer"`
				} `json:"extraPodSpec"`
			} `json:"services"`
		} `json:"spec"`
		Status status `json:"status"`
	}
	g := graph{Object: object}
	text, err := object.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(text, &e)
	}
	g.Spec.Env, g.Status = e.Spec.Envs, e.Status
	for _, name := range slices.Sorted(maps.Keys(e.Spec.Services)) {
		s := e.Spec.Services[name]
		main := s.ExtraPodSpec.MainContainer
		main.Name = mainContainer
		main.Env = append(slices.DeleteFunc(s.Envs, func(v corev1.EnvVar) bool { return has(main.Env, v.Name) }), main.Env...)
		if s.Resources.Limits.GPU != "" {
			main.Resources.Limits = corev1.ResourceList{gpus: resource.MustParse(s.Resources.Limits.GPU)}
		}
		c := component{Name: name, Type: s.ComponentType, Replicas: s.Replicas}
		c.PodTemplate.Annotations = maps.Clone(s.ExtraPodMetadata.Annotations)
		maps.Copy(c.PodTemplate.Annotations, s.Annotations)
		c.PodTemplate.Spec.Containers = []corev1.Container{main}
		g.Spec.Components = append(g.Spec.Components, c)
	}
	return g, err
}

func (c *component) replicas() int32 {
	if c.Replicas == nil {
		return 1
	}
	return *c.Replicas
}

func (c *component) worker() bool { return c.Type != typeFrontend }

// baseName returns the name of the component's Deployment without the hash of a worker.
func (g *graph) baseName(c *component) string {
	return g.Object.GetName() + "-" + strings.ToLower(c.Name)
}

// template is the component's pod with the graph's environment before its own, which wins.
func (g *graph) template(c *component) corev1.PodTemplateSpec {
	t := *c.PodTemplate.DeepCopy()
	for i := range t.Spec.Containers {
		if own := &t.Spec.Containers[i].Env; t.Spec.Containers[i].Name == mainContainer {
			*own = append(slices.DeleteFunc(slices.Clone(g.Spec.Env), func(e corev1.EnvVar) bool {
				return has(*own,
					e.Name)
			}), *own...)
		}
	}
	return t
}

func has(env []corev1.EnvVar, name string) bool {
	return slices.ContainsFunc(env, func(e corev1.EnvVar) bool { return e.Name == name })
}

// workerHash names what the workers are made of, all of them together, but for their number.
func (g *graph) workerHash() (string, error) {
	var templates []corev1.PodTemplateSpec
	for i := range g.Spec.Components {
		if c := &g.Spec.Components[i]; c.worker() {
			templates = append(templates, g.template(c))
		}
	}
	text, err := json.Marshal(templates)
	return fmt.Sprintf("%.4x", sha256.Sum256(text)), err
}

// deployment is what a component becomes. hash is the workers', "" for a Deployment without one in its name.
func (g *graph) deployment(c *component, hash string, replicas int32) *appsv1.Deployment {
	name, namespace := g.baseName(c), g.Object.GetNamespace()+"-"+g.Object.GetName() // Dynamo's, not Kubernetes'
	labels := map[string]string{labelGraph: g.Object.GetName(), labelComponent: c.Name, labelType: cmp.Or(c.Type,
		"worker")}
	if hash != "" {
		name, namespace, labels[labelHash] = name+"-"+hash, namespace+"-"+hash, hash
	}
	template := g.template(c)
	if template.Labels == nil {
		template.Labels = map[string]string{}
	}
	for key, value := range labels {
		template.Labels[key] = value
	}
	for i := range template.Spec.Containers {
		if env := &template.Spec.Containers[i].Env; !has(*env, "DYN_NAMESPACE") {
			*env = append(*env, corev1.EnvVar{Name: "DYN_NAMESPACE", Value: namespace})
		}
	}
	yes := true
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: g.Object.GetNamespace(), Labels: labels,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: g.Object.GetAPIVersion(), Kind: kind.Kind, Name: g.Object.GetName(), UID: g.Object.GetUID(),
				Controller: &yes, BlockOwnerDeletion: &yes,
			}},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template,
			Strategy: c.strategy(),
		},
	}
}

// strategy returns the strategy that the annotations of the podTemplate set. The default is 25% for both maxSurge and
// maxUnavailable, as in Kubernetes.
func (c *component) strategy() appsv1.DeploymentStrategy {
	annotations := c.PodTemplate.Annotations
	surge, unavailable := intstr.Parse(cmp.Or(annotations[annotationSurge], "25%")),
		intstr.Parse(cmp.Or(annotations[annotationUnavailable], "25%"))
	return appsv1.DeploymentStrategy{
		Type:          appsv1.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &surge, MaxUnavailable: &unavailable},
	}
}

// rolled says whether a Deployment has nothing left to do: "" or what is missing.
func rolled(d *appsv1.Deployment) string {
	want := *d.Spec.Replicas
	switch s := d.Status; {
	case s.ObservedGeneration < d.Generation:
		return fmt.Sprintf("%s: spec not yet processed: generation=%d, observedGeneration=%d", d.Name, d.Generation,
			s.ObservedGeneration)
	case s.Replicas != want, s.UpdatedReplicas != want, s.AvailableReplicas != want:
		return d.Name + ": Component deployment not ready - Available condition not true"
	}
	return ""
}

// podReady says whether a pod serves and is not about to end.
func podReady(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
