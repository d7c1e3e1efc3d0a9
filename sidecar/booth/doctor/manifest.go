package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"

	"kvbooth/sidecar/loadgen/cluster/kubernetes"
)

// Objects is the section of a report on objects that are about to be applied.
const Objects = "Objects"

// helm is the name by which Helm owns fields of objects.
const helm = "helm"

// Manifest examines the objects that Helm is about to apply: how many GPUs their pods request, and, with o.Kubernetes,
// whether the API server accepts each DynamoGraphDeployment and has the GPUs free. It changes nothing. An error means
// that text is not valid YAML or cannot be read.
func Manifest(ctx context.Context, text io.Reader, o Options) (Report, error) {
	objects, err := readObjects(text)
	if err != nil {
		return Report{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, partTimeout)
	defer cancel()
	counted := findings{}
	graphs := requested(objects, &counted)
	r := Report{Sections: []Section{{Objects, counted}}}
	if o.Kubernetes {
		answered := findings{}
		(&exam{Options: o}).tryGraphs(ctx, graphs, &answered)
		r.Sections = append(r.Sections, Section{Kubernetes, answered})
	}
	r.count()
	return r, nil
}

// readObjects reads YAML documents; empty ones are left out.
func readObjects(text io.Reader) (all []*unstructured.Unstructured, err error) {
	decoder := yaml.NewYAMLOrJSONDecoder(text, 4096)
	for {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(&object.Object); {
		case errors.Is(err, io.EOF) && len(all) == 0:
			return nil, errors.New("there are no objects in it")
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("document %d: %w", len(all)+1, err)
		case len(object.Object) > 0:
			all = append(all, object)
		}
	}
}

// requested reports what the objects are and how many GPUs their pods request, and returns the DynamoGraphDeployments.
func requested(objects []*unstructured.Unstructured, all *findings) (graphs []*unstructured.Unstructured) {
	kinds := map[string]int{}
	var gpus int64
	var by []string
	for _, object := range objects {
		kinds[object.GetKind()]++
		if object.GetKind() == kubernetes.GraphKind {
			graphs = append(graphs, object)
		}
		name := object.GetKind() + " " + object.GetName()
		needs, err := kubernetes.NeedsOf(object)
		switch {
		case err != nil:
			all.problem(fmt.Sprintf("%s: %v", name, err), "correct it, or the values that it is made of")
		case needs.GPUs > 0:
			gpus += needs.GPUs
			by = append(by, fmt.Sprintf("%s %d", name, needs.GPUs))
		}
	}
	var counts []string
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		counts = append(counts, fmt.Sprintf("%d %s", kinds[kind], kind))
	}
	all.ok(fmt.Sprintf("%d objects: %s", len(objects), strings.Join(counts, ", ")))
	if gpus == 0 {
		all.ok("the pods request no GPUs")
	} else {
		all.ok(fmt.Sprintf("the pods request %d GPUs: %s", gpus, strings.Join(by, ", ")))
	}
	return graphs
}

// tryGraphs has the API server check each graph, and compares the GPUs that all of them need with the free ones.
func (e *exam) tryGraphs(ctx context.Context, graphs []*unstructured.Unstructured, all *findings) {
	c := e.reach(ctx, all, true)
	if c == nil || !c.definitions(ctx, len(graphs) > 0) {
		return
	}
	var missing kubernetes.Needs // what the pods in the cluster do not hold
	for _, g := range graphs {
		if g.GetNamespace() == "" {
			g.SetNamespace(c.namespace)
		}
		c.try(ctx, g)
		needs, err := kubernetes.NeedsOf(g)
		if err != nil {
			continue // it has been reported
		}
		in := c.client.Resource(pods).Namespace(g.GetNamespace())
		there, err := list[corev1.Pod](ctx, in, kubernetes.PodsOf(g.GetName()))
		if err != nil {
			all.skip("the pods of "+g.GetName()+": "+err.Error(), "")
		}
		missing.GPUs += max(0, needs.GPUs-needs.Held(there))
		missing.Each, missing.Kind = max(missing.Each, needs.Each), cmp.Or(missing.Kind, needs.Kind)
	}
	if missing.GPUs > 0 {
		c.gpus(ctx, kubernetes.New(ctx, c.client, kubernetes.Options{}), missing.GPUs, missing)
	}
}

// try asks for a dry run of what Helm does with a graph.
func (c *cluster) try(ctx context.Context, g *unstructured.Unstructured) {
	name := fmt.Sprintf("%s %s/%s", g.GetKind(), g.GetNamespace(), g.GetName())
	version := g.GroupVersionKind().GroupVersion().WithResource(graphs.Resource)
	resource := c.client.Resource(version).Namespace(g.GetNamespace())
	live, err := resource.Get(ctx, g.GetName(), metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		c.all.skip(name+": "+err.Error(), "grant get on "+graphs.Resource)
		return
	}
	exists := err == nil
	text, err := g.MarshalJSON()
	if err != nil {
		c.all.problem(name+": "+err.Error(), "")
		return
	}
	after, err := resource.Patch(ctx, g.GetName(), types.ApplyPatchType, text, metav1.PatchOptions{
		DryRun: []string{metav1.DryRunAll}, FieldManager: helm, FieldValidation: metav1.FieldValidationStrict,
	})
	switch {
	case apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict):
		c.all.problem(name+": "+err.Error(),
			"keep what has been set there (kvbooth is the load generator), or add --force-conflicts to helm upgrade")
	case apierrors.IsNotFound(err): // the namespace, since the kind is served
		c.all.skip(name+": "+err.Error(), "create its namespace first: kubectl create namespace "+g.GetNamespace())
	case err != nil:
		c.all.problem(name+": "+err.Error(), "change the values: helm upgrade would fail at it")
	case !exists:
		c.all.ok(name + " is accepted, and would be created")
	case reflect.DeepEqual(live.Object["spec"], after.Object["spec"]):
		c.all.ok(name + " is accepted, and would stay as it is")
	default:
		c.all.warn(name+" is accepted, and its specification would change: "+
			"pods are replaced, and what they had cached is lost", "apply it while no run is in progress")
	}
}
