//go:build kubernetes

package kubernetes

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kvbooth/internal/wait"
)

// within is what a condition may take to come about on a busy machine.
const within = 30 * time.Second

// manifest is the deployment of the timelines; the default is 3 workers that start in 1.5 s, as wide as Kubernetes
// itself lets them roll.
func manifest(t *testing.T, workerAnnotations string) *unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile("testdata/dgd.yaml")
	require.NoError(t, err)
	object, err := parse(bytes.ReplaceAll(text, []byte("WORKER_ANNOTATIONS"), []byte(workerAnnotations)))
	require.NoError(t, err)
	return object
}

const (
	worker   = "TRTLLMWorker"
	frontend = "Frontend"

	workerStart = 1500 * time.Millisecond // as in the manifest

	inPlace  = `, nvidia.com/deployment-rolling-update-max-surge: "0", nvidia.com/deployment-rolling-update-max-unavailable: "100%"`
	recreate = `, nvidia.com/deployment-strategy: Recreate`
)

// rig is a control plane with one deployment under an operator, and all that its status told.
type rig struct {
	*ControlPlane
	t        *testing.T
	operator *Operator

	mu   sync.Mutex
	seen []graph       // every state of the object
	at   []time.Time   // when it was seen
	new  chan struct{} // closed and made anew with each
}

// deploy brings up 3 workers on so many GPUs, and waits until they are ready.
func deploy(t *testing.T, gpuCount int, workerAnnotations string, options OperatorOptions) *rig {
	t.Helper()
	c := &rig{ControlPlane: Start(t), t: t, new: make(chan struct{})}
	c.Node(t, "gpu-0", gpuCount)
	c.operator = c.Operator(t, options)
	watched, err := client.NewWithWatch(c.Config(), client.Options{})
	require.NoError(t, err)
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind)
	events, err := watched.Watch(t.Context(), list, client.InNamespace(Namespace))
	require.NoError(t, err)
	var watching sync.WaitGroup
	t.Cleanup(watching.Wait)
	t.Cleanup(events.Stop)
	watching.Go(func() {
		for event := range events.ResultChan() {
			if object, ok := event.Object.(*unstructured.Unstructured); ok && event.Type != watch.Error {
				c.note(object)
			}
		}
	})
	require.NoError(t, c.Client().Create(t.Context(), manifest(t, workerAnnotations)))
	c.await("it is deployed", settled(1))
	return c
}

func (c *rig) note(object *unstructured.Unstructured) {
	g, err := read(object)
	if err != nil {
		c.t.Errorf("a status that cannot be read: %v", err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen, c.at = append(c.seen, g), append(c.at, time.Now())
	close(c.new)
	c.new = make(chan struct{})
}

// latest is the last status, and a channel that closes with the next one.
func (c *rig) latest() (g graph, next <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.seen) > 0 {
		g = c.seen[len(c.seen)-1]
	}
	return g, c.new
}

// await waits until the status is as wanted.
func (c *rig) await(what string, wanted func(graph) bool) graph {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), within)
	defer cancel()
	for {
		g, next := c.latest()
		if g.Object != nil && wanted(g) {
			return g
		}
		select {
		case <-next:
		case <-ctx.Done():
			text, _ := json.MarshalIndent(g.Status, "", "  ")
			require.FailNow(c.t, "waiting until "+what, "%s", text)
		}
	}
}

// settled says of a status that a generation, or a later one, is ready and not being rolled out.
func settled(generation int64) func(graph) bool {
	return func(g graph) bool {
		return g.Status.ObservedGeneration >= generation && g.Status.ObservedGeneration == g.Object.GetGeneration() && g.Status.State == stateSuccessful && ready(g.Status) &&
			(g.Status.RollingUpdate == nil || g.Status.RollingUpdate.Phase == phaseCompleted) && (g.Status.Restart == nil || g.Status.Restart.Phase == phaseCompleted)
	}
}

