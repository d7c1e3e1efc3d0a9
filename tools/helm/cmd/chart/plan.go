package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/kube"
	releases "helm.sh/helm/v4/pkg/release/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

type planCommand struct {
	source
	release
	cluster
	TakeOver bool `help:"Take over fields that somebody else than the load generator has set otherwise. Without this they are refused."`
}

// Run prints the plan. It fails where the API server refuses an object.
func (c *planCommand) Run(ctx context.Context, out io.Writer) error {
	con, p, err := c.plan(ctx, out)
	if err != nil {
		return err
	}
	defer con.close()
	if err := p.refused(); err != nil {
		return err
	}
	fmt.Fprintln(out, "Nothing was changed: this was the plan.")
	return nil
}

// plan connects, computes the plan and prints it. The caller closes the connection.
func (c *planCommand) plan(ctx context.Context, out io.Writer) (*connection, *plan, error) {
	loaded, given, err := c.load()
	if err != nil {
		return nil, nil, err
	}
	con, err := connect(c.cluster, c.release)
	if err != nil {
		return nil, nil, err
	}
	p, err := con.plan(ctx, loaded, given, c.TakeOver)
	if err != nil {
		con.close()
		return nil, nil, err
	}
	p.print(out)
	return con, p, nil
}

// plan is what applying values would do.
type plan struct {
	con      *connection
	loaded   *chart.Chart
	given    map[string]any
	takeOver bool              // whatever somebody else has set
	forces   bool              // what the load generator has set is taken over, and nobody else is in the way
	current  *releases.Release // nil where it is an installation
	newSpace bool              // the namespace is not there yet, so that the API server can check nothing in it
	objects  []*unstructured.Unstructured
	create   []string
	change   []string // with what changes, in lines of their own
	same     []string
	remove   []string
	keep     []string // of those that the release no longer has, those that stay
	refuse   []string
	warned   []string
}

// plan compares what the chart makes with what is there.
func (c *connection) plan(ctx context.Context, loaded *chart.Chart, given map[string]any, takeOver bool) (*plan, error) {
	there, err := c.namespaceThere(ctx)
	if err != nil {
		return nil, err
	}
	p := &plan{con: c, loaded: loaded, given: given, takeOver: takeOver, newSpace: !there}
	if there {
		if p.current, err = c.current(); err != nil {
			return nil, err
		}
	}
	made, err := c.made(ctx, loaded, given, p.current)
	if err != nil {
		return nil, err
	}
	if p.objects, err = objects(made.Manifest); err != nil {
		return nil, err
	}
	c.warned.take()
	here := map[string]bool{}
	for _, object := range p.objects {
		here[c.name(object)] = true
		if err := p.compare(ctx, object); err != nil {
			return nil, err
		}
	}
	p.warned = c.warned.take()
	return p, p.obsolete(here)
}

// obsolete finds what the release had and has no longer.
func (p *plan) obsolete(here map[string]bool) error {
	if p.current == nil {
		return nil
	}
	before, err := objects(p.current.Manifest)
	if err != nil {
		return err
	}
	for _, object := range before {
		switch {
		case here[p.con.name(object)]:
		case kept(object):
			p.keep = append(p.keep, p.con.name(object))
		default:
			p.remove = append(p.remove, p.con.name(object))
		}
	}
	return nil
}

// kept says whether Helm leaves an object in the cluster.
func kept(object *unstructured.Unstructured) bool {
	return object.GetAnnotations()[kube.ResourcePolicyAnno] == kube.KeepPolicy
}

