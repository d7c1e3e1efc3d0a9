//go:build kubernetes

package kubernetes

import (
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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kvbooth/internal/wait"
)

// within is what a condition may take to come about on a busy machine.
const within = 30 * time.Second

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
	return strings.Join(words, " ")
}

// recorded are the distinct successive states of generations of a timeline, as the real operator wrote them.
func recorded(t *testing.T, name string, first, last int64) (all []string) {
	t.Helper()
	text, err := os.ReadFile("../../loadgen/cluster/kubernetes/testdata/timelines/" + name + ".log")
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		_, entry, ok := strings.Cut(strings.TrimSpace(line), " ")
		require.True(t, ok, line)
		var was struct {
			Generation int64         `json:"gen"`
			Observed   int64         `json:"obs"`
			State      string        `json:"state"`
			Conditions [][]any       `json:"conds"`
			Roll       rollingStatus `json:"roll"`
		}
		require.NoError(t, json.Unmarshal([]byte(entry), &was), line)
		if was.Generation < first || was.Generation > last {
			continue
		}
		s := status{State: was.State}
		if was.Roll.Phase != "" {
			s.RollingUpdate = &was.Roll
		}
		for _, condition := range was.Conditions {
			s.Conditions = append(s.Conditions, metav1.Condition{
				Type:   condition[0].(string),
				Status: metav1.ConditionStatus(condition[1].(string)),
			})
		}
		all = append(all, reduced(was.Generation == was.Observed, s))
	}
	require.NotEmpty(t, all)
	return slices.Compact(all)
}

// written are the states of a graph that the operator here writes.
type written struct {
	mu  sync.Mutex
	all []graph
}

// follow notes them until the end of the test.
func (w *written) follow(t *testing.T, c *ControlPlane) {
	t.Helper()
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
			object, ok := event.Object.(*unstructured.Unstructured)
			if !ok || event.Type == watch.Error {
				continue
			}
			g, err := read(object)
			if err != nil {
				t.Errorf("a status that cannot be read: %v", err)
			}
			w.mu.Lock()
			w.all = append(w.all, g)
			w.mu.Unlock()
		}
	})
}

// settles waits until a generation is ready and not being rolled out.
func (w *written) settles(t *testing.T, generation int64) {
	t.Helper()
	wait.Within(t, within, fmt.Sprint("generation ", generation, " settles"), func() (any, bool) {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.all, slices.ContainsFunc(w.all, func(g graph) bool {
			s := g.Status
			return s.ObservedGeneration == generation && s.State == stateSuccessful && ready(s) &&
				(s.RollingUpdate == nil || s.RollingUpdate.Phase == phaseCompleted)
		})
	})
}

// states are the distinct successive ones of generations.
func (w *written) states(first, last int64) (all []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, g := range w.all {
		if generation := g.Object.GetGeneration(); first <= generation && generation <= last {
			all = append(all, reduced(generation == g.Status.ObservedGeneration, g.Status))
		}
	}
	return slices.Compact(all)
}

// The operator here writes what the real one wrote: where the mode changes on as many GPUs as there are workers, and
// on the way back from an image that is not there.
func TestOperatorIsLikeTheRecordedOne(t *testing.T) {
	c := Start(t)
	c.Node(t, "gpu-0", 3)
	c.Operator(t)
	var seen written
	seen.follow(t, c)
	object := c.Deploy(t, "booth", "round-robin", 1500*time.Millisecond)
	seen.settles(t, 1)
	change := func(operation, value string) int64 {
		patch := client.RawPatch(types.JSONPatchType, fmt.Appendf(nil, operation, value))
		require.NoError(t, c.Client().Patch(t.Context(), object, patch))
		return object.GetGeneration()
	}
	const workerImage = `[{"op": "replace", "path": "/spec/components/1/podTemplate/spec/containers/0/image", "value": %q}]`

	switched := change(`[{"op": "replace", "path": "/spec/env", "value": [{"name": "DYN_ROUTER_MODE", "value": %q}]}]`, "kv")
	seen.settles(t, switched)
	require.Equal(t, recorded(t, "w7", 9, 9), seen.states(switched, switched))

	broken := change(workerImage, "broken")
	wait.Within(t, within, "the image is not there", func() (any, bool) {
		var pods corev1.PodList
		err := c.Client().List(t.Context(), &pods, client.InNamespace(Namespace),
			client.MatchingLabels{labelGraph: "booth", labelComponent: "TRTLLMWorker"})
		waiting := 0
		for _, p := range pods.Items {
			if s := p.Status.ContainerStatuses; len(s) > 0 && s[0].State.Waiting != nil &&
				s[0].State.Waiting.Reason == "ImagePullBackOff" {
				waiting++
			}
		}
		return err, waiting == 3
	})
	back := change(workerImage, "runtime:1.6.1")
	seen.settles(t, back)
	require.Equal(t, recorded(t, "w11", 15, 16), seen.states(broken, back), "Completed before Ready (pitfall 4)")
}
