//go:build kubernetes

package kubernetes

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kvbooth/internal/chart"
	"kvbooth/internal/source"
	"kvbooth/internal/wait"
)

// helm is the chart, its program and a cluster for it.
type helm struct {
	*ControlPlane
	root, program string
	objects       dynamic.Interface

	mu     sync.Mutex
	warned []string // by the API server
}

// HandleWarningHeader is called by the client.
func (h *helm) HandleWarningHeader(_ int, _, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.warned = append(h.warned, text)
}

// TestHelm holds the Helm chart against a real API server, with the definitions of all kinds that it knows, and its
// program against controllers, scheduler and an operator.
func TestHelm(t *testing.T) {
	c := Start(t)
	root, err := source.Root()
	require.NoError(t, err)
	program, err := chart.Build(t.Context(), root, os.Stderr)
	require.NoError(t, err)
	h := &helm{ControlPlane: c, root: root, program: program}
	config := c.Config()
	config.WarningHandler = h
	h.objects, err = dynamic.NewForConfig(config)
	require.NoError(t, err)
	c.Node(t, "gpu-0", 8)
	c.Node(t, "gpu-1", 8)
	c.Operator(t)
	for _, name := range []string{"restricted", "booth", "dynamo", "monitoring", "gateway", "gpu-operator", "dcgm-exporter"} {
		h.namespace(t, name)
	}
	t.Run("missing kinds", func(t *testing.T) { testMissingKinds(t, h) })
	h.defines(t, "Gateway", "HTTPRoute", "ReferenceGrant", "PodMonitor", "ServiceMonitor", "PrometheusRule", "PodCliqueSet")
	t.Run("values", func(t *testing.T) { testValues(t, h) })
	h.volumes(t)
	t.Run("beside a Dynamo", func(t *testing.T) { testBesideDynamo(t, h) })
	t.Run("new namespace", func(t *testing.T) { testNewNamespace(t, h) })
	t.Run("all of it", func(t *testing.T) { testAllOfIt(t, h) })
}

// namespace makes one whose pods must be restricted, and are warned of otherwise.
func (h *helm) namespace(t *testing.T, name string) {
	t.Helper()
	labels := map[string]string{}
	for _, mode := range []string{"enforce", "warn"} {
		labels["pod-security.kubernetes.io/"+mode] = "restricted"
	}
	require.NoError(t, h.create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}))
}

// defines adds other projects' kinds, and waits until they are served.
func (h *helm) defines(t *testing.T, kinds ...string) {
	t.Helper()
	all, err := chart.Definitions(t.Context(), h.root, kinds...)
	require.NoError(t, err)
	for _, definition := range all {
		h.apply(t, definition, "")
	}
	for _, definition := range all {
		wait.Within(t, within, definition.GetName()+" is served", func() (any, bool) {
			live := definition.DeepCopy()
			if h.client.Get(t.Context(), client.ObjectKeyFromObject(definition), live) != nil {
				return nil, false
			}
			conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
			return nil, slices.ContainsFunc(conditions, func(each any) bool {
				condition, _ := each.(map[string]any)
				return condition["type"] == "Established" && condition["status"] == "True"
			})
		})
	}
}

// volumes makes some for claims of the default class, since nobody provisions here.
func (h *helm) volumes(t *testing.T) {
	t.Helper()
	class := &storagev1.StorageClass{
		ObjectMeta:  metav1.ObjectMeta{Name: "local", Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}},
		Provisioner: "kubernetes.io/no-provisioner",
	}
	require.NoError(t, h.create(t.Context(), class))
	for i := range 8 {
		require.NoError(t, h.create(t.Context(), &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("local-", i)},
			Spec: corev1.PersistentVolumeSpec{
				Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("20Gi")}, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				StorageClassName: class.Name, PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/data"}},
			},
		}))
	}
}

