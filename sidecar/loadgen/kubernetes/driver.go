package kubernetes

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/workload"
)

var (
	_ workload.Driver     = (*Driver)(nil)
	_ workload.Teller     = (*Driver)(nil)
	_ workload.Attributor = (*Driver)(nil)
	_ workload.Describer  = (*Driver)(nil)
)

const (
	lookEvery   = 500 * time.Millisecond // while a switch goes on
	callTimeout = 10 * time.Second       // of one call of the API server
	// brokenFor is how long a pod may say that it cannot start before it is believed: what
	// a registry or a peer lacks for a moment comes by itself.
	brokenFor = 20 * time.Second
	// stuckFor is how long a way back may make no progress before it is given another
	// generation, which frees what waits for pods of the one before.
	stuckFor = 30 * time.Second
	// lookAgain is how long pods are taken to be as they were while the object says nothing new.
	lookAgain = 10 * time.Second
	attempts  = 5 // of a patch, while others write the same object
)

// Options say which graph, and how it is switched.
type Options struct {
	// Namespace and Name are the graph's; without a name, Selector (of labels) must find
	// exactly one in the namespace, or else Target names it.
	Namespace, Name, Selector string
	Target                    string // address of the frontend, with or without /v1
	// FrontendAlone leaves the workers as they are, with warm caches.
	FrontendAlone bool
	Timeout       time.Duration // of a switch, and of the way back
	Modes         []api.ModeState
	Variants      map[api.Speculation]Variant // of the workers; may be empty
	By            string                      // names this load generator in the object, as host:port

	// Instances asks the frontend for the ids of the workers that it knows.
	Instances func(ctx context.Context) ([]string, error)
	Log       *slog.Logger
}

// Driver is the mode driver for one DynamoGraphDeployment. It is safe for concurrent use.
type Driver struct {
	opts   Options
	client dynamic.Interface
	ctx    context.Context // of the process: its end leaves a switch as it is, for the next start

	mu    sync.Mutex
	name  string // once it is known
	known found  // what Current found last

	features []api.Feature // of the object as it was read last
}

// found is the mode that a version of the object was found in.
type found struct {
	version string
	at      time.Time
	mode    api.ModeState
}

// New makes the driver; ctx is that of the process. It calls nothing yet.
func New(ctx context.Context, client dynamic.Interface, opts Options) *Driver {
	return &Driver{opts: opts, client: client, ctx: ctx, name: opts.Name}
}

// Name is kubernetes.
func (d *Driver) Name() string { return "kubernetes" }

// Instance is empty: the router decides.
func (d *Driver) Instance() string { return "" }

// Offers are the configured modes, each with every variant of the workers where there are
// some.
func (d *Driver) Offers() []api.ModeState {
	if len(d.opts.Variants) == 0 {
		return slices.Clone(d.opts.Modes)
	}
	var offers []api.ModeState
	for _, m := range d.opts.Modes {
		for _, s := range api.Speculations {
			if _, ok := d.opts.Variants[s]; ok && !slices.Contains(offers, api.ModeState{Mode: m.Mode, Speculation: s}) {
				offers = append(offers, api.ModeState{Mode: m.Mode, Speculation: s})
			}
		}
	}
	return offers
}

// Current reads the mode that the frontend's pods run in, which is that of the object once it
// is rolled out. While pods of two modes serve, it is unknown. An error says that it cannot be
// known at the moment, as in the middle of a noted switch; it wraps an [api.FieldError] where
// another configuration is needed.
func (d *Driver) Current(ctx context.Context) (api.ModeState, error) {
	g, err := d.graph(ctx)
	if err != nil {
		return api.ModeState{}, err
	}
	if n, noted := g.note(); noted && time.Now().Before(n.Deadline) {
		return api.ModeState{}, fmt.Errorf("%s is switching %s to %s", n.By, g.id(), n.To.Name())
	}
	d.mu.Lock()
	known := d.known
	d.mu.Unlock()
	if known.version == g.ResourceVersion && time.Since(known.at) < lookAgain {
		return known.mode, nil
	}
	if err := d.routes(g); err != nil {
		return api.ModeState{}, err
	}
	all, err := d.pods(ctx, g)
	if err != nil {
		return api.ModeState{}, err
	}
	serving, ok := g.serves(all)
	if !ok {
		return api.ModeState{}, fmt.Errorf("%s has no frontend pod at the moment", g.id())
	}
	mode := d.modeOf(g)
	mode.Mode = serving
	d.mu.Lock()
	d.known = found{version: g.ResourceVersion, at: time.Now(), mode: mode}
	d.mu.Unlock()
	return mode, nil
}

// Author names who changed the graph last, as the API server recorded it; "" where it is not
// known.
func (d *Driver) Author(ctx context.Context) string {
	g, err := d.graph(ctx)
	if err != nil {
		return ""
	}
	return g.author()
}

// Unfinished gives the switch that this load generator had begun when it was ended; ok is
// false where there is none.
func (d *Driver) Unfinished(ctx context.Context) (from, to api.ModeState, ok bool) {
	g, err := d.graph(ctx)
	if err != nil {
		return from, to, false
	}
	n, noted := g.note()
	return n.From, n.To, noted && n.By == d.opts.By
}

