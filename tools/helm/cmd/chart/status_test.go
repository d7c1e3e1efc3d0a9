package main

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// condition is an object with one in its status.
func condition(kind, status, message string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"spec":   map[string]any{"gatewayClassName": "x"},
		"status": map[string]any{"conditions": []any{map[string]any{"type": kind, "status": status, "message": message}}},
	}}
}

// A Job is ready when it is done, and lost when it has failed; a Gateway when its controller has taken it up.
func TestStates(t *testing.T) {
	for _, c := range []struct {
		got, want state
	}{
		{job(condition("Suspended", "False", ""), state{ready: true}), state{said: "runs"}},
		{job(condition("Complete", "True", ""), state{}), state{ready: true, said: "done"}},
		{job(condition("Failed", "True", "too often"), state{}), state{lost: true, said: "too often"}},
		{gateway(condition("Programmed", "Unknown", ""), state{}), state{works: true, said: "no controller has taken it up: is there one for GatewayClass x? (kubectl get gatewayclass)"}},
		{gateway(condition("Programmed", "False", "no address"), state{}), state{works: true, said: "no address"}},
		{gateway(condition("Programmed", "True", ""), state{}), state{works: true, ready: true, said: "at none"}},
	} {
		if c.got != c.want {
			t.Errorf("%+v, not %+v", c.got, c.want)
		}
	}
}

// What a pod waits for is its own word, without what the scheduler says of preemption.
func TestWaitsFor(t *testing.T) {
	pod := func(status corev1.PodStatus) *corev1.Pod { return &corev1.Pod{Status: status} }
	for _, c := range []struct {
		pod  *corev1.Pod
		want string
	}{
		{pod(corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}), ""},
		{
			pod(corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/2 nodes are available: 2 Insufficient nvidia.com/gpu. preemption: none"}}}),
			"cannot be placed: 0/2 nodes are available: 2 Insufficient nvidia.com/gpu",
		},
		{
			pod(corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}}}}}),
			"ImagePullBackOff: no such image",
		},
		{
			pod(corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}}}}}),
			"ended with code 137: OOMKilled",
		},
		{pod(corev1.PodStatus{Phase: corev1.PodSucceeded}), ""},
		{pod(corev1.PodStatus{Phase: corev1.PodPending}), "starts"},
	} {
		if got := waitsFor(c.pod); got != c.want {
			t.Errorf("%q, not %q", got, c.want)
		}
	}
}
