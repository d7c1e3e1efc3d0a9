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

// driver makes a driver on a replay. Its frontend lists the ready workers.
func (r *replay) driver(ctx context.Context, change func(*Options)) *Driver {
	opts := Options{
		Namespace: "default", Name: "booth", Timeout: 2 * time.Minute, Modes: []api.ModeState{
			kv,
			rr,
		}, By: "booth-0:8088", Log: slog.New(slog.DiscardHandler),
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

// reportRecorder collects the reports of a switch.
type reportRecorder []string

func (h *reportRecorder) report(phase, message string) { *h = append(*h, phase+": "+message) }

func (h reportRecorder) has(t *testing.T, words ...string) {
	t.Helper()
	for _, w := range words {
		if !slices.ContainsFunc(h, func(m string) bool { return strings.Contains(m, w) }) {
			t.Errorf("no message has %q; they are:\n%s", w, strings.Join(h, "\n"))
		}
	}
}

// TestSwitchFollowsTheOperator replays recorded statuses of the operator: a switch is done after the operator's
// last change and not before, whatever the status is in between.
func TestSwitchFollowsTheOperator(t *testing.T) {
	tests := []struct {
		name, timeline, where string
		frontendAlone         bool // the workers stay warm
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
				object := booth
				where, isEarlier := strings.CutPrefix(tt.where, "earlier ")
				if isEarlier {
					object = boothV1alpha1
				}
				r := newReplay(t, object(where, spellings[tt.from.Mode]), tt.timeline)
				d := r.driver(t.Context(), func(o *Options) { o.FrontendAlone = tt.frontendAlone })
				var reports reportRecorder
				cold, err := d.Switch(t.Context(), tt.from, kv, reports.report)
				if err != nil || cold == tt.frontendAlone {
					t.Fatalf("switch failed or its cold is wrong: cold %v, error %v\n%s", cold, err, strings.Join(reports, "\n"))
				}
				if !r.settled() {
					f, _ := r.now()
					t.Errorf("switch done %.2f s after the patch, before the operator's last change: %+v",
						time.Since(r.patched).Seconds(), f)
				}
				reports.has(t, tt.says...)
				if guard := r.patches[0][0]; guard.Op != "test" || guard.Path != "/metadata/generation" {
					t.Errorf("the patch does not begin with a test of the generation: %+v", guard)
				}
				if _, noted := r.object.GetAnnotations()[switching]; noted {
					t.Error("the note of the switch was not removed")
				}
				if m, err := d.Current(t.Context()); m != kv || err != nil {
					t.Errorf("Current: %v, %v, want %v", m, err, kv)
				}
			})
		})
	}
}

// TestSpelling requires the spelling of the object.
func TestSpelling(t *testing.T) {
	r := newReplay(t, booth("graph", "round_robin"))
	g, err := readGraph(r.object)
	if err != nil || g.mode() != api.ModeRoundRobin || g.spell(api.ModeLeastLoaded) != "least_loaded" {
		t.Errorf("mode %v, spelling %q, error %v; want round_robin, least_loaded", g.mode(), g.spell(api.ModeLeastLoaded),
			err)
	}
}

// setLeastLoaded sets a mode as another client.
func setLeastLoaded(r *replay) {
	next := r.object.DeepCopy()
	env := []any{map[string]any{"name": routerMode, "value": "least-loaded"}}
	_ = unstructured.SetNestedSlice(next.Object, env, "spec", "env")
	next.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: "argocd-controller", Operation: metav1.ManagedFieldsOperationUpdate, Time: &metav1.Time{Time: time.Now()},
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:env":{}}}`),
	}})
	r.become(next)
}

// failing describes a switch that does not succeed, by default from round-robin to kv.
type failing struct {
	where, mode string // of the object at first; by default in the graph, round-robin
	files       []string
	change      func(*Options)
	disturb     func(r *replay, cancel func())
	from, to    api.ModeState
	fails, says []string
	least, most time.Duration
	leaves      api.Mode
}

