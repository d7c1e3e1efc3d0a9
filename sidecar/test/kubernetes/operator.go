package kubernetes

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	seenStale = 100 * time.Millisecond
	lookEvery = 100 * time.Millisecond // while a deployment is not ready
)

// operator treats the DynamoGraphDeployments of [Namespace] as Dynamo's operator was seen to do.
type operator struct {
	client client.Client
	kind   schema.GroupVersionKind
	graphs map[types.UID]*notes // of the one goroutine that reconciles

	running sync.WaitGroup
}

// notes are what the operator remembers of a graph.
type notes struct {
	generation int64
	seen       time.Time // when that generation was first seen
}

// Operator starts an operator, which the test's end stops. Two at once would be in each other's way.
func (c *ControlPlane) Operator(t testing.TB) {
	t.Helper()
	log.SetLogger(logr.Discard())
	yes := true
	manager, err := ctrl.NewManager(c.Config(), ctrl.Options{
		Scheme: scheme.Scheme, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{Namespace: {}}},
		Controller: config.Controller{SkipNameValidation: &yes},
	})
	if err != nil {
		t.Fatalf("the operator: %v", err)
	}
	o := &operator{client: c.client, kind: c.kind, graphs: map[types.UID]*notes{}}
	watched := &unstructured.Unstructured{}
	watched.SetGroupVersionKind(c.kind)
	err = ctrl.NewControllerManagedBy(manager).For(watched).Owns(&appsv1.Deployment{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1}).Complete(o)
	if err != nil {
		t.Fatalf("the operator: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	o.running.Go(func() {
		if err := manager.Start(ctx); err != nil {
			t.Errorf("the operator: %v", err)
		}
	})
	t.Cleanup(func() {
		cancel()
		o.running.Wait()
	})
}

// Reconcile brings one graph a step further, and writes its status. The manager calls it.
func (o *operator) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(o.kind)
	if err := o.client.Get(ctx, request.NamespacedName, object); err != nil || object.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	g, err := read(object)
	if err != nil {
		return ctrl.Result{}, err
	}
	if wait := o.look(&g); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	before := *object.DeepCopy()
	r, err := open(ctx, o.client, &g)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.apply(ctx); err != nil {
		return ctrl.Result{}, err
	}
	r.report(object.GetGeneration())
	return ctrl.Result{RequeueAfter: r.next()}, o.write(ctx, &before, object, r.status)
}

// look notes which generation of a graph it is, and gives how long that is not to be known yet.
func (o *operator) look(g *graph) (wait time.Duration) {
	n, ok := o.graphs[g.Object.GetUID()]
	if !ok {
		n = &notes{}
		o.graphs[g.Object.GetUID()] = n
	}
	if generation := g.Object.GetGeneration(); n.generation != generation {
		n.generation, n.seen = generation, time.Now()
	}
	if g.Object.GetGeneration() > g.Status.ObservedGeneration {
		wait = seenStale - time.Since(n.seen)
	}
	return wait
}

// ready says whether a status calls the graph ready.
func ready(s status) bool { return meta.IsStatusConditionTrue(s.Conditions, conditionReady) }

// write updates a status that differs from the one before.
func (o *operator) write(ctx context.Context, before, object *unstructured.Unstructured, reported status) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&reported)
	if err != nil || equality.Semantic.DeepEqual(before.Object["status"], fields) {
		return err
	}
	object.Object["status"] = fields
	return o.client.Status().Update(ctx, object)
}

// report says how far a graph is.
func (r *rollOut) report(generation int64) {
	r.status.ObservedGeneration = generation
	r.status.Components = map[string]componentStatus{}
	var missing []string
	for i := range r.graph.Spec.Components {
		c := &r.graph.Spec.Components[i]
		reported, lacks := r.component(c)
		r.status.Components[c.Name] = reported
		if lacks != "" {
			missing = append(missing, lacks)
		}
	}
	condition := metav1.Condition{Type: conditionReady, Status: metav1.ConditionFalse, ObservedGeneration: generation}
	switch roll := r.status.RollingUpdate; {
	case roll != nil && (roll.Phase == phasePending || roll.Phase == phaseInProgress):
		r.status.State = statePending
		condition.Reason, condition.Message = "rolling_update_in_progress", "Rolling update in progress"
	case len(missing) > 0:
		r.status.State = statePending
		condition.Reason = "some_resources_are_not_ready"
		condition.Message = "Resources not ready: " + strings.Join(missing, "; ")
	default:
		r.status.State, condition.Status = stateSuccessful, metav1.ConditionTrue
		condition.Reason, condition.Message = "all_resources_are_ready", "All resources are ready"
	}
	r.status.Conditions = slices.Clone(r.status.Conditions)
	meta.SetStatusCondition(&r.status.Conditions, condition)
}

// component counts the pods of a component, and says what it lacks, "" for nothing.
func (r *rollOut) component(c *component) (reported componentStatus, lacks string) {
	reported = componentStatus{Kind: "Deployment"}
	var available int32
	for i, name := range r.names[c.Name] {
		d := r.found[name]
		if d == nil {
			continue
		}
		reported.Names = append(reported.Names, name)
		reported.Replicas += d.Status.Replicas
		reported.ReadyReplicas += d.Status.ReadyReplicas
		available += d.Status.AvailableReplicas
		if i == 0 {
			reported.UpdatedReplicas = d.Status.UpdatedReplicas
			lacks = rolled(d)
		} else if lacks == "" && d.Status.Replicas > 0 {
			lacks = name + " is not gone"
		}
	}
	slices.Sort(reported.Names)
	reported.AvailableReplicas = &available
	return reported, lacks
}

// next is when to look again unless something changes before.
func (r *rollOut) next() time.Duration {
	if ready(r.status) {
		return 0
	}
	return lookEvery
}
