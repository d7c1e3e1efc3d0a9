//go:build chart

package chart

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	podsecurity "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// fields are the content of an object, or a part of it.
type fields = map[string]any

// world is what the chart has made, with what exists beside it.
type world struct {
	namespace string
	objects   []*unstructured.Unstructured
	pods      []Pod
	services  []corev1.Service // with those that Dynamo's operator makes
	external  []string         // "Kind name" of what the values declare to exist
	problems  []string
}

// check returns everything that is wrong with objects, in a namespace where they name none. external are objects that
// the values declare to exist, "Kind name" each; graphs are such DynamoGraphDeployments, "namespace/name" each.
func check(objects []*unstructured.Unstructured, namespace string, external, graphs []string) []string {
	w := &world{namespace: namespace, objects: objects, external: external}
	all := slices.Clone(objects)
	for _, graph := range graphs {
		in, name, _ := strings.Cut(graph, "/")
		all = append(all, existing(in, name))
	}
	var err error
	if w.pods, err = Pods(all, namespace); err != nil {
		return []string{err.Error()}
	}
	for _, object := range all {
		w.serve(object)
	}
	w.strict()
	for _, object := range objects {
		who, in := title(object), namespaceOf(object, namespace)
		w.selectors(object, who, in)
		for key, value := range object.Object {
			w.references(who, in, key, value)
		}
	}
	for i := range w.pods {
		if !slices.Contains(graphs, w.pods[i].Namespace+"/"+graphOf(&w.pods[i])) {
			w.pod(&w.pods[i])
		}
	}
	return w.problems
}

// graphOf is the name of the DynamoGraphDeployment that a pod belongs to.
func graphOf(p *Pod) string { return p.Template.Labels["nvidia.com/dynamo-graph-deployment-name"] }

// existing is a DynamoGraphDeployment that the chart has not made.
func existing(namespace, name string) *unstructured.Unstructured {
	component := func(name, kind string) any {
		template := fields{"spec": fields{"containers": []any{fields{"name": "main"}}}}
		return fields{"name": name, "type": kind, "podTemplate": template}
	}
	return &unstructured.Unstructured{Object: fields{
		"kind": GraphKind, "metadata": fields{"name": name, "namespace": namespace},
		"spec": fields{"components": []any{component("Frontend", "frontend"), component("Worker", "worker")}},
	}}
}

func (w *world) say(format string, args ...any) {
	w.problems = append(w.problems, fmt.Sprintf(format, args...))
}

// title names an object in problems.
func title(object *unstructured.Unstructured) string {
	return object.GetKind() + " " + object.GetName()
}

// into converts a part of an object.
func into[T any](w *world, who string, from any) (to T) {
	content, _ := from.(fields)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &to); err != nil {
		w.say("%s: %v", who, err)
	}
	return to
}

// serve adds a Service, or the Services of a DynamoGraphDeployment's frontends.
func (w *world) serve(object *unstructured.Unstructured) {
	if object.GetKind() == "Service" {
		service := into[corev1.Service](w, title(object), object.Object)
		service.Namespace = namespaceOf(object, w.namespace)
		w.services = append(w.services, service)
	}
	if object.GetKind() != GraphKind {
		return
	}
	components, _, _ := unstructured.NestedSlice(object.Object, "spec", "components")
	for _, each := range components {
		component, _ := each.(fields)
		if name, _ := component["name"].(string); component["type"] == "frontend" {
			service := corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 8000}}}}
			service.Name, service.Namespace = GraphService(object.GetName(), name), namespaceOf(object, w.namespace)
			w.services = append(w.services, service)
		}
	}
}

// others are the groups of kinds that are not Kubernetes' own. The API server knows them where the tests on a control
// plane apply them.
var others = []string{"nvidia.com", "gateway.networking.k8s.io", "monitoring.coreos.com"}

// strict refuses unknown fields, two objects of a name, and objects without the chart's labels.
func (w *world) strict() {
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	seen := map[string]bool{}
	for _, object := range w.objects {
		text, err := object.MarshalJSON()
		if err == nil {
			_, _, err = decoder.Decode(text, nil, nil)
		}
		other := runtime.IsNotRegisteredError(err) && slices.Contains(others, object.GroupVersionKind().Group)
		if err != nil && !other {
			w.say("%s: %v", title(object), err)
		}
		key := title(object) + " in " + namespaceOf(object, w.namespace)
		if seen[key] {
			w.say("%s is there twice", key)
		}
		seen[key] = true
		at := object.GetLabels()
		if at["app.kubernetes.io/part-of"] != "kvbooth" || at["app.kubernetes.io/instance"] == "" {
			w.say("%s: has not the labels of the chart's objects", title(object))
		}
	}
}