// try has the API server check an object, or take it, as server-side apply with strict validation, and gives its warnings.
func (h *helm) try(t *testing.T, object *unstructured.Unstructured, namespace string, dry bool) (warned []string, err error) {
	t.Helper()
	kind := object.GroupVersionKind()
	mapping, err := h.client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	way := dynamic.ResourceInterface(h.objects.Resource(mapping.Resource))
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if own := object.GetNamespace(); own != "" {
			namespace = own
		}
		way = h.objects.Resource(mapping.Resource).Namespace(namespace)
	}
	text, err := object.MarshalJSON()
	require.NoError(t, err)
	options := metav1.PatchOptions{FieldManager: "test", FieldValidation: metav1.FieldValidationStrict}
	if dry {
		options.DryRun = []string{metav1.DryRunAll}
	}
	h.mu.Lock()
	h.warned = nil
	h.mu.Unlock()
	_, err = way.Patch(t.Context(), object.GetName(), types.ApplyPatchType, text, options)
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.warned), err
}

func (h *helm) apply(t *testing.T, object *unstructured.Unstructured, namespace string) {
	t.Helper()
	_, err := h.try(t, object, namespace, false)
	require.NoError(t, err, "%s %s", object.GetKind(), object.GetName())
}

// run runs the chart's program on this cluster and gives what it printed.
func (h *helm) run(t *testing.T, o chart.Options, command string, more ...string) (string, error) {
	t.Helper()
	args := append(o.Args(h.root, command), more...)
	if command == "status" || command == "delete" { // these take no values
		args = slices.DeleteFunc(args, func(arg string) bool {
			return strings.HasPrefix(arg, "--chart=") || strings.HasPrefix(arg, "--values=") || strings.HasPrefix(arg, "--set=")
		})
	}
	began := time.Now()
	out, err := chart.Run(t.Context(), h.program, append(args, "--kubeconfig="+h.Kubeconfig(), "--context=booth")...)
	t.Logf("%s after %.1f s", command, time.Since(began).Seconds())
	return out, err
}

// Without the kinds of others, what asks for them is said with what to do, and nothing is changed.
func testMissingKinds(t *testing.T, h *helm) {
	o := chart.Options{Namespace: "booth", Set: []string{
		"serving.name=graph", "serving.namespace=default", "gateway.enabled=true", "gateway.className=x", "gateway.host=booth.example.com", "monitoring.loadgen.enabled=true",
	}}
	for _, command := range []string{"plan", "apply"} {
		_, err := h.run(t, o, command)
		require.ErrorContains(t, err, "no kind HTTPRoute of gateway.networking.k8s.io/v1: install Gateway API")
		require.ErrorContains(t, err, "gateway.enabled=false")
		require.ErrorContains(t, err, "no kind ServiceMonitor of monitoring.coreos.com/v1: install the Prometheus operator")
	}
	_, err := h.run(t, o, "status")
	require.ErrorContains(t, err, "there is no release kvbooth in namespace booth of context booth")
}

// The API server takes every object of every values file as it is, and warns of nothing; a field that is misspelt it
// does not take. Every pod of a DynamoGraphDeployment is one that it takes from a Deployment, too.
func testValues(t *testing.T, h *helm) {
	cases, err := chart.Cases(h.root)
	require.NoError(t, err)
	for _, c := range cases {
		c.Options.Namespace = "restricted"
		c.Options.APIVersions = []string{"gateway.networking.k8s.io/v1", "monitoring.coreos.com/v1", "nvidia.com/v1beta1/DynamoGraphDeployment", "nvidia.com/v1beta1"}
		rendered, _, err := chart.Render(t.Context(), h.program, h.root, c.Options)
		require.NoError(t, err, c.Name)
		pods, err := chart.Pods(rendered, "restricted")
		require.NoError(t, err, c.Name)
		for i := range pods {
			if pods[i].Graph {
				rendered = append(rendered, wrapped(t, &pods[i].Template, fmt.Sprint("wrapped-", i)))
			}
		}
		for _, object := range rendered {
			if object.GetKind() == "ServiceAccount" { // the API server takes no pod without its account
				h.apply(t, object, "restricted")
				continue
			}
			warned, err := h.try(t, object, "restricted", true)
			assert.NoError(t, err, "%s: %s %s", c.Name, object.GetKind(), object.GetName())
			assert.Empty(t, warned, "%s: %s %s", c.Name, object.GetKind(), object.GetName())
			spec, ok := object.Object["spec"].(map[string]any)
			if !ok || c.Name != "everything" || object.GetKind() == kind.Kind { // whose other fields the definition here does not know
				continue
			}
			spec["mispelt"] = true
			_, err = h.try(t, object, "restricted", true)
			assert.ErrorContains(t, err, ".spec.mispelt", "%s %s", object.GetKind(), object.GetName())
		}
		t.Logf("%s: %d objects", c.Name, len(rendered))
	}
	root := wrapped(t, &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "root"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "image:1"}}},
	}, "root")
	warned, err := h.try(t, root, "restricted", true)
	require.NoError(t, err)
	require.Contains(t, strings.Join(warned, "\n"), "would violate PodSecurity", "the API server warns of what is not restricted")
}

