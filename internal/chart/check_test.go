//go:build chart

package chart

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
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

// world is what the chart has made, with what is there beside it.
type world struct {
	namespace string
	objects   []*unstructured.Unstructured
	pods      []Pod
	services  []corev1.Service // with those that Dynamo's operator makes
	external  []string         // "Kind name" of what the values say is there already
	problems  []string
}

// check says everything that is wrong with objects, in a namespace where they name none. external are objects that the
// values declare to be there, "Kind name" each; graphs are such DynamoGraphDeployments, "namespace/name" each.
func check(objects []*unstructured.Unstructured, namespace string, external, graphs []string) []string {
	w := &world{namespace: namespace, objects: objects, external: external}
	for _, graph := range graphs {
		in, name, _ := strings.Cut(graph, "/")
		object := standIn(in, name)
		w.serve(object)
		pods, err := graphPods(object, in)
		if err != nil {
			return []string{err.Error()}
		}
		w.pods = append(w.pods, pods...)
	}
	w.strict()
	made, err := Pods(objects, namespace)
	if err != nil {
		return append(w.problems, err.Error())
	}
	w.pods = append(w.pods, made...)
	for _, object := range objects {
		if object.GetKind() == GraphKind {
			w.serve(object)
		}
		if object.GetKind() == "Service" {
			w.services = append(w.services, into[corev1.Service](w, object))
		}
	}
	for _, object := range objects {
		w.selectors(object)
	}
	for i := range made {
		w.pod(&made[i])
	}
	return w.problems
}

// standIn is a DynamoGraphDeployment that was there before.
func standIn(namespace, name string) *unstructured.Unstructured {
	component := func(name, kind string) any {
		return map[string]any{"name": name, "type": kind, "podTemplate": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "main"}}}}}
	}
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"components": []any{component("Frontend", "frontend"), component("Worker", "worker")}}}}
	object.SetKind(GraphKind)
	object.SetName(name)
	object.SetNamespace(namespace)
	return object
}

func (w *world) say(format string, args ...any) {
	w.problems = append(w.problems, fmt.Sprintf(format, args...))
}

// serve adds the Services of a DynamoGraphDeployment's frontends.
func (w *world) serve(object *unstructured.Unstructured) {
	components, _, _ := unstructured.NestedSlice(object.Object, "spec", "components")
	for _, each := range components {
		component, _ := each.(map[string]any)
		if component["type"] == "frontend" {
			name, _ := component["name"].(string)
			w.services = append(w.services, corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Name: GraphService(object.GetName(), name), Namespace: namespaceOf(object, w.namespace)},
				Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 8000}}},
			})
		}
	}
}

// title is an object's for people.
func title(object *unstructured.Unstructured) string {
	return object.GetKind() + " " + object.GetName()
}

// into converts an object whose form strict has looked at.
func into[T any](w *world, object *unstructured.Unstructured) (to T) {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &to); err != nil {
		w.say("%s: %v", title(object), err)
	}
	return to
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
		if err != nil && (!runtime.IsNotRegisteredError(err) || !slices.Contains(others, object.GroupVersionKind().Group)) {
			w.say("%s: %v", title(object), err)
		}
		key := title(object) + " in " + namespaceOf(object, w.namespace)
		if seen[key] {
			w.say("%s is there twice", key)
		}
		seen[key] = true
		if object.GetLabels()["app.kubernetes.io/part-of"] != "kvbooth" || object.GetLabels()["app.kubernetes.io/instance"] == "" {
			w.say("%s: has not the labels of the chart's objects", title(object))
		}
	}
}

// selectors holds against pods and Services what selects some.
func (w *world) selectors(object *unstructured.Unstructured) {
	namespace := namespaceOf(object, w.namespace)
	switch object.GetKind() {
	case "Service":
		w.service(into[corev1.Service](w, object), namespace)
	case "Deployment", "StatefulSet", "DaemonSet":
		w.workload(object, namespace)
	case "PodDisruptionBudget":
		w.selected(title(object), into[policyv1.PodDisruptionBudget](w, object).Spec.Selector, []string{namespace})
	case "NetworkPolicy":
		w.networkPolicy(into[networkingv1.NetworkPolicy](w, object), namespace)
	case "RoleBinding", "ClusterRoleBinding":
		w.binding(into[rbacv1.RoleBinding](w, object), namespace)
	case "PodMonitor", "ServiceMonitor":
		w.monitor(object, namespace)
	case "HTTPRoute":
		w.route(object, namespace)
	}
}

