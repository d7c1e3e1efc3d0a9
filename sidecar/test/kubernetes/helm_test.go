//go:build kubernetes

package kubernetes

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
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
	"kvbooth/sidecar/booth/doctor"
)

// helm is Helm with the chart, and a cluster for it.
type helm struct {
	*ControlPlane
	chart   chart.Helm
	root    string
	objects dynamic.Interface

	mu     sync.Mutex
	warned []string // by the API server
}

// HandleWarningHeader is called by the client.
func (h *helm) HandleWarningHeader(_ int, _, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.warned = append(h.warned, text)
}

// TestHelm checks the Helm chart with a real API server that has the definitions of all kinds that the chart renders.
// It installs the chart beside controllers, a scheduler and an operator.
func TestHelm(t *testing.T) {
	c := Start(t)
	root, err := source.Root()
	require.NoError(t, err)
	found, err := chart.FindHelm(t.Context(), root)
	require.NoError(t, err)
	h := &helm{ControlPlane: c, chart: found, root: root}
	config := c.Config()
	config.WarningHandler = h
	h.objects, err = dynamic.NewForConfig(config)
	require.NoError(t, err)
	c.Node(t, "gpu-0", 8)
	c.Node(t, "gpu-1", 8)
	c.Operator(t)
	for _, name := range strings.Fields("restricted booth dynamo monitoring gateway gpu-operator dcgm-exporter") {
		h.namespace(t, name)
	}
	t.Run("missing kinds", func(t *testing.T) { testMissingKinds(t, h) })
	h.defines(t, "Gateway", "HTTPRoute", "ReferenceGrant", "PodMonitor", "ServiceMonitor", "PrometheusRule",
		"PodCliqueSet")
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

// volumes creates volumes for claims of the default class, since the control plane has no provisioner.
func (h *helm) volumes(t *testing.T) {
	t.Helper()
	class := &storagev1.StorageClass{Provisioner: "kubernetes.io/no-provisioner"}
	class.Name, class.Annotations = "local", map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
	require.NoError(t, h.create(t.Context(), class))
	for i := range 8 {
		require.NoError(t, h.create(t.Context(), &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("local-", i)},
			Spec: corev1.PersistentVolumeSpec{
				Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("20Gi")},
				AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				StorageClassName:       class.Name,
				PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/data"}},
			},
		}))
	}
}

