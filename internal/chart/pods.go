package chart

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// GraphKind is the kind of a Dynamo deployment.
const GraphKind = "DynamoGraphDeployment"

// Pod is a pod of a rendered object.
type Pod struct {
	Owner     string // kind and name of the object, with the component of a DynamoGraphDeployment
	Namespace string
	Graph     bool // created by Dynamo's operator
	Template  corev1.PodTemplateSpec
	Claims    []string // names of a StatefulSet's volume claim templates
}

// templates maps kinds to the path of their pod template.
var templates = map[string][]string{
	"Deployment": {"spec", "template"}, "StatefulSet": {"spec", "template"}, "DaemonSet": {"spec", "template"},
	"Job":     {"spec", "template"},
	"CronJob": {"spec", "jobTemplate", "spec", "template"}, "Pod": {},
}

// Pods returns the pods of the objects. The pods of a DynamoGraphDeployment have the labels and ports that Dynamo's
// operator adds. A field that is not part of a pod is an error. namespace is the default namespace.
func Pods(objects []*unstructured.Unstructured, namespace string) (all []Pod, err error) {
	for _, object := range objects {
		if object.GetKind() == GraphKind {
			pods, err := graphPods(object, namespaceOf(object, namespace))
			if err != nil {
				return nil, err
			}
			all = append(all, pods...)
			continue
		}
		path, has := templates[object.GetKind()]
		if !has {
			continue
		}
		template := object.Object
		if len(path) > 0 {
			template, _, _ = unstructured.NestedMap(object.Object, path...)
		} else {
			template = map[string]any{"metadata": template["metadata"], "spec": template["spec"]}
		}
		pod := Pod{Owner: object.GetKind() + " " + object.GetName(), Namespace: namespaceOf(object, namespace)}
		if pod.Template, err = decode(template); err != nil {
			return nil, fmt.Errorf("%s: %w", pod.Owner, err)
		}
		claims, _, _ := unstructured.NestedSlice(object.Object, "spec", "volumeClaimTemplates")
		for _, each := range claims {
			if claim, ok := each.(map[string]any); ok {
				name, _, _ := unstructured.NestedString(claim, "metadata", "name")
				pod.Claims = append(pod.Claims, name)
			}
		}
		all = append(all, pod)
	}
	return all, nil
}

func namespaceOf(object *unstructured.Unstructured, defaultNamespace string) string {
	return cmp.Or(object.GetNamespace(), defaultNamespace)
}

// graphPods returns one pod for each component of a DynamoGraphDeployment.
func graphPods(object *unstructured.Unstructured, namespace string) (all []Pod, err error) {
	components, _, err := unstructured.NestedSlice(object.Object, "spec", "components")
	if err != nil {
		return nil, err
	}
	for _, each := range components {
		component, _ := each.(map[string]any)
		name, _, _ := unstructured.NestedString(component, "name")
		kind, _, _ := unstructured.NestedString(component, "type")
		template, _, _ := unstructured.NestedMap(component, "podTemplate")
		pod := Pod{
			Owner: fmt.Sprintf("%s %s, component %s", GraphKind, object.GetName(), name), Namespace: namespace,
			Graph: true,
		}
		if pod.Template, err = decode(template); err != nil {
			return nil, fmt.Errorf("%s: %w", pod.Owner, err)
		}
		labels := map[string]string{
			"nvidia.com/dynamo-graph-deployment-name": object.GetName(), "nvidia.com/dynamo-component": name,
			"nvidia.com/dynamo-component-type": kind, "nvidia.com/metrics-enabled": "true",
		}
		if pod.Template.Labels == nil {
			pod.Template.Labels = labels
		}
		for key, value := range labels {
			pod.Template.Labels[key] = value
		}
		for i := range pod.Template.Spec.Containers {
			if main := &pod.Template.Spec.Containers[i]; main.Name == "main" {
				main.Ports = append(main.Ports, graphPort(kind))
			}
		}
		all = append(all, pod)
	}
	return all, nil
}

// graphPort returns the port that the operator adds to the main container of a component.
func graphPort(kind string) corev1.ContainerPort {
	if kind == "frontend" {
		return corev1.ContainerPort{Name: "http", ContainerPort: 8000, Protocol: corev1.ProtocolTCP}
	}
	return corev1.ContainerPort{Name: "system", ContainerPort: 9090, Protocol: corev1.ProtocolTCP}
}

// GraphService returns the name of the Service that the operator creates for a component of a DynamoGraphDeployment.
func GraphService(graph, component string) string { return graph + "-" + strings.ToLower(component) }

func decode(template map[string]any) (to corev1.PodTemplateSpec, err error) {
	metadata, _ := template["metadata"].(map[string]any)
	for field, value := range metadata {
		if value == nil { // the API server ignores null
			delete(metadata, field)
		}
	}
	err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(template, &to, true)
	return to, err
}
