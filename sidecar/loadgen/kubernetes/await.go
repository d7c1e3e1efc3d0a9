package kubernetes

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kvbooth/sidecar/api"
)

// ofComponent is the label that names a pod's component.
const ofComponent = "nvidia.com/dynamo-component"

// overtaken says why there is nothing to undo: somebody else has changed the object, or deleted it.
type overtaken struct{ why string }

func (o *overtaken) Error() string { return o.why }

// setMeanwhile is the overtaken of another mode, set by whom the object names; "": it names nobody.
func setMeanwhile(by string, to api.Mode) error {
	return &overtaken{fmt.Sprintf("%s set %s to %s in the meantime; that was left unchanged", cmp.Or(by, "somebody else"),
		routerMode, spelled(to))}
}

// broken is a pod that will not start.
type broken struct{ pod, reason, message string }

func (b *broken) Error() string {
	return strings.TrimRight(fmt.Sprintf("pod %s does not start: %s: %s", b.pod, b.reason, b.message), ": ")
}

// watch is one wait for a roll-out.
type watch struct {
	*Driver
	want    *wanted
	failing map[types.UID]time.Time // since when a pod says that it cannot start
	said    string
	since   time.Time // when that was said first
	freed   bool
}

// await looks until what is wanted is there. Progress hears of each message that is new. The
// error says what was missing last; it is an [overtaken] where there is no point in going on.
func (d *Driver) await(ctx context.Context, w *wanted, progress func(string)) error {
	within := time.Until(w.note.Deadline)
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("timed out after %s", d.opts.Timeout))
	defer cancel()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for v := (&watch{Driver: d, want: w, failing: map[types.UID]time.Time{}, since: time.Now()}); ; {
		message, err := v.look(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			return err
		case message == "":
			return nil
		case message != v.said:
			v.said, v.since = message, time.Now()
			progress(message)
		}
		if err := v.free(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (last: %s)", context.Cause(ctx), v.said)
		case <-tick.C:
		}
	}
}

// free gives a way back another generation where it has stood still for long: with the strategy
// Recreate, the operator waits for pods that nobody makes any more.
func (v *watch) free(ctx context.Context) error {
	if !v.want.note.Back || v.freed || time.Since(v.since) < stuckFor {
		return nil
	}
	v.freed, v.want.nonce = true, rand.Text()[:10]
	return v.put(ctx, v.want)
}

// look says what is missing, "" where nothing is.
func (v *watch) look(ctx context.Context) (string, error) {
	g, err := v.graph(ctx)
	switch {
	case errors.As(err, new(*gone)):
		return "", &overtaken{err.Error()}
	case err != nil:
		return passes("Kubernetes does not answer", err)
	case g.mode() != v.want.mode.Mode:
		return "", setMeanwhile(g.author(), g.mode())
	}
	if n, noted := g.note(); noted && n.By != v.opts.By {
		return "", setMeanwhile(n.By, n.To.Mode)
	}
	all, err := v.pods(ctx, g)
	if err != nil {
		return passes("Kubernetes does not answer", err)
	}
	if err := v.start(all); err != nil {
		return "", err
	}
	if message := v.missing(g, all); message != "" {
		return message, nil
	}
	return v.unlisted(ctx, g)
}

// spelled is Dynamo's name of a mode where the booth has one for it.
func spelled(m api.Mode) string { return cmp.Or(spellings[m], "a mode unknown to KV Booth") }

// passes makes a message of an error that may pass.
func passes(what string, err error) (string, error) { return what + ": " + err.Error(), nil }

// missing says what the object and its pods lack.
func (v *watch) missing(g *graph, all []corev1.Pod) string {
	current := slices.DeleteFunc(slices.Clone(all), ending)
	wanted := slices.DeleteFunc(slices.Clone(current), func(p corev1.Pod) bool { return !g.carries(p, v.want) })
	progress := g.progress(wanted)
	if place := placeless(current); place != "" {
		progress += "; " + place
	}
	status := g.Status
	switch {
	case status.ObservedGeneration < g.Generation:
		return v.slow("waiting for Dynamo's operator to take up the change")
	case v.want.restart != "" && g.version == Graphs &&
		(status.Restart.ObservedID != v.want.restart || status.Restart.Phase != "Completed"):
		return progress
	case !status.ready(g.Generation), len(wanted) < g.all(), slices.ContainsFunc(wanted,
		func(p corev1.Pod) bool { return !PodReady(p) }):
		return progress
	case len(wanted) < len(current) || len(current) < len(all):
		return fmt.Sprintf("%s; old pods still running: %d", progress, len(all)-len(wanted))
	}
	return ""
}

// slow adds to a message that has stood for long that something may be wrong.
func (v *watch) slow(message string) string {
	if late := message + "; is it running?"; v.said == late || v.said == message && time.Since(v.since) > stuckFor {
		return late
	}
	return message
}

// unlisted says which workers the frontend does not know yet, or still knows.
func (v *watch) unlisted(ctx context.Context, g *graph) (string, error) {
	if v.opts.Instances == nil {
		return "", nil
	}
	ids, err := v.opts.Instances(ctx)
	switch {
	case errors.As(err, new(*api.FieldError)):
		return "", err
	case err != nil:
		return passes("the frontend does not answer yet", err)
	case len(ids) != g.workers():
		return fmt.Sprintf("all pods are ready; the frontend lists %d of %d workers", len(ids), g.workers()), nil
	}
	return "", nil
}