// compare has the API server check an object, and sorts it in.
func (p *plan) compare(ctx context.Context, object *unstructured.Unstructured) error {
	resource, err := p.con.resource(object)
	if err != nil {
		return err
	}
	if p.newSpace && object.GetNamespace() == p.con.Namespace {
		p.create = append(p.create, p.con.name(object))
		return nil
	}
	live, err := resource.Get(ctx, object.GetName(), metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return p.con.inWords(err)
	}
	is := err == nil
	wanted := object.DeepCopy()
	p.own(wanted)
	text, err := json.Marshal(wanted)
	if err != nil {
		return err
	}
	options := metav1.PatchOptions{
		DryRun: []string{metav1.DryRunAll}, FieldManager: kube.ManagedFieldsManager, FieldValidation: metav1.FieldValidationStrict, Force: &p.takeOver,
	}
	after, err := resource.Patch(ctx, object.GetName(), types.ApplyPatchType, text, options)
	if switched(err) {
		// The chart has read what the load generator has switched to, and keeps it unless serving.resetMode says otherwise.
		yes := true
		options.Force, p.forces = &yes, true
		after, err = resource.Patch(ctx, object.GetName(), types.ApplyPatchType, text, options)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		p.refuse = append(p.refuse, fmt.Sprintf("%s: %v", p.con.name(object), p.con.inWords(err)))
	case !is:
		p.create = append(p.create, p.con.name(object))
	default:
		if lines := differences(live, after); len(lines) > 0 {
			p.change = append(p.change, p.con.name(object)+consequence(object, lines)+"\n      "+strings.Join(shortened(lines), "\n      "))
		} else {
			p.same = append(p.same, p.con.name(object))
		}
	}
	return nil
}

// switcher is the field manager of the load generator's driver of modes.
const switcher = `conflict with "kvbooth"`

// switched says whether all that hinders an object is that the load generator has set fields of it.
func switched(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict) || !errors.As(err, &status) {
		return false
	}
	return !slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool { return !strings.HasPrefix(c.Message, switcher) })
}

// own puts on an object what Helm does, too.
func (p *plan) own(object *unstructured.Unstructured) {
	labels, annotations := object.GetLabels(), object.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels["app.kubernetes.io/managed-by"] = "Helm"
	annotations["meta.helm.sh/release-name"], annotations["meta.helm.sh/release-namespace"] = p.con.Release, p.con.Namespace
	object.SetLabels(labels)
	object.SetAnnotations(annotations)
}

// consequence says what a change does beyond the object itself.
func consequence(object *unstructured.Unstructured, lines []string) string {
	touches := func(prefix string) bool {
		return slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, prefix) })
	}
	switch object.GetKind() {
	case "Deployment", "StatefulSet", "DaemonSet":
		if touches("spec.template") {
			return ": its pods are replaced"
		}
	case graphKind:
		if touches("spec.env") || touches("spec.components") {
			return ": its pods are replaced, and what they had cached is lost"
		}
	}
	return ""
}

// name is an object's for people: kind and name, and the namespace where it is another one than the release's.
func (c *connection) name(object *unstructured.Unstructured) string {
	name := object.GetKind() + " " + object.GetName()
	if in := object.GetNamespace(); in != "" && in != c.Namespace {
		name += " in " + in
	}
	return name
}

// changesShown is how many fields of an object are named.
const changesShown = 6

func shortened(lines []string) []string {
	if len(lines) <= changesShown {
		return lines
	}
	return append(slices.Clone(lines[:changesShown]), fmt.Sprintf("… and %d more", len(lines)-changesShown))
}

// differences are the fields that change, "path: before → after" each. Of Secrets it gives the paths alone.
func differences(before, after *unstructured.Unstructured) []string {
	a, b := before.DeepCopy().Object, after.DeepCopy().Object
	for _, object := range []map[string]any{a, b} {
		delete(object, "status")
		metadata, _ := object["metadata"].(map[string]any)
		for _, field := range []string{"managedFields", "resourceVersion", "generation", "creationTimestamp", "uid"} {
			delete(metadata, field)
		}
	}
	var lines []string
	walk("", a, b, func(path string, from, to any) {
		if before.GetKind() == "Secret" && strings.HasPrefix(path, "data") {
			lines = append(lines, path)
			return
		}
		from, to, rest := firstLines(from, to)
		lines = append(lines, fmt.Sprintf("%s: %s → %s%s", path, brief(from), brief(to), rest))
	})
	return lines
}

