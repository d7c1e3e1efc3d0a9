package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	nodes   = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	reviews = schema.GroupVersionResource{
		Group: "authorization.k8s.io", Version: "v1",
		Resource: "selfsubjectaccessreviews",
	}
)

// Severity is the effect of a finding on a switch.
type Severity string

// The severities: a switch is not affected, may fail, or will fail.
const (
	Good    Severity = "ok"
	Warning Severity = "warning"
	Problem Severity = "problem"
)

// Finding is one result of Check.
type Finding struct {
	Severity Severity `json:"severity"`
	Found    string   `json:"found"`        // what was found
	Do       string   `json:"do,omitempty"` // the remedy; empty where none is needed
}

// Check reports whether the mode can be switched: the graph, its mode and variants, the
// rights, and the GPUs that a roll-out needs. It changes nothing.
func (d *Driver) Check(ctx context.Context) []Finding {
	_, all, _ := d.Look(ctx)
	return append(all, d.Rights(ctx)...)
}

// Look is Check without the rights, which depend on the caller's credentials. It also
// returns what the graph needs. A graph that cannot be read is both an error and a finding.
func (d *Driver) Look(ctx context.Context) (Needs, []Finding, error) {
	g, err := d.graph(ctx)
	if err != nil {
		f := Finding{Problem, err.Error(), ""}
		switch {
		case errors.As(err, new(*notFoundError)):
			f.Do = "set mode.kubernetes.name and mode.kubernetes.namespace to an existing object: kubectl get " +
				"dynamographdeployments -A"
		case apierrors.IsForbidden(err):
			f.Do = "add the rule"
		default:
			f.Do = "check that the API server is reachable: kubectl get --raw /readyz"
		}
		return Needs{}, []Finding{f}, err
	}
	known := d.readClaims(ctx, g)
	needs := g.needs(known)
	all := []Finding{d.checkGraph(g, known), d.checkMode(g)}
	if g.workerPods() == 0 {
		all = append(all, Finding{
			Problem, fmt.Sprintf("no component of %s is a worker with replicas: none has the type worker, prefill, decode or "+
				"main, or requests GPUs", g.id()),
			"set the type and the replicas of the components that serve the model",
		})
	}
	if needs.Unknown != "" {
		all = append(all, Finding{
			Warning, "the number of GPUs is unknown: " + needs.Unknown,
			"grant get on resourceclaimtemplates and resourceclaims (resource.k8s.io), or create what is missing",
		})
	}
	if len(d.opts.Variants) > 0 {
		all = append(all, d.checkVariant(g))
	}
	if text := g.constraints(); text != "" {
		all = append(all, Finding{Good, "Grove places by constraints: " + text, ""})
	}
	switch {
	case d.opts.FrontendAlone:
	case g.grove():
		all = append(all, Finding{Good, "Grove replaces the pods of a component in place: a rollout needs no extra GPUs", ""})
	default:
		for _, c := range g.Spec.Components {
			if c.isWorker() {
				all = append(all, d.checkSurge(ctx, c, known))
			}
		}
	}
	return needs, all, nil
}

func (d *Driver) checkGraph(g *graph, known devices) Finding {
	var parts []string
	for _, c := range g.Spec.Components {
		part := fmt.Sprintf("%d × %s", c.count(), c.Name)
		if n := c.nodes(); n > 1 {
			each := fmt.Sprintf("%d pods", n)
			if g := known.ofPod(c.PodTemplate.Spec); g.unknown == "" && g.count > 0 {
				each += fmt.Sprintf(" and %d GPUs", int64(n)*g.count)
			}
			part += fmt.Sprintf(" (%s each)", each)
		}
		parts = append(parts, part)
	}
	f := Finding{Good, fmt.Sprintf("DynamoGraphDeployment %s: %s", g.id(), strings.Join(parts, ", ")), ""}
	if !g.Status.ready(g.Generation) {
		f.Severity = Warning
		f.Found += "; not ready: " + g.Status.why()
		f.Do = "wait until it is, or find out why: kubectl describe dynamographdeployment " + g.Name
	}
	return f
}

func (d *Driver) checkMode(g *graph) Finding {
	switch argument := g.fixed(); {
	case g.picker() != "":
		return Finding{
			Problem, fmt.Sprintf("the router is %s, not the frontend: the mode cannot be switched by patching the frontend",
				g.picker()),
			"set mode.driver to manual, and mode.mode to what the endpoint picker does",
		}
	case argument != "":
		return Finding{Problem, fmt.Sprintf("the frontend has the argument %s %s, which overrides %s", routerFlag, argument,
			routerMode), "remove the argument"}
	case g.modeIsOwn():
		mechanism := "spec.restart"
		if g.version == v1alpha1 {
			mechanism = "a variable of all components"
		}
		return Finding{Good, fmt.Sprintf("mode %s, in the frontend's environment; a switch restarts the workers by %s",
			g.mode().Name(), mechanism), ""}
	}
	if _, i := valueOf(g.Spec.Env, routerMode); i >= 0 {
		return Finding{Good, fmt.Sprintf("mode %s, in %s; a switch restarts frontend and workers with it",
			g.mode().Name(), strings.ReplaceAll(strings.TrimPrefix(g.shared().path, "/"), "/", ".")), ""}
	}
	return Finding{Good, fmt.Sprintf("no %s: Dynamo's default is %s; the first switch adds it", routerMode,
		g.mode().Name()), ""}
}

