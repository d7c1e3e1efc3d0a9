package main

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What changes is named by its path, with the values before and after; of Secrets the paths alone.
func TestDifferences(t *testing.T) {
	object := func(kind string, data map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"kind": kind, "metadata": map[string]any{"name": "x", "resourceVersion": data["key"]}, "status": data["key"], "data": data,
		}}
	}
	for _, c := range []struct {
		kind          string
		before, after map[string]any
		want          []string
	}{
		{"ConfigMap", map[string]any{"key": "a"}, map[string]any{"key": "a"}, nil},
		{"ConfigMap", map[string]any{"key": "a"}, map[string]any{"key": "b"}, []string{`data.key: "a" → "b"`}},
		{"ConfigMap", map[string]any{"a.b": "a"}, map[string]any{}, []string{`data.a\.b: "a" → nothing`}},
		{"ConfigMap", map[string]any{"key": []any{int64(1), int64(2)}}, map[string]any{"key": []any{int64(1), int64(3)}}, []string{`data.key[1]: 2 → 3`}},
		{"ConfigMap", map[string]any{"key": "a: 1\nb: 1\n"}, map[string]any{"key": "a: 1\nb: 2\n"}, []string{`data.key: "b: 1" → "b: 2"`}},
		{"ConfigMap", map[string]any{"key": "a: 1\nb: 1\n"}, map[string]any{"key": "a: 2\nb: 2\n"}, []string{`data.key: "a: 1" → "a: 2" (the first of 2 changed lines)`}},
		{"Secret", map[string]any{"key": "secret"}, map[string]any{"key": "other"}, []string{"data.key"}},
	} {
		if got := differences(object(c.kind, c.before), object(c.kind, c.after)); !slices.Equal(got, c.want) {
			t.Errorf("%v to %v: %q, not %q", c.before, c.after, got, c.want)
		}
	}
}

// GPUs are those of all pods: a number that is none counts as what Kubernetes makes of it.
func TestGPUs(t *testing.T) {
	all, err := objects(`
kind: DynamoGraphDeployment
spec:
  components:
  - {name: Frontend, replicas: 1, podTemplate: {spec: {containers: [{name: main}]}}}
  - {name: Worker, replicas: 3, podTemplate: {spec: {containers: [{name: main, resources: {limits: {nvidia.com/gpu: 2}}}]}}}
---
kind: Deployment
spec: {template: {spec: {containers: [{resources: {limits: {nvidia.com/gpu: "1"}}}]}}}
---
kind: StatefulSet
spec: {replicas: 0, template: {spec: {containers: [{resources: {limits: {nvidia.com/gpu: "8"}}}]}}}
`)
	if err != nil {
		t.Fatal(err)
	}
	if got := gpus(all); got != 7 {
		t.Errorf("%d, not 7", got)
	}
}