// patch changes the deployment with a JSON patch and gives the generation that this begins.
func (c *rig) patch(operations string) int64 {
	c.t.Helper()
	g, _ := c.latest()
	object := g.Object.DeepCopy()
	require.NoError(c.t, c.Client().Patch(c.t.Context(), object, client.RawPatch(types.JSONPatchType, []byte(operations))))
	return object.GetGeneration()
}

// tuples are the distinct successive states of so many generations, as a driver sees them.
func (c *rig) tuples(first, last int64) (all []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range c.seen {
		if generation := g.Object.GetGeneration(); first <= generation && generation <= last {
			all = append(all, reduced(generation == g.Status.ObservedGeneration, g.Status))
		}
	}
	return slices.Compact(all)
}

// reduced is what a driver decides by. What ended before is left out, since the timelines went on from one another.
func reduced(observed bool, s status) string {
	words := []string{"stale", s.State}
	if observed {
		words[0] = "observed"
	}
	if ready(s) {
		words = append(words, "Ready")
	}
	if r := s.RollingUpdate; r != nil && r.Phase != phaseCompleted {
		words = append(words, r.Phase)
	}
	if r := s.Restart; r != nil && r.Phase != phaseCompleted {
		words = append(words, r.Phase)
	}
	return strings.Join(words, " ")
}

// recorded are the same of generations of a timeline, which the real operator's status was written to.
func recorded(t *testing.T, name string, first, last int64) (all []string) {
	t.Helper()
	text, err := os.ReadFile("../../loadgen/kubernetes/testdata/timelines/" + name + ".log")
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		_, entry, ok := strings.Cut(strings.TrimSpace(line), " ")
		require.True(t, ok, line)
		var was struct {
			Generation int64          `json:"gen"`
			Observed   int64          `json:"obs"`
			State      string         `json:"state"`
			Conditions [][]any        `json:"conds"`
			Roll       rollingStatus  `json:"roll"`
			Restart    *restartStatus `json:"restart"`
		}
		require.NoError(t, json.Unmarshal([]byte(entry), &was), line)
		if was.Generation < first || was.Generation > last {
			continue
		}
		s := status{State: was.State, Restart: was.Restart}
		if was.Roll.Phase != "" {
			s.RollingUpdate = &was.Roll
		}
		for _, condition := range was.Conditions {
			s.Conditions = append(s.Conditions, metav1.Condition{Type: condition[0].(string), Status: metav1.ConditionStatus(condition[1].(string))})
		}
		all = append(all, reduced(was.Generation == was.Observed, s))
	}
	require.NotEmpty(t, all)
	return slices.Compact(all)
}

// like holds what was told of generations, which must have come to their end, against those of a timeline.
func (c *rig) like(name string, recordedFirst, recordedLast, first int64) {
	c.t.Helper()
	last := first + recordedLast - recordedFirst
	require.Equal(c.t, recorded(c.t, name, recordedFirst, recordedLast), c.tuples(first, last), "as in the timeline %s", name)
}

// pods are those of the deployment, by component.
func (c *rig) pods(component string) []corev1.Pod {
	c.t.Helper()
	var list corev1.PodList
	require.NoError(c.t, c.Client().List(c.t.Context(), &list, client.InNamespace(Namespace), client.MatchingLabels{labelGraph: "booth", labelComponent: component}))
	return list.Items
}

func uids(pods []corev1.Pod) (all []types.UID) {
	for _, p := range pods {
		all = append(all, p.UID)
	}
	return all
}

func env(p *corev1.Pod, name string) (value string) {
	for _, e := range p.Spec.Containers[0].Env {
		if e.Name == name {
			value = e.Value
		}
	}
	return value
}

