package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
)

var (
	kv = api.ModeState{Mode: api.ModeKV, Speculation: api.SpeculationNotRecorded}
	rr = api.ModeState{Mode: api.ModeRoundRobin, Speculation: api.SpeculationNotRecorded}
)

// driver makes a driver on a replay, whose frontend lists the workers that are ready.
func (r *replay) driver(ctx context.Context, change func(*Options)) *Driver {
	opts := Options{
		Namespace: "default", Name: "booth", Timeout: 2 * time.Minute, Modes: []api.ModeState{kv, rr}, By: "booth-0:8088", Log: slog.New(slog.DiscardHandler),
		Instances: func(context.Context) ([]string, error) {
			r.mu.Lock()
			f, _ := r.now()
			r.mu.Unlock()
			_, _, ready := f.count("TRTLLMWorker")
			return make([]string, min(ready, 3)), nil
		},
	}
	if change != nil {
		change(&opts)
	}
	return New(ctx, r.client(), opts)
}

// heard collects what a switch says, each message once.
type heard []string

func (h *heard) report(phase, message string) { *h = append(*h, phase+": "+message) }

func (h heard) has(t *testing.T, words ...string) {
	t.Helper()
	for _, w := range words {
		if !slices.ContainsFunc(h, func(m string) bool { return strings.Contains(m, w) }) {
			t.Errorf("no message has %q; they are:\n%s", w, strings.Join(h, "\n"))
		}
	}
}

// TestSwitchFollowsTheOperator replays what the operator wrote after a patch: a switch is done when it has written
// its last word, and not before, whatever the status says in between.
func TestSwitchFollowsTheOperator(t *testing.T) {
	tests := []struct {
		name, timeline, where string
		alone                 bool // the frontend: the workers stay warm
		from                  api.ModeState
		says                  []string
	}{
		{"pitfall 1, a status of the generation before", "w2", "frontend", true, rr, []string{"the frontend is restarting"}},
		{"the frontend alone, below the graph's mode", "w2", "graph", true, rr, []string{"the frontend is restarting"}},
		{
			"restart, one worker after the other", "w3", "frontend", false, rr,
			[]string{"1 of 3 workers ready", "2 of 3 workers ready"},
		},
		{"to the same mode again", "w3", "frontend", false, kv, []string{"2 of 3 workers ready"}},
		{
			"pitfall 6, two frontends at once", "w7", "graph", false, rr,
			[]string{"0 of 3 workers ready", "the frontend is restarting"},
		},
		{"no mode is set yet", "w7", "nowhere", false, rr, []string{"0 of 3 workers ready"}},
		{"Recreate, restart", "w6", "frontend", false, rr, []string{"0 of 3 workers ready"}},
		{"v1alpha1, the frontend alone", "w2", "earlier frontend", true, rr, []string{"the frontend is restarting"}},
		{"v1alpha1, in the frontend's container", "w7", "earlier container", false, rr, []string{"0 of 3 workers ready"}},
		{"v1alpha1, frontend and workers", "w7", "earlier graph", false, rr, []string{"0 of 3 workers ready"}},
		{"v1alpha1, to the same mode again", "w7", "earlier graph", false, kv, []string{"0 of 3 workers ready"}},
		{"v1alpha1, no mode is set yet", "w7", "earlier nowhere", false, rr, []string{"0 of 3 workers ready"}},
		{"pitfall 2, Grove's early Ready", "w21", "frontend", true, rr, nil},
		{"pitfall 2, and again in mid-restart", "w22", "frontend", false, rr, []string{"1 of 3 workers ready"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				spelled := map[api.Mode]string{rr.Mode: "round-robin", kv.Mode: "kv"}[tt.from.Mode]
				object := booth
				where, isEarlier := strings.CutPrefix(tt.where, "earlier ")
				if isEarlier {
					object = earlierBooth
				}
				r := newReplay(t, object(where, spelled), tt.timeline)
				d := r.driver(t.Context(), func(o *Options) { o.FrontendAlone = tt.alone })
				var said heard
				cold, err := d.Switch(t.Context(), tt.from, kv, said.report)
				if err != nil || cold == tt.alone {
					t.Fatalf("cold %v, error %v\n%s", cold, err, strings.Join(said, "\n"))
				}
				if !r.settled() {
					f, _ := r.now()
					t.Errorf("done %.2f s after the patch, while the operator had more to write: %+v", time.Since(r.patched).Seconds(), f)
				}
				said.has(t, tt.says...)
				if guard := r.patches[0][0]; guard.Op != "test" || guard.Path != "/metadata/generation" {
					t.Errorf("the patch is not guarded against what others write: %+v", guard)
				}
				if _, noted := r.object.GetAnnotations()[switching]; noted {
					t.Error("the note stayed")
				}
				if m, err := d.Current(t.Context()); m != kv || err != nil {
					t.Errorf("current %v, %v", m, err)
				}
			})
		})
	}
}

