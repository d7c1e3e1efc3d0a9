package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	releases "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

type statusCommand struct {
	release
	cluster
}

// Run prints how far the release is. It fails where something is missing, so that scripts can wait for it.
func (c *statusCommand) Run(ctx context.Context, out io.Writer) error {
	con, current, all, err := connectInstalled(c.cluster, c.release)
	if err != nil {
		return err
	}
	defer con.close()
	states, err := con.states(ctx, all)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Release %s in namespace %s, context %s: revision %d, %s, changed %s\n", con.Release, con.Namespace, con.context,
		current.Version, current.Info.Status, current.Info.LastDeployed.UTC().Format("2006-01-02 15:04 UTC"))
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	quiet := 0
	for _, s := range states {
		if s.ready && !s.works {
			quiet++
			continue
		}
		state := "ready"
		if !s.ready {
			state = "NOT READY"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", s.name, state, s.said)
	}
	table.Flush()
	if quiet > 0 {
		fmt.Fprintf(out, "%s without a state of their own: there\n", count(quiet, "more object"))
	}
	if missing := notReady(states); len(missing) > 0 {
		return fmt.Errorf("not ready: %d of %s", len(missing), count(len(states), "object"))
	}
	fmt.Fprintln(out, "Everything is ready.")
	return nil
}

// connectInstalled connects to a release that must be there, and gives its newest revision with the objects of it. The
// caller closes the connection.
func connectInstalled(to cluster, r release) (*connection, *releases.Release, []*unstructured.Unstructured, error) {
	con, err := connect(to, r)
	if err != nil {
		return nil, nil, nil, err
	}
	current, err := con.current()
	if err == nil && current == nil {
		err = fmt.Errorf("there is no release %s in namespace %s of context %s", con.Release, con.Namespace, con.context)
	}
	var all []*unstructured.Unstructured
	if err == nil {
		all, err = objects(current.Manifest)
	}
	if err != nil {
		con.close()
		return nil, nil, nil, err
	}
	return con, current, all, nil
}

// state is how far an object of the release is.
type state struct {
	name  string
	ready bool
	lost  bool   // it will not get ready any more
	works bool   // it has pods or a state of its own
	said  string // how far, or what is missing
}

func notReady(all []state) (lines []string) {
	for _, s := range all {
		if !s.ready {
			lines = append(lines, s.name+": "+s.said)
		}
	}
	return lines
}

