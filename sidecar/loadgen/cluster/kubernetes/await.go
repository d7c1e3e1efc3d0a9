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

// componentLabel is the label that names a pod's component.
const componentLabel = "nvidia.com/dynamo-component"

// superseded reports that the object was changed or deleted by another client, so that there is nothing to undo.
type superseded struct{ why string }

func (o *superseded) Error() string { return o.why }

// setMeanwhile returns the error for a mode that another client has set. An empty author is unknown.
func setMeanwhile(author string, to api.Mode) error {
	return &superseded{fmt.Sprintf("%s set %s to %s in the meantime; that was left unchanged",
		cmp.Or(author, "another client"), routerMode, spelled(to))}
}

// podError reports a pod that does not start.
type podError struct{ pod, reason, message string }

func (b *podError) Error() string {
	return strings.TrimRight(fmt.Sprintf("pod %s does not start: %s: %s", b.pod, b.reason, b.message), ": ")
}

// watch is one wait for a roll-out.
type watch struct {
	*Driver
	want    *wanted
	failing map[types.UID]time.Time // when a pod first reported that it cannot start
	message string                  // the last progress message
	since   time.Time               // when message was first reported
	nudged  bool                    // nudge has requested another generation
}

// await polls until the graph is as wanted. progress receives each new message. The
// error contains the last message; a [superseded] means that a retry is useless.
func (d *Driver) await(ctx context.Context, w *wanted, progress func(string)) error {
	within := time.Until(w.note.Deadline)
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("timed out after %s", d.opts.Timeout))
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for v := (&watch{Driver: d, want: w, failing: map[types.UID]time.Time{}, since: time.Now()}); ; {
		message, err := v.check(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			return err
		case message == "":
			return nil
		case message != v.message:
			v.message = message
			v.since = time.Now()
			progress(message)
		}
		if err := v.nudge(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (last: %s)", context.Cause(ctx), v.message)
		case <-tick.C:
		}
	}
}

// nudge requests another generation for a roll-back without progress: with the
// strategy Recreate, the operator may wait for pods that are no longer created.
func (v *watch) nudge(ctx context.Context) error {
	if !v.want.note.Back || v.nudged || time.Since(v.since) < stuckFor {
		return nil
	}
	v.nudged = true
	v.want.nonce = rand.Text()[:10]
	return v.apply(ctx, v.want)
}

// check returns a message about what is not ready yet, "" once nothing is.
func (v *watch) check(ctx context.Context) (string, error) {
	g, err := v.graph(ctx)
	switch {
	case errors.As(err, new(*notFoundError)):
		return "", &superseded{err.Error()}
	case err != nil:
		return temporary("Kubernetes does not answer", err)
	case g.mode() != v.want.mode.Mode:
		return "", setMeanwhile(g.author(), g.mode())
	}
	if n, noted := g.note(); noted && n.By != v.opts.By {
		return "", setMeanwhile(n.By, n.To.Mode)
	}
	all, err := v.pods(ctx, g)
	if err != nil {
		return temporary("Kubernetes does not answer", err)
	}
	if err := v.checkStart(all); err != nil {
		return "", err
	}
	if message := v.notReady(g, all); message != "" {
		return message, nil
	}
	return v.unlistedWorkers(ctx, g)
}

// spelled returns Dynamo's name of a mode, where the booth knows it.
func spelled(m api.Mode) string { return cmp.Or(spellings[m], "a mode unknown to KV Booth") }

// temporary turns an error that a retry may resolve into a message.
func temporary(what string, err error) (string, error) { return what + ": " + err.Error(), nil }

// notReady describes what the object and its pods lack, "" where they lack nothing.
func (v *watch) notReady(g *graph, all []corev1.Pod) string {
	current := slices.DeleteFunc(slices.Clone(all), ending)
	updated := slices.DeleteFunc(slices.Clone(current), func(p corev1.Pod) bool { return !g.isUpdated(p, v.want) })
	progress := g.progress(updated)
	if problem := unschedulable(current); problem != "" {
		progress += "; " + problem
	}
	status := g.Status
	switch {
	case status.ObservedGeneration < g.Generation:
		return v.withHint("waiting for Dynamo's operator to take up the change")
	case v.want.restart != "" && g.version == Graphs &&
		(status.Restart.ObservedID != v.want.restart || status.Restart.Phase != "Completed"):
		return progress
	case !status.ready(g.Generation), len(updated) < g.podCount(), slices.ContainsFunc(updated,
		func(p corev1.Pod) bool { return !PodReady(p) }):
		return progress
	case len(updated) < len(current) || len(current) < len(all):
		return fmt.Sprintf("%s; old pods still running: %d", progress, len(all)-len(updated))
	}
	return ""
}

// withHint adds a hint to a message that has not changed for stuckFor.
func (v *watch) withHint(message string) string {
	hinted := message + "; is it running?"
	if v.message == hinted || v.message == message && time.Since(v.since) > stuckFor {
		return hinted
	}
	return message
}

