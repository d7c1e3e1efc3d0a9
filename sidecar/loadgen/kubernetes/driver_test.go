package kubernetes

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

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

// TestSwitchFollowsTheOperator replays what the operator wrote after a patch: a switch is done
// when it has written its last word, and not before, whatever the status says in between.
func TestSwitchFollowsTheOperator(t *testing.T) {
	tests := []struct {
		name, timeline, where string
		change                func(*Options)
		warm                  bool
		says                  []string
	}{
		{name: "pitfall 1, a status of the generation before", timeline: "w2", where: "frontend", change: func(o *Options) { o.FrontendAlone = true }, warm: true, says: []string{"the frontend is restarting"}},
		{name: "restart, one worker after the other", timeline: "w3", where: "frontend", says: []string{"1 of 3 workers ready", "2 of 3 workers ready"}},
		{name: "pitfall 6, two frontends at once", timeline: "w7", where: "graph", says: []string{"0 of 3 workers ready", "the frontend is restarting"}},
		{name: "Recreate, restart", timeline: "w6", where: "frontend", says: []string{"0 of 3 workers ready"}},
		{name: "pitfall 2, Grove's early Ready", timeline: "w21", where: "frontend", change: func(o *Options) { o.FrontendAlone = true }, warm: true},
		{name: "pitfall 2, and again in mid-restart", timeline: "w22", where: "frontend", says: []string{"1 of 3 workers ready"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newReplay(t, booth(tt.where, "round-robin"), tt.timeline)
				d := r.driver(t.Context(), tt.change)
				var said heard
				cold, err := d.Switch(t.Context(), rr, kv, said.report)
				if err != nil || cold == tt.warm {
					t.Fatalf("cold %v, error %v\n%s", cold, err, strings.Join(said, "\n"))
				}
				if !r.settled() {
					f, _ := r.now()
					t.Errorf("done %.2f s after the patch, while the operator had more to write: %+v", time.Since(r.patched).Seconds(), f)
				}
				said.has(t, tt.says...)
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

// TestPatch shows what is written where.
func TestPatch(t *testing.T) {
	tests := []struct {
		where    string
		alone    bool
		from, to api.ModeState
		paths    []string
	}{
		{"graph", false, rr, kv, []string{"/metadata/generation", "/metadata/annotations", "/spec/env/0/name", "/spec/env/0"}},
		{"frontend", false, rr, kv, []string{"/metadata/generation", "/metadata/annotations", "/spec/components/0/name", "/spec/components/0/podTemplate/spec/containers/0/name", "/spec/components/0/podTemplate/spec/containers/0/env/0/name", "/spec/components/0/podTemplate/spec/containers/0/env/0", "/spec/restart"}},
		{"graph", true, rr, kv, []string{"/metadata/generation", "/metadata/annotations", "/spec/components/0/name", "/spec/components/0/podTemplate/spec/containers/0/name", "/spec/components/0/podTemplate/spec/containers/0/env"}},
		{"nowhere", false, rr, kv, []string{"/metadata/generation", "/metadata/annotations", "/spec/env"}},
		{"graph", false, rr, rr, []string{"/metadata/generation", "/metadata/annotations", "/spec/restart"}},
	}
	for _, tt := range tests {
		t.Run(tt.where, func(t *testing.T) {
			r := newReplay(t, booth(tt.where, "round-robin"))
			d := r.driver(t.Context(), func(o *Options) { o.FrontendAlone = tt.alone })
			w := wanted{mode: tt.to, note: d.note(tt.from, tt.to)}
			if err := d.put(t.Context(), &w); err != nil {
				t.Fatal(err)
			}
			var paths []string
			for _, op := range r.patches[0] {
				paths = append(paths, op.Path)
			}
			if !slices.Equal(paths, tt.paths) {
				t.Errorf("wrote %v, want %v", paths, tt.paths)
			}
			if g, err := readGraph(r.object); err != nil || g.mode() != tt.to.Mode {
				t.Errorf("the object is in %v, error %v", g.mode(), err)
			}
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

// broken is a variant whose image does not exist.
func withVariants(o *Options) {
	o.Variants = map[api.Speculation]Variant{
		api.SpeculationOff:   {Image: "runtime:1.6.1"},
		api.SpeculationDraft: {Image: "broken:1.6.1"},
	}
}

// TestBrokenVariantIsUndone rolls back from an image that is not there, long before the deadline.
func TestBrokenVariantIsUndone(t *testing.T) {
	off, draft := api.ModeState{Mode: api.ModeKV, Speculation: api.SpeculationOff}, api.ModeState{Mode: api.ModeKV, Speculation: api.SpeculationDraft}
	for name, files := range map[string][]string{
		"pitfall 4, Completed before Ready":      {"w11"},
		"pitfall 3, the deadlock under Recreate": {"w9", "w10"},
		"Grove":                                  {"w23"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newReplay(t, booth("graph", "kv"), files...)
				d := r.driver(t.Context(), withVariants)
				var said heard
				began := time.Now()
				_, err := d.Switch(t.Context(), off, draft, said.report)
				if err == nil || !strings.Contains(err.Error(), "ImagePullBackOff") || !strings.Contains(err.Error(), "it was switched back to KV-aware") {
					t.Fatalf("error %v\n%s", err, strings.Join(said, "\n"))
				}
				if !r.settled() {
					t.Error("the way back ended while the operator had more to write")
				}
				if took := time.Since(began); took > 90*time.Second {
					t.Errorf("it took %v", took)
				}
				said.has(t, "rolling_back: switching back to KV-aware", "rolling_back: 0 of 3 workers ready")
				if m, err := d.Current(t.Context()); m != off || err != nil {
					t.Errorf("current %v, %v", m, err)
				}
			})
		})
	}
}

// TestStuckRollOut gives up at the deadline of a roll-out that never fails by itself (pitfall
// 5), and asks for a new restart on the way back, since an old id undoes one (pitfall 7).
func TestStuckRollOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReplay(t, booth("frontend", "round-robin"), "w4")
		d := r.driver(t.Context(), nil)
		var said heard
		began := time.Now()
		_, err := d.Switch(t.Context(), rr, kv, said.report)
		if err == nil || !strings.Contains(err.Error(), "timed out after 2m0s") || !strings.Contains(err.Error(), "it was switched back to Round-robin") {
			t.Fatalf("error %v\n%s", err, strings.Join(said, "\n"))
		}
		if took := time.Since(began); took < 2*time.Minute || took > 3*time.Minute {
			t.Errorf("it took %v", took)
		}
		var ids []string
		for _, ops := range r.patches {
			for _, op := range ops {
				if op.Path == "/spec/restart" {
					ids = append(ids, op.Value.(map[string]any)["id"].(string))
				}
			}
		}
		if len(ids) != 2 || ids[0] == ids[1] {
			t.Errorf("ids of restarts: %v", ids)
		}
	})
}

// TestCancelledSwitch is undone; the end of the process leaves it, and the next one goes on.
func TestCancelledSwitch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReplay(t, booth("graph", "round-robin"), "w7", "w11")
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, cancel)
		var said heard
		_, err := r.driver(t.Context(), nil).Switch(ctx, rr, kv, said.report)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		if g, _ := readGraph(r.object); g.mode() != api.ModeRoundRobin {
			t.Errorf("the object is in %v", g.mode())
		}
		said.has(t, "rolling_back: switching back to Round-robin")
	})
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
		if err := first.put(t.Context(), &w); err != nil {
			t.Fatal(err)
		}
		second := r.driver(t.Context(), func(o *Options) { o.By = "booth-1:8088" })
		_, err := second.Switch(t.Context(), kv, rr, (&heard{}).report)
		if !errors.Is(err, api.ErrConflict) || !strings.Contains(err.Error(), "booth-0:8088 switches default/booth to KV-aware") {
			t.Errorf("error %v", err)
		}
		time.Sleep(2*time.Minute + time.Second)
		if err := second.put(t.Context(), &wanted{mode: rr, note: second.note(kv, rr)}); err != nil {
			t.Errorf("after the deadline: %v", err)
		}
	})
}

