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
		Namespace: "default", Name: "booth", Timeout: 2 * time.Minute, Modes: []api.ModeState{kv, rr}, By: "booth-0:8088",
		Log: slog.New(slog.DiscardHandler),
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

func ignoreReport(string, string) {}

// reportRecorder collects the reports of a switch.
type reportRecorder []string

func (h *reportRecorder) report(phase, message string) { *h = append(*h, phase+": "+message) }

func (h reportRecorder) has(t *testing.T, words ...string) {
	t.Helper()
	for _, w := range words {
		assert.Contains(t, strings.Join(h, "\n"), w)
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
				require.NoError(t, err, reports)
				assert.NotEqual(t, tt.frontendAlone, cold)
				assert.True(t, r.settled(), "done %v after the patch, before the operator's last change", time.Since(r.patched))
				reports.has(t, tt.says...)
				guard := r.patches[0][0]
				assert.Equal(t, "test /metadata/generation", guard.Op+" "+guard.Path)
				assert.NotContains(t, r.object.GetAnnotations(), switching)
				m, err := d.Current(t.Context())
				require.NoError(t, err)
				assert.Equal(t, kv, m)
			})
		})
	}
}

// After a sweep all pods restart where the configuration asks for it, even if the mode stays and switches restart the
// frontend alone.
func TestRenew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReplay(t, booth("frontend", spellings[api.ModeKV]), "w3")
		assert.Nil(t, r.driver(t.Context(), func(*Options) {}).Abilities().Renew)
		d := r.driver(t.Context(), func(o *Options) { o.FrontendAlone, o.RenewAfter = true, true })
		var reports reportRecorder
		cold, err := d.Abilities().Renew(t.Context(), kv, kv, reports.report)
		require.NoError(t, err, reports)
		assert.True(t, cold)
		assert.True(t, r.settled())
		reports.has(t, "2 of 3 workers ready")
	})
}

// TestSpelling requires the spelling of the object.
func TestSpelling(t *testing.T) {
	r := newReplay(t, booth("graph", "round_robin"))
	g, err := readGraph(r.object)
	require.NoError(t, err)
	assert.Equal(t, api.ModeRoundRobin, g.mode())
	assert.Equal(t, "least_loaded", g.spell(api.ModeLeastLoaded))
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
		assert.ErrorContains(t, err, words)
	}
	reports.has(t, f.says...)
	took := time.Since(began)
	assert.True(t, f.least <= took && took <= f.most, "the switch took %v, want %v to %v", took, f.least, f.most)
	g, err := readGraph(r.object)
	require.NoError(t, err)
	assert.Equal(t, f.leaves, g.mode())
	if f.change != nil {
		assert.True(t, r.settled(), "the roll-back ended before the operator's last change")
		m, err := d.Current(t.Context())
		require.NoError(t, err)
		assert.Equal(t, f.from, m)
	}
	if f.leaves == api.ModeLeastLoaded {
		assert.Equal(t, "argocd-controller", d.Author(t.Context()))
	}
	if ids := r.restarts(); f.least > 0 {
		require.Len(t, ids, 2)
		assert.NotEqual(t, ids[0], ids[1], "pitfall 7, an old id undoes a restart")
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
				_, err := r.driver(t.Context(), nil).Switch(t.Context(), rr, kv, ignoreReport)
				assert.ErrorContains(t, err, tt.says)
				assert.Len(t, r.patches, tt.patches)
				assert.LessOrEqual(t, time.Since(began), tt.after+2*time.Second)
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
			_, err := r.driver(process, nil).Switch(process, rr, kv, ignoreReport)
			require.Error(t, err)
			require.Len(t, r.patches, 1)
			next := r.driver(t.Context(), nil)
			from, to, ok := next.Unfinished(t.Context())
			require.True(t, ok)
			require.Equal(t, []api.ModeState{rr, kv}, []api.ModeState{from, to})
			_, err = next.Current(t.Context())
			assert.Error(t, err, "during a switch")
			var reports reportRecorder
			cold, err := next.Switch(t.Context(), from, to, reports.report)
			require.NoError(t, err)
			assert.True(t, cold)
			assert.True(t, r.settled())
			assert.Len(t, r.patches, 2)
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
		_, err := second.Switch(t.Context(), kv, rr, ignoreReport)
		require.ErrorIs(t, err, api.ErrConflict)
		require.ErrorContains(t, err, "booth-0:8088 switches default/booth to KV-aware")
		wait.Advance(2*time.Minute + time.Second)
		assert.NoError(t, second.apply(t.Context(), &wanted{mode: rr, note: second.note(kv, rr)}))
	})
}