// unlistedWorkers compares the workers that the frontend lists with those of the graph.
func (v *watch) unlistedWorkers(ctx context.Context, g *graph) (string, error) {
	if v.opts.Instances == nil {
		return "", nil
	}
	ids, err := v.opts.Instances(ctx)
	switch {
	case errors.As(err, new(*api.FieldError)):
		return "", err
	case err != nil:
		return temporary("the frontend does not answer yet", err)
	case len(ids) != g.workers():
		return fmt.Sprintf("all pods are ready; the frontend lists %d of %d workers", len(ids), g.workers()), nil
	}
	return "", nil
}

// checkStart gives an error where a pod has reported for brokenFor that it cannot start.
func (v *watch) checkStart(all []corev1.Pod) error {
	for _, p := range all {
		reason, message := startFailure(p)
		if reason == "" || ending(p) {
			delete(v.failing, p.UID)
			continue
		}
		if since, ok := v.failing[p.UID]; !ok {
			v.failing[p.UID] = time.Now()
		} else if time.Since(since) >= brokenFor {
			return &podError{p.Name, reason, message}
		}
	}
	return nil
}

// pods lists the pods of a graph.
func (d *Driver) pods(ctx context.Context, g *graph) ([]corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	list, err := d.client.Resource(pods).Namespace(g.Namespace).List(ctx,
		metav1.ListOptions{LabelSelector: graphLabel + "=" + g.Name})
	if err != nil {
		return nil, d.explainPods(err)
	}
	return ReadAll[corev1.Pod](list)
}

// progress describes how many of the new pods are ready.
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
	if all := g.workerPods(); all != g.workers() { // pods cannot be assigned to replicas
		text = fmt.Sprintf("%d of %d worker pods ready", workers, all)
	}
	if !frontends {
		text += ", the frontend is restarting"
	}
	return text
}

// componentOf returns the component that a pod belongs to, by its label, or else by its name.
func (g *graph) componentOf(p corev1.Pod) (component, bool) {
	label := p.Labels[componentLabel]
	for _, c := range g.Spec.Components {
		if c.Name == label || label == "" && strings.Contains(p.Name, "-"+strings.ToLower(c.Name)) {
			return c, true
		}
	}
	return component{}, false
}

// servingMode returns the mode that the frontend's pods run in. Only the ready pods count if any is ready; pods that
// are being deleted never count. The mode is [api.ModeUnknown] if the pods' modes differ. ok is false, and the mode
// empty, if no pod counts.
func (g *graph) servingMode(all []corev1.Pod) (mode api.Mode, ok bool) {
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

// modeOfPod returns the routing mode in a pod's environment.
func (g *graph) modeOfPod(p corev1.Pod) api.Mode {
	if g.fixed() != "" {
		return g.mode()
	}
	if i := mainOf(p.Spec.Containers); i >= 0 {
		// The last of two entries of a name is in force.
		for _, e := range slices.Backward(p.Spec.Containers[i].Env) {
			if e.Name == routerMode {
				return modeOf(e.Value)
			}
		}
	}
	return api.ModeRoundRobin
}

// replaces reports whether a restart replaces a pod.
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

// newest returns the creation time of the newest pod.
func newest(all []corev1.Pod) (t time.Time) {
	for _, p := range all {
		if p.CreationTimestamp.After(t) {
			t = p.CreationTimestamp.Time
		}
	}
	return t
}

// isUpdated reports whether a pod has the wanted mode, variant and restart. A worker
// has the mode in its environment only where the graph sets it.
func (g *graph) isUpdated(p corev1.Pod, w *wanted) bool {
	c, known := g.componentOf(p)
	i := mainOf(p.Spec.Containers)
	switch {
	case w.replaces(p):
		return false
	case !known || i < 0:
		return true // the pod does not depend on the mode
	case !c.isWorker():
		return !strings.EqualFold(c.Type, "frontend") || g.modeOfPod(p) == w.mode.Mode
	case w.variant != nil && !w.variant.matches(p.Spec.Containers[i]):
		return false
	}
	_, shared := valueOf(g.Spec.Env, routerMode)
	value, own := valueOf(p.Spec.Containers[i].Env, routerMode)
	return g.modeIsOwn() || shared < 0 || own < 0 || modeOf(value) == w.mode.Mode
}

// PodReady reports whether a pod is ready.
func PodReady(p corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func ending(p corev1.Pod) bool { return p.DeletionTimestamp != nil }

// unschedulable describes a pod that has no node, with the scheduler's message.
func unschedulable(all []corev1.Pod) string {
	for _, p := range all {
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
				return fmt.Sprintf("pod %s cannot be scheduled: %s", p.Name, c.Message)
			}
		}
	}
	return ""
}

// startFailure returns why a pod's container does not start; reason is empty where it may start.
func startFailure(p corev1.Pod) (reason, message string) {
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