// A kubeconfig for an account has its rules and nothing else.
func TestRights(t *testing.T) {
	c := Start(t)
	require.NoError(t, c.Client().Create(t.Context(), manifest(t, "")))
	path := c.KubeconfigFor(t, "reader", rbacv1.PolicyRule{APIGroups: []string{"nvidia.com"}, Resources: []string{"dynamographdeployments"}, ResourceNames: []string{"booth"}, Verbs: []string{"get"}})
	config, err := clientcmd.BuildConfigFromFlags("", path)
	require.NoError(t, err)
	reader, err := client.New(config, client.Options{})
	require.NoError(t, err)
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	require.NoError(t, reader.Get(t.Context(), client.ObjectKey{Namespace: Namespace, Name: "booth"}, object))
	err = reader.Patch(t.Context(), object, client.RawPatch(types.JSONPatchType, []byte(`[{"op": "add", "path": "/spec/restart", "value": {"id": "a"}}]`)))
	require.True(t, apierrors.IsForbidden(err), "%v", err)

	// What the resource refuses, as Dynamo's does.
	for patch, why := range map[string]string{
		`[{"op": "replace", "path": "/spec/backendFramework", "value": "vllm"}]`:                                              "backendFramework cannot change",
		`[{"op": "remove", "path": "/spec/components/1"}]`:                                                                    "neither added nor removed",
		`[{"op": "test", "path": "/spec/components/0/name", "value": "TRTLLMWorker"}, {"op": "remove", "path": "/spec/env"}]`: "rejected our request",
	} {
		err := c.Client().Patch(t.Context(), object, client.RawPatch(types.JSONPatchType, []byte(patch)))
		require.ErrorContains(t, err, why)
	}
}

const (
	restartWith  = `{"op": "add", "path": "/spec/restart", "value": {"id": "%s", "strategy": {"type": "Parallel"}}}`
	graphMode    = `{"op": "replace", "path": "/spec/env", "value": [{"name": "DYN_ROUTER_MODE", "value": "%s"}]}`
	frontendMode = `{"op": "add", "path": "/spec/components/0/podTemplate/spec/containers/0/env/-", "value": {"name": "DYN_ROUTER_MODE", "value": "%s"}}`
	workerImage  = `{"op": "replace", "path": "/spec/components/1/podTemplate/spec/containers/0/image", "value": "example.com/%s:1"}`
	workerArgs   = `{"op": "replace", "path": "/spec/components/1/podTemplate/spec/containers/0/args", "value": ["--publish-kv-events", "--nonce=%s"]}`
)

// change is a patch of operations with one value each.
func (c *rig) change(operation, value string) int64 {
	c.t.Helper()
	return c.patch("[" + fmt.Sprintf(operation, value) + "]")
}

// Where Kubernetes' own width of a roll-out holds: one more worker than wanted.
func TestSurge(t *testing.T) {
	c := deploy(t, 4, "", OperatorOptions{})
	workers := uids(c.pods(worker))

	// The frontend alone gets another environment: the workers stay, and so do their caches.
	first := c.change(frontendMode, "kv")
	c.await("the frontend is another", settled(first))
	c.like("w2", 3, 3, first)
	require.ElementsMatch(t, workers, uids(c.pods(worker)))
	frontends := c.pods(frontend)
	require.Len(t, frontends, 1)
	require.Equal(t, "kv", env(&frontends[0], "DYN_ROUTER_MODE"), "the component's own comes before the graph's")
	require.Equal(t, "round-robin", env(&c.pods(worker)[0], "DYN_ROUTER_MODE"))

	// A restart gives every component other pods, one worker after the other.
	restarted := c.change(restartWith, "switch-1")
	c.await("the restart is completed", settled(restarted))
	c.like("w3", 4, 4, restarted)
	require.GreaterOrEqual(t, c.took(restarted), 3*workerStart, "each waits for the one before")
	for _, uid := range workers {
		require.NotContains(t, uids(c.pods(worker)), uid)
	}

	// Without room for one more the surge pod waits, and the state says pending for ever (pitfall 5).
	hog := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "hog", Namespace: Namespace}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "main", Image: "example.com/hog:1", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{gpus: resource.MustParse("1")}},
	}}}}
	require.NoError(t, c.Client().Create(t.Context(), hog))
	c.running("hog")
	workers = uids(c.pods(worker))
	stuck := c.change(restartWith, "switch-2")
	c.await("the frontend is done, and the workers are not", func(g graph) bool {
		return g.Status.ObservedGeneration == stuck && slices.Equal(g.Status.Restart.InProgress, []string{worker}) && g.Status.Components[worker].UpdatedReplicas == 1
	})
	c.unscheduled(1)

	// To set the id back takes the restart back: the workers that had not been reached stay (pitfall 7).
	back := c.change(restartWith, "switch-1")
	c.await("all are ready again", settled(back))
	c.like("w4", 5, 6, stuck)
	require.ElementsMatch(t, workers, uids(c.pods(worker)))
}

