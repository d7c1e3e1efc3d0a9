//go:build kubernetes

package kubernetes

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/booth/doctor"
	"kvbooth/sidecar/loadgen/cluster/kubernetes"
)

const (
	claimName  = "model-nfs-pvc"
	secretName = "hf-token"
)

// TestDoctor has the doctor look at a cluster that lacks one thing after the other, until
// nothing is missing, and then at one whose graphs are of another version, or unknown.
func TestDoctor(t *testing.T) {
	c := Start(t)
	c.Operator(t)
	c.Node(t, "gpu-0", 2)
	object := doctored(t)
	require.NoError(t, c.Client().Create(t.Context(), object))
	look := func(change func(*doctor.Options)) string { return c.doctor(t, change) }

	c.waitForLines(t, look, "nothing is there that the graph needs",
		"problem: the claim default/model-nfs-pvc, which the pods mount, does not exist -> create it",
		"problem: the Secret default/hf-token does not exist -> create it: kubectl -n default create secret generic hf-token",
		"is Pending: 0/1 nodes are available: persistentvolumeclaim \"model-nfs-pvc\" not found")

	c.claim(t)
	c.waitForLines(t, look, "the claim is not bound",
		"problem: the claim default/model-nfs-pvc is Pending, not Bound -> create a matching PersistentVolume",
		"unbound immediate PersistentVolumeClaims")

	c.volume(t)
	c.waitForLines(t, look, "a GPU is missing",
		"ok: the claim default/model-nfs-pvc is bound to models",
		"not checked: the weights on the volume: there is no download Job",
		"is Pending: 0/1 nodes are available: 1 Insufficient nvidia.com/gpu",
		"problem: graph requests 1 GPUs that it does not have, 0 are free: 1 too few -> add a node",
		"problem: 3 of 4 pods of graph are ready -> see each pod")

	require.NoError(t, c.Client().Create(t.Context(), &corev1.Secret{ObjectMeta: inNamespace(secretName)}))
	c.Node(t, "gpu-1", 1)
	c.waitForLines(t, look, "the Secret is empty",
		"problem: the Secret default/hf-token is empty -> delete it",
		"ok: 4 of 4 pods of graph are ready", "ok: graph has all the GPUs it requests")

	secret := &corev1.Secret{ObjectMeta: inNamespace(secretName)}
	filled := client.RawPatch(types.MergePatchType, []byte(`{"stringData":{"token":"hf_example"}}`))
	require.NoError(t, c.Client().Patch(t.Context(), secret, filled))
	c.job(t)
	said := c.waitForLines(t, look, "all is well",
		"ok: the API server "+c.Config().Host, "ok: its clock matches",
		"ok: DynamoGraphDeployments are served as nvidia.com/v1beta1",
		"ok: Gateway API (gateway.networking.k8s.io) is not installed",
		"ok: DynamoGraphDeployment default/graph: 1 × Frontend, 3 × TRTLLMWorker",
		"ok: the Secret default/hf-token exists", "ok: the weights are downloaded: Job model-download is complete")
	assert.NotContains(t, said, "problem:")

	said = look(func(o *doctor.Options) { o.GPUs, o.Secrets = new(int64(2)), []string{"booth-token"} })
	assert.Contains(t, said, "problem: 2 GPUs are requested, 0 are free: 2 too few -> add a node")
	assert.Contains(t, said, "problem: the Secret default/booth-token does not exist")
	said = look(func(o *doctor.Options) { o.Graphs = []string{"other/absent"} })
	assert.Contains(t, said, "problem: DynamoGraphDeployment other/absent not found")
	said = look(func(o *doctor.Options) { o.Kubeconfig = c.KubeconfigFor(t, "reader") })
	assert.Contains(t, said, "not checked: the graph default/graph: our credentials may not read it -> use other "+
		"credentials with --kubeconfig")
	assert.NotContains(t, said, "problem:")

	c.serve(t, "v1")
	c.waitForLines(t, look, "another version is served",
		"problem: DynamoGraphDeployments are served in no version that KV Booth reads; "+
			"the Kubernetes cluster has v1 -> install a Dynamo operator")
	definition := &unstructured.Unstructured{}
	definition.SetGroupVersionKind(definitionKind)
	definition.SetName("dynamographdeployments.nvidia.com")
	require.NoError(t, c.Client().Delete(t.Context(), definition))
	c.waitForLines(t, look, "graphs are unknown",
		"problem: the Kubernetes cluster has no DynamoGraphDeployments (dynamographdeployments.nvidia.com) "+
			"-> install Dynamo's operator")
}

