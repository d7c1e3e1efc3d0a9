package kubernetes

import (
	"context"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// rollOut is one look at a graph: what there is of it, and what is reported of it.
type rollOut struct {
	client client.Client
	graph  *graph
	found  map[string]*appsv1.Deployment // by name
	status status
	names  map[string][]string // the Deployments that are reported of, by component; the one that is to stay comes first
}

// open lists the Deployments of a graph.
func open(ctx context.Context, c client.Client, g *graph) (*rollOut, error) {
	var list appsv1.DeploymentList
	if err := c.List(ctx, &list, client.InNamespace(g.Object.GetNamespace()),
		client.MatchingLabels{labelGraph: g.Object.GetName()}); err != nil {
		return nil, err
	}
	r := &rollOut{
		client: c, graph: g, found: map[string]*appsv1.Deployment{}, names: map[string][]string{},
		status: g.Status,
	}
	for i := range list.Items {
		r.found[list.Items[i].Name] = &list.Items[i]
	}
	return r, nil
}

// apply makes what a graph asks for, as far as it can be made by now.
func (r *rollOut) apply(ctx context.Context) error {
	hash, err := r.graph.workerHash()
	if err != nil {
		return err
	}
	var olds []*appsv1.Deployment
	for i := range r.graph.Spec.Components {
		c := &r.graph.Spec.Components[i]
		if !c.worker() {
			if err := r.service(ctx, c); err != nil {
				return err
			}
			if err := r.put(ctx, c, r.graph.deployment(c, "", c.replicas())); err != nil {
				return err
			}
			continue
		}
		for name, d := range r.found {
			if d.Labels[labelComponent] == c.Name && d.Labels[labelHash] != hash {
				olds = append(olds, r.found[name])
			}
		}
	}
	return r.workers(ctx, hash, olds)
}

// workers brings the workers to a hash. Where there are none of another, there is nothing to roll.
func (r *rollOut) workers(ctx context.Context, hash string, olds []*appsv1.Deployment) error {
	if len(olds) == 0 {
		for c := range r.eachWorker() {
			if err := r.put(ctx, c, r.graph.deployment(c, hash, c.replicas())); err != nil {
				return err
			}
		}
		return r.settle(ctx, hash)
	}
	if r.graph.Object.GetAnnotations()[annotationCurrent] == hash {
		return r.rollBack(ctx, hash, olds)
	}
	if r.status.RollingUpdate == nil || r.status.RollingUpdate.Phase == phaseCompleted {
		// It is reported before anything happens.
		r.status.RollingUpdate = &rollingStatus{Phase: phasePending}
		for c := range r.eachWorker() {
			r.names[c.Name] = append([]string{r.graph.deployment(c, hash, 0).Name}, r.olds(c, hash)...)
		}
		return nil
	}
	r.status.RollingUpdate = &rollingStatus{Phase: phaseInProgress}
	done := true
	for c := range r.eachWorker() {
		rolled, err := r.roll(ctx, c, hash)
		if err != nil {
			return err
		}
		done = done && rolled
	}
	if !done {
		return nil
	}
	for _, old := range olds {
		if err := r.remove(ctx, old); err != nil {
			return err
		}
	}
	r.complete()
	return r.settle(ctx, hash)
}

// rollBack brings the workers back to what they were before the roll-out that is in progress. What that made goes at
// once and the roll-out counts as completed, although no worker may be ready (pitfall 4).
func (r *rollOut) rollBack(ctx context.Context, hash string, olds []*appsv1.Deployment) error {
	for c := range r.eachWorker() {
		if err := r.put(ctx, c, r.graph.deployment(c, hash, c.replicas())); err != nil {
			return err
		}
	}
	for _, old := range olds {
		if err := r.remove(ctx, old); err != nil {
			return err
		}
	}
	r.complete()
	return nil
}

func (r *rollOut) complete() {
	r.status.RollingUpdate = &rollingStatus{Phase: phaseCompleted}
	for c := range r.eachWorker() {
		r.status.RollingUpdate.UpdatedComponents = append(r.status.RollingUpdate.UpdatedComponents, c.Name)
	}
}

// settle notes the hash that a later roll-out would go back to.
func (r *rollOut) settle(ctx context.Context, hash string) error {
	if r.graph.Object.GetAnnotations()[annotationCurrent] == hash {
		return nil
	}
	before := r.graph.Object.DeepCopy()
	annotations := maps.Clone(before.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[annotationCurrent] = hash
	r.graph.Object.SetAnnotations(annotations)
	return r.client.Patch(ctx, r.graph.Object, client.MergeFrom(before))
}

// roll moves pods from a worker's older Deployments to that of a hash, as far as its strategy allows, and says whether
// all have moved.
func (r *rollOut) roll(ctx context.Context, c *component, hash string) (done bool, err error) {
	name := r.graph.deployment(c, hash, 0).Name
	var olds []*appsv1.Deployment
	var left, leftAvailable, leftPods int32
	for _, old := range r.olds(c, hash) {
		d := r.found[old]
		olds = append(olds, d)
		left, leftAvailable, leftPods = left+*d.Spec.Replicas, leftAvailable+d.Status.AvailableReplicas,
			leftPods+d.Status.Replicas
	}
	var now, available int32
	if d := r.found[name]; d != nil {
		now, available = *d.Spec.Replicas, d.Status.AvailableReplicas
	}
	surge, unavailable := bounds(c.strategy().RollingUpdate, c.replicas())
	want := max(now, min(c.replicas(), c.replicas()+surge-left))
	// Unavailable pods are removed first. keep is the number of old pods that the strategy still requires.
	keep := min(left, leftAvailable, max(0, c.replicas()-unavailable-available))
	if err := r.put(ctx, c, r.graph.deployment(c, hash, want)); err != nil {
		return false, err
	}
	for _, old := range olds {
		share := min(keep, *old.Spec.Replicas)
		keep -= share
		if err := r.scale(ctx, old, share); err != nil {
			return false, err
		}
	}
	r.names[c.Name] = append([]string{name}, r.olds(c, hash)...)
	return left+leftPods == 0 && want == c.replicas() && rolled(r.found[name]) == "", nil
}

// bounds are how many pods more and fewer than wanted there may be, rounded as Kubernetes does.
func bounds(r *appsv1.RollingUpdateDeployment, want int32) (surge, unavailable int32) {
	up, _ := intstr.GetScaledValueFromIntOrPercent(r.MaxSurge, int(want), true)
	down, _ := intstr.GetScaledValueFromIntOrPercent(r.MaxUnavailable, int(want), false)
	if up == 0 && down == 0 {
		down = 1
	}
	return int32(up), int32(down)
}

// olds are the names of a worker's Deployments of other hashes.
func (r *rollOut) olds(c *component, hash string) (names []string) {
	for name, d := range r.found {
		if d.Labels[labelComponent] == c.Name && d.Labels[labelHash] != hash {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (r *rollOut) eachWorker() func(func(*component) bool) {
	return func(yield func(*component) bool) {
		for i := range r.graph.Spec.Components {
			if c := &r.graph.Spec.Components[i]; c.worker() && !yield(c) {
				return
			}
		}
	}
}

// put makes a Deployment, or brings an existing one to the same pods, number and strategy.
func (r *rollOut) put(ctx context.Context, c *component, want *appsv1.Deployment) error {
	if len(r.names[c.Name]) == 0 {
		r.names[c.Name] = []string{want.Name}
	}
	have := r.found[want.Name]
	if have == nil {
		if err := r.client.Create(ctx, want); err != nil {
			return err
		}
		r.found[want.Name] = want
		return nil
	}
	before := have.DeepCopy()
	want.Spec.Template.DeepCopyInto(&have.Spec.Template)
	have.Spec.Replicas, have.Spec.Strategy = want.Spec.Replicas, want.Spec.Strategy
	if equality.Semantic.DeepDerivative(want.Spec, before.Spec) && sameEnv(want, before) {
		r.found[want.Name] = before
		return nil
	}
	// The API server fills in defaults, so that what is the same does not begin a new generation.
	return r.client.Update(ctx, have)
}

// sameEnv says whether the containers have the same environment: a derivative may have lost some of it.
func sameEnv(a, b *appsv1.Deployment) bool {
	return slices.EqualFunc(a.Spec.Template.Spec.Containers, b.Spec.Template.Spec.Containers, func(a,
		b corev1.Container,
	) bool {
		return equality.Semantic.DeepEqual(a.Env, b.Env) && slices.Equal(a.Args, b.Args) && slices.Equal(a.Command, b.Command)
	})
}

func (r *rollOut) scale(ctx context.Context, d *appsv1.Deployment, replicas int32) error {
	if *d.Spec.Replicas == replicas {
		return nil
	}
	d.Spec.Replicas = &replicas
	return r.client.Update(ctx, d)
}

func (r *rollOut) remove(ctx context.Context, d *appsv1.Deployment) error {
	delete(r.found, d.Name)
	return client.IgnoreNotFound(r.client.Delete(ctx, d, client.PropagationPolicy("Background")))
}

// service makes the address of a frontend.
func (r *rollOut) service(ctx context.Context, c *component) error {
	d := r.graph.deployment(c, "", 0)
	service := &corev1.Service{ObjectMeta: d.ObjectMeta}
	err := r.client.Get(ctx, types.NamespacedName{Namespace: d.Namespace, Name: d.Name}, service)
	if !apierrors.IsNotFound(err) {
		return err
	}
	service.Spec = corev1.ServiceSpec{Selector: d.Spec.Selector.MatchLabels, Ports: []corev1.ServicePort{{
		Name: "http",
		Port: 8000,
	}}}
	return r.client.Create(ctx, service)
}