// selectors holds against pods and Services what selects some.
func (w *world) selectors(object *unstructured.Unstructured, who, namespace string) {
	spec, _ := object.Object["spec"].(fields)
	switch object.GetKind() {
	case "Service":
		w.service(spec, who, namespace)
	case "Deployment", "StatefulSet", "DaemonSet":
		for _, pod := range w.selected(who, spec["selector"], namespace) {
			if pod.Owner != who {
				w.say("%s: its selector matches the pods of %s, too", who, pod.Owner)
			}
		}
	case "PodDisruptionBudget":
		w.selected(who, spec["selector"], namespace)
	case "NetworkPolicy":
		pods := w.selected(who, spec["podSelector"], namespace)
		for _, rule := range list(spec["ingress"]) {
			for _, port := range list(rule["ports"]) {
				to := into[corev1.ServicePort](w, who, fields{"targetPort": port["port"]})
				if port["port"] != nil && !hasPort(pods, to.TargetPort) {
					w.say("%s: lets in to port %s, which its pods do not have", who, to.TargetPort.String())
				}
			}
			for _, peer := range list(rule["from"]) {
				if peer["podSelector"] != nil && peer["namespaceSelector"] == nil {
					w.selected(who+", from", peer["podSelector"], namespace)
				}
			}
		}
	case "PodMonitor", "ServiceMonitor":
		w.monitor(object, who, namespace)
	}
}

// list is a list of objects.
func list(value any) (all []fields) {
	values, _ := value.([]any)
	for _, each := range values {
		if object, ok := each.(fields); ok {
			all = append(all, object)
		}
	}
	return all
}

// selected returns the pods that a selector matches, and reports that there are none.
func (w *world) selected(who string, selector any, namespaces ...string) (pods []Pod) {
	parsed := w.parsed(who, selector)
	for _, pod := range w.pods {
		if slices.Contains(namespaces, pod.Namespace) && parsed.Matches(labels.Set(pod.Template.Labels)) {
			pods = append(pods, pod)
		}
	}
	if len(pods) == 0 {
		w.say("%s: its selector %s matches no pod in %v", who, parsed, namespaces)
	}
	return pods
}

func (w *world) parsed(who string, selector any) labels.Selector {
	parsed, err := metav1.LabelSelectorAsSelector(new(into[metav1.LabelSelector](w, who, selector)))
	if err != nil || parsed.Empty() {
		w.say("%s: selects everything, or by a wrong expression: %v", who, err)
		return labels.Nothing()
	}
	return parsed
}

// hasPort reports whether each of the pods listens on a port, by name or number.
func hasPort(pods []Pod, port intstr.IntOrString) bool {
	listens := func(p corev1.ContainerPort) bool {
		return p.Name == port.String() || strconv.Itoa(int(p.ContainerPort)) == port.String()
	}
	return !slices.ContainsFunc(pods, func(pod Pod) bool {
		return !slices.ContainsFunc(pod.Template.Spec.Containers, func(c corev1.Container) bool {
			return slices.ContainsFunc(c.Ports, listens)
		})
	})
}

func (w *world) service(spec fields, who, namespace string) {
	pods := w.selected(who, fields{"matchLabels": spec["selector"]}, namespace)
	for _, pod := range pods {
		if pod.Owner != pods[0].Owner {
			w.say("%s: selects pods of %s and %s", who, pods[0].Owner, pod.Owner)
		}
	}
	for _, port := range into[corev1.ServiceSpec](w, who, spec).Ports {
		target := port.TargetPort
		if target == (intstr.IntOrString{}) {
			target = intstr.FromInt32(port.Port)
		}
		if !hasPort(pods, target) {
			w.say("%s: its port %d leads to port %s, which its pods do not have", who, port.Port, target.String())
		}
	}
}