// selected gives the pods that a selector matches, and says where it is none.
func (w *world) selected(who string, selector *metav1.LabelSelector, namespaces []string) (pods []Pod) {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil || parsed.Empty() {
		w.say("%s: selects all pods, or by a wrong expression: %v", who, err)
		return nil
	}
	for _, pod := range w.pods {
		if (len(namespaces) == 0 || slices.Contains(namespaces, pod.Namespace)) && parsed.Matches(labels.Set(pod.Template.Labels)) {
			pods = append(pods, pod)
		}
	}
	if len(pods) == 0 {
		w.say("%s: its selector %s matches no pod in %v", who, parsed, namespaces)
	}
	return pods
}

// hasPort says whether each of the pods listens on a port, by name or number.
func hasPort(pods []Pod, port intstr.IntOrString) bool {
	for i := range pods {
		found := false
		for _, container := range pods[i].Template.Spec.Containers {
			for _, p := range container.Ports {
				found = found || port.Type == intstr.String && p.Name == port.StrVal || port.Type == intstr.Int && p.ContainerPort == port.IntVal
			}
		}
		if !found {
			return false
		}
	}
	return true
}

func (w *world) service(service corev1.Service, namespace string) {
	who := "Service " + service.Name
	pods := w.selected(who, &metav1.LabelSelector{MatchLabels: service.Spec.Selector}, []string{namespace})
	owners := map[string]bool{}
	for _, pod := range pods {
		owners[pod.Owner] = true
	}
	if len(owners) > 1 {
		w.say("%s: selects pods of %d objects", who, len(owners))
	}
	for _, port := range service.Spec.Ports {
		target := port.TargetPort
		if target == (intstr.IntOrString{}) {
			target = intstr.FromInt32(port.Port)
		}
		if !hasPort(pods, target) {
			w.say("%s: its port %d leads to port %s, which its pods do not have", who, port.Port, target.String())
		}
	}
}

// workload holds a workload's selector against its own template, which alone it is for.
func (w *world) workload(object *unstructured.Unstructured, namespace string) {
	var selector metav1.LabelSelector
	match, _, _ := unstructured.NestedMap(object.Object, "spec", "selector")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(match, &selector); err != nil {
		w.say("%s: %v", title(object), err)
	}
	for _, pod := range w.selected(title(object), &selector, []string{namespace}) {
		if pod.Owner != title(object) {
			w.say("%s: its selector matches the pods of %s, too", title(object), pod.Owner)
		}
	}
	if name, _, _ := unstructured.NestedString(object.Object, "spec", "serviceName"); name != "" && !w.hasService(namespace, name, 0) {
		w.say("%s: there is no Service %s", title(object), name)
	}
}

// hasService says whether there is a Service with a port; 0 is any.
func (w *world) hasService(namespace, name string, port int32) bool {
	return slices.ContainsFunc(w.services, func(s corev1.Service) bool {
		in := s.Namespace
		if in == "" {
			in = w.namespace
		}
		return s.Name == name && in == namespace && (port == 0 || slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == port }))
	})
}

func (w *world) networkPolicy(p networkingv1.NetworkPolicy, namespace string) {
	who := "NetworkPolicy " + p.Name
	pods := w.selected(who, &p.Spec.PodSelector, []string{namespace})
	for _, rule := range p.Spec.Ingress {
		for _, port := range rule.Ports {
			if port.Port != nil && !hasPort(pods, *port.Port) {
				w.say("%s: lets in to port %s, which its pods do not have", who, port.Port.String())
			}
		}
		for _, peer := range rule.From {
			if peer.PodSelector != nil && peer.NamespaceSelector == nil {
				w.selected(who+", from", peer.PodSelector, []string{namespace})
			}
		}
	}
}

