package main

import (
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// gpuResource is what a pod asks for to get a GPU.
const gpuResource = "nvidia.com/gpu"

// gpus adds up what the pods of objects ask for.
func gpus(all []*unstructured.Unstructured) (n int64) {
	for _, object := range all {
		switch object.GetKind() {
		case "Deployment", "StatefulSet":
			n += replicas(object.Object, "spec") * ofPod(object.Object, "spec", "template", "spec")
		case "Job":
			n += ofPod(object.Object, "spec", "template", "spec")
		case graphKind:
			components, _, _ := unstructured.NestedSlice(object.Object, "spec", "components")
			for _, each := range components {
				if component, ok := each.(map[string]any); ok {
					n += replicas(component) * ofPod(component, "podTemplate", "spec")
				}
			}
		}
	}
	return n
}

// replicas is how many pods an object has of a kind; Kubernetes makes one where none is said.
func replicas(object map[string]any, path ...string) int64 {
	value, found, _ := unstructured.NestedFieldNoCopy(object, append(path, "replicas")...)
	switch n := value.(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	}
	if found {
		return 0
	}
	return 1
}

// ofPod adds up the GPUs of a pod's containers.
func ofPod(object map[string]any, path ...string) (n int64) {
	containers, _, _ := unstructured.NestedSlice(object, append(path, "containers")...)
	for _, each := range containers {
		container, ok := each.(map[string]any)
		if !ok {
			continue
		}
		limit, _, _ := unstructured.NestedFieldNoCopy(container, "resources", "limits", gpuResource)
		if quantity, err := resource.ParseQuantity(plain(limit)); err == nil {
			n += quantity.Value()
		}
	}
	return n
}

// plain is a scalar as YAML has it.
func plain(v any) string {
	if text, ok := v.(string); ok {
		return text
	}
	return quoted(v)
}
