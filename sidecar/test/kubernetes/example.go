package kubernetes

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// example is a graph of one frontend and three workers that start fast and are replaced in their
// places: of a name, the mode that it begins in, and how long a worker takes to start.
const example = `
apiVersion: nvidia.com/v1beta1
kind: DynamoGraphDeployment
metadata: {name: %s, namespace: ` + Namespace + `}
spec:
  backendFramework: trtllm
  env: [{name: DYN_ROUTER_MODE, value: %s}]
  components:
  - name: Frontend
    type: frontend
    replicas: 1
    podTemplate:
      metadata: {annotations: {kvbooth/start: 300ms}}
      spec: {containers: [{name: main, image: "runtime:1.6.1"}]}
  - name: TRTLLMWorker
    type: worker
    replicas: 3
    podTemplate:
      metadata:
        annotations: {kvbooth/start: %s, nvidia.com/deployment-rolling-update-max-surge: "0", nvidia.com/deployment-rolling-update-max-unavailable: "100%%"}
      spec: {containers: [{name: main, image: "runtime:1.6.1", args: [--model-path, llama], resources: {limits: {nvidia.com/gpu: "1"}}}]}
`

// earlierExample is the same graph in v1alpha1.
const earlierExample = `
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: %s, namespace: ` + Namespace + `}
spec:
  backendFramework: trtllm
  envs: [{name: DYN_ROUTER_MODE, value: %s}]
  services:
    Frontend:
      componentType: frontend
      replicas: 1
      extraPodMetadata: {annotations: {kvbooth/start: 300ms}}
      extraPodSpec: {mainContainer: {image: "runtime:0.9.0"}}
    TRTLLMWorker:
      componentType: worker
      replicas: 3
      annotations: {nvidia.com/deployment-rolling-update-max-surge: "0", nvidia.com/deployment-rolling-update-max-unavailable: "100%%"}
      extraPodMetadata: {annotations: {kvbooth/start: %s}}
      resources: {limits: {gpu: "1"}}
      extraPodSpec: {mainContainer: {image: "runtime:0.9.0", args: [--model-path, llama]}}
`

// Deploy creates a DynamoGraphDeployment of one frontend and three workers with a GPU each, and returns it without
// waiting until it is ready. mode is the value of DYN_ROUTER_MODE. start is the time that a worker takes to start; the
// frontend takes 300 ms. An error ends the test, so it must be called on the test's goroutine. The object is deleted at
// the test's end.
func (c *ControlPlane) Deploy(t testing.TB, name, mode string, start time.Duration) *unstructured.Unstructured {
	t.Helper()
	text := example
	if c.kind == earlierKind {
		text = earlierExample
	}
	object, err := parse(fmt.Appendf(nil, text, name, mode, start))
	if err == nil {
		err = c.create(t.Context(), object)
	}
	if err != nil {
		t.Fatalf("deploy %s: %v", name, err)
	}
	t.Cleanup(func() { _ = c.client.Delete(context.WithoutCancel(t.Context()), object) })
	return object
}
