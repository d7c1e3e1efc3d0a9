package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

const (
	configMapPrefix = "configmap:"
	maxConfigMap    = 1 << 20 // limit of the API server, in bytes
)

// IsConfigMap reports whether a path of an output is a key of a ConfigMap, configmap:NAME/KEY.
func IsConfigMap(path string) bool { return strings.HasPrefix(path, configMapPrefix) }

// WriteConfigMap sets the key at a path. It creates a missing ConfigMap and keeps the other keys of an existing one.
// Namespace and credentials are those that [Credentials] finds without a kubeconfig. With "All" as dryRun it
// only checks that the key could be written.
func WriteConfigMap(path string, text []byte, dryRun ...string) error {
	name, key, ok := strings.Cut(strings.TrimPrefix(path, configMapPrefix), "/")
	if !ok {
		return errors.New("a ConfigMap is written as configmap:NAME/KEY")
	}
	if len(text) > maxConfigMap {
		return fmt.Errorf("%d bytes are too many: a ConfigMap holds at most %d", len(text), maxConfigMap)
	}
	client, namespace, err := Connect("", "", "")
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": name}, "data": map[string]any{key: string(text)},
	}}
	patch, err := object.MarshalJSON()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	all := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(namespace)
	_, err = all.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{DryRun: dryRun})
	if apierrors.IsNotFound(err) {
		_, err = all.Create(ctx, object, metav1.CreateOptions{DryRun: dryRun})
	}
	return err
}
