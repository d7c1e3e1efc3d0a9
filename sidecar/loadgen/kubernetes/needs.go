package kubernetes

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Needs is what a graph asks of its cluster.
type Needs struct {
	Namespace, Name string
	Pods            int   // of all components
	GPUs            int64 // of all of them
	Each            int64 // of the pod with the most
	Claims          []string
	Secrets         []string // in the environment, as files, or to pull the images with
}

// needs is what the graph asks for, each name once, in the order of the alphabet.
func (g *graph) needs() Needs {
	n := Needs{Namespace: g.Namespace, Name: g.Name, Pods: g.all()}
	n.addEnv(g.Spec.Env)
	for _, c := range g.Spec.Components {
		n.GPUs += int64(c.count()) * c.gpus()
		n.Each = max(n.Each, c.gpus())
		n.addPod(c.PodTemplate.Spec)
	}
	n.Claims, n.Secrets = unique(n.Claims), unique(n.Secrets)
	return n
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

// PodsOf is how the pods of a graph are found: a selector of labels.
func PodsOf(name string) string { return ofGraph + "=" + name }
