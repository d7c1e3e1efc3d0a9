package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// maxConfigMap is the limit of the API server for the content of a ConfigMap, in bytes.
const maxConfigMap = 1 << 20

// WriteConfigMap sets a key of a ConfigMap, which it creates if there is none, in the namespace and by the credentials
// that [Credentials] finds without a kubeconfig. Other keys stay. With "All" as dryRun it only checks that the key
// could be written.
func WriteConfigMap(ctx context.Context, name, key string, text []byte, dryRun ...string) error {
	if len(text) > maxConfigMap {
		return fmt.Errorf("%d bytes are too many: a ConfigMap holds at most %d", len(text), maxConfigMap)
	}
	client, namespace, err := Connect("", "", "")
	if err != nil {
		return err
	}
	object := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": name}, "data": map[string]any{key: string(text)},
	}
	patch, err := json.Marshal(object)
	if err != nil {
		return err
	}
	all := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(namespace)
	_, err = all.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{DryRun: dryRun})
	if apierrors.IsNotFound(err) {
		_, err = all.Create(ctx, &unstructured.Unstructured{Object: object}, metav1.CreateOptions{DryRun: dryRun})
	}
	return err
}