// walk calls found for each place where two values differ; what one of them lacks is nil there.
func walk(path string, a, b any, found func(path string, a, b any)) {
	if reflect.DeepEqual(a, b) {
		return
	}
	am, aMap := a.(map[string]any)
	bm, bMap := b.(map[string]any)
	if aMap && bMap {
		keys := maps.Clone(am)
		maps.Copy(keys, bm)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			walk(strings.TrimPrefix(path+"."+strings.ReplaceAll(key, ".", `\.`), "."), am[key], bm[key], found)
		}
		return
	}
	as, aList := a.([]any)
	bs, bList := b.([]any)
	if aList && bList && len(as) == len(bs) {
		for i := range as {
			walk(fmt.Sprintf("%s[%d]", path, i), as[i], bs[i], found)
		}
		return
	}
	found(path, a, b)
}

// firstLines takes of two texts of several lines the first that differ, and says how many more of the new one's do.
func firstLines(from, to any) (a, b any, rest string) {
	before, isText := from.(string)
	after, areText := to.(string)
	if !isText || !areText || !strings.Contains(before+after, "\n") {
		return from, to, ""
	}
	was := strings.Split(before, "\n")
	changed := slices.DeleteFunc(strings.Split(after, "\n"), func(line string) bool { return slices.Contains(was, line) })
	gone := slices.DeleteFunc(was, func(line string) bool { return slices.Contains(strings.Split(after, "\n"), line) })
	if len(changed) > 1 || len(gone) > 1 {
		rest = fmt.Sprintf(" (the first of %s)", count(max(len(changed), len(gone)), "changed line"))
	}
	if len(gone) > 0 {
		a = strings.TrimSpace(gone[0])
	}
	if len(changed) > 0 {
		b = strings.TrimSpace(changed[0])
	}
	return a, b, rest
}

// valueShown is how many bytes of a value are shown.
const valueShown = 60

func brief(v any) string {
	if v == nil {
		return "nothing"
	}
	text := quoted(v)
	if len(text) > valueShown {
		text = strings.ToValidUTF8(text[:valueShown], "") + "…"
	}
	return text
}

// refused says what the API server does not take.
func (p *plan) refused() error {
	if len(p.refuse) == 0 {
		return nil
	}
	return fmt.Errorf("the API server refuses %s; nothing was changed:\n  %s", count(len(p.refuse), "object"), strings.Join(p.refuse, "\n  "))
}

func (p *plan) print(out io.Writer) {
	c := p.con
	verb := "installs"
	if p.current != nil {
		verb = fmt.Sprintf("upgrades (revision %d)", p.current.Version)
	}
	fmt.Fprintf(out, "Chart %s %s: %s release %s in namespace %s\n", p.loaded.Metadata.Name, p.loaded.Metadata.Version, verb, c.Release, c.Namespace)
	fmt.Fprintf(out, "Cluster: context %s, %s, Kubernetes %s\n", c.context, c.host, c.caps.KubeVersion.Version)
	if p.newSpace {
		fmt.Fprintf(out, "Namespace %s is not there yet: it is created first, and only what stands outside of it could be checked by the API server.\n", c.Namespace)
	}
	fmt.Fprintf(out, "Objects: %s\n", kinds(p.objects))
	if asked := gpus(p.objects); asked > 0 {
		fmt.Fprintf(out, "GPUs: its pods ask for %d\n", asked)
	} else {
		fmt.Fprintln(out, "GPUs: none asked for")
	}
	section(out, "Creates", p.create)
	section(out, "Changes", p.change)
	section(out, "Leaves as they are", p.same)
	section(out, "Deletes", p.remove)
	section(out, "No longer manages, but leaves in the cluster", p.keep)
	section(out, "Refused by the API server", p.refuse)
	section(out, "The API server warns", p.warned)
	if p.current != nil && len(p.create)+len(p.change)+len(p.remove)+len(p.refuse) == 0 {
		fmt.Fprintln(out, "Everything is as the values ask for: applying them changes nothing but the release's revision.")
	}
}

func section(out io.Writer, title string, lines []string) {
	if len(lines) > 0 {
		fmt.Fprintf(out, "%s (%d):\n    %s\n", title, len(lines), strings.Join(lines, "\n    "))
	}
}

// kinds counts objects by kind.
func kinds(all []*unstructured.Unstructured) string {
	counts := map[string]int{}
	for _, object := range all {
		counts[object.GetKind()]++
	}
	var said []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		said = append(said, fmt.Sprintf("%d %s", counts[kind], kind))
	}
	return orNone(said)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