// Switch brings the graph to a mode and waits until the cluster is in it, as the package says.
// One that an earlier process of this load generator began goes on from where it is. A switch
// that fails, is cancelled or takes longer than Options.Timeout is undone before Switch
// returns, and that is watched in the same way; not so where somebody else has changed the
// graph meanwhile, where it is gone, or where the process ends. A mode that is not offered, or
// that the object does not let be set, gives an [api.FieldError], another one's switch an
// [api.ErrConflict].
func (d *Driver) Switch(
	ctx context.Context, from, to api.ModeState, report func(phase, message string),
) (cold bool, err error) {
	if !slices.Contains(d.Offers(), to) {
		return false, &api.FieldError{Field: "mode", Value: to.Name(), Allowed: "one of " + names(d.Offers())}
	}
	w, err := d.begin(ctx, from, to, report)
	if err != nil {
		return false, err
	}
	err = d.await(ctx, &w, func(message string) { report("switching", message) })
	switch {
	case err == nil:
		d.forget(w)
		return !d.opts.FrontendAlone || from.Speculation != to.Speculation, nil
	case d.ctx.Err() != nil: // the next process goes on
		return false, err
	case errors.As(err, new(*overtaken)), w.note.Back:
		d.forget(w)
		return false, err
	}
	if w.note.From.Mode == api.ModeUnknown {
		d.forget(w)
		return false, fmt.Errorf("%w; the previous mode is unknown to KV Booth, so this one was left in place", err)
	}
	if back := d.back(w.note, err, report); back != nil {
		d.opts.Log.Warn("the graph could not be switched back", "to", w.note.From.Name(), "error", back)
		return false, fmt.Errorf("%w; switching it back to %s also failed: %w", err, w.note.From.Name(), back)
	}
	return false, fmt.Errorf("%w; it was switched back to %s", err, w.note.From.Name())
}

// begin patches the object, or finds that an earlier process has.
func (d *Driver) begin(ctx context.Context, from, to api.ModeState, report func(phase, message string)) (wanted,
	error,
) {
	g, err := d.graph(ctx)
	if err != nil {
		return wanted{}, err
	}
	n, noted := g.note()
	if noted && n.By == d.opts.By && n.To == to {
		report("switching", "resuming the switch that began before this start")
		return wanted{mode: to, variant: d.variant(to.Speculation), restart: n.Restart, note: n}, nil
	}
	report("switching", fmt.Sprintf("asking Kubernetes for %s in %s", to.Name(), g.id()))
	if from.Mode == api.ModeUnknown { // to whoever asks; the way back is to what the object says
		from = d.modeOf(g)
	}
	w := wanted{mode: to, variant: d.variant(to.Speculation), note: d.note(from, to)}
	return w, d.put(ctx, &w)
}

func (d *Driver) note(from, to api.ModeState) note {
	return note{By: d.opts.By, From: from, To: to, Deadline: time.Now().Add(d.opts.Timeout).UTC()}
}

// put patches the object to what is wanted. It tries again where others have written it
// meanwhile, unless they have begun a switch.
func (d *Driver) put(ctx context.Context, w *wanted) error {
	for try := 0; ; try++ {
		g, err := d.graph(ctx)
		if err != nil {
			return err
		}
		if n, noted := g.note(); noted && n.By != d.opts.By && time.Now().Before(n.Deadline) {
			return fmt.Errorf("%w: %s switches %s to %s until %s at the latest; wait until it ends", api.ErrConflict, n.By,
				g.id(), n.To.Name(), n.Deadline.Local().Format(time.TimeOnly))
		}
		if err := d.routes(g); err != nil {
			return err
		}
		if at := g.fixed(); at != "" && g.mode() != w.mode.Mode {
			return &api.FieldError{
				Field: "mode.driver", Value: d.Name(),
				Allowed: fmt.Sprintf("manual, or a frontend in %s without the argument %s %s, which overrides %s", g.id(),
					routerFlag, at, routerMode),
			}
		}
		w.restart = d.restart(g, *w)
		if w.note.Restart = w.restart; w.restart != "" {
			all, err := d.pods(ctx, g)
			if err != nil {
				return err
			}
			w.old, w.note.Newest = uids(all), newest(all)
		}
		err = d.patch(ctx, g, g.patch(*w, d.opts.FrontendAlone))
		if err == nil || try == attempts-1 || !apierrors.IsInvalid(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
}

// routes refuses a graph whose frontend does not choose the workers.
func (d *Driver) routes(g *graph) error {
	if g.picker() == "" {
		return nil
	}
	return &api.FieldError{
		Field: "mode.driver", Value: d.Name(),
		Allowed: fmt.Sprintf("manual, since the router of %s is %s, not the frontend", g.id(), g.picker()),
	}
}

// restart is the id of the restart that the workers need beside a patch; "" where the patch
// makes them begin anew by itself, or where they shall not. The operator takes an id that it
// has seen for no restart, so each is new.
func (d *Driver) restart(g *graph, w wanted) string {
	changes := g.mode() != w.mode.Mode
	switch {
	case d.opts.FrontendAlone, changes && !g.modeIsOwn():
		return ""
	case w.nonce != "":
		return ""
	}
	return "kvbooth-" + rand.Text()[:10]
}

// back undoes a switch: it asks for the mode before, and waits for it.
func (d *Driver) back(n note, cause error, report func(phase, message string)) error {
	say := func(message string) { report("rolling_back", message) }
	say(fmt.Sprintf("switching back to %s: %s", n.From.Name(), cause))
	w := wanted{mode: n.From, variant: d.variant(n.From.Speculation), note: d.note(n.To, n.From)}
	w.note.Back = true
	if err := d.put(d.ctx, &w); err != nil {
		return err
	}
	err := d.await(d.ctx, &w, say)
	if d.ctx.Err() == nil {
		d.forget(w)
	}
	return err
}

// forget removes the note of a switch that has ended. A note that stays is nobody's after its
// deadline.
func (d *Driver) forget(w wanted) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.ctx), callTimeout)
	defer cancel()
	g, err := d.graph(ctx)
	if err != nil {
		return
	}
	if n, noted := g.note(); !noted || n.By != w.note.By || !n.Deadline.Equal(w.note.Deadline) {
		return
	}
	if err := d.patch(ctx, g, g.unannotate()); err != nil {
		d.opts.Log.Warn("the annotation of the switch was not removed", "graph", g.id(), "error", err)
	}
}