// TestFailedSwitchIsUndone covers each failure of a switch. A switch is undone, and the roll-back is awaited in the
// same way, except where another client has changed the graph.
func TestFailedSwitchIsUndone(t *testing.T) {
	unknown := api.ModeState{Mode: api.ModeUnknown}
	canceled := func(_ *replay, cancel func()) { time.AfterFunc(3*time.Second, cancel) }
	broken := func(files ...string) failing { // the image does not exist
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
		"canceled, no roll-back": {
			mode: "random", files: []string{"w7", "w11"}, disturb: canceled, from: unknown, to: kv,
			fails: []string{"context canceled", "unknown to KV Booth"}, most: 4 * time.Second, leaves: api.ModeKV,
		},
		"pitfall 8, a GitOps tool takes the field back": {
			files: []string{"w7"}, disturb: func(r *replay, _ func()) { r.later(3*time.Second, func() { setLeastLoaded(r) }) },
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
	var reports reportRecorder
	began := time.Now()
	_, err := d.Switch(ctx, f.from, f.to, reports.report)
	for _, words := range f.fails {
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("error %v, want %q\n%s", err, words, strings.Join(reports, "\n"))
		}
	}
	reports.has(t, f.says...)
	if took := time.Since(began); took < f.least || took > f.most {
		t.Errorf("the switch took %v, want %v to %v", took, f.least, f.most)
	}
	if g, err := readGraph(r.object); err != nil || g.mode() != f.leaves {
		t.Errorf("the object is in %v, error %v, want %v", g.mode(), err, f.leaves)
	}
	if f.change != nil {
		if !r.settled() {
			t.Error("the roll-back ended before the operator's last change")
		}
		if m, err := d.Current(t.Context()); m != f.from || err != nil {
			t.Errorf("Current: %v, %v, want %v", m, err, f.from)
		}
	}
	if author := d.Author(t.Context()); f.leaves == api.ModeLeastLoaded && author != "argocd-controller" {
		t.Errorf("Author: %q, want argocd-controller", author)
	}
	if ids := r.restarts(); f.least > 0 && (len(ids) != 2 || ids[0] == ids[1]) {
		t.Errorf("pitfall 7, an old id undoes a restart: %v", ids)
	}
}

// restarts returns the ids of the requested restarts.
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

// TestErrorsOfTheAPIServer requires an error with the missing rule, or one for a deleted object, also during a switch.
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
		{"deleted during the switch", get, missing, 3 * time.Second, "DynamoGraphDeployment default/booth not found", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newReplay(t, booth("graph", "round-robin"), "w7")
				r.later(tt.after, func() { r.deny[tt.call] = tt.err })
				synctest.Wait()
				began := time.Now()
				_, err := r.driver(t.Context(), nil).Switch(t.Context(), rr, kv, (&reportRecorder{}).report)
				if err == nil || !strings.Contains(err.Error(), tt.says) || len(r.patches) != tt.patches {
					t.Errorf("%d patches, error %v; want %d and %q", len(r.patches), err, tt.patches, tt.says)
				}
				if took := time.Since(began); took > tt.after+2*time.Second {
					t.Errorf("the switch took %v, want at most 2 s after the error", took)
				}
			})
		})
	}
}

// TestResumeAfterKill covers a switch with new environments and one with a restart.
func TestResumeAfterKill(t *testing.T) {
	for where, timeline := range map[string]string{"graph": "w7", "frontend": "w3"} {
		synctest.Test(t, func(t *testing.T) {
			r := newReplay(t, booth(where, "round-robin"), timeline)
			process, kill := context.WithCancel(t.Context())
			time.AfterFunc(3*time.Second, kill)
			_, err := r.driver(process, nil).Switch(process, rr, kv, (&reportRecorder{}).report)
			if err == nil || len(r.patches) != 1 {
				t.Fatalf("killed switch: error %v, %d patches; want an error and 1", err, len(r.patches))
			}
			next := r.driver(t.Context(), nil)
			from, to, ok := next.Unfinished(t.Context())
			if !ok || from != rr || to != kv {
				t.Fatalf("Unfinished: %v to %v, %v; want %v to %v", from, to, ok, rr, kv)
			}
			if _, err := next.Current(t.Context()); err == nil {
				t.Error("Current returned a mode during a switch")
			}
			var reports reportRecorder
			cold, err := next.Switch(t.Context(), from, to, reports.report)
			if err != nil || !cold || !r.settled() || len(r.patches) != 2 {
				t.Errorf("resumed switch: cold %v, error %v, %d patches; want cold and 2", cold, err, len(r.patches))
			}
			reports.has(t, "resuming the switch")
		})
	}
}