// wrapped is a Deployment of a pod.
func wrapped(t *testing.T, template *corev1.PodTemplateSpec, name string) *unstructured.Unstructured {
	t.Helper()
	pod, err := runtime.DefaultUnstructuredConverter.ToUnstructured(template)
	require.NoError(t, err)
	if metadata, ok := pod["metadata"].(map[string]any); ok {
		delete(metadata, "creationTimestamp")
	}
	selector := map[string]any{}
	for key, value := range template.Labels {
		selector[key] = value
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"selector": map[string]any{"matchLabels": selector}, "template": pod},
	}}
}

// there says whether an object is in the cluster.
func (h *helm) there(t *testing.T, object client.Object, namespace, name string) bool {
	t.Helper()
	err := h.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object)
	require.NoError(t, client.IgnoreNotFound(err))
	return err == nil
}

// The booth is installed beside a Dynamo, into a namespace where pods must be restricted: it becomes ready, applying it
// again changes nothing, and deleting it leaves what it says.
func testBesideDynamo(t *testing.T, h *helm) {
	h.Deploy(t, "graph", "kv", 0)
	o := chart.Options{Namespace: "booth", Values: []string{"values-existing-dynamo.yaml"}, Set: []string{"serving.name=graph", "serving.namespace=default"}}
	said, err := h.run(t, o, "plan")
	require.NoError(t, err)
	assert.Contains(t, said, "installs release kvbooth in namespace booth\nCluster: context booth, https://127.0.0.1:")
	assert.Contains(t, said, "GPUs: none asked for")
	assert.Contains(t, said, "\n    StatefulSet kvbooth-loadgen\n")
	assert.NotContains(t, said, "Changes (")
	assert.NotContains(t, said, "warns")
	var secret corev1.Secret
	assert.False(t, h.there(t, &secret, "booth", "kvbooth-loadgen-token"), "a plan changes nothing")

	said, err = h.run(t, o, "apply", "--timeout=60s")
	require.NoError(t, err)
	assert.Contains(t, said, "Everything is ready.")
	said, err = h.run(t, o, "status")
	require.NoError(t, err)
	assert.Contains(t, said, "revision 1, deployed")
	assert.Regexp(t, `StatefulSet kvbooth-loadgen +ready`, said)

	said, err = h.run(t, o, "plan")
	require.NoError(t, err)
	assert.Contains(t, said, "upgrades (revision 1)")
	assert.Contains(t, said, "Everything is as the values ask for")
	wanting := o
	wanting.Set = append(slices.Clone(o.Set), "loadgen.resources.requests.cpu=1000")
	said, err = h.run(t, wanting, "apply", "--timeout=4s")
	require.ErrorContains(t, err, "limit", "the API server finds what no schema can say")
	assert.Contains(t, said, "Refused by the API server")
	wanting.Set = append(slices.Clone(o.Set), "grafana.resources.requests.cpu=1000", "grafana.resources.limits.cpu=1000")
	said, err = h.run(t, wanting, "apply", "--timeout=4s")
	require.ErrorContains(t, err, "not everything was ready within 4s")
	require.ErrorContains(t, err, "cannot be placed: ")
	require.ErrorContains(t, err, "Insufficient cpu")
	assert.Contains(t, said, "Deployment kvbooth-grafana: its pods are replaced")
	_, err = h.run(t, o, "status")
	require.ErrorContains(t, err, "not ready: 1 of ")

	said, err = h.run(t, o, "delete")
	require.NoError(t, err)
	assert.Contains(t, said, "Nothing was deleted")
	assert.Contains(t, said, "PersistentVolumeClaim data-kvbooth-loadgen-0 (5Gi), made by StatefulSet kvbooth-loadgen")
	assert.True(t, h.there(t, &secret, "booth", "kvbooth-loadgen-token"))
	h.deletes(t, o, said)
}