func (d *Driver) checkVariant(g *graph) Finding {
	if s, ok := d.runs(g); ok {
		return Finding{Good, fmt.Sprintf("the workers run the variant %s of %d", s.Name(), len(d.opts.Variants)), ""}
	}
	return Finding{
		Warning, "the workers run none of the variants",
		"add their current settings as a variant, too, so that a rollback can restore them",
	}
}

// Rights asks the API server whether the driver's own credentials have each permission that a switch needs. It returns
// a [Problem] with the remedy for each missing permission, and a [Warning] for each one that cannot be checked, or else
// one finding that is [Good]. Where the graph's name cannot be found, it checks the permissions for all graphs.
func (d *Driver) Rights(ctx context.Context) []Finding {
	name, _ := d.find(ctx) // an unknown name asks for the rights on all graphs
	var missing []Finding
	ask := func(group, resource, name string, verbs ...string) {
		for _, verb := range verbs {
			allowed, err := d.may(ctx, group, resource, name, verb)
			rule := ruleFor(verb, name)
			if resource == pods.Resource {
				rule = podRule
			}
			switch {
			case err != nil:
				missing = append(missing, Finding{Warning, fmt.Sprintf("permission to %s %s cannot be checked: %v", verb, resource,
					err), ""})
			case !allowed:
				missing = append(missing, Finding{
					Problem, fmt.Sprintf("permission to %s %s is missing", verb, resource),
					"add this rule to the Role in namespace " + d.opts.Namespace + ": " + rule,
				})
			}
		}
	}
	ask(Graphs.Group, Graphs.Resource, name, "get", "patch")
	if d.opts.Selector != "" {
		ask(Graphs.Group, Graphs.Resource, "", "list")
	}
	ask("", pods.Resource, "", "list")
	if len(missing) == 0 {
		return []Finding{{Good, "all permissions that a switch needs", ""}}
	}
	return missing
}

func (d *Driver) may(ctx context.Context, group, resource, name, verb string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := d.client.Resource(reviews).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
		"spec": map[string]any{"resourceAttributes": map[string]any{
			"namespace": d.opts.Namespace, "group": group, "resource": resource, "name": name, "verb": verb,
		}},
	}}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	allowed, _, _ := unstructured.NestedBool(answer.Object, "status", "allowed")
	return allowed, nil
}

// checkSurge reports whether a roll-out of a component finds the GPUs that it needs beside those in use.
func (d *Driver) checkSurge(ctx context.Context, c component, known devices) Finding {
	annotations := c.PodTemplate.Annotations
	if annotations[strategyAnnotation] == "Recreate" {
		return Finding{
			Warning, c.Name + " is rolled out by Recreate: a reverted switch may hang for a while if no GPUs are spare",
			fmt.Sprintf("annotate its podTemplate with %s: \"0\" and %s: \"100%%\" instead", surgeAnnotation,
				unavailableAnnotation),
		}
	}
	surge := surgeOf(annotations[surgeAnnotation], c.count()) * c.nodes()
	each := known.ofPod(c.PodTemplate.Spec)
	needed := int64(surge) * each.count
	if surge == 0 || needed == 0 && each.unknown == "" {
		return Finding{Good, c.Name + " is rolled out without extra GPUs", ""}
	}
	do := fmt.Sprintf("annotate its podTemplate with %s: \"0\" and %s: \"100%%\"", surgeAnnotation, unavailableAnnotation)
	if each.unknown != "" {
		return Finding{Warning, fmt.Sprintf("the rollout of %s starts %d additional pod(s), whose GPUs are unknown: %s",
			c.Name, surge, each.unknown), do}
	}
	text := fmt.Sprintf("the rollout of %s starts %d additional pod(s) and needs %d free GPU(s)", c.Name, surge, needed)
	free, err := d.FreeGPUs(ctx, each.kind, each.count)
	switch {
	case err != nil:
		return Finding{Warning, text + "; the number of free GPUs is unknown: " + err.Error(), do +
			", or grant list on nodes and on pods of all namespaces"}
	case free < needed:
		return Finding{Problem, fmt.Sprintf("%s; %d are free: it would hang", text, free), do}
	}
	return Finding{Good, fmt.Sprintf("%s; %d are free", text, free), ""}
}

// surgeOf parses the number of pods that a roll-out may add: a number, or a percentage of
// all. A Deployment rounds the percentage up; its default is 25 %.
func surgeOf(text string, all int) int {
	percent, isPercent := strings.CutSuffix(cmp.Or(text, "25%"), "%")
	n, err := strconv.Atoi(percent)
	switch {
	case err != nil:
		return all
	case isPercent:
		return (n*all + 99) / 100
	}
	return n
}
