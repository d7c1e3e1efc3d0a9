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

const (
	pollEvery   = 500 * time.Millisecond // interval of the checks during a switch
	callTimeout = 10 * time.Second       // timeout of one call of the API server
	// brokenFor is the time for which a pod may report that it cannot start before the switch
	// fails. A registry or a peer that fails for a moment recovers within that time.
	brokenFor = 20 * time.Second
	// stuckFor is the time without progress after which a roll-back requests another
	// generation. That releases a wait for pods of the previous one.
	stuckFor = 30 * time.Second
	// cacheFor is the time for which the mode of the pods is reused while the object does not change.
	cacheFor = 10 * time.Second
	attempts = 5 // attempts to apply a patch while other clients write the same object
)

// Options select the graph and configure its switches.
type Options struct {
	// Namespace and Name are the graph's. Without a name, Selector (of labels) must match
	// exactly one graph in the namespace, or else Target must name its service.
	Namespace, Name, Selector string
	Target                    string // address of the frontend, with or without /v1
	// FrontendAlone leaves the workers running, with warm caches.
	FrontendAlone bool
	RenewAfter    bool          // restart all pods after a sweep, also where the mode stays
	Timeout       time.Duration // timeout of a switch, and of its roll-back
	Modes         []api.ModeState
	Variants      map[api.Speculation]Variant // variants of the workers; may be empty
	By            string                      // names this load generator in the object, as host:port

	// Instances returns the ids of the workers that the frontend lists; nil skips that check.
	Instances func(ctx context.Context) ([]string, error)
	Log       *slog.Logger
}

// Driver is the mode driver for one DynamoGraphDeployment. It is safe for concurrent use.
type Driver struct {
	opts   Options
	client dynamic.Interface
	ctx    context.Context // ends with the process; a switch is not undone after that, since the next process resumes it

	mu    sync.Mutex
	name  string // empty until it was found
	known found  // the last result of Current

	features []api.Feature // features of the object at the last reading
}

// found is the mode of one version of the object.
type found struct {
	version string
	at      time.Time
	mode    api.ModeState
}

// New makes the driver without a call of the API server. ctx must last as long as the process, since a
// roll-back runs after the context of Switch has ended.
func New(ctx context.Context, client dynamic.Interface, opts Options) *Driver {
	return &Driver{opts: opts, client: client, ctx: ctx, name: opts.Name}
}

// Name returns "kubernetes".
func (d *Driver) Name() string { return "kubernetes" }

// Abilities returns what the object shows: the mode, the author of a change, and features.
func (d *Driver) Abilities() workload.Abilities {
	a := workload.Abilities{Current: d.Current, Author: d.Author, Features: d.Features}
	if d.opts.RenewAfter {
		a.Renew = d.renew
	}
	return a
}

// Offers lists the configured modes, each with every variant of the workers.
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

// Current returns the mode that the frontend's pods run in, which equals that of the object
// after the roll-out. It is unknown while pods of two modes serve. An error means that the
// mode is unavailable at the moment, as during a switch; it wraps an [api.FieldError] where
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
	if known.version == g.ResourceVersion && time.Since(known.at) < cacheFor {
		return known.mode, nil
	}
	if err := d.checkRouter(g); err != nil {
		return api.ModeState{}, err
	}
	all, err := d.pods(ctx, g)
	if err != nil {
		return api.ModeState{}, err
	}
	serving, ok := g.servingMode(all)
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

// Author returns the last client that changed the graph, as recorded by the API server; ""
// where it is unknown.
func (d *Driver) Author(ctx context.Context) string {
	g, err := d.graph(ctx)
	if err != nil {
		return ""
	}
	return g.author()
}

// Unfinished returns the switch that an earlier process of this load generator began and did
// not finish; ok is false where there is none.
func (d *Driver) Unfinished(ctx context.Context) (from, to api.ModeState, ok bool) {
	g, err := d.graph(ctx)
	if err != nil {
		return from, to, false
	}
	n, noted := g.note()
	return n.From, n.To, noted && n.By == d.opts.By
}