// variant is that of a speculation; nil without variants.
func (d *Driver) variant(s api.Speculation) *Variant {
	if v, ok := d.opts.Variants[s]; ok {
		return &v
	}
	return nil
}

// modeOf is the mode of the object, with the variant that the workers run as: without
// variants, the speculation is the configured one.
func (d *Driver) modeOf(g *graph) api.ModeState {
	m := api.ModeState{Mode: g.mode(), Speculation: api.SpeculationNotRecorded}
	if len(d.opts.Modes) > 0 && len(d.opts.Variants) == 0 {
		m.Speculation = d.opts.Modes[0].Speculation
	}
	if s, ok := d.runs(g); ok {
		m.Speculation = s
	}
	return m
}

// runs is the variant that the workers run as; ok is false where it is none of them.
func (d *Driver) runs(g *graph) (s api.Speculation, ok bool) {
	for s, v := range d.opts.Variants {
		if slices.ContainsFunc(g.Spec.Components, func(c component) bool {
			return c.isWorker() && c.main() >= 0 && v.is(c.PodTemplate.Spec.Containers[c.main()])
		}) {
			return s, true
		}
	}
	return "", false
}

// graph reads the object.
func (d *Driver) graph(ctx context.Context) (*graph, error) {
	name, err := d.find(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	u, err := inVersions(func(version schema.GroupVersionResource) (*unstructured.Unstructured, error) {
		return d.client.Resource(version).Namespace(d.opts.Namespace).Get(ctx, name, metav1.GetOptions{})
	})
	if err != nil {
		return nil, d.explain(err, "get", name)
	}
	g, err := readGraph(u)
	if err == nil {
		d.mu.Lock()
		d.features = g.features()
		d.mu.Unlock()
	}
	return g, err
}

// inVersions makes a call in the latest version of [Versions] that the cluster serves.
func inVersions[T any](call func(schema.GroupVersionResource) (T, error)) (found T, err error) {
	for _, version := range Versions {
		if found, err = call(version); !apierrors.IsNotFound(err) {
			break
		}
	}
	return found, err
}

// patch applies a JSON Patch to a graph, in the version that it was read in.
func (d *Driver) patch(ctx context.Context, g *graph, ops []operation) error {
	text, err := json.Marshal(ops)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if _, err := d.client.Resource(g.version).Namespace(d.opts.Namespace).Patch(ctx, g.Name, types.JSONPatchType, text,
		metav1.PatchOptions{FieldManager: "kvbooth"}); err != nil {
		return d.explain(err, "patch", g.Name)
	}
	return nil
}

// explain says what to do about an error of the API server.
func (d *Driver) explain(err error, verb, name string) error {
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("the load generator may not %s DynamoGraphDeployment %s/%s; add this rule to its Role: %s: %w",
			verb, d.opts.Namespace, name, ruleFor(verb, name), err)
	case apierrors.IsNotFound(err):
		return &gone{fmt.Errorf("DynamoGraphDeployment %s/%s not found: %w", d.opts.Namespace, name, err)}
	}
	return fmt.Errorf("Kubernetes: %w", err) //nolint:staticcheck // an error may begin with a name, whose first letter is large
}

// gone is an object that is not there.
type gone struct{ error }

func (g *gone) Unwrap() error { return g.error }

// names lists modes.
func names(modes []api.ModeState) string {
	all := make([]string, len(modes))
	for i, m := range modes {
		all[i] = m.Name()
	}
	return strings.Join(all, ", ")
}