func (w *world) binding(b rbacv1.RoleBinding, namespace string) {
	who := "RoleBinding " + b.Name
	w.there(who, b.RoleRef.Kind, b.RoleRef.Name, namespace)
	for _, subject := range b.Subjects {
		if subject.Kind == rbacv1.ServiceAccountKind {
			in := subject.Namespace
			if in == "" {
				w.say("%s: its ServiceAccount %s has no namespace", who, subject.Name)
			}
			w.there(who, subject.Kind, subject.Name, in)
		}
	}
}

// object finds one of the chart's, nil where there is none.
func (w *world) object(kind, name, namespace string) *unstructured.Unstructured {
	for _, object := range w.objects {
		clusterWide := strings.HasPrefix(kind, "Cluster") || kind == "PersistentVolume"
		if object.GetKind() == kind && object.GetName() == name && (clusterWide || namespaceOf(object, w.namespace) == namespace) {
			return object
		}
	}
	return nil
}

// there says where a reference leads nowhere. The object is nil for one that is outside of the chart.
func (w *world) there(who, kind, name, namespace string) *unstructured.Unstructured {
	found := w.object(kind, name, namespace)
	if found == nil && !slices.Contains(w.external, kind+" "+name) {
		w.say("%s: names %s %s, which is neither the chart's nor declared to be there in %s", who, kind, name, namespace)
	}
	return found
}

// monitor holds a monitor of the Prometheus operator against Services or pods, and their ports.
func (w *world) monitor(object *unstructured.Unstructured, namespace string) {
	spec, _ := object.Object["spec"].(map[string]any)
	var selector metav1.LabelSelector
	match, _, _ := unstructured.NestedMap(spec, "selector")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(match, &selector, true); err != nil {
		w.say("%s: %v", title(object), err)
	}
	namespaces, _, _ := unstructured.NestedStringSlice(spec, "namespaceSelector", "matchNames")
	if len(namespaces) == 0 {
		namespaces = []string{namespace}
	}
	endpoints, _, _ := unstructured.NestedSlice(spec, "endpoints")
	if object.GetKind() == "PodMonitor" {
		endpoints, _, _ = unstructured.NestedSlice(spec, "podMetricsEndpoints")
	}
	if len(endpoints) == 0 {
		w.say("%s: reads nothing", title(object))
	}
	for _, each := range endpoints {
		endpoint, _ := each.(map[string]any)
		port, _ := endpoint["port"].(string)
		if strings.Contains(object.GetName(), "dcgm") {
			if keeps, set := endpoint["honorLabels"]; set && keeps != false {
				w.say("%s: honorLabels would keep the exporter's namespace and lose exported_namespace, by which the dashboards ask", title(object))
			}
			continue // its exporter is the GPU operator's
		}
		if object.GetKind() == "PodMonitor" {
			if pods := w.selected(title(object), &selector, namespaces); !hasPort(pods, intstr.FromString(port)) {
				w.say("%s: its pods have no port %q", title(object), port)
			}
			continue
		}
		w.monitored(title(object), &selector, namespaces, port)
	}
}

// monitored holds a ServiceMonitor against Services: it must find exactly one, with the port.
func (w *world) monitored(who string, selector *metav1.LabelSelector, namespaces []string, port string) {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil || parsed.Empty() {
		w.say("%s: selects every Service, or by a wrong expression: %v", who, err)
		return
	}
	var found []string
	for _, service := range w.services {
		in := service.Namespace
		if in == "" {
			in = w.namespace
		}
		if !slices.Contains(namespaces, in) || !parsed.Matches(labels.Set(service.Labels)) {
			continue
		}
		found = append(found, service.Name)
		if !slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == port }) {
			w.say("%s: Service %s has no port %q", who, service.Name, port)
		}
	}
	if len(found) != 1 {
		w.say("%s: its selector %s matches the Services %v in %v, and must match one", who, parsed, found, namespaces)
	}
}

