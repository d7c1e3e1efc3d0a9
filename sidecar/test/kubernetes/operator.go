package kubernetes

import (
	"cmp"
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
	seenFalse = 250 * time.Millisecond
	lookEvery = 100 * time.Millisecond // while a deployment is not ready
)

// OperatorOptions say how Dynamo's operator was installed.
type OperatorOptions struct {
	// Grove has every component be one set of pods, which are replaced one after the other in their places: no surge,
	// no rollingUpdate in the status, no hash in a name. Its status says Ready too early, after a patch and once more
	// in the middle of a restart (pitfall 2).
	Grove bool
	// Stale is how long the status stays as it was after a patch (pitfall 1); 0 is 100 ms, as it was seen.
	Stale time.Duration
	// FalseReady is how long Grove's status is wrong; 0 is 250 ms, as it was seen.
	FalseReady time.Duration
	// Stumbles has the state of every roll-out of workers be failed for a moment at its beginning, as was seen now and
	// then: the operator loses a race against itself and tries again.
	Stumbles bool
}

// Operator treats the DynamoGraphDeployments of [Namespace] as Dynamo's operator was seen to do. Its Stop may be called
// more than once and from any goroutine.
type Operator struct {
	options OperatorOptions
	client  client.Client
	graphs  map[types.UID]*notes // of the one goroutine that reconciles

	cancel  context.CancelFunc
	running sync.WaitGroup
}

// notes are what the operator remembers of a graph.
type notes struct {
	generation int64
	seen       time.Time // when that generation was first seen
	lieUntil   time.Time // Ready is told until then
	lied       bool      // in the middle of this generation
}

// Operator starts an operator, which the test's end stops. Two at once would be in each other's way.
func (c *ControlPlane) Operator(t testing.TB, options OperatorOptions) *Operator {
	t.Helper()
	options.Stale, options.FalseReady = cmp.Or(options.Stale, seenStale), cmp.Or(options.FalseReady, seenFalse)
	log.SetLogger(logr.Discard())
	yes := true
	manager, err := ctrl.NewManager(c.Config(), ctrl.Options{
		Scheme: scheme.Scheme, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{Namespace: {}}}, Controller: config.Controller{SkipNameValidation: &yes},
	})
	if err != nil {
		t.Fatalf("the operator: %v", err)
	}
	o := &Operator{options: options, client: c.client, graphs: map[types.UID]*notes{}}
	watched := &unstructured.Unstructured{}
	watched.SetGroupVersionKind(kind)
	err = ctrl.NewControllerManagedBy(manager).For(watched).Owns(&appsv1.Deployment{}).WithOptions(controller.Options{MaxConcurrentReconciles: 1}).Complete(o)
	if err != nil {
		t.Fatalf("the operator: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	o.cancel = cancel
	o.running.Go(func() {
		if err := manager.Start(ctx); err != nil {
			t.Errorf("the operator: %v", err)
		}
	})
	t.Cleanup(o.Stop)
	return o
}

// Stop ends the operator, and returns when nothing of it runs any more. What it made stays.
func (o *Operator) Stop() {
	o.cancel()
	o.running.Wait()
}

// Reconcile brings one graph a step further, and tells how far it is. The manager calls it.
func (o *Operator) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	if err := o.client.Get(ctx, request.NamespacedName, object); err != nil || object.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	g, err := read(object)
	if err != nil {
		return ctrl.Result{}, err
	}
	n, wait := o.look(&g)
	if wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	before := *object.DeepCopy()
	r, err := open(ctx, o.client, &g, o.options.Grove)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.apply(ctx); err != nil {
		return ctrl.Result{}, err
	}
	was := g.Status
	r.tell(object.GetGeneration())
	if o.options.Grove {
		o.lie(n, was, &r.told)
	}
	if o.options.Stumbles && was.RollingUpdate != nil && was.RollingUpdate.Phase == phasePending {
		r.told.State = stateFailed
		meta.SetStatusCondition(&r.told.Conditions, metav1.Condition{
			Type: conditionReady, Status: metav1.ConditionFalse, Reason: "failed_to_reconcile_the_resources", Message: "Operation cannot be fulfilled", ObservedGeneration: r.told.ObservedGeneration,
		})
	}
	return ctrl.Result{RequeueAfter: r.next()}, o.write(ctx, &before, object, r.told)
}

// look notes which generation of a graph it is, and how long that is not to be known yet.
func (o *Operator) look(g *graph) (n *notes, wait time.Duration) {
	n, ok := o.graphs[g.Object.GetUID()]
	if !ok {
		n = &notes{}
		o.graphs[g.Object.GetUID()] = n
	}
	if generation := g.Object.GetGeneration(); n.generation != generation {
		n.generation, n.lied, n.seen = generation, false, time.Now()
		if ready(g.Status) && generation > g.Status.ObservedGeneration {
			n.lieUntil = n.seen.Add(o.options.Stale + o.options.FalseReady)
		}
	}
	if g.Object.GetGeneration() > g.Status.ObservedGeneration {
		wait = o.options.Stale - time.Since(n.seen)
	}
	return n, wait
}