// TestSpelling keeps the spelling that the object has.
func TestSpelling(t *testing.T) {
	r := newReplay(t, booth("graph", "round_robin"))
	g, err := readGraph(r.object)
	if err != nil || g.mode() != api.ModeRoundRobin || g.spell(api.ModeLeastLoaded) != "least_loaded" {
		t.Errorf("%v, %q, %v", g.mode(), g.spell(api.ModeLeastLoaded), err)
	}
}

// least is a mode that only others set here.
func least(r *replay) {
	next := r.object.DeepCopy()
	env := []any{map[string]any{"name": routerMode, "value": "least-loaded"}}
	_ = unstructured.SetNestedSlice(next.Object, env, "spec", "env")
	next.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: "argocd-controller", Operation: metav1.ManagedFieldsOperationUpdate, Time: &metav1.Time{Time: time.Now()},
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:env":{}}}`),
	}})
	r.become(next)
}

// failing is a switch that does not succeed. Where nothing else is said, it is from round-robin to kv.
type failing struct {
	where, mode string // of the object at first: in the graph, round-robin
	files       []string
	change      func(*Options)
	disturb     func(r *replay, cancel func())
	from, to    api.ModeState
	fails, says []string
	least, most time.Duration
	leaves      api.Mode
}

// TestFailedSwitchIsUndone covers every end of a switch that does not succeed. A switch is undone, and the way back
// is watched like the way there, except where the graph was changed by others.
func TestFailedSwitchIsUndone(t *testing.T) {
	unknown := api.ModeState{Mode: api.ModeUnknown}
	canceled := func(_ *replay, cancel func()) { time.AfterFunc(3*time.Second, cancel) }
	broken := func(files ...string) failing { // an image that is not there
		off, draft := api.SpeculationOff, api.SpeculationDraft
		return failing{
			mode: "kv", files: files,
			change: func(o *Options) {
				o.Variants = map[api.Speculation]Variant{off: {Image: "runtime:1.6.1"}, draft: {Image: "broken:1.6.1"}}
			},
			from: api.ModeState{Mode: api.ModeKV, Speculation: off}, to: api.ModeState{Mode: api.ModeKV, Speculation: draft},
			fails: []string{"ImagePullBackOff", "it was switched back to KV-aware"},
			says:  []string{"rolling_back: switching back to KV-aware", "rolling_back: 0 of 3 workers ready"},
			most:  90 * time.Second, leaves: api.ModeKV,
		}
	}
	for name, tt := range map[string]failing{
		"pitfall 4, Completed before Ready":      broken("w11"),
		"pitfall 3, the deadlock under Recreate": broken("w9", "w10"),
		"Grove":                                  broken("w23"),
		"pitfall 5, never fails by itself": {
			where: "frontend", files: []string{"w4"},
			fails: []string{"timed out after 2m0s", "it was switched back to Round-robin"},
			least: 2 * time.Minute, most: 3 * time.Minute, leaves: api.ModeRoundRobin,
		},
		"canceled": {
			files: []string{"w7", "w11"}, disturb: canceled, fails: []string{"context canceled"},
			says: []string{"rolling_back: switching back to Round-robin"}, most: time.Minute, leaves: api.ModeRoundRobin,
		},
		"canceled, from an unknown mode": {
			files: []string{"w7", "w11"}, disturb: canceled, from: unknown, to: kv,
			fails: []string{"context canceled"}, most: time.Minute, leaves: api.ModeRoundRobin,
		},
		"canceled, no way back": {
			mode: "random", files: []string{"w7", "w11"}, disturb: canceled, from: unknown, to: kv,
			fails: []string{"context canceled", "unknown to KV Booth"}, most: 4 * time.Second, leaves: api.ModeKV,
		},
		"pitfall 8, a GitOps tool takes the field back": {
			files: []string{"w7"}, disturb: func(r *replay, _ func()) { r.later(3*time.Second, func() { least(r) }) },
			fails: []string{"argocd-controller set DYN_ROUTER_MODE to least-loaded"},
			most:  5 * time.Second, leaves: api.ModeLeastLoaded,
		},
		"the operator is stopped": {
			files: []string{"w7"}, disturb: func(r *replay, _ func()) { r.timeline[1] = r.timeline[1][:1] },
			fails: []string{"switching it back to Round-robin also failed"},
			says:  []string{"waiting for Dynamo's operator to take up the change; is it running?"},
			most:  5 * time.Minute, leaves: api.ModeRoundRobin,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { tt.test(t) })
		})
	}
}