// try sends an object to the API server as a server-side apply with strict validation, and returns the warnings. With
// dry, the object is only checked.
func (h *helm) try(
	t *testing.T, object *unstructured.Unstructured, namespace string, dry bool,
) (warned []string, err error) {
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

// helm runs Helm on this cluster and returns what it prints.
func (h *helm) helm(t *testing.T, o chart.Options, command string, more ...string) (string, error) {
	t.Helper()
	began := time.Now()
	more = append(more, "--kubeconfig="+h.Kubeconfig(), "--kube-context=booth")
	printed, err := h.chart.Run(t.Context(), o, command, more...)
	t.Logf("helm %s after %.1f s", command, time.Since(began).Seconds())
	return printed, err
}

// install installs or upgrades as docs/kubernetes.md says.
func (h *helm) install(t *testing.T, o chart.Options, more ...string) error {
	t.Helper()
	flags := []string{"--install", "--create-namespace", "--wait", "--wait-for-jobs", "--timeout=90s"}
	_, err := h.helm(t, o, "upgrade", append(flags, more...)...)
	return err
}

// manifest is what booth manifest reports of the options' objects, a line for each finding.
func (h *helm) manifest(t *testing.T, o chart.Options) string {
	t.Helper()
	objects, err := h.helm(t, o, "template", "--dry-run=server", "--skip-tests")
	require.NoError(t, err)
	report, err := doctor.Manifest(t.Context(), strings.NewReader(objects), doctor.Options{
		Kubernetes: true, Kubeconfig: h.Kubeconfig(), Context: "booth", Namespace: o.Namespace,
	})
	require.NoError(t, err)
	return lines(t, report.Sections)
}

// kubectl runs kubectl on this cluster.
func (h *helm) kubectl(t *testing.T, args ...string) {
	t.Helper()
	command := append(h.Kubectl(), args...)
	printed, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput()
	require.NoError(t, err, "%s", printed)
}

// Without the kinds of others, Helm names those that the values need, and nothing is changed.
func testMissingKinds(t *testing.T, h *helm) {
	err := h.install(t, chart.Options{Namespace: "booth", Set: []string{
		"serving.name=graph", "serving.namespace=default", "gateway.enabled=true", "gateway.className=x",
		"gateway.host=booth.example.com", "monitoring.loadgen.enabled=true",
	}})
	require.ErrorContains(t, err, `no matches for kind "HTTPRoute" in version "gateway.networking.k8s.io/v1"`)
	require.ErrorContains(t, err, `no matches for kind "ServiceMonitor" in version "monitoring.coreos.com/v1"`)
	assert.False(t, h.there(t, &corev1.Secret{}, "booth", "kvbooth-loadgen-token"))
}

// The API server takes every object of every values file as it is, and warns of nothing; a field that is misspelled it
// does not take. Every pod of a DynamoGraphDeployment is one that it takes from a Deployment, too.
func testValues(t *testing.T, h *helm) {
	cases, err := chart.Cases(h.root)
	require.NoError(t, err)
	for _, c := range cases {
		c.Options.Namespace = "restricted"
		c.Options.APIVersions = []string{
			"gateway.networking.k8s.io/v1", "monitoring.coreos.com/v1",
			"nvidia.com/v1beta1/DynamoGraphDeployment", "nvidia.com/v1beta1",
		}
		rendered, _, err := h.chart.Render(t.Context(), c.Options)
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
			// The definition of kind here does not contain its other fields.
			if !ok || c.Name != "everything" || object.GetKind() == kind.Kind {
				continue
			}
			spec["misspelled"] = true
			_, err = h.try(t, object, "restricted", true)
			assert.ErrorContains(t, err, ".spec.misspelled", "%s %s", object.GetKind(), object.GetName())
		}
		t.Logf("%s: %d objects", c.Name, len(rendered))
	}
	root := wrapped(t, &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "root"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "image:1"}}},
	}, "root")
	warned, err := h.try(t, root, "restricted", true)
	require.NoError(t, err)
	require.Contains(t, strings.Join(warned, "\n"), "would violate PodSecurity",
		"the API server warns of what is not restricted")
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
// again changes no object, and deleting it leaves the volumes.
func testBesideDynamo(t *testing.T, h *helm) {
	h.Deploy(t, "graph", "kv", 0)
	o := chart.Options{Namespace: "booth", Values: []string{"values-existing-dynamo.yaml"}, Set: []string{
		"serving.name=graph", "serving.namespace=default",
	}}
	assert.Contains(t, h.manifest(t, o), "ok: the pods request no GPUs")
	require.NoError(t, h.install(t, o))
	h.kubectl(t, "-n", "booth", "wait", "--for=condition=Ready", "--timeout=0", "pod", "--all")
	versions := h.versions(t, o)
	require.NoError(t, h.install(t, o))
	assert.Equal(t, versions, h.versions(t, o), "an upgrade with the same values changes nothing")
	h.deletes(t, o)
	assert.True(t, h.there(t, &corev1.PersistentVolumeClaim{}, "booth", "data-kvbooth-loadgen-0"), "the results stay")
}

// A namespace that is not there is created.
func testNewNamespace(t *testing.T, h *helm) {
	o := chart.Options{Namespace: "fresh", Set: []string{
		"serving.name=graph", "serving.namespace=default", "grafana.enabled=false", "doctor.enabled=false",
	}}
	require.NoError(t, h.install(t, o))
	assert.True(t, h.there(t, &corev1.Secret{}, "fresh", "kvbooth-loadgen-token"))
	h.deletes(t, o)
}

// rendered are the objects of a release, without those of tests.
func (h *helm) rendered(t *testing.T, o chart.Options) []*unstructured.Unstructured {
	t.Helper()
	printed, err := h.helm(t, o, "get manifest")
	require.NoError(t, err)
	objects, err := chart.Parse(printed)
	require.NoError(t, err)
	for _, object := range objects {
		if object.GetNamespace() == "" {
			object.SetNamespace(o.Namespace)
		}
	}
	return objects
}

// versions returns the generations of the release's objects, which change with the specification. For an object without
// a generation, it returns the resource version.
func (h *helm) versions(t *testing.T, o chart.Options) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, object := range h.rendered(t, o) {
		require.True(t, h.there(t, object, object.GetNamespace(), object.GetName()))
		version := object.GetResourceVersion()
		if n := object.GetGeneration(); n > 0 {
			version = strconv.FormatInt(n, 10)
		}
		all[object.GetKind()+" "+object.GetName()] = version
	}
	return all
}