// route holds a route of the Gateway API against its Gateway and its Services.
func (w *world) route(object *unstructured.Unstructured, namespace string) {
	spec, _ := object.Object["spec"].(map[string]any)
	parents, _, _ := unstructured.NestedSlice(spec, "parentRefs")
	if len(parents) == 0 {
		w.say("%s: has no Gateway", title(object))
	}
	for _, each := range parents {
		parent, _ := each.(map[string]any)
		in, name := namespace, fmt.Sprint(parent["name"])
		if other, ok := parent["namespace"].(string); ok {
			in = other
		}
		gateway := w.there(title(object), "Gateway", name, in)
		section, ok := parent["sectionName"].(string)
		if gateway == nil || !ok {
			continue
		}
		listeners, _, _ := unstructured.NestedSlice(gateway.Object, "spec", "listeners")
		if !slices.ContainsFunc(listeners, func(each any) bool { l, _ := each.(map[string]any); return l["name"] == section }) {
			w.say("%s: Gateway %s has no listener %s", title(object), name, section)
		}
	}
	rules, _, _ := unstructured.NestedSlice(spec, "rules")
	for _, each := range rules {
		rule, _ := each.(map[string]any)
		backends, _, _ := unstructured.NestedSlice(rule, "backendRefs")
		filters, _, _ := unstructured.NestedSlice(rule, "filters")
		if len(backends)+len(filters) == 0 {
			w.say("%s: a rule leads nowhere", title(object))
		}
		for _, each := range backends {
			backend, _ := each.(map[string]any)
			w.backend(title(object), backend, namespace)
		}
	}
}

func (w *world) backend(who string, backend map[string]any, namespace string) {
	in := namespace
	if other, ok := backend["namespace"].(string); ok {
		in = other
	}
	name := fmt.Sprint(backend["name"])
	port, _ := backend["port"].(int64)
	if !w.hasService(in, name, int32(port)) {
		w.say("%s: there is no Service %s with port %d in %s", who, name, port, in)
	}
	if in != namespace && !slices.ContainsFunc(w.objects, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == "ReferenceGrant" && namespaceOf(o, w.namespace) == in
	}) {
		w.say("%s: leads to %s without a ReferenceGrant there", who, in)
	}
}

// pod checks a pod of the chart's own making.
func (w *world) pod(p *Pod) {
	w.restricted(p)
	spec := &p.Template.Spec
	if name := spec.ServiceAccountName; name != "" && name != "default" {
		w.there(p.Owner, "ServiceAccount", name, p.Namespace)
	}
	for _, secret := range spec.ImagePullSecrets {
		w.there(p.Owner, "Secret", secret.Name, p.Namespace)
	}
	volumes := map[string]bool{}
	for _, claim := range p.Claims {
		volumes[claim] = true
	}
	for i := range spec.Volumes {
		volumes[spec.Volumes[i].Name] = true
		w.volume(p, &spec.Volumes[i])
	}
	for _, container := range append(slices.Clone(spec.InitContainers), spec.Containers...) {
		w.container(p, &container)
		for _, mount := range container.VolumeMounts {
			if !volumes[mount.Name] {
				w.say("%s, container %s: mounts %s, which is no volume of the pod", p.Owner, container.Name, mount.Name)
			}
		}
	}
}

func (w *world) volume(p *Pod, v *corev1.Volume) {
	who := p.Owner + ", volume " + v.Name
	switch {
	case v.ConfigMap != nil:
		if !optional(v.ConfigMap.Optional) {
			w.keys(who, w.there(who, "ConfigMap", v.ConfigMap.Name, p.Namespace), itemKeys(v.ConfigMap.Items))
		}
	case v.Secret != nil:
		if !optional(v.Secret.Optional) {
			w.keys(who, w.there(who, "Secret", v.Secret.SecretName, p.Namespace), itemKeys(v.Secret.Items))
		}
	case v.PersistentVolumeClaim != nil:
		w.there(who, "PersistentVolumeClaim", v.PersistentVolumeClaim.ClaimName, p.Namespace)
	case v.EmptyDir != nil:
		if v.EmptyDir.SizeLimit == nil {
			w.say("%s: has no limit of its size", who)
		}
	case v.Projected != nil:
		for _, source := range v.Projected.Sources {
			if source.ConfigMap != nil && !optional(source.ConfigMap.Optional) {
				w.keys(who, w.there(who, "ConfigMap", source.ConfigMap.Name, p.Namespace), itemKeys(source.ConfigMap.Items))
			}
			if source.Secret != nil && !optional(source.Secret.Optional) {
				w.keys(who, w.there(who, "Secret", source.Secret.Name, p.Namespace), itemKeys(source.Secret.Items))
			}
		}
	}
}