func (f failing) test(t *testing.T) {
	t.Helper()
	if f.from == f.to {
		f.from, f.to = rr, kv
	}
	r := newReplay(t, booth(cmp.Or(f.where, "graph"), cmp.Or(f.mode, "round-robin")), f.files...)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if f.disturb != nil {
		f.disturb(r, cancel)
	}
	d := r.driver(t.Context(), f.change)
	var said heard
	began := time.Now()
	_, err := d.Switch(ctx, f.from, f.to, said.report)
	for _, words := range f.fails {
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("error %v, want %q\n%s", err, words, strings.Join(said, "\n"))
		}
	}
	said.has(t, f.says...)
	if took := time.Since(began); took < f.least || took > f.most {
		t.Errorf("it took %v", took)
	}
	if g, err := readGraph(r.object); err != nil || g.mode() != f.leaves {
		t.Errorf("the object is in %v, error %v", g.mode(), err)
	}
	if f.change != nil {
		if !r.settled() {
			t.Error("the way back ended while the operator had more to write")
		}
		if m, err := d.Current(t.Context()); m != f.from || err != nil {
			t.Errorf("current %v, %v", m, err)
		}
	}
	if by := d.Author(t.Context()); f.leaves == api.ModeLeastLoaded && by != "argocd-controller" {
		t.Errorf("author %q", by)
	}
	if ids := r.restarts(); f.least > 0 && (len(ids) != 2 || ids[0] == ids[1]) {
		t.Errorf("pitfall 7, an old id undoes a restart: %v", ids)
	}
}

// restarts are the ids of the restarts that were asked for.
func (r *replay) restarts() (ids []string) {
	for _, ops := range r.patches {
		for _, op := range ops {
			if op.Path == "/spec/restart" {
				ids = append(ids, op.Value.(map[string]any)["id"].(string))
			}
		}
	}
	return ids
}