// A namespace that is not there is created, which is said before.
func testNewNamespace(t *testing.T, h *helm) {
	o := chart.Options{Namespace: "fresh", Set: []string{"serving.name=graph", "serving.namespace=default", "grafana.enabled=false", "doctor.enabled=false"}}
	said, err := h.run(t, o, "plan")
	require.NoError(t, err)
	assert.Contains(t, said, "Namespace fresh is not there yet: it is created first")
	assert.False(t, h.there(t, &corev1.Namespace{}, "", "fresh"))
	_, err = h.run(t, o, "apply", "--timeout=60s")
	require.NoError(t, err)
	assert.True(t, h.there(t, &corev1.Secret{}, "fresh", "kvbooth-loadgen-token"))
	_, err = h.run(t, o, "delete", "--yes")
	require.NoError(t, err)
}

// deletes deletes a release and holds what is there then against what was said before. The namespace is the release's.
func (h *helm) deletes(t *testing.T, o chart.Options, said string) {
	t.Helper()
	_, goes, ok := strings.Cut(said, "Deletes (")
	require.True(t, ok)
	goes, stays, ok := strings.Cut(goes, "Leaves in the cluster (")
	require.True(t, ok)
	_, err := h.run(t, o, "delete", "--yes")
	require.NoError(t, err)
	rendered, _, err := chart.Render(t.Context(), h.program, h.root, o)
	require.NoError(t, err)
	gone := 0
	for _, object := range rendered {
		if object.GetAnnotations()["helm.sh/hook"] != "" {
			continue
		}
		live := object.DeepCopy()
		namespace := o.Namespace
		if own := object.GetNamespace(); own != "" {
			namespace = own
		}
		line := "\n    " + object.GetKind() + " " + object.GetName()
		is := h.there(t, live, namespace, object.GetName())
		assert.Equal(t, is, strings.Contains(stays, line), "stays: %s", line)
		assert.Equal(t, !is, strings.Contains(goes, line), "goes: %s", line)
		if !is {
			gone++
		}
	}
	assert.Greater(t, gone, 5)
	for line := range strings.Lines(stays) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "PersistentVolumeClaim "); ok {
			name, _, _ = strings.Cut(name, " ")
			assert.True(t, h.there(t, &corev1.PersistentVolumeClaim{}, o.Namespace, name), "%s stays", name)
		}
	}
	_, err = h.run(t, o, "status")
	require.ErrorContains(t, err, "there is no release kvbooth")
}

