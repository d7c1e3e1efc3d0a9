package kubernetes

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// graphV1alpha1 is a DynamoGraphDeployment in v1alpha1, the only version of operators before 1.2. Components are the
// values of a map, and the main container and its resources are fields of the component.
type graphV1alpha1 struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Envs     []corev1.EnvVar    `json:"envs"`
		Services map[string]service `json:"services"`
		Topology topology           `json:"topologyConstraint"`
	} `json:"spec"`
	Status status `json:"status"`
}

// service is a component of v1alpha1.
type service struct {
	ComponentType    string            `json:"componentType"`
	SubComponentType string            `json:"subComponentType"`
	Replicas         *int              `json:"replicas"`
	Multinode        multinode         `json:"multinode"`
	Topology         topology          `json:"topologyConstraint"`
	Annotations      map[string]string `json:"annotations"`
	Envs             []corev1.EnvVar   `json:"envs"`
	EnvFromSecret    string            `json:"envFromSecret"`
	Resources        struct {
		Requests resourceItem           `json:"requests"`
		Limits   resourceItem           `json:"limits"`
		Claims   []corev1.ResourceClaim `json:"claims"`
	} `json:"resources"`
	VolumeMounts []struct {
		Name string `json:"name"` // name of the claim
	} `json:"volumeMounts"`
	ExtraPodMetadata metav1.ObjectMeta `json:"extraPodMetadata"`
	ExtraPodSpec     json.RawMessage   `json:"extraPodSpec"`
}

// resourceItem is the part of v1alpha1's requests or limits that concerns GPUs.
type resourceItem struct {
	GPU     string            `json:"gpu"`
	GPUType string            `json:"gpuType"`
	Custom  map[string]string `json:"custom"`
}

// list returns the resources by name. Invalid quantities are left out.
func (r resourceItem) list() corev1.ResourceList {
	amounts := maps.Clone(r.Custom)
	if r.GPU != "" {
		if amounts == nil {
			amounts = map[string]string{}
		}
		amounts[cmp.Or(r.GPUType, "nvidia.com/gpu")] = r.GPU
	}
	all := corev1.ResourceList{}
	for name, amount := range amounts {
		if q, err := resource.ParseQuantity(amount); err == nil {
			all[corev1.ResourceName(name)] = q
		}
	}
	return all
}

// graph converts to the form of [Graphs], with the paths of v1alpha1.
func (e graphV1alpha1) graph() (*graph, error) {
	g := &graph{ObjectMeta: e.ObjectMeta, Status: e.Status, version: v1alpha1}
	g.Spec.Env, g.Spec.Topology = e.Spec.Envs, e.Spec.Topology
	if g.Status.ObservedGeneration == 0 { // operators before 1.2 do not report it; the pods show what is in force
		g.Status.ObservedGeneration = g.Generation
	}
	for _, name := range slices.Sorted(maps.Keys(e.Spec.Services)) {
		c, err := e.Spec.Services[name].component(name)
		if err != nil {
			return nil, fmt.Errorf("service %s: %w", name, err)
		}
		g.Spec.Components = append(g.Spec.Components, c)
	}
	return g, nil
}

// component converts a service to the form of [Graphs].
func (s service) component(name string) (component, error) {
	c := component{Name: name, Type: s.ComponentType, Replicas: s.Replicas, Multinode: s.Multinode, Topology: s.Topology}
	if sub := strings.ToLower(s.SubComponentType); sub == "prefill" || sub == "decode" {
		c.Type = sub
	}
	var extra struct {
		corev1.PodSpec
		MainContainer *corev1.Container `json:"mainContainer"`
	}
	if len(s.ExtraPodSpec) > 0 {
		if err := json.Unmarshal(s.ExtraPodSpec, &extra); err != nil {
			return c, err
		}
	}
	main := corev1.Container{}
	if extra.MainContainer != nil {
		main = *extra.MainContainer
	}
	path := "/spec/services/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	c.path = path + "/extraPodSpec/mainContainer"
	// The main container's variables override the service's. New ones are added to the service's.
	c.env = []environment{{c.path + "/env", main.Env}, {path + "/envs", s.Envs}}
	main.Name = mainContainer
	for _, v := range s.Envs {
		if _, i := valueOf(main.Env, v.Name); i < 0 {
			main.Env = append(slices.Clone(main.Env), v)
		}
	}
	if s.EnvFromSecret != "" {
		main.EnvFrom = append(main.EnvFrom, corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: s.EnvFromSecret},
		}})
	}
	if requests, limits := s.Resources.Requests.list(), s.Resources.Limits.list(); len(requests)+len(limits) > 0 {
		main.Resources.Requests, main.Resources.Limits = requests, limits
	}
	main.Resources.Claims = append(main.Resources.Claims, s.Resources.Claims...)
	c.PodTemplate.Annotations = maps.Clone(s.Annotations)
	if c.PodTemplate.Annotations == nil {
		c.PodTemplate.Annotations = map[string]string{}
	}
	maps.Copy(c.PodTemplate.Annotations, s.ExtraPodMetadata.Annotations)
	c.PodTemplate.Spec = extra.PodSpec
	c.PodTemplate.Spec.Containers = append([]corev1.Container{main}, extra.Containers...)
	for _, m := range s.VolumeMounts {
		v := corev1.Volume{Name: m.Name}
		v.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: m.Name}
		c.PodTemplate.Spec.Volumes = append(c.PodTemplate.Spec.Volumes, v)
	}
	return c, nil
}
