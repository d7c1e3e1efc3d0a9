package kubernetes

import (
	"context"
	_ "embed" // of the resource's definition
	"fmt"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

//go:embed crd.yaml
var definition []byte

//go:embed earlier.yaml
var earlierDefinition []byte

// gpus is the resource that a node offers and a worker asks for.
const gpus corev1.ResourceName = "nvidia.com/gpu"

// Kubeconfig is the path of a file with the rights of the cluster's administrator, in [Namespace].
func (c *ControlPlane) Kubeconfig() string { return c.path("admin.kubeconfig") }

// Config is the same for a client of its own.
func (c *ControlPlane) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Client is the administrator's, without a cache.
func (c *ControlPlane) Client() client.Client { return c.client }

// Kubectl is how to call this cluster's kubectl with an administrator's rights: the program and its first arguments.
func (c *ControlPlane) Kubectl() []string {
	return []string{c.program, "kubectl", "--kubeconfig=" + c.Kubeconfig()}
}

// KubeconfigFor makes a service account in [Namespace] that has the rules there and no other right, and gives the path
// of a file with its token, which holds for an hour. An account of that name must not exist yet.
func (c *ControlPlane) KubeconfigFor(t testing.TB, name string, rules ...rbacv1.PolicyRule) string {
	t.Helper()
	meta := metav1.ObjectMeta{Name: name, Namespace: Namespace}
	account, hour := &corev1.ServiceAccount{ObjectMeta: meta}, int64(time.Hour/time.Second)
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &hour}}
	err := c.create(t.Context(), account,
		&rbacv1.Role{ObjectMeta: meta, Rules: rules},
		&rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: Namespace}},
		})
	if err == nil {
		err = c.client.SubResource("token").Create(t.Context(), account, token)
	}
	if err == nil {
		err = c.writeKubeconfig(name+".kubeconfig", c.config.Host, token.Status.Token)
	}
	if err != nil {
		t.Fatalf("kubeconfig for %s: %v", name, err)
	}
	return c.path(name + ".kubeconfig")
}

// Node adds a node with so many GPUs, and returns when pods can be scheduled on it.
func (c *ControlPlane) Node(t testing.TB, name string, gpuCount int) {
	t.Helper()
	has := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("512Gi"),
		corev1.ResourcePods:             resource.MustParse("110"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"), gpus: *resource.NewQuantity(int64(gpuCount),
			resource.DecimalSI),
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake", "node.alpha.kubernetes.io/ttl": "0"},
			Labels: map[string]string{
				"kubernetes.io/hostname": name, "nvidia.com/gpu.product": "NVIDIA-H200",
				"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
			},
		},
		Status: corev1.NodeStatus{Allocatable: has, Capacity: has},
	}
	err := c.create(t.Context(), node)
	if err == nil {
		ctx, cancel := context.WithTimeout(t.Context(), startWithin)
		defer cancel()
		err = c.await(ctx, "pods can be scheduled on "+name, func(ctx context.Context) error {
			return c.schedulable(ctx,
				name)
		})
	}
	if err != nil {
		t.Fatalf("node %s: %v", name, err)
	}
}

// schedulable says what keeps pods from a node: it is not ready, or the controllers have not taken their taint off yet.
func (c *ControlPlane) schedulable(ctx context.Context, name string) error {
	var node corev1.Node
	if err := c.client.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil {
		return err
	}
	if len(node.Spec.Taints) > 0 {
		return fmt.Errorf("its taints are %v", node.Spec.Taints)
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("it is not ready")
}

func (c *ControlPlane) create(ctx context.Context, objects ...client.Object) error {
	for _, object := range objects {
		if err := c.client.Create(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// connect makes the administrator's client. It asks nothing yet.
func (c *ControlPlane) connect(api string) (err error) {
	c.config = &rest.Config{
		Host: api, BearerToken: c.token,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.certificate}, QPS: -1,
	}
	c.client, err = client.New(c.config, client.Options{Scheme: scheme.Scheme})
	return err
}

// define adds the resource of DynamoGraphDeployments, and waits until it is served.
func (c *ControlPlane) define(ctx context.Context) error {
	text := definition
	if c.kind == earlierKind {
		text = earlierDefinition
	}
	object, err := parse(text)
	if err != nil {
		return err
	}
	if err := c.create(ctx, object); err != nil {
		return err
	}
	return c.await(ctx, "DynamoGraphDeployments are served", func(ctx context.Context) error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(c.kind)
		return c.client.List(ctx, list, client.InNamespace(Namespace))
	})
}

// populated says whether a pod would find the service account that every pod has.
func (c *ControlPlane) populated(ctx context.Context) error {
	return c.client.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: "default"}, &corev1.ServiceAccount{})
}

func (c *ControlPlane) writeKubeconfig(name, api, token string) error {
	const the = "booth"
	config := clientcmdapi.NewConfig()
	config.Clusters[the] = &clientcmdapi.Cluster{Server: api, CertificateAuthorityData: c.certificate}
	config.AuthInfos[the] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[the] = &clientcmdapi.Context{Cluster: the, AuthInfo: the, Namespace: Namespace}
	config.CurrentContext = the
	return clientcmd.WriteToFile(*config, c.path(name))
}

// parse reads one object of any kind.
func parse(manifest []byte) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(manifest, &object.Object); err != nil {
		return nil, err
	}
	return object, nil
}

var (
	// kind is that of a DynamoGraphDeployment.
	kind = schema.GroupVersionKind{Group: "nvidia.com", Version: "v1beta1", Kind: "DynamoGraphDeployment"}
	// earlierKind is that of Dynamo 0.9.
	earlierKind = schema.GroupVersionKind{Group: kind.Group, Version: "v1alpha1", Kind: kind.Kind}
)

// convert copies fields between an object and a struct with their names.
func convert[T any](from map[string]any) (to T, err error) {
	err = runtime.DefaultUnstructuredConverter.FromUnstructured(from, &to)
	return to, err
}