// TestSomebodyElsesPatch is left as it is (pitfall 8: a GitOps tool takes the field back).
func TestSomebodyElsesPatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReplay(t, booth("graph", "round-robin"), "w7")
		d := r.driver(t.Context(), nil)
		r.later(3*time.Second, func() {
			next := r.object.DeepCopy()
			_ = unstructured.SetNestedField(next.Object, "least-loaded", "spec", "env")
			_ = unstructured.SetNestedSlice(next.Object, []any{map[string]any{"name": routerMode, "value": "least-loaded"}}, "spec", "env")
			_ = unstructured.SetNestedSlice(next.Object, []any{map[string]any{
				"manager": "argocd-controller", "operation": "Update", "time": "2026-11-23T08:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:spec": map[string]any{"f:env": map[string]any{}}},
			}}, "metadata", "managedFields")
			r.become(next)
		})
		_, err := d.Switch(t.Context(), rr, kv, (&heard{}).report)
		if err == nil || !strings.Contains(err.Error(), "argocd-controller set DYN_ROUTER_MODE to least-loaded") {
			t.Errorf("error %v", err)
		}
		if g, _ := readGraph(r.object); g.mode() != api.ModeLeastLoaded {
			t.Errorf("the object is in %v", g.mode())
		}
		if by := d.Author(t.Context()); by != "argocd-controller" {
			t.Errorf("author %q", by)
		}
	})
}