// With surge 0 and unavailable 100 % frontend and workers change at once on as many GPUs as there are workers.
func TestInPlace(t *testing.T) {
	c := deploy(t, 3, inPlace, OperatorOptions{})
	before := c.pods(worker)
	switched := c.change(graphMode, "kv")
	c.await("the mode is switched", settled(switched))
	c.like("w7", 9, 9, switched)
	require.True(t, c.told(func(s componentStatus) bool { return s.UpdatedReplicas == 3 && s.ReadyReplicas == 0 }), "all of them start at once")
	for _, p := range append(c.pods(worker), c.pods(frontend)...) {
		require.Equal(t, "kv", env(&p, "DYN_ROUTER_MODE"))
	}
	now := c.pods(worker)
	require.Len(t, now, 3)
	require.NotEqual(t, env(&before[0], "DYN_NAMESPACE"), env(&now[0], "DYN_NAMESPACE"), "the workers' Dynamo namespace ends in a hash (pitfall 9)")

	// A broken image does not become ready, and the way back works. The roll-out says Completed before a worker is
	// ready (pitfall 4).
	broken := c.change(workerImage, "broken")
	c.waiting("ImagePullBackOff", 3)
	back := c.change(workerImage, "trtllm")
	early := c.await("the way back has begun", func(g graph) bool { return g.Status.ObservedGeneration == back })
	require.Equal(t, phaseCompleted, early.Status.RollingUpdate.Phase)
	require.False(t, ready(early.Status))
	c.await("the workers are back", settled(back))
	c.like("w11", 15, 16, broken)

	// What is deleted goes with all that it had.
	g, _ := c.latest()
	require.NoError(t, c.Client().Delete(t.Context(), g.Object))
	wait.Within(t, within, "no pod is left", func() (any, bool) {
		return nil, len(c.pods(worker)) == 0 && len(c.pods(frontend)) == 0
	})
}

// Under Recreate a roll-back in the middle of a roll-out leaves both sets of workers waiting for the GPUs, until a new
// generation ends both (pitfall 3).
func TestRecreate(t *testing.T) {
	c := deploy(t, 3, recreate, OperatorOptions{})
	args := c.change(workerArgs, "1")
	c.await("the arguments are others", settled(args))
	c.like("w5", 7, 7, args)

	broken := c.change(workerImage, "broken")
	c.waiting("ImagePullBackOff", 3)
	back := c.change(workerImage, "trtllm")
	c.await("the way back has begun", func(g graph) bool { return g.Status.ObservedGeneration == back })
	c.unscheduled(3)
	c.waiting("ImagePullBackOff", 3)
	c.like("w9", 11, 12, broken)

	out := c.change(workerArgs, "2")
	c.await("a new generation is ready", settled(out))
	c.like("w10", 13, 13, out)
	require.Len(t, c.pods(worker), 3)
}

// Grove's status says Ready too early: after a patch, and before the last pod of a restart (pitfall 2).
func TestGrove(t *testing.T) {
	c := deploy(t, 3, "", OperatorOptions{Grove: true})
	mode := c.change(frontendMode, "kv")
	c.await("it is not ready", func(g graph) bool { return g.Status.ObservedGeneration == mode && !ready(g.Status) })
	c.await("the mode is switched", settled(mode))
	c.like("w21", 2, 2, mode)
	restarted := c.change(restartWith, "switch-1")
	c.await("the restart is completed", func(g graph) bool {
		return g.Status.ObservedGeneration == restarted && g.Status.Restart.Phase == phaseCompleted
	})
	c.like("w22", 3, 3, restarted)
	g, _ := c.latest()
	require.Nil(t, g.Status.RollingUpdate)
}