// TestArgumentFixesTheMode requires an error where an argument overrides the variable.
func TestArgumentFixesTheMode(t *testing.T) {
	o := booth("graph", "round-robin")
	template := componentsOf(o)[0].(map[string]any)["podTemplate"].(map[string]any)
	containers := template["spec"].(map[string]any)["containers"].([]any)
	containers[0].(map[string]any)["args"] = []any{"-m", "dynamo.frontend", "--router-mode=round-robin"}
	r := newReplay(t, o, "w7")
	var field *api.FieldError
	_, err := r.driver(t.Context(), nil).Switch(t.Context(), rr, kv, ignoreReport)
	require.ErrorAs(t, err, &field)
	assert.Equal(t, "mode.driver", field.Field)
	assert.Contains(t, field.Allowed, "--router-mode")
	all := r.driver(t.Context(), nil).Check(t.Context())
	assert.True(t, slices.ContainsFunc(all,
		func(f Finding) bool { return f.Severity == Problem && f.Do == "remove the argument" }), all)
}

// TestFindGraph covers its name, its labels, and the address of its frontend.
func TestFindGraph(t *testing.T) {
	r := newReplay(t, booth("graph", "kv"))
	for _, tt := range []struct {
		opts  Options
		found bool
	}{
		{Options{Name: "booth"}, true},
		{Options{Selector: "app=booth"}, true},
		{Options{Target: "http://booth-frontend.default.svc.cluster.local:8000/v1"}, true},
		{Options{Target: "http://127.0.0.1:8000"}, false},
		{Options{Target: "http://dynamo.example.org"}, false},
	} {
		name, err := r.driver(t.Context(), func(o *Options) {
			o.Name, o.Selector, o.Target = tt.opts.Name, tt.opts.Selector, tt.opts.Target
		}).find(t.Context())
		if !tt.found {
			assert.ErrorContains(t, err, "mode.kubernetes.name is required:")
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, "booth", name)
	}
}

// TestServingMode reads the mode from the frontend's pods. It is unknown where they have two.
func TestServingMode(t *testing.T) {
	before, after := booth("graph", "round-robin"), booth("graph", "kv")
	old, next := pod(t, before, "Frontend", "a", true), pod(t, after, "Frontend", "b", true)
	starting, ending := pod(t, after, "Frontend", "b", false), *old.DeepCopy()
	ending.SetDeletionTimestamp(&metav1.Time{Time: time.Now()})
	g, err := readGraph(after)
	require.NoError(t, err)
	for name, tt := range map[string]struct {
		pods []unstructured.Unstructured
		want api.Mode
	}{
		"one":                   {[]unstructured.Unstructured{old}, api.ModeRoundRobin},
		"the new one starts":    {[]unstructured.Unstructured{old, starting}, api.ModeRoundRobin},
		"pitfall 6, both serve": {[]unstructured.Unstructured{old, next}, api.ModeUnknown},
		"the old one ends":      {[]unstructured.Unstructured{ending, next}, api.ModeKV},
		"none":                  {nil, ""},
	} {
		all, err := ReadAll[corev1.Pod](&unstructured.UnstructuredList{Items: tt.pods})
		require.NoError(t, err)
		got, ok := g.servingMode(all)
		assert.Equal(t, tt.want, got, name)
		assert.Equal(t, tt.want != "", ok, name)
	}
}