// deletes deletes a release as docs/kubernetes.md says: of its objects those stay that ask for it.
func (h *helm) deletes(t *testing.T, o chart.Options) {
	t.Helper()
	objects := h.rendered(t, o)
	_, err := h.helm(t, o, "uninstall", "--wait", "--cascade=foreground")
	require.NoError(t, err)
	gone := 0
	for _, object := range objects {
		keep := object.GetAnnotations()["helm.sh/resource-policy"] == "keep"
		exists := h.there(t, object.DeepCopy(), object.GetNamespace(), object.GetName())
		assert.Equal(t, keep, exists, "%s %s stays", object.GetKind(), object.GetName())
		if !exists {
			gone++
		}
	}
	assert.Greater(t, gone, 5)
}

// Everything at once, with a Dynamo of the chart's own, which the operator makes pods of: it becomes ready; an upgrade
// keeps the token, and a mode that was switched to.
func testAllOfIt(t *testing.T, h *helm) {
	cases, err := chart.Cases(h.root)
	require.NoError(t, err)
	o := cases[slices.IndexFunc(cases, func(c chart.Case) bool { return c.Name == "everything" })].Options
	o.Namespace = Namespace // the operator's
	report := h.manifest(t, o)
	assert.Contains(t, report,
		"ok: the pods request 6 GPUs: DynamoGraphDeployment kvbooth 3, DynamoGraphDeployment kvbooth-twin 3")
	assert.Contains(t, report, "ok: DynamoGraphDeployment default/kvbooth is accepted, and would be created")
	assert.Contains(t, report, "ok: 6 GPUs are requested, ")
	report = h.manifest(t, with(o, "serving.tensorParallel=8"))
	assert.Contains(t, report, "problem: 48 GPUs are requested, ")

	require.NoError(t, h.install(t, o))
	h.kubectl(t, "wait", "--for=condition=Ready", "--timeout=90s", "dynamographdeployment", "kvbooth", "kvbooth-twin")
	assert.Contains(t, h.manifest(t, o), "ok: DynamoGraphDeployment default/kvbooth is accepted, and would stay as it is")
	assert.Contains(t, h.manifest(t, with(o, "serving.maxBatch=48")),
		"warning: DynamoGraphDeployment default/kvbooth is accepted, and its specification would change")

	var before, after, nats, natsAfter corev1.Secret
	require.True(t, h.there(t, &before, Namespace, "kvbooth-loadgen-token"))
	require.True(t, h.there(t, &nats, Namespace, "kvbooth-nats"))
	require.Equal(t, "kv", h.mode(t, "kvbooth"))
	h.switchTo(t, "kvbooth", "round-robin", "kvbooth")
	versions := h.versions(t, o)
	require.NoError(t, h.install(t, with(o, "grafana.anonymousViewer=true")))
	changed := h.versions(t, o)
	assert.NotEqual(t, versions["Deployment kvbooth-grafana"], changed["Deployment kvbooth-grafana"])
	assert.Equal(t, versions[kind.Kind+" kvbooth"], changed[kind.Kind+" kvbooth"])
	assert.Equal(t, "round-robin", h.mode(t, "kvbooth"), "an upgrade keeps the mode")
	require.True(t, h.there(t, &after, Namespace, "kvbooth-loadgen-token"))
	assert.Equal(t, before.Data, after.Data, "an upgrade keeps the token")
	require.True(t, h.there(t, &natsAfter, Namespace, "kvbooth-nats"))
	assert.Equal(t, nats.Data, natsAfter.Data, "an upgrade keeps the certificate")

	reset := with(o, "serving.resetMode=true")
	h.switchTo(t, "kvbooth", "least-loaded", "other-manager")
	report = h.manifest(t, reset)
	assert.Contains(t, report, `conflict with "other-manager"`)
	assert.Contains(t, report, "add --force-conflicts to helm upgrade")
	require.ErrorContains(t, h.install(t, reset), `conflict with "other-manager"`)
	require.NoError(t, h.install(t, reset, "--force-conflicts"))
	assert.Equal(t, "kv", h.mode(t, "kvbooth"))

	h.deletes(t, o)
	wait.Within(t, within, "the workers end", func() (any, bool) {
		var pods corev1.PodList
		return nil, h.client.List(t.Context(), &pods, client.InNamespace(Namespace),
			client.MatchingLabels{labelGraph: "kvbooth"}) == nil && len(pods.Items) == 0
	})
}

// with are options with more values.
func with(o chart.Options, set ...string) chart.Options {
	o.Set = append(slices.Clone(o.Set), set...)
	return o
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
	require.NoError(t, h.client.Patch(t.Context(), object, client.RawPatch(types.JSONPatchType, patch),
		client.FieldOwner(manager)))
}
