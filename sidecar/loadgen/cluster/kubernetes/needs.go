package kubernetes

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Needs lists what a graph requires of its cluster.
type Needs struct {
	Namespace, Name string
	Pods            int    // number of pods of all components
	GPUs            int64  // number of GPUs of all pods
	Each            int64  // number of GPUs of the pod with the most
	Kind            string // a resource such as nvidia.com/gpu, or the driver of a device class; "" for several
	Unknown         string // why the number of GPUs is unknown; "" where it is known
	Claims          []string
	Secrets         []string // used in the environment, as files, or to pull images

	devices devices
}

// needs lists the requirements of the graph, each name once and sorted. known holds the GPUs of its claims.
func (g *graph) needs(known devices) Needs {
	n := Needs{Namespace: g.Namespace, Name: g.Name, Pods: g.podCount(), devices: known}
	n.addEnv(g.Spec.Env)
	var sum gpus
	shared := map[string]bool{}
	for _, c := range g.Spec.Components {
		each := known.ofPod(c.PodTemplate.Spec)
		withShared := each
		for range c.pods() {
			sum = sum.plus(each)
		}
		for name, claim := range known.shared(c.PodTemplate.Spec) {
			withShared = withShared.plus(claim)
			if !shared[name] {
				sum = sum.plus(claim)
			}
			shared[name] = true
		}
		n.Each = max(n.Each, withShared.count)
		n.addPod(c.PodTemplate.Spec)
	}
	n.GPUs = sum.count
	n.Kind = sum.kind
	n.Unknown = sum.unknown
	n.Claims, n.Secrets = unique(n.Claims), unique(n.Secrets)
	return n
}

// NeedsOf returns what the pods of an object request that has not been applied: of a DynamoGraphDeployment, a
// Deployment, a StatefulSet or a Job. Of other objects it is the zero value. GPUs of resource claims, which are objects
// of their own, do not count.
func NeedsOf(u *unstructured.Unstructured) (Needs, error) {
	switch u.GetKind() {
	case GraphKind:
		g, err := readGraph(u)
		if err != nil {
			return Needs{}, err
		}
		return g.needs(devices{}), nil
	case "Deployment", "StatefulSet", "Job":
		var of struct {
			Spec struct {
				Replicas *int64                 `json:"replicas"`
				Template corev1.PodTemplateSpec `json:"template"`
			} `json:"spec"`
		}
		if err := convert(u, &of); err != nil {
			return Needs{}, err
		}
		n := int64(1)
		if of.Spec.Replicas != nil {
			n = *of.Spec.Replicas
		}
		each := gpusIn(of.Spec.Template.Spec)
		return Needs{
			Namespace: u.GetNamespace(), Name: u.GetName(), Pods: int(n),
			GPUs: n * each.count, Each: each.count, Kind: each.kind,
		}, nil
	}
	return Needs{}, nil
}

// Held returns the number of GPUs that the pods of the graph use: pods with a node that have not ended.
func (n Needs) Held(pods []corev1.Pod) int64 {
	var sum gpus
	shared := map[string]bool{}
	for i := range pods {
		p := &pods[i]
		if p.Spec.NodeName == "" || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		sum = sum.plus(n.devices.ofPod(p.Spec))
		for name, claim := range n.devices.shared(p.Spec) {
			if !shared[name] {
				sum = sum.plus(claim)
			}
			shared[name] = true
		}
	}
	return sum.count
}

// Lacks describes the GPUs that a pod needs, where the scheduler's message reports that it finds none; else "".
func (n Needs) Lacks(p corev1.Pod, message string) string {
	each := n.devices.ofPod(p.Spec)
	for _, claim := range n.devices.shared(p.Spec) {
		each = each.plus(claim)
	}
	resource := slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool {
		for name := range c.Resources.Limits {
			if isGPU(name) && strings.Contains(message, string(name)) {
				return true
			}
		}
		return false
	})
	switch {
	case !resource && !strings.Contains(message, "allocate all claims"):
		return ""
	case each.unknown != "":
		return "GPUs"
	}
	return fmt.Sprintf("%d GPU(s)", each.count)
}

func unique(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

func (n *Needs) addPod(p corev1.PodSpec) {
	for _, v := range p.Volumes {
		if v.PersistentVolumeClaim != nil {
			n.Claims = append(n.Claims, v.PersistentVolumeClaim.ClaimName)
		}
		if v.Secret != nil && !isOptional(v.Secret.Optional) {
			n.Secrets = append(n.Secrets, v.Secret.SecretName)
		}
	}
	for _, s := range p.ImagePullSecrets {
		n.Secrets = append(n.Secrets, s.Name)
	}
	for _, c := range slices.Concat(p.InitContainers, p.Containers) {
		n.addEnv(c.Env)
		for _, from := range c.EnvFrom {
			if from.SecretRef != nil && !isOptional(from.SecretRef.Optional) {
				n.Secrets = append(n.Secrets, from.SecretRef.Name)
			}
		}
	}
}

func (n *Needs) addEnv(env []corev1.EnvVar) {
	for _, e := range env {
		if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil && !isOptional(e.ValueFrom.SecretKeyRef.Optional) {
			n.Secrets = append(n.Secrets, e.ValueFrom.SecretKeyRef.Name)
		}
	}
}

func isOptional(o *bool) bool { return o != nil && *o }

// PodsOf returns the label selector of a graph's pods.
func PodsOf(name string) string { return graphLabel + "=" + name }