// Everything at once, with a Dynamo of the chart's own, which the operator makes pods of: it becomes ready; an upgrade
// keeps the token, and the mode that somebody switched to.
func testAllOfIt(t *testing.T, h *helm) {
	cases, err := chart.Cases(h.root)
	require.NoError(t, err)
	o := cases[slices.IndexFunc(cases, func(c chart.Case) bool { return c.Name == "everything" })].Options
	o.Namespace = Namespace // the operator's
	o.APIVersions = nil
	said, err := h.run(t, o, "plan")
	require.NoError(t, err)
	assert.Contains(t, said, "GPUs: its pods ask for 6\n")
	more := o
	more.Set = append(slices.Clone(o.Set), "serving.tensorParallel=8")
	said, err = h.run(t, more, "apply", "--timeout=5s")
	assert.Regexp(t, `not ready yet:(\n .+)*\n +DynamoGraphDeployment kvbooth: `, said, "it says what it waits for")
	require.ErrorContains(t, err, "Insufficient nvidia.com/gpu")
	require.ErrorContains(t, err, "Gateway kvbooth: no controller has taken it up: is there one for GatewayClass x?")
	h.announce(t, "kvbooth")
	said, err = h.run(t, o, "apply", "--timeout=90s")
	require.NoError(t, err)
	assert.Contains(t, said, "DynamoGraphDeployment kvbooth: its pods are replaced")
	said, err = h.run(t, o, "status")
	require.NoError(t, err)
	assert.Regexp(t, `Gateway kvbooth +ready +at 192.0.2.1`, said)
	assert.Regexp(t, `DynamoGraphDeployment kvbooth +ready +successful, Frontend 1 of 1 ready, Worker 3 of 3 ready`, said)
	assert.Regexp(t, `DynamoGraphDeployment kvbooth-twin +ready`, said)

	var before, after, nats, natsAfter corev1.Secret
	require.True(t, h.there(t, &before, Namespace, "kvbooth-loadgen-token"))
	require.True(t, h.there(t, &nats, Namespace, "kvbooth-nats"))
	require.Equal(t, "kv", h.mode(t, "kvbooth"))
	h.switchTo(t, "kvbooth", "round-robin", "kvbooth")
	more.Set = append(slices.Clone(o.Set), "grafana.anonymousViewer=true")
	said, err = h.run(t, more, "apply", "--timeout=90s")
	require.NoError(t, err)
	changes, _, _ := strings.Cut(said[strings.Index(said, "Changes ("):], "Leaves as they are")
	assert.Contains(t, changes, "Deployment kvbooth-grafana")
	assert.NotContains(t, changes, kind.Kind)
	assert.Equal(t, "round-robin", h.mode(t, "kvbooth"), "an upgrade keeps the mode")
	require.True(t, h.there(t, &after, Namespace, "kvbooth-loadgen-token"))
	assert.Equal(t, before.Data, after.Data, "an upgrade keeps the token")
	require.True(t, h.there(t, &natsAfter, Namespace, "kvbooth-nats"))
	assert.Equal(t, nats.Data, natsAfter.Data, "an upgrade keeps the certificate")
	more.Set = append(more.Set, "serving.resetMode=true")
	h.switchTo(t, "kvbooth", "least-loaded", "somebody")
	_, err = h.run(t, more, "plan")
	require.ErrorContains(t, err, `conflict with "somebody"`)
	require.ErrorContains(t, err, "--take-over")
	said, err = h.run(t, more, "apply", "--take-over", "--timeout=90s")
	require.NoError(t, err)
	assert.Contains(t, said, "DynamoGraphDeployment kvbooth: its pods are replaced")
	assert.Contains(t, said, `"least-loaded" → "kv"`)
	assert.Equal(t, "kv", h.mode(t, "kvbooth"))

	said, err = h.run(t, o, "delete")
	require.NoError(t, err)
	assert.Contains(t, said, "GPUs: 6 are freed")
	h.deletes(t, o, said)
	wait.Within(t, within, "the workers end", func() (any, bool) {
		var pods corev1.PodList
		return nil, h.client.List(t.Context(), &pods, client.InNamespace(Namespace), client.MatchingLabels{labelGraph: "kvbooth"}) == nil && len(pods.Items) == 0
	})
}

// mode is that of a graph, as Dynamo spells it.
func (h *helm) mode(t *testing.T, name string) string {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	require.True(t, h.there(t, object, Namespace, name))
	g, err := read(object)
	require.NoError(t, err)
	for _, env := range g.Spec.Env {
		if env.Name == "DYN_ROUTER_MODE" {
			return env.Value
		}
	}
	return ""
}

// announce says of a Gateway what its controller would, which nobody plays here.
func (h *helm) announce(t *testing.T, name string) {
	t.Helper()
	gateway := &unstructured.Unstructured{}
	gateway.SetAPIVersion("gateway.networking.k8s.io/v1")
	gateway.SetKind("Gateway")
	require.True(t, h.there(t, gateway, Namespace, name))
	now := time.Now().UTC().Format(time.RFC3339)
	condition := func(kind string) any {
		return map[string]any{"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": now, "observedGeneration": gateway.GetGeneration()}
	}
	gateway.Object["status"] = map[string]any{
		"conditions": []any{condition("Accepted"), condition("Programmed")}, "addresses": []any{map[string]any{"type": "IPAddress", "value": "192.0.2.1"}},
	}
	require.NoError(t, h.client.Status().Update(t.Context(), gateway))
}

// switchTo patches the mode as the load generator does, which is called kvbooth there.
func (h *helm) switchTo(t *testing.T, name, mode, manager string) {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	require.True(t, h.there(t, object, Namespace, name))
	env, _, err := unstructured.NestedSlice(object.Object, "spec", "env")
	require.NoError(t, err)
	for _, each := range env {
		if entry, ok := each.(map[string]any); ok && entry["name"] == "DYN_ROUTER_MODE" {
			entry["value"] = mode
		}
	}
	patch, err := json.Marshal([]any{map[string]any{"op": "replace", "path": "/spec/env", "value": env}})
	require.NoError(t, err)
	require.NoError(t, h.client.Patch(t.Context(), object, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(manager)))
}