// While no operator runs, nobody observes a generation; the next one goes on from there.
func TestOperatorStopped(t *testing.T) {
	c := deploy(t, 3, inPlace, OperatorOptions{})
	c.operator.Stop()
	generation := c.change(graphMode, "kv")
	c.await("the patch is seen", func(g graph) bool { return g.Object.GetGeneration() == generation })
	g, _ := c.latest()
	require.Less(t, g.Status.ObservedGeneration, generation)
	c.Operator(t, OperatorOptions{Stumbles: true})
	c.await("the mode is switched", settled(generation))
	c.like("w10", 14, 14, generation) // where the state says failed for a moment

	// Who applies the environment owns all of it: a release that is applied again takes the mode back, and whatever
	// else was there (pitfall 8).
	more := c.patch(`[{"op": "add", "path": "/spec/env/-", "value": {"name": "NONCE", "value": "1"}}]`)
	c.await("the environment has one more", settled(more))
	release := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "booth", "namespace": Namespace},
		"spec": map[string]any{
			"components": []any{map[string]any{"name": frontend}, map[string]any{"name": worker}},
			"env":        []any{map[string]any{"name": "DYN_ROUTER_MODE", "value": "round-robin"}},
		},
	}}
	release.SetGroupVersionKind(kind)
	require.NoError(t, c.Client().Apply(t.Context(), client.ApplyConfigurationFromUnstructured(release), client.FieldOwner("helm"), client.ForceOwnership))
	taken := c.await("the release is applied", func(g graph) bool { return g.Object.GetGeneration() > more })
	require.Equal(t, []corev1.EnvVar{{Name: "DYN_ROUTER_MODE", Value: "round-robin"}}, taken.Spec.Env)
	require.Equal(t, int32(3), taken.Spec.Components[1].replicas(), "what the release does not name stays")
}

// took is the time from the first sight of a generation to the last state that was told of it.
func (c *rig) took(generation int64) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []time.Time
	for i, g := range c.seen {
		if g.Object.GetGeneration() == generation {
			all = append(all, c.at[i])
		}
	}
	return all[len(all)-1].Sub(all[0])
}

// told says whether the workers' counts were ever so.
func (c *rig) told(so func(componentStatus) bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.seen, func(g graph) bool { return so(g.Status.Components[worker]) })
}

// running waits until a pod is ready.
func (c *rig) running(name string) {
	c.t.Helper()
	wait.Within(c.t, within, "the pod is ready", func() (any, bool) {
		var pod corev1.Pod
		return nil, c.Client().Get(c.t.Context(), client.ObjectKey{Namespace: Namespace, Name: name}, &pod) == nil && podReady(&pod)
	})
}

// unscheduled waits until so many workers' pods find no GPU.
func (c *rig) unscheduled(n int) {
	c.t.Helper()
	c.count(n, func(p *corev1.Pod) bool {
		return slices.ContainsFunc(p.Status.Conditions, func(condition corev1.PodCondition) bool {
			return condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonUnschedulable
		})
	})
	g, _ := c.latest()
	require.Equal(c.t, statePending, g.Status.State)
	require.False(c.t, ready(g.Status))
}

// waiting waits until the containers of so many workers' pods wait for a reason.
func (c *rig) waiting(reason string, n int) {
	c.t.Helper()
	c.count(n, func(p *corev1.Pod) bool {
		return slices.ContainsFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.State.Waiting != nil && s.State.Waiting.Reason == reason })
	})
}

func (c *rig) count(n int, is func(*corev1.Pod) bool) {
	c.t.Helper()
	wait.Within(c.t, within, "so many pods", func() (any, bool) {
		found := 0
		for _, p := range c.pods(worker) {
			if is(&p) {
				found++
			}
		}
		return nil, found == n
	})
}