// TestSecondLoadGeneratorConflicts also requires that the second may switch after the first one's deadline.
func TestSecondLoadGeneratorConflicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReplay(t, booth("graph", "round-robin"), "w7")
		first := r.driver(t.Context(), nil)
		w := wanted{mode: kv, note: first.note(rr, kv)}
		require.NoError(t, first.apply(t.Context(), &w))
		second := r.driver(t.Context(), func(o *Options) { o.By = "booth-1:8088" })
		_, err := second.Switch(t.Context(), kv, rr, (&reportRecorder{}).report)
		if !errors.Is(err, api.ErrConflict) ||
			!strings.Contains(err.Error(), "booth-0:8088 switches default/booth to KV-aware") {
			t.Errorf("error %v, want a conflict that names the first", err)
		}
		wait.Advance(2*time.Minute + time.Second)
		assert.NoError(t, second.apply(t.Context(), &wanted{mode: rr, note: second.note(kv, rr)}))
	})
}

// TestArgumentFixesTheMode requires an error where an argument overrides the variable.
func TestArgumentFixesTheMode(t *testing.T) {
	o := booth("graph", "round-robin")
	components, _, _ := unstructured.NestedSlice(o.Object, "spec", "components")
	template := components[0].(map[string]any)["podTemplate"].(map[string]any)
	containers := template["spec"].(map[string]any)["containers"].([]any)
	containers[0].(map[string]any)["args"] = []any{"-m", "dynamo.frontend", "--router-mode=round-robin"}
	_ = unstructured.SetNestedSlice(o.Object, components, "spec", "components")
	r := newReplay(t, o, "w7")
	var field *api.FieldError
	_, err := r.driver(t.Context(), nil).Switch(t.Context(), rr, kv, (&reportRecorder{}).report)
	if !errors.As(err, &field) || field.Field != "mode.driver" || !strings.Contains(field.Allowed, "--router-mode") {
		t.Errorf("error %v, want one of mode.driver with the argument", err)
	}
	if f := r.driver(t.Context(), nil).Check(t.Context()); !slices.ContainsFunc(f,
		func(f Finding) bool { return f.Severity == Problem && f.Do == "remove the argument" }) {
		t.Errorf("Check has no finding about the argument: %+v", f)
	}
}

// TestFindGraph covers its name, its labels, and the address of its frontend.
func TestFindGraph(t *testing.T) {
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
		d := r.driver(t.Context(), func(o *Options) {
			o.Name, o.Selector, o.Target = tt.opts.Name, tt.opts.Selector,
				tt.opts.Target
		})
		name, err := d.find(t.Context())
		if got := name + strings.Split(errorText(err), ":")[0]; got != tt.want {
			t.Errorf("%+v: %q, %v, want %q", tt.opts, name, err, tt.want)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestServingMode reads the mode from the frontend's pods. It is unknown where they have two.
func TestServingMode(t *testing.T) {
	before, after := booth("graph", "round-robin"), booth("graph", "kv")
	frontend := func(object *unstructured.Unstructured, id string, isReady, isEnding bool) unstructured.Unstructured {
		p := pod(t, object, "Frontend", id, isReady)
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
		{"one", []unstructured.Unstructured{frontend(before, "a", true, false)}, api.ModeRoundRobin},
		{"the new one starts", []unstructured.Unstructured{
			frontend(before, "a", true, false),
			frontend(after, "b", false, false),
		}, api.ModeRoundRobin},
		{"pitfall 6, both serve", []unstructured.Unstructured{
			frontend(before, "a", true, false),
			frontend(after, "b", true, false),
		}, api.ModeUnknown},
		{"the old one ends", []unstructured.Unstructured{
			frontend(before, "a", true, true),
			frontend(after, "b", true, false),
		}, api.ModeKV},
		{"none", nil, ""},
	}
	for _, tt := range tests {
		g, err := readGraph(after)
		require.NoError(t, err)
		all, err := ReadAll[corev1.Pod](&unstructured.UnstructuredList{Items: tt.pods})
		require.NoError(t, err)
		if got, ok := g.servingMode(all); got != tt.want || ok != (tt.want != "") {
			t.Errorf("%s: %v, %v, want %v", tt.name, got, ok, tt.want)
		}
	}
}