// TestOperatorStopped says what is likely wrong where nobody takes up a change.
func TestOperatorStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReplay(t, booth("graph", "round-robin"), "w7")
		r.timeline[1] = r.timeline[1][:1]
		var said heard
		_, err := r.driver(t.Context(), nil).Switch(t.Context(), rr, kv, said.report)
		if err == nil || !strings.Contains(err.Error(), "switching it back to Round-robin also failed") {
			t.Errorf("error %v", err)
		}
		said.has(t, "waiting for Dynamo's operator to take up the change; is it running?")
	})
}

// TestRightsAndDeletion tells which rule is missing, and that the object is gone.
func TestRightsAndDeletion(t *testing.T) {
	resource := schema.GroupResource{Group: Graphs.Group, Resource: Graphs.Resource}
	tests := []struct {
		name, call string
		err        error
		says       string
	}{
		{"no get", "get dynamographdeployments", apierrors.NewForbidden(resource, "booth", errors.New("no")), "{apiGroups: [nvidia.com], resources: [dynamographdeployments], verbs: [get], resourceNames: [booth]}"},
		{"no patch", "patch dynamographdeployments", apierrors.NewForbidden(resource, "booth", errors.New("no")), "{apiGroups: [nvidia.com], resources: [dynamographdeployments], verbs: [patch], resourceNames: [booth]}"},
		{"deleted", "get dynamographdeployments", apierrors.NewNotFound(resource, "booth"), "DynamoGraphDeployment default/booth not found"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newReplay(t, booth("graph", "round-robin"), "w7")
			r.deny[tt.call] = tt.err
			_, err := r.driver(t.Context(), nil).Switch(t.Context(), rr, kv, (&heard{}).report)
			if err == nil || !strings.Contains(err.Error(), tt.says) || len(r.patches) != 0 {
				t.Errorf("%d patches, error %v", len(r.patches), err)
			}
		})
	}
}

// TestDeletedInMidSwitch ends the wait at once.
func TestDeletedInMidSwitch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReplay(t, booth("graph", "round-robin"), "w7")
		r.later(3*time.Second, func() {
			r.deny["get dynamographdeployments"] = apierrors.NewNotFound(schema.GroupResource{Group: Graphs.Group, Resource: Graphs.Resource}, "booth")
		})
		began := time.Now()
		_, err := r.driver(t.Context(), nil).Switch(t.Context(), rr, kv, (&heard{}).report)
		if err == nil || !strings.Contains(err.Error(), "not found") || time.Since(began) > 5*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
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
		if err != nil {
			t.Fatal(err)
		}
		all, err := ReadAll[corev1.Pod](&unstructured.UnstructuredList{Items: tt.pods})
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := g.serves(all); got != tt.want || ok != (tt.want != "") {
			t.Errorf("%s: %v, %v, want %v", tt.name, got, ok, tt.want)
		}
	}
}

// TestWayBackFromAnUnknownMode is to what the object said.
func TestWayBackFromAnUnknownMode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReplay(t, booth("graph", "round-robin"), "w7", "w11")
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, cancel)
		_, err := r.driver(t.Context(), nil).Switch(ctx, api.ModeState{Mode: api.ModeUnknown}, kv, (&heard{}).report)
		if g, _ := readGraph(r.object); g.mode() != api.ModeRoundRobin || !errors.Is(err, context.Canceled) {
			t.Errorf("the object is in %v, error %v", g.mode(), err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		r := newReplay(t, booth("graph", "random"), "w7", "w11")
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, cancel)
		_, err := r.driver(t.Context(), nil).Switch(ctx, api.ModeState{Mode: api.ModeUnknown}, kv, (&heard{}).report)
		if g, _ := readGraph(r.object); g.mode() != api.ModeKV || err == nil || !strings.Contains(err.Error(), "unknown to KV Booth") {
			t.Errorf("the object is in %v, error %v", g.mode(), err)
		}
	})
}