// Switch changes the graph to a mode and waits until the cluster is in it, as the package
// describes. A switch that an earlier process of this load generator began is resumed. A
// switch that fails, is canceled or exceeds Options.Timeout is undone before Switch returns,
// and the roll-back is awaited in the same way. It is not undone where another client has
// changed or deleted the graph, or where the process ends. A mode that is not offered, or that
// the object does not allow, gives an [api.FieldError]; a switch of another load generator
// gives an [api.ErrConflict].
func (d *Driver) Switch(
	ctx context.Context, from, to api.ModeState, report func(phase, message string),
) (cold bool, err error) {
	return d.change(ctx, from, to, d.opts.FrontendAlone, report)
}

// renew is Switch with all pods restarted, also where switches restart the frontend alone.
func (d *Driver) renew(
	ctx context.Context, from, to api.ModeState, report func(phase, message string),
) (cold bool, err error) {
	return d.change(ctx, from, to, false, report)
}

func (d *Driver) change(
	ctx context.Context, from, to api.ModeState, frontendAlone bool, report func(phase, message string),
) (cold bool, err error) {
	if !slices.Contains(d.Offers(), to) {
		return false, api.Refuse("mode", to.Name(), "one of "+names(d.Offers()))
	}
	w, err := d.begin(ctx, from, to, frontendAlone, report)
	if err != nil {
		return false, err
	}
	err = d.await(ctx, &w, func(message string) { report("switching", message) })
	switch {
	case err == nil:
		d.clearNote(w)
		return !frontendAlone || from.Speculation != to.Speculation, nil
	case d.ctx.Err() != nil: // the next process resumes the switch
		return false, err
	case errors.As(err, new(*superseded)), w.note.Back:
		d.clearNote(w)
		return false, err
	}
	if w.note.From.Mode == api.ModeUnknown {
		d.clearNote(w)
		return false, fmt.Errorf("%w; the previous mode is unknown to KV Booth, so this one was left in place", err)
	}
	if rollBackErr := d.rollBack(w, err, report); rollBackErr != nil {
		d.opts.Log.Warn("the graph could not be switched back", "to", w.note.From.Name(), "error", rollBackErr)
		return false, workload.NotSwitchedBack(err, w.note.From.Name(), rollBackErr)
	}
	return false, fmt.Errorf("%w; it was switched back to %s", err, w.note.From.Name())
}

// begin patches the object, or resumes the switch of an earlier process.
func (d *Driver) begin(
	ctx context.Context, from, to api.ModeState, frontendAlone bool, report func(phase, message string),
) (wanted, error) {
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
	if from.Mode == api.ModeUnknown { // unknown to the caller; a roll-back restores the object's mode
		from = d.modeOf(g)
	}
	w := wanted{mode: to, variant: d.variant(to.Speculation), frontendAlone: frontendAlone, note: d.note(from, to)}
	return w, d.apply(ctx, &w)
}

func (d *Driver) note(from, to api.ModeState) note {
	return note{By: d.opts.By, From: from, To: to, Deadline: time.Now().Add(d.opts.Timeout).UTC()}
}

