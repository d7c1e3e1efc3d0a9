package kubernetes

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/httpd"
	"kvbooth/sidecar/sim"
)

const (
	away = 3600.0 // seconds: until it is called back
	here = 1e-3
)

// Frontend serves a simulated cluster as the pods of a DynamoGraphDeployment in [Namespace] would, and gives its URL,
// which does not change. It follows the pods:
//
//   - /health lists one instance for each worker's pod that is ready. A pod that comes has empty caches and, as far as
//     they go, an id that none had lately; there are twice as many ids as the deployment has workers, at most.
//   - The environment of a frontend's pod (DYN_ROUTER_MODE; round-robin without it) says the router's mode. While two
//     frontends are ready the older one serves. Another one ends the requests in progress, and the workers that stay
//     keep their caches.
//   - Without a frontend's pod that is ready, everything answers 503.
//   - A worker's argument or environment with "eagle3" or "draft" in it says how the workers speculate.
//
// The deployment must exist. What changes the options comes last. It ends with the test.
func (c *ControlPlane) Frontend(t testing.TB, deployment string, changes ...func(*httpd.Options)) string {
	t.Helper()
	f, err := c.follow(t, deployment, changes)
	if err != nil {
		t.Fatalf("a frontend for %s: %v", deployment, err)
	}
	return f.url
}

// follower keeps a simulated cluster in step with pods.
type follower struct {
	t      testing.TB
	url    string
	server *httpd.Server
	up     atomic.Bool
	seen   atomic.Value // signature of the pods that it is in step with

	plane      *ControlPlane
	deployment string

	// Of the one goroutine that follows.
	pods        map[types.UID]*corev1.Pod
	places      []place
	turn        int
	frontend    types.UID // of the pod that serves, "" for none
	mode        api.ModeState
	unsupported types.UID // of the pod whose mode has been complained of
}

// place is a worker of the simulation.
type place struct {
	id   string
	pod  types.UID // "" for none
	left int       // the turn in which it became empty
}

func (c *ControlPlane) follow(t testing.TB, deployment string, changes []func(*httpd.Options)) (*follower, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(c.kind)
	if err := c.client.Get(t.Context(), client.ObjectKey{Namespace: Namespace, Name: deployment}, object); err != nil {
		return nil, err
	}
	g, err := read(object)
	if err != nil {
		return nil, err
	}
	profile := sim.H200()
	profile.Workers = 0
	for i := range g.Spec.Components {
		if c := &g.Spec.Components[i]; c.worker() {
			profile.Workers += 2 * int(c.replicas())
		}
	}
	options := httpd.Options{Cluster: sim.DefaultOptions(profile), Engine: "trtllm", Speed: 1}
	options.Cluster.Restart = 0 // the pods' own start takes its time
	for _, change := range changes {
		change(&options)
	}
	f := &follower{t: t, plane: c, deployment: deployment, pods: map[types.UID]*corev1.Pod{}}
	if f.server, err = httpd.New(options); err != nil {
		return nil, err
	}
	t.Cleanup(f.server.Close)
	if err := f.empty(); err != nil {
		return nil, err
	}
	watched, err := client.NewWithWatch(c.Config(), client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	events, err := watched.Watch(ctx, &corev1.PodList{}, client.InNamespace(Namespace),
		client.MatchingLabels{labelGraph: deployment})
	if err != nil {
		cancel()
		return nil, err
	}
	serving := httptest.NewServer(http.HandlerFunc(f.serve))
	f.url = serving.URL
	var following sync.WaitGroup
	following.Go(func() { f.run(ctx, events) })
	t.Cleanup(func() {
		cancel()
		events.Stop()
		following.Wait()
		f.server.Close()
		serving.Close()
	})
	return f, nil
}

// serve answers as the frontend's pod would. What is asked for its health has seen the pods before:
// as long as this follower has not, the answer would be that of a frontend that is gone.
func (f *follower) serve(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/health" {
		if now, err := f.latest(r.Context()); err != nil || now != f.seen.Load() {
			http.Error(w, "the frontend's pods have just changed", http.StatusServiceUnavailable)
			return
		}
	}
	if !f.up.Load() {
		http.Error(w, "no frontend is ready", http.StatusServiceUnavailable)
		return
	}
	f.server.Frontend().ServeHTTP(w, r)
}

// latest is the signature of the pods that there are now.
func (f *follower) latest(ctx context.Context) (string, error) {
	var list corev1.PodList
	err := f.plane.client.List(ctx, &list, client.InNamespace(Namespace), client.MatchingLabels{labelGraph: f.deployment})
	pods := make([]*corev1.Pod, len(list.Items))
	for i := range list.Items {
		pods[i] = &list.Items[i]
	}
	return signature(pods), err
}

// empty sends all workers away.
func (f *follower) empty() error {
	var state struct {
		api.ModeState
		Workers []struct{ ID string }
	}
	if err := f.call(http.MethodGet, "/sim/v1/state", nil, &state); err != nil {
		return err
	}
	f.mode = state.ModeState
	for _, w := range state.Workers {
		f.places = append(f.places, place{id: w.ID})
		f.lose(w.ID, away)
	}
	return nil
}