func optional(o *bool) bool { return o != nil && *o }

func itemKeys(items []corev1.KeyToPath) (keys []string) {
	for _, item := range items {
		keys = append(keys, item.Key)
	}
	return keys
}

// keys says which keys an object of the chart does not have; nil is one of others.
func (w *world) keys(who string, object *unstructured.Unstructured, keys []string) {
	if object == nil {
		return
	}
	for _, key := range keys {
		has := false
		for _, field := range []string{"data", "stringData", "binaryData"} {
			all, _ := object.Object[field].(map[string]any)
			_, found := all[key]
			has = has || found
		}
		if !has {
			w.say("%s: %s has no key %s", who, title(object), key)
		}
	}
}

func (w *world) container(p *Pod, c *corev1.Container) {
	who := p.Owner + ", container " + c.Name
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if limit := c.Resources.Limits[name]; limit.IsZero() {
			w.say("%s: has no limit of %s", who, name)
		}
		if request := c.Resources.Requests[name]; request.IsZero() {
			w.say("%s: requests no %s", who, name)
		}
	}
	image, tag, _ := strings.Cut(c.Image[strings.LastIndex(c.Image, "/")+1:], ":")
	if digest := strings.Contains(c.Image, "@sha256:"); image == "" || !digest && (tag == "" || tag == "latest") {
		w.say("%s: its image %q has no version", who, c.Image)
	}
	w.environment(who, p, c)
	for name, probe := range map[string]*corev1.Probe{"startup": c.StartupProbe, "readiness": c.ReadinessProbe, "liveness": c.LivenessProbe} {
		if probe != nil && probe.HTTPGet != nil && !hasPort([]Pod{*p}, probe.HTTPGet.Port) {
			w.say("%s: its %s probe asks port %s, which it does not have", who, name, probe.HTTPGet.Port.String())
		}
	}
	user := c.SecurityContext
	if pod := p.Template.Spec.SecurityContext; (user == nil || user.RunAsUser == nil) && (pod == nil || pod.RunAsUser == nil) {
		w.say("%s: runs as whatever user its image names; runAsUser must say which", who)
	}
}

// environment holds against Secrets and ConfigMaps what a container's variables come from.
func (w *world) environment(who string, p *Pod, c *corev1.Container) {
	for _, env := range c.Env {
		if from := env.ValueFrom; from != nil {
			if ref := from.SecretKeyRef; ref != nil && !optional(ref.Optional) {
				w.keys(who, w.there(who, "Secret", ref.Name, p.Namespace), []string{ref.Key})
			}
			if ref := from.ConfigMapKeyRef; ref != nil && !optional(ref.Optional) {
				w.keys(who, w.there(who, "ConfigMap", ref.Name, p.Namespace), []string{ref.Key})
			}
		}
	}
	for _, from := range c.EnvFrom {
		if from.SecretRef != nil && !optional(from.SecretRef.Optional) {
			w.there(who, "Secret", from.SecretRef.Name, p.Namespace)
		}
		if from.ConfigMapRef != nil && !optional(from.ConfigMapRef.Optional) {
			w.there(who, "ConfigMap", from.ConfigMapRef.Name, p.Namespace)
		}
	}
}

// evaluator is Pod Security's own.
var evaluator = func() policy.Evaluator {
	e, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		panic(err) // its own checks
	}
	return e
}()

// restricted holds a pod against the level "restricted" of Pod Security.
func (w *world) restricted(p *Pod) {
	level := podsecurity.LevelVersion{Level: podsecurity.LevelRestricted, Version: podsecurity.LatestVersion()}
	result := policy.AggregateCheckResults(evaluator.EvaluatePod(level, &p.Template.ObjectMeta, &p.Template.Spec))
	if !result.Allowed {
		w.say("%s: Pod Security restricted: %s", p.Owner, result.ForbiddenDetail())
	}
}