// apply patches the object to what is wanted. It retries where others have written the
// object, unless they have begun a switch.
func (d *Driver) apply(ctx context.Context, w *wanted) error {
	for try := 0; ; try++ {
		g, err := d.graph(ctx)
		if err != nil {
			return err
		}
		if n, noted := g.note(); noted && n.By != d.opts.By && time.Now().Before(n.Deadline) {
			return fmt.Errorf("%w: %s switches %s to %s until %s at the latest; wait until it ends", api.ErrConflict, n.By,
				g.id(), n.To.Name(), n.Deadline.Local().Format(time.TimeOnly))
		}
		if err := d.checkRouter(g); err != nil {
			return err
		}
		if argument := g.fixed(); argument != "" && g.mode() != w.mode.Mode {
			return api.Refuse("mode.driver", d.Name(), fmt.Sprintf("manual, or a frontend in %s without the argument %s %s, "+
				"which overrides %s", g.id(), routerFlag, argument, routerMode))
		}
		w.restart = d.restartID(g, *w)
		if w.note.Restart = w.restart; w.restart != "" {
			all, err := d.pods(ctx, g)
			if err != nil {
				return err
			}
			w.old = uids(all)
			w.note.Newest = newest(all)
		}
		err = d.patch(ctx, g, g.patch(*w))
		if err == nil || try == attempts-1 || !apierrors.IsInvalid(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
}

// checkRouter gives an error for a graph whose frontend does not choose the workers.
func (d *Driver) checkRouter(g *graph) error {
	if g.picker() == "" {
		return nil
	}
	return api.Refuse("mode.driver", d.Name(),
		fmt.Sprintf("manual, since the router of %s is %s, not the frontend", g.id(), g.picker()))
}

// restartID returns a new id for the restart that the workers need beside a patch. It is ""
// where the patch restarts them, or where they must keep running. The operator ignores an id
// that it has seen, so each is new.
func (d *Driver) restartID(g *graph, w wanted) string {
	changes := g.mode() != w.mode.Mode
	switch {
	case w.frontendAlone, changes && !g.modeIsOwn():
		return ""
	case w.nonce != "":
		return ""
	}
	return "kvbooth-" + rand.Text()[:10]
}

// rollBack undoes a switch: it requests the previous mode and waits for it.
func (d *Driver) rollBack(undone wanted, cause error, report func(phase, message string)) error {
	progress := func(message string) { report("rolling_back", message) }
	n := undone.note
	progress(fmt.Sprintf("switching back to %s: %s", n.From.Name(), cause))
	w := wanted{mode: n.From, variant: d.variant(n.From.Speculation), note: d.note(n.To, n.From)}
	w.frontendAlone, w.note.Back = undone.frontendAlone, true
	if err := d.apply(d.ctx, &w); err != nil {
		return err
	}
	err := d.await(d.ctx, &w, progress)
	if d.ctx.Err() == nil {
		d.clearNote(w)
	}
	return err
}

// clearNote removes the note of a switch that has ended. A note that remains is ignored after
// its deadline.
func (d *Driver) clearNote(w wanted) {
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

// variant returns the variant of a speculation; nil without variants.
func (d *Driver) variant(s api.Speculation) *Variant {
	if v, ok := d.opts.Variants[s]; ok {
		return &v
	}
	return nil
}

// modeOf returns the mode of the object, with the speculation of the variant that the workers
// run. Without variants, the speculation is the configured one.
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

// runs returns the speculation of the variant that the workers run; ok is false where none matches.
func (d *Driver) runs(g *graph) (s api.Speculation, ok bool) {
	for s, v := range d.opts.Variants {
		if slices.ContainsFunc(g.Spec.Components, func(c component) bool {
			return c.isWorker() && c.main() >= 0 && v.matches(c.PodTemplate.Spec.Containers[c.main()])
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

// patch applies a JSON Patch to a graph, in the version in which it was read.
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

// explain adds the remedy to an error of the API server.
func (d *Driver) explain(err error, verb, name string) error {
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("the load generator may not %s DynamoGraphDeployment %s/%s; add this rule to its Role: %s: %w",
			verb, d.opts.Namespace, name, ruleFor(verb, name), err)
	case apierrors.IsNotFound(err):
		return &notFoundError{fmt.Errorf("DynamoGraphDeployment %s/%s not found: %w", d.opts.Namespace, name, err)}
	}
	return fmt.Errorf("Kubernetes: %w", err) //nolint:staticcheck // an error may begin with a proper name
}

// notFoundError reports an object that does not exist.
type notFoundError struct{ error }

func (g *notFoundError) Unwrap() error { return g.error }

// names joins the names of modes.
func names(modes []api.ModeState) string {
	all := make([]string, len(modes))
	for i, m := range modes {
		all[i] = m.Name()
	}
	return strings.Join(all, ", ")
}