// TestErrorsOfTheAPIServer names the rule that is missing, or says that the object is gone, also in mid-switch.
func TestErrorsOfTheAPIServer(t *testing.T) {
	resource := schema.GroupResource{Group: Graphs.Group, Resource: Graphs.Resource}
	const get, patch = "get dynamographdeployments", "patch dynamographdeployments"
	rule := func(verb string) string {
		return "{apiGroups: [nvidia.com], resources: [dynamographdeployments], verbs: [" + verb + "], resourceNames: [booth]}"
	}
	forbidden := apierrors.NewForbidden(resource, "booth", errors.New("no"))
	missing := apierrors.NewNotFound(resource, "booth")
	tests := []struct {
		name, call string
		err        error
		after      time.Duration
		says       string
		patches    int
	}{
		{"no get", get, forbidden, 0, rule("get"), 0},
		{"no patch", patch, forbidden, 0, rule("patch"), 0},
		{"deleted", get, missing, 0, "DynamoGraphDeployment default/booth not found", 0},
		{"deleted in mid-switch", get, missing, 3 * time.Second, "DynamoGraphDeployment default/booth not found", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newReplay(t, booth("graph", "round-robin"), "w7")
				r.later(tt.after, func() { r.deny[tt.call] = tt.err })
				synctest.Wait()
				began := time.Now()
				_, err := r.driver(t.Context(), nil).Switch(t.Context(), rr, kv, (&heard{}).report)
				if err == nil || !strings.Contains(err.Error(), tt.says) || len(r.patches) != tt.patches {
					t.Errorf("%d patches, error %v", len(r.patches), err)
				}
				if took := time.Since(began); took > tt.after+2*time.Second {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// TestKilledInMidSwitch goes on with what an earlier process began, be it of new environments
// or of a restart.
func TestKilledInMidSwitch(t *testing.T) {
	for where, timeline := range map[string]string{"graph": "w7", "frontend": "w3"} {
		synctest.Test(t, func(t *testing.T) {
			r := newReplay(t, booth(where, "round-robin"), timeline)
			process, kill := context.WithCancel(t.Context())
			time.AfterFunc(3*time.Second, kill)
			_, err := r.driver(process, nil).Switch(process, rr, kv, (&heard{}).report)
			if err == nil || len(r.patches) != 1 {
				t.Fatalf("error %v after %d patches", err, len(r.patches))
			}
			next := r.driver(t.Context(), nil)
			from, to, ok := next.Unfinished(t.Context())
			if !ok || from != rr || to != kv {
				t.Fatalf("unfinished: %v to %v, %v", from, to, ok)
			}
			if _, err := next.Current(t.Context()); err == nil {
				t.Error("the mode was told in mid-switch")
			}
			var said heard
			cold, err := next.Switch(t.Context(), from, to, said.report)
			if err != nil || !cold || !r.settled() || len(r.patches) != 2 {
				t.Errorf("cold %v, error %v, patches %d", cold, err, len(r.patches))
			}
			said.has(t, "resuming the switch")
		})
	}
}

// TestTwoLoadGenerators lets the second wait, and takes over what the first left behind.
func TestTwoLoadGenerators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReplay(t, booth("graph", "round-robin"), "w7")
		first := r.driver(t.Context(), nil)
		w := wanted{mode: kv, note: first.note(rr, kv)}
		require.NoError(t, first.put(t.Context(), &w))
		second := r.driver(t.Context(), func(o *Options) { o.By = "booth-1:8088" })
		_, err := second.Switch(t.Context(), kv, rr, (&heard{}).report)
		if !errors.Is(err, api.ErrConflict) || !strings.Contains(err.Error(), "booth-0:8088 switches default/booth to KV-aware") {
			t.Errorf("error %v", err)
		}
		wait.Advance(2*time.Minute + time.Second)
		assert.NoError(t, second.put(t.Context(), &wanted{mode: rr, note: second.note(kv, rr)}))
	})
}

// TestArgumentFixesTheMode refuses to write a variable that would not count.
func TestArgumentFixesTheMode(t *testing.T) {
	o := booth("graph", "round-robin")
	components, _, _ := unstructured.NestedSlice(o.Object, "spec", "components")
	container := components[0].(map[string]any)["podTemplate"].(map[string]any)["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
	container["args"] = []any{"-m", "dynamo.frontend", "--router-mode=round-robin"}
	_ = unstructured.SetNestedSlice(o.Object, components, "spec", "components")
	r := newReplay(t, o, "w7")
	var field *api.FieldError
	_, err := r.driver(t.Context(), nil).Switch(t.Context(), rr, kv, (&heard{}).report)
	if !errors.As(err, &field) || field.Field != "mode.driver" || !strings.Contains(field.Allowed, "--router-mode") {
		t.Errorf("error %v", err)
	}
	if f := r.driver(t.Context(), nil).Check(t.Context()); !slices.ContainsFunc(f, func(f Finding) bool { return f.Severity == Problem && f.Do == "remove the argument" }) {
		t.Errorf("check: %+v", f)
	}
}

// TestFind finds the graph by its name, its labels, or the address of its frontend.
func TestFind(t *testing.T) {
	r := newReplay(t, booth("graph", "kv"))
	tests := []struct {
		opts Options
		want string // or the error
	}{
		{Options{Name: "booth"}, "booth"},
		{Options{Selector: "app=booth"}, "booth"},
		{Options{Target: "http://booth-frontend.default.svc.cluster.local:8000/v1"}, "booth"},
		{Options{Target: "http://127.0.0.1:8000"}, "mode.kubernetes.name is required"},
		{Options{Target: "http://dynamo.example.org"}, "mode.kubernetes.name is required"},
	}
	for _, tt := range tests {
		d := r.driver(t.Context(), func(o *Options) { o.Name, o.Selector, o.Target = tt.opts.Name, tt.opts.Selector, tt.opts.Target })
		name, err := d.find(t.Context())
		if got := name + strings.Split(errorText(err), ":")[0]; got != tt.want {
			t.Errorf("%+v: %q, %v", tt.opts, name, err)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestServes reads the mode from the frontend's pods, of which two modes are none.
func TestServes(t *testing.T) {
	was, is := booth("graph", "round-robin"), booth("graph", "kv")
	frontend := func(of *unstructured.Unstructured, id string, isReady, isEnding bool) unstructured.Unstructured {
		p := pod(t, of, "Frontend", id, isReady)
		if isEnding {
			p.SetDeletionTimestamp(&metav1.Time{Time: time.Now()})
		}
		return p
	}
	tests := []struct {
		name string
		pods []unstructured.Unstructured
		want api.Mode
	}{
		{"one", []unstructured.Unstructured{frontend(was, "a", true, false)}, api.ModeRoundRobin},
		{"the new one starts", []unstructured.Unstructured{frontend(was, "a", true, false), frontend(is, "b", false, false)}, api.ModeRoundRobin},
		{"pitfall 6, both serve", []unstructured.Unstructured{frontend(was, "a", true, false), frontend(is, "b", true, false)}, api.ModeUnknown},
		{"the old one ends", []unstructured.Unstructured{frontend(was, "a", true, true), frontend(is, "b", true, false)}, api.ModeKV},
		{"none", nil, ""},
	}
	for _, tt := range tests {
		g, err := readGraph(is)
		require.NoError(t, err)
		all, err := ReadAll[corev1.Pod](&unstructured.UnstructuredList{Items: tt.pods})
		require.NoError(t, err)
		if got, ok := g.serves(all); got != tt.want || ok != (tt.want != "") {
			t.Errorf("%s: %v, %v, want %v", tt.name, got, ok, tt.want)
		}
	}
}