// states looks at the objects of a release.
func (c *connection) states(ctx context.Context, wanted []*unstructured.Unstructured) (all []state, err error) {
	for _, object := range wanted {
		s, err := c.state(ctx, object)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

func (c *connection) state(ctx context.Context, wanted *unstructured.Unstructured) (state, error) {
	s := state{name: c.name(wanted)}
	resource, err := c.resource(wanted)
	if meta.IsNoMatchError(err) {
		s.said = c.explain(wanted.GroupVersionKind())
		return s, nil
	}
	if err != nil {
		return s, err
	}
	live, err := resource.Get(ctx, wanted.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		s.said = "it is gone: somebody deleted it"
		return s, nil
	}
	if err != nil {
		return s, err
	}
	computed, err := status.Compute(live)
	if err != nil {
		return s, fmt.Errorf("%s: %w", s.name, err)
	}
	s.ready, s.said = computed.Status == status.CurrentStatus, computed.Message
	switch live.GetKind() {
	case graphKind:
		return c.graph(ctx, live, s)
	case "Gateway":
		return gateway(live, s), nil
	case "Deployment", "StatefulSet":
		s.works = true
		if s.ready {
			ready, _, _ := unstructured.NestedInt64(live.Object, "status", "readyReplicas")
			s.said = fmt.Sprintf("%d of %s ready", ready, count(int(replicas(live.Object, "spec")), "pod"))
		}
	case "Job":
		s.works = true
		s = job(live, s)
	case "PersistentVolumeClaim":
		s.works = true
	}
	return c.withReasons(ctx, live, s)
}

// withReasons adds why the object's pods are not ready, where it is not.
func (c *connection) withReasons(ctx context.Context, live *unstructured.Unstructured, s state) (state, error) {
	if s.ready {
		return s, nil
	}
	reasons, err := c.reasons(ctx, live)
	s.said = strings.Join(append([]string{s.said}, reasons...), "; ")
	return s, err
}

// job says whether a Job has done its work. That it has begun is all that kstatus asks for.
func job(live *unstructured.Unstructured, s state) state {
	done, failed := conditionOf(live, "Complete"), conditionOf(live, "Failed")
	switch {
	case done["status"] == "True":
		s.ready, s.said = true, "done"
	case failed["status"] == "True":
		s.ready, s.lost, s.said = false, true, fmt.Sprint(failed["message"])
	default:
		s.ready, s.said = false, "runs"
	}
	return s
}

// gateway says whether a Gateway has been taken up.
func gateway(live *unstructured.Unstructured, s state) state {
	condition := conditionOf(live, "Programmed")
	class, _, _ := unstructured.NestedString(live.Object, "spec", "gatewayClassName")
	s.works, s.ready = true, condition["status"] == "True"
	switch {
	case s.ready:
		addresses, _, _ := unstructured.NestedSlice(live.Object, "status", "addresses")
		var at []string
		for _, each := range addresses {
			address, _ := each.(map[string]any)
			at = append(at, fmt.Sprint(address["value"]))
		}
		s.said = "at " + orNone(at)
	case condition == nil || condition["status"] == "Unknown":
		s.said = fmt.Sprintf("no controller has taken it up: is there one for GatewayClass %s? (kubectl get gatewayclass)", class)
	default:
		s.said = fmt.Sprint(condition["message"])
	}
	return s
}

// conditionOf is a condition of an object's status, nil where it has none.
func conditionOf(live *unstructured.Unstructured, kind string) map[string]any {
	conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	for _, each := range conditions {
		if condition, ok := each.(map[string]any); ok && condition["type"] == kind {
			return condition
		}
	}
	return nil
}

// graph reads what Dynamo's operator tells of a deployment, which it does later than a change: only a status of the
// present generation counts.
func (c *connection) graph(ctx context.Context, live *unstructured.Unstructured, s state) (state, error) {
	s.works = true
	told, _, _ := unstructured.NestedString(live.Object, "status", "state")
	seen, _, _ := unstructured.NestedInt64(live.Object, "status", "observedGeneration")
	if _, has, _ := unstructured.NestedMap(live.Object, "status"); !has || seen < live.GetGeneration() {
		s.ready, s.said = false, "Dynamo's operator has not taken it up"
		return s, nil
	}
	s.ready = s.ready && told == "successful"
	components, _, _ := unstructured.NestedMap(live.Object, "status", "components")
	var parts []string
	for name, each := range components {
		component, _ := each.(map[string]any)
		ready, _, _ := unstructured.NestedInt64(component, "readyReplicas")
		of, _, _ := unstructured.NestedInt64(component, "replicas")
		parts = append(parts, fmt.Sprintf("%s %d of %d ready", name, ready, of))
	}
	slices.Sort(parts)
	s.said = strings.Join(append([]string{cmp.Or(told, "no state")}, parts...), ", ")
	return c.withReasons(ctx, live, s)
}

const (
	graphKind  = "DynamoGraphDeployment"
	graphLabel = "nvidia.com/dynamo-graph-deployment-name" // on every pod of one
)

// reasons says of an object's pods why they are not ready.
func (c *connection) reasons(ctx context.Context, live *unstructured.Unstructured) ([]string, error) {
	selector := labels.Set{graphLabel: live.GetName()}.AsSelector()
	if live.GetKind() != graphKind {
		match, found, _ := unstructured.NestedMap(live.Object, "spec", "selector")
		if !found || match["matchLabels"] == nil && match["matchExpressions"] == nil {
			return nil, nil
		}
		var parsed metav1.LabelSelector
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(match, &parsed)
		if err == nil {
			selector, err = metav1.LabelSelectorAsSelector(&parsed)
		}
		if err != nil {
			return nil, err
		}
	}
	found, err := c.objects.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace(live.GetNamespace()).
		List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return nil, err
	}
	pods := map[string][]string{} // by reason
	for _, item := range found.Items {
		var pod corev1.Pod
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &pod); err != nil {
			return nil, err
		}
		if why := waitsFor(&pod); why != "" {
			pods[why] = append(pods[why], pod.Name)
		}
	}
	var said []string
	for _, why := range slices.Sorted(maps.Keys(pods)) {
		names := slices.Sorted(slices.Values(pods[why]))
		if len(names) > 1 {
			names[0] += fmt.Sprintf(" and %d more", len(names)-1)
		}
		said = append(said, "pod "+names[0]+": "+why)
	}
	return said, nil
}

// waitsFor says what a pod waits for, "" where it is ready or has ended well.
func waitsFor(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		switch {
		case condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue:
			return ""
		case condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse:
			why, _, _ := strings.Cut(condition.Message, ". ") // what follows is about preemption
			return "cannot be placed: " + why
		}
	}
	for _, container := range append(slices.Clone(pod.Status.InitContainerStatuses), pod.Status.ContainerStatuses...) {
		if waiting := container.State.Waiting; waiting != nil && waiting.Reason != "" {
			return strings.TrimSuffix(fmt.Sprintf("%s: %s", waiting.Reason, waiting.Message), ": ")
		}
		if ended := container.State.Terminated; ended != nil && ended.ExitCode != 0 {
			return fmt.Sprintf("ended with code %d: %s", ended.ExitCode, ended.Reason)
		}
	}
	if pod.Status.Phase == corev1.PodSucceeded {
		return ""
	}
	return "starts"
}