// start gives an error where a pod has said for long that it cannot start.
func (v *watch) start(all []corev1.Pod) error {
	for _, p := range all {
		reason, message := stopped(p)
		if reason == "" || ending(p) {
			delete(v.failing, p.UID)
			continue
		}
		if since, ok := v.failing[p.UID]; !ok {
			v.failing[p.UID] = time.Now()
		} else if time.Since(since) >= brokenFor {
			return &broken{p.Name, reason, message}
		}
	}
	return nil
}

// pods lists those of a graph.
func (d *Driver) pods(ctx context.Context, g *graph) ([]corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	list, err := d.client.Resource(pods).Namespace(g.Namespace).List(ctx,
		metav1.ListOptions{LabelSelector: ofGraph + "=" + g.Name})
	if err != nil {
		return nil, d.explainPods(err)
	}
	return ReadAll[corev1.Pod](list)
}

// progress is how far the new pods are, in the words of a presenter.
func (g *graph) progress(wanted []corev1.Pod) string {
	workers := 0
	frontends := false
	for _, p := range wanted {
		c, known := g.componentOf(p)
		switch {
		case !known || !PodReady(p):
		case c.isWorker():
			workers++
		default:
			frontends = true
		}
	}
	text := fmt.Sprintf("%d of %d workers ready", workers, g.workers())
	if all := g.workerPods(); all != g.workers() { // which replica a pod is of is not known
		text = fmt.Sprintf("%d of %d worker pods ready", workers, all)
	}
	if !frontends {
		text += ", the frontend is restarting"
	}
	return text
}

// componentOf is the component that a pod belongs to, by its label, or else by its name.
func (g *graph) componentOf(p corev1.Pod) (component, bool) {
	label := p.Labels[ofComponent]
	for _, c := range g.Spec.Components {
		if c.Name == label || label == "" && strings.Contains(p.Name, "-"+strings.ToLower(c.Name)) {
			return c, true
		}
	}
	return component{}, false
}

// serves is the mode that the frontend's pods run in, of those that are ready where some are;
// unknown where they run in two. ok is false where there are none.
func (g *graph) serves(all []corev1.Pod) (mode api.Mode, ok bool) {
	f, _ := g.frontend()
	frontends := slices.DeleteFunc(slices.Clone(all), func(p corev1.Pod) bool {
		c, known := g.componentOf(p)
		return ending(p) || !known || c.Name != f.Name
	})
	if slices.ContainsFunc(frontends, PodReady) {
		frontends = slices.DeleteFunc(frontends, func(p corev1.Pod) bool { return !PodReady(p) })
	}
	for i, p := range frontends {
		m := g.modeOfPod(p)
		if i > 0 && m != mode {
			return api.ModeUnknown, true
		}
		mode = m
	}
	return mode, len(frontends) > 0
}

// modeOfPod is the routing mode in a pod's environment.
func (g *graph) modeOfPod(p corev1.Pod) api.Mode {
	if g.fixed() != "" {
		return g.mode()
	}
	if i := mainOf(p.Spec.Containers); i >= 0 {
		// Of two entries of a name, the last is in force.
		for _, e := range slices.Backward(p.Spec.Containers[i].Env) {
			if e.Name == routerMode {
				return modeOf(e.Value)
			}
		}
	}
	return api.ModeRoundRobin
}

// replaces says whether a pod is one of those that a restart ends.
func (w *wanted) replaces(p corev1.Pod) bool {
	switch {
	case w.restart == "":
		return false
	case w.old != nil:
		return w.old[p.UID]
	}
	return !p.CreationTimestamp.After(w.note.Newest)
}

func uids(all []corev1.Pod) map[types.UID]bool {
	ids := map[types.UID]bool{}
	for _, p := range all {
		ids[p.UID] = true
	}
	return ids
}

// newest is when the newest of some pods was created.
func newest(all []corev1.Pod) (t time.Time) {
	for _, p := range all {
		if p.CreationTimestamp.After(t) {
			t = p.CreationTimestamp.Time
		}
	}
	return t
}

// carries says whether a pod is of the wanted mode, variant and restart. A worker has the mode
// in its environment only where the graph gives it.
func (g *graph) carries(p corev1.Pod, w *wanted) bool {
	c, known := g.componentOf(p)
	i := mainOf(p.Spec.Containers)
	switch {
	case w.replaces(p):
		return false
	case !known || i < 0:
		return true // nothing of the mode is in it
	case !c.isWorker():
		return !strings.EqualFold(c.Type, "frontend") || g.modeOfPod(p) == w.mode.Mode
	case w.variant != nil && !w.variant.is(p.Spec.Containers[i]):
		return false
	}
	_, shared := valueOf(g.Spec.Env, routerMode)
	value, own := valueOf(p.Spec.Containers[i].Env, routerMode)
	return g.modeIsOwn() || shared < 0 || own < 0 || modeOf(value) == w.mode.Mode
}

// PodReady says whether a pod is ready.
func PodReady(p corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func ending(p corev1.Pod) bool { return p.DeletionTimestamp != nil }

// placeless is what the scheduler says of a pod that it finds no node for.
func placeless(all []corev1.Pod) string {
	for _, p := range all {
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
				return fmt.Sprintf("pod %s cannot be scheduled: %s", p.Name, c.Message)
			}
		}
	}
	return ""
}

// stopped is why a pod's container does not start; reason is empty where it may.
func stopped(p corev1.Pod) (reason, message string) {
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		w := s.State.Waiting
		switch {
		case w == nil:
		case w.Reason == "CrashLoopBackOff" && s.RestartCount < 3:
		case slices.Contains([]string{
			"CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "InvalidImageName",
			"CreateContainerConfigError", "CreateContainerError", "RunContainerError",
		}, w.Reason):
			return w.Reason, w.Message
		}
	}
	return "", ""
}