// lie tells Ready, and of no change, for a moment: while a generation is new, and once when the last of several pods
// has been replaced but is not ready.
func (o *Operator) lie(n *notes, was status, told *status) {
	for name, c := range told.Components {
		if !n.lied && c.Replicas > 1 && c.UpdatedReplicas == c.Replicas && c.ReadyReplicas < c.Replicas && was.Components[name].UpdatedReplicas > 0 {
			n.lied, n.lieUntil = true, time.Now().Add(o.options.FalseReady)
		}
	}
	if told.Restart != nil && told.Restart.Phase == phaseCompleted && was.Restart != nil && was.Restart.Phase == phaseRestarting && !ready(was) {
		told.Restart = was.Restart // that a restart is completed is told after Ready
	}
	if time.Now().After(n.lieUntil) {
		return
	}
	for name, c := range told.Components {
		if c.UpdatedReplicas = c.Replicas; n.lied || was.Components[name].ReadyReplicas == c.Replicas {
			c.ReadyReplicas = c.Replicas
		}
		told.Components[name] = c
	}
	told.State = stateSuccessful
	meta.SetStatusCondition(&told.Conditions, metav1.Condition{
		Type: conditionReady, Status: metav1.ConditionTrue, Reason: "all_resources_are_ready", Message: "All resources are ready", ObservedGeneration: told.ObservedGeneration,
	})
}

// ready says whether a status calls the graph ready.
func ready(s status) bool { return meta.IsStatusConditionTrue(s.Conditions, conditionReady) }

// write tells the API server a status that differs from the one before.
func (o *Operator) write(ctx context.Context, before, object *unstructured.Unstructured, told status) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&told)
	if err != nil || equality.Semantic.DeepEqual(before.Object["status"], fields) {
		return err
	}
	object.Object["status"] = fields
	return o.client.Status().Update(ctx, object)
}

// tell says how far a graph is.
func (r *rollOut) tell(generation int64) {
	r.told.ObservedGeneration = generation
	r.told.Components = map[string]componentStatus{}
	var missing, restarting []string
	for i := range r.graph.Spec.Components {
		c := &r.graph.Spec.Components[i]
		told, lacks := r.component(c)
		r.told.Components[c.Name] = told
		if lacks != "" {
			missing, restarting = append(missing, lacks), append(restarting, c.Name)
		}
	}
	condition := metav1.Condition{Type: conditionReady, Status: metav1.ConditionFalse, ObservedGeneration: generation}
	switch roll := r.told.RollingUpdate; {
	case roll != nil && (roll.Phase == phasePending || roll.Phase == phaseInProgress):
		r.told.State, condition.Reason, condition.Message = statePending, "rolling_update_in_progress", "Rolling update in progress"
	case len(missing) > 0:
		r.told.State, condition.Reason, condition.Message = statePending, "some_resources_are_not_ready", "Resources not ready: "+strings.Join(missing, "; ")
	default:
		r.told.State, condition.Status, condition.Reason, condition.Message = stateSuccessful, metav1.ConditionTrue, "all_resources_are_ready", "All resources are ready"
	}
	r.told.Conditions = slices.Clone(r.told.Conditions)
	meta.SetStatusCondition(&r.told.Conditions, condition)
	if r.told.Restart != nil && r.told.Restart.Phase == phaseRestarting {
		told := *r.told.Restart
		told.InProgress = restarting
		if len(restarting) == 0 && r.graph.Spec.Restart != nil {
			told.Phase = phaseCompleted
		}
		r.told.Restart = &told
	}
}

// component counts the pods of a component, and says what it lacks, "" for nothing.
func (r *rollOut) component(c *component) (told componentStatus, lacks string) {
	told = componentStatus{Kind: "Deployment"}
	var available int32
	for i, name := range r.names[c.Name] {
		d := r.found[name]
		if d == nil {
			continue
		}
		told.Names = append(told.Names, name)
		told.Replicas, told.ReadyReplicas, available = told.Replicas+d.Status.Replicas, told.ReadyReplicas+d.Status.ReadyReplicas, available+d.Status.AvailableReplicas
		if i == 0 {
			told.UpdatedReplicas = d.Status.UpdatedReplicas
			lacks = rolled(d)
		} else if lacks == "" && d.Status.Replicas > 0 {
			lacks = name + " is not gone"
		}
	}
	slices.Sort(told.Names)
	told.AvailableReplicas = &available
	if r.grove {
		told.Kind, told.AvailableReplicas = "PodClique", nil
	}
	return told, lacks
}

// next is when to look again unless something changes before.
func (r *rollOut) next() time.Duration {
	if ready(r.told) && (r.told.Restart == nil || r.told.Restart.Phase == phaseCompleted) && !r.grove {
		return 0
	}
	return lookEvery
}

// restarts are the ids that the components' pods are to carry. A new id is told at once; pods that carry it already,
// since it was set back, have nothing to do (pitfall 7).
func (r *rollOut) restarts() map[string]string {
	ids := map[string]string{}
	asked := r.graph.Spec.Restart
	if asked == nil {
		if r.told.Restart != nil {
			for _, c := range r.graph.Spec.Components {
				ids[c.Name] = r.told.Restart.ObservedID
			}
		}
		return ids
	}
	if r.told.Restart == nil || r.told.Restart.ObservedID != asked.ID {
		r.told.Restart = &restartStatus{ObservedID: asked.ID, Phase: phaseRestarting}
	}
	var order []string
	for _, c := range r.graph.Spec.Components {
		order = append(order, c.Name)
	}
	parallel := asked.Strategy != nil && asked.Strategy.Type == "Parallel"
	if asked.Strategy != nil && len(asked.Strategy.Order) > 0 {
		order = asked.Strategy.Order
	}
	turn := true
	for _, name := range order {
		carried, done := r.carried(name, asked.ID)
		if ids[name] = carried; turn || parallel {
			ids[name] = asked.ID
		}
		turn = turn && done
	}
	return ids
}

// carried is the id that a component's pods are to carry so far, and whether all of them carry this one.
func (r *rollOut) carried(name, id string) (carried string, done bool) {
	done = true
	for _, d := range r.found {
		if d.Labels[labelComponent] == name {
			carried = d.Spec.Template.Annotations[annotationRestart]
			done = done && carried == id && rolled(d) == ""
		}
	}
	return carried, done
}