// monitor holds a monitor of the Prometheus operator against pods, or against Services, of which it must find one.
func (w *world) monitor(object *unstructured.Unstructured, who, namespace string) {
	spec, _ := object.Object["spec"].(fields)
	namespaces, _, _ := unstructured.NestedStringSlice(spec, "namespaceSelector", "matchNames")
	if len(namespaces) == 0 {
		namespaces = []string{namespace}
	}
	endpoints := append(list(spec["endpoints"]), list(spec["podMetricsEndpoints"])...)
	if len(endpoints) == 0 {
		w.say("%s: reads nothing", who)
	}
	for _, endpoint := range endpoints {
		port, _ := endpoint["port"].(string)
		switch {
		case strings.Contains(object.GetName(), "dcgm"): // the exporter is the GPU operator's
			if keeps, set := endpoint["honorLabels"]; set && keeps != false {
				w.say("%s: honorLabels would lose exported_namespace, by which the dashboards ask", who)
			}
		case object.GetKind() == "PodMonitor":
			if !hasPort(w.selected(who, spec["selector"], namespaces...), intstr.FromString(port)) {
				w.say("%s: its pods have no port %q", who, port)
			}
		default:
			parsed, found := w.parsed(who, spec["selector"]), 0
			for _, service := range w.services {
				has := slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == port })
				if slices.Contains(namespaces, service.Namespace) && parsed.Matches(labels.Set(service.Labels)) && has {
					found++
				}
			}
			if found != 1 {
				w.say("%s: matches %d Services with a port %q in %v, and must match one", who, found, port, namespaces)
			}
		}
	}
}

// named are fields that name an object of a kind: by themselves, or by a field of theirs.
var named = map[string]struct{ kind, by string }{
	"serviceAccountName":    {"ServiceAccount", ""},
	"serviceName":           {"Service", ""},
	"imagePullSecrets":      {"Secret", "name"},
	"secretKeyRef":          {"Secret", "name"},
	"secretRef":             {"Secret", "name"},
	"secret":                {"Secret", "secretName"},
	"configMapKeyRef":       {"ConfigMap", "name"},
	"configMapRef":          {"ConfigMap", "name"},
	"configMap":             {"ConfigMap", "name"},
	"persistentVolumeClaim": {"PersistentVolumeClaim", "claimName"},
	"backendRefs":           {"Service", "name"},
	"certificateRefs":       {"Secret", "name"},
	"parentRefs":            {"Gateway", "name"},
	"roleRef":               {"", "name"},
	"subjects":              {"", "name"},
}

// references reports names, keys and ports that do not exist in what a field holds. Optional references are left out.
func (w *world) references(who, namespace, field string, value any) {
	switch value := value.(type) {
	case []any:
		for _, each := range value {
			w.references(who, namespace, field, each)
		}
	case string:
		if to, ok := named[field]; ok && to.by == "" && value != "default" {
			w.exists(who, to.kind, value, namespace)
		}
	case fields:
		if to, ok := named[field]; ok && value["optional"] != true {
			w.reference(who, namespace, to.kind, to.by, value)
		}
		for key, below := range value {
			w.references(who, namespace, key, below)
		}
	}
}

func (w *world) reference(who, namespace, kind, by string, to fields) {
	name, ok := to[by].(string)
	if !ok {
		name, _ = to["name"].(string) // the Secret of a projected volume
	}
	if kind == "" {
		kind, _ = to["kind"].(string)
	}
	if kind == "Group" || kind == "User" {
		return
	}
	if kind == "ServiceAccount" && to["namespace"] == nil {
		w.say("%s: its ServiceAccount %s has no namespace", who, name)
	}
	in := namespace
	if other, ok := to["namespace"].(string); ok {
		in = other
	}
	found := w.exists(who, kind, name, in)
	if key, ok := to["key"].(string); ok {
		w.key(who, found, key)
	}
	for _, item := range list(to["items"]) {
		w.key(who, found, fmt.Sprint(item["key"]))
	}
	if section, ok := to["sectionName"]; ok && found != nil {
		listeners, _, _ := unstructured.NestedSlice(found.Object, "spec", "listeners")
		if !slices.ContainsFunc(list(listeners), func(l fields) bool { return l["name"] == section }) {
			w.say("%s: Gateway %s has no listener %v", who, name, section)
		}
	}
	if port, ok := to["port"].(int64); ok {
		w.backend(who, namespace, name, in, port)
	}
}