// run follows the pods until ctx or the events end.
func (f *follower) run(ctx context.Context, events watch.Interface) {
	for event := range events.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		if ctx.Err() != nil {
			return
		}
		if !ok {
			f.t.Errorf("the pods cannot be watched: %v", event.Object)
			return
		}
		if event.Type == watch.Deleted {
			delete(f.pods, pod.UID)
		} else {
			f.pods[pod.UID] = pod
		}
		f.turn++
		f.followWorkers()
		f.followFrontend()
		f.seen.Store(signature(slices.Collect(maps.Values(f.pods))))
	}
}

// signature differs between sets of pods for which a frontend serves differently.
func signature(pods []*corev1.Pod) string {
	all := make([]string, len(pods))
	for i, p := range pods {
		all[i] = fmt.Sprint(p.UID, podReady(p))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// ready are the pods that serve, frontends or workers, the oldest first.
func (f *follower) ready(frontends bool) []*corev1.Pod {
	pods := slices.DeleteFunc(slices.Collect(maps.Values(f.pods)), func(p *corev1.Pod) bool {
		return !podReady(p) || (p.Labels[labelType] == typeFrontend) != frontends
	})
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return pods
}

// followWorkers gives every worker's pod that is ready a place, of the empty ones that which has been so for longest.
func (f *follower) followWorkers() {
	pods := f.ready(false)
	for i := range f.places {
		if p := &f.places[i]; p.pod != "" && !slices.ContainsFunc(pods,
			func(pod *corev1.Pod) bool { return pod.UID == p.pod }) {
			p.pod, p.left = "", f.turn
			f.lose(p.id, away)
		}
	}
	if len(pods) > 0 {
		f.speculate(speculation(pods[len(pods)-1]))
	}
	for _, pod := range pods {
		if slices.ContainsFunc(f.places, func(p place) bool { return p.pod == pod.UID }) {
			continue
		}
		best := -1
		for i, p := range f.places {
			if p.pod == "" && (best < 0 || p.left < f.places[best].left) {
				best = i
			}
		}
		if best < 0 {
			f.t.Errorf("there are more workers' pods than the simulated cluster has workers: %d", len(f.places))
			return
		}
		f.places[best].pod = pod.UID
		f.lose(f.places[best].id, here)
	}
}

// speculation is how a worker's pod speculates.
func speculation(pod *corev1.Pod) api.Speculation {
	var text strings.Builder
	for _, c := range pod.Spec.Containers {
		fmt.Fprintln(&text, c.Args, c.Env)
	}
	for _, kind := range []api.Speculation{api.SpeculationEagle3, api.SpeculationDraft} {
		if strings.Contains(text.String(), string(kind)) {
			return kind
		}
	}
	return api.SpeculationNotRecorded
}

// speculate restarts the simulated cluster where its workers are to speculate otherwise.
func (f *follower) speculate(how api.Speculation) {
	if how == f.mode.Speculation {
		return
	}
	f.mode.Speculation = how
	f.do(http.MethodPut, "/sim/v1/mode", f.mode)
	for _, p := range f.places {
		after := here
		if p.pod == "" {
			after = away
		}
		f.lose(p.id, after)
	}
}

// followFrontend has the oldest ready frontend serve, in its mode.
func (f *follower) followFrontend() {
	pods := f.ready(true)
	if len(pods) == 0 {
		if f.frontend != "" {
			f.up.Store(false)
			f.frontend = ""
			f.restart()
		}
		return
	}
	if slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p.UID == f.frontend }) {
		return
	}
	mode := api.ModeRoundRobin
	for _, c := range pods[0].Spec.Containers {
		for _, e := range c.Env {
			if e.Name == "DYN_ROUTER_MODE" {
				mode = api.Mode(strings.ReplaceAll(e.Value, "-", "_"))
			}
		}
	}
	if !slices.Contains([]api.Mode{api.ModeKV, api.ModeRoundRobin, api.ModeLeastLoaded}, mode) {
		f.up.Store(false)
		if f.unsupported != pods[0].UID {
			f.unsupported = pods[0].UID
			f.t.Logf("the simulated cluster has no mode %q, which %s asks for: nothing is served", mode, pods[0].Name)
		}
		return
	}
	f.mode.Mode, f.frontend = mode, pods[0].UID
	f.restart()
	f.up.Store(true)
}

// restart restarts the simulated frontend alone.
func (f *follower) restart() { f.do(http.MethodPut, "/sim/v1/mode?restart=true&workers=keep", f.mode) }

// lose has a worker be ready after some seconds, with empty caches.
func (f *follower) lose(id string, seconds float64) {
	f.do(http.MethodPost, "/sim/v1/workers/"+id+"/lose", map[string]float64{"seconds": seconds})
}

// do makes a call that the simulated cluster has no reason to refuse.
func (f *follower) do(method, path string, body any) {
	if err := f.call(method, path, body, nil); err != nil {
		f.t.Errorf("the simulated cluster does not follow: %v", err)
	}
}

// call makes a call of the simulated cluster's own API, whether or not its frontend is up.
func (f *follower) call(method, path string, body, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, response := httptest.NewRequestWithContext(context.Background(), method, "http://localhost"+path,
		strings.NewReader(string(text))), httptest.NewRecorder()
	request.Header.Set("Content-Type", "application/json")
	f.server.Frontend().ServeHTTP(response, request)
	if response.Code/100 != 2 {
		return fmt.Errorf("%s %s: %d: %s", method, path, response.Code, response.Body)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(response.Body.Bytes(), answer)
}