var definitionKind = schema.GroupVersionKind{
	Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition",
}

func inNamespace(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: Namespace}
}

// doctored is the graph of the example, whose workers mount the weights and want a Secret.
func doctored(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	text := strings.Replace(fmt.Sprintf(example, "graph", "kv", "300ms"), `resources: {limits: {nvidia.com/gpu: "1"}}}]}`,
		`resources: {limits: {nvidia.com/gpu: "1"}}, env: [{name: HF_TOKEN, valueFrom: {secretKeyRef: {name: `+secretName+`, key: token}}}]}],
        volumes: [{name: models, persistentVolumeClaim: {claimName: `+claimName+`}}]}`, 1)
	object, err := parse([]byte(text))
	require.NoError(t, err)
	return object
}

// claim makes one that nothing binds until there is a volume.
func (c *ControlPlane) claim(t *testing.T) {
	t.Helper()
	require.NoError(t, c.Client().Create(t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: inNamespace(claimName),
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: new(""), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("500Gi")},
			},
		},
	}))
}

func (c *ControlPlane) volume(t *testing.T) {
	t.Helper()
	require.NoError(t, c.Client().Create(t.Context(), &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "models"},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Capacity:    corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("500Gi")},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				NFS: &corev1.NFSVolumeSource{Server: "10.0.0.5", Path: "/models"},
			},
		},
	}))
}

// job has a download that completes.
func (c *ControlPlane) job(t *testing.T) {
	t.Helper()
	job := &batchv1.Job{ObjectMeta: inNamespace("model-download")}
	job.Labels = map[string]string{"app.kubernetes.io/component": "model-download"}
	job.Spec.Template.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers:    []corev1.Container{{Name: "main", Image: "download:1"}},
	}
	job.Spec.Template.Annotations = map[string]string{"kvbooth/start": "100ms"}
	require.NoError(t, c.Client().Create(t.Context(), job))
}

// serve replaces the definition of graphs by one of another version.
func (c *ControlPlane) serve(t *testing.T, version string) {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(definitionKind)
	object.SetName("dynamographdeployments.nvidia.com")
	require.NoError(t, c.Client().Patch(t.Context(), object, client.RawPatch(types.JSONPatchType, []byte(`[
		{"op": "add", "path": "/spec/versions/-", "value": {"name": "`+version+`", "served": true, "storage": false,
			"schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}},
		{"op": "replace", "path": "/spec/versions/0/served", "value": false}]`))))
}

// waitForLines runs look until the report contains each of lines, and returns the report.
func (c *ControlPlane) waitForLines(
	t *testing.T, look func(func(*doctor.Options)) string, when string, lines ...string,
) (said string) {
	t.Helper()
	wait.Within(t, within, when, func() (any, bool) {
		said = look(nil)
		i := slices.IndexFunc(lines, func(line string) bool { return !strings.Contains(said, line) })
		if i >= 0 {
			return fmt.Sprintf("no line %q in\n%s", lines[i], said), false
		}
		return nil, true
	})
	return said
}

// doctor returns the doctor's findings on Kubernetes, one per line. Each problem has a remedy.
func (c *ControlPlane) doctor(t *testing.T, change func(*doctor.Options)) string {
	t.Helper()
	noLoadgen := httptest.NewServer(http.NotFoundHandler()) // the cluster is examined without a load generator, too
	defer noLoadgen.Close()
	o := doctor.Options{LoadgenURL: noLoadgen.URL, Kubeconfig: c.Kubeconfig(), Graphs: []string{"graph"}}
	if change != nil {
		change(&o)
	}
	report, err := doctor.Examine(t.Context(), o)
	require.NoError(t, err)
	return lines(t, slices.DeleteFunc(report.Sections, func(s doctor.Section) bool { return s.Name != doctor.Kubernetes }))
}

// lines are the findings of a report.
func lines(t *testing.T, sections []doctor.Section) string {
	t.Helper()
	var said strings.Builder
	for _, s := range sections {
		for _, f := range s.Findings {
			assert.False(t, f.Severity == kubernetes.Problem && f.Do == "", "nothing to do about: %s", f.Found)
			fmt.Fprintf(&said, "%s: %s -> %s\n", f.Severity, f.Found, f.Do)
		}
	}
	return said.String()
}