// backend holds a rule of a route against the Service that it leads to.
func (w *world) backend(who, namespace, name, in string, port int64) {
	if in != namespace && !slices.ContainsFunc(w.objects, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == "ReferenceGrant" && namespaceOf(o, w.namespace) == in
	}) {
		w.say("%s: leads to %s without a ReferenceGrant there", who, in)
	}
	if !slices.ContainsFunc(w.services, func(s corev1.Service) bool {
		return s.Name == name && s.Namespace == in && slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool {
			return int64(p.Port) == port
		})
	}) {
		w.say("%s: there is no Service %s with port %d in %s", who, name, port, in)
	}
}

// exists reports a reference that leads nowhere. The object is nil for one that is outside of the chart.
func (w *world) exists(who, kind, name, namespace string) *unstructured.Unstructured {
	clusterWide := strings.HasPrefix(kind, "Cluster")
	for _, object := range w.objects {
		in := clusterWide || namespaceOf(object, w.namespace) == namespace
		if object.GetKind() == kind && object.GetName() == name && in {
			return object
		}
	}
	served := kind == "Service" && slices.ContainsFunc(w.services, func(s corev1.Service) bool {
		return s.Name == name && s.Namespace == namespace
	})
	if !served && !slices.Contains(w.external, kind+" "+name) {
		w.say("%s: names %s %s, which is neither the chart's nor declared to exist in %s", who, kind, name, namespace)
	}
	return nil
}

// key reports a key that an object of the chart does not have.
func (w *world) key(who string, object *unstructured.Unstructured, key string) {
	if object == nil {
		return
	}
	for _, field := range []string{"data", "stringData", "binaryData"} {
		if _, found, _ := unstructured.NestedFieldNoCopy(object.Object, field, key); found {
			return
		}
	}
	w.say("%s: %s has no key %s", who, title(object), key)
}

// evaluator is Pod Security's own.
var evaluator = func() policy.Evaluator {
	e, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		panic(err) // its own checks
	}
	return e
}()

// pod checks a pod of the chart's own making: Pod Security "restricted", and its volumes.
func (w *world) pod(p *Pod) {
	level := podsecurity.LevelVersion{Level: podsecurity.LevelRestricted, Version: podsecurity.LatestVersion()}
	result := policy.AggregateCheckResults(evaluator.EvaluatePod(level, &p.Template.ObjectMeta, &p.Template.Spec))
	if !result.Allowed {
		w.say("%s: Pod Security restricted: %s", p.Owner, result.ForbiddenDetail())
	}
	spec := &p.Template.Spec
	volumes := slices.Clone(p.Claims)
	for i := range spec.Volumes {
		volumes = append(volumes, spec.Volumes[i].Name)
		if empty := spec.Volumes[i].EmptyDir; empty != nil && empty.SizeLimit == nil {
			w.say("%s, volume %s: has no limit of its size", p.Owner, spec.Volumes[i].Name)
		}
	}
	for _, c := range append(slices.Clone(spec.InitContainers), spec.Containers...) {
		who := p.Owner + ", container " + c.Name
		for _, mount := range c.VolumeMounts {
			if !slices.Contains(volumes, mount.Name) {
				w.say("%s: mounts %s, which is no volume of the pod", who, mount.Name)
			}
		}
		pod, own := spec.SecurityContext, c.SecurityContext
		if (own == nil || own.RunAsUser == nil) && (pod == nil || pod.RunAsUser == nil) {
			w.say("%s: runs as the user that its image names; set runAsUser", who)
		}
		w.container(who, p, &c)
	}
}

// container checks resources, the version of the image, and the ports of probes.
func (w *world) container(who string, p *Pod, c *corev1.Container) {
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		limit, request := c.Resources.Limits[name], c.Resources.Requests[name]
		if limit.IsZero() || request.IsZero() {
			w.say("%s: has no limit or no request of %s", who, name)
		}
	}
	_, tag, _ := strings.Cut(c.Image[strings.LastIndex(c.Image, "/")+1:], ":")
	if !strings.Contains(c.Image, "@sha256:") && (tag == "" || tag == "latest") {
		w.say("%s: its image %q has no version", who, c.Image)
	}
	for _, probe := range []*corev1.Probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe} {
		if probe != nil && probe.HTTPGet != nil && !hasPort([]Pod{*p}, probe.HTTPGet.Port) {
			w.say("%s: a probe asks port %s, which it does not have", who, probe.HTTPGet.Port.String())
		}
	}
}
