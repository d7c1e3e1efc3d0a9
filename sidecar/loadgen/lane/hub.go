package lane

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
)

// HubOptions are what the lanes of a process share.
type HubOptions struct {
	Version  string
	Config   map[string]string // in force, without secrets, for the status
	Settings api.Settings      // as configured; what the store keeps goes before it
	Store    Store
	Health   func(time.Time) api.ClientHealth
	Log      *slog.Logger
}

// Hub holds the lanes of a process and makes the snapshot. It is safe for
// concurrent use, and is what the server's handlers call.
type Hub struct {
	opts    HubOptions
	ctx     context.Context
	started time.Time
	lanes   []*Lane
	dirty   chan struct{} // holds one word that something a snapshot shows has changed
	feed    feed

	writes sync.Mutex // held over a change of settings or baselines with its way to the store

	mu        sync.Mutex // of the fields below alone
	settings  api.Settings
	baselines []api.Baseline // built in, imported, and this target's; replaced, never changed
}

// NewHub makes a hub without lanes. ctx ends everything that it and its lanes
// start. The error says that the store cannot be read.
func NewHub(ctx context.Context, opts HubOptions) (*Hub, error) {
	h := &Hub{opts: opts, ctx: ctx, started: time.Now(), dirty: make(chan struct{}, 1), settings: opts.Settings}
	kept, ok, err := opts.Store.Settings(ctx)
	if err != nil {
		return nil, err
	}
	if ok {
		h.settings = kept
	}
	own, err := opts.Store.Baselines(ctx)
	if err != nil {
		return nil, err
	}
	h.baselines = append(baseline.Builtin(), own...)
	return h, nil
}

// Add makes a lane. All lanes are added before Run.
func (h *Hub) Add(opts Options) *Lane {
	l := newLane(h.ctx, h, opts)
	h.lanes = append(h.lanes, l)
	return l
}

// Run publishes snapshots until the hub's context ends and every lane has
// stopped.
func (h *Hub) Run() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		h.publish()
		select {
		case <-h.ctx.Done():
			for _, l := range h.lanes {
				l.wait()
			}
			h.feed.close()
			return
		case <-tick.C:
			for _, l := range h.lanes {
				l.tick(time.Now())
			}
		case <-h.dirty:
		}
	}
}

// changed asks for a snapshot at once. It never waits.
func (h *Hub) changed() {
	select {
	case h.dirty <- struct{}{}:
	default:
	}
}

func (h *Hub) publish() {
	if !h.feed.wanted() {
		return
	}
	frame, err := json.Marshal(h.Snapshot())
	if err != nil {
		h.opts.Log.Error("the snapshot cannot be written", "error", err)
		return
	}
	h.feed.publish(frame)
}

// Snapshot is everything that a screen shows, now.
func (h *Hub) Snapshot() api.Snapshot {
	now := time.Now()
	s := api.Snapshot{Time: now, Settings: h.Settings(), Client: h.opts.Health(now)}
	for _, l := range h.lanes {
		s.Lanes = append(s.Lanes, l.snapshot(now))
	}
	return s
}

// Subscribe delivers encoded snapshots: one at once, then one a second and one
// on each change of state. The channel holds one, the newest; a slow reader
// loses those between. It is closed when the hub ends. unsubscribe is idempotent.
func (h *Hub) Subscribe() (frames <-chan []byte, unsubscribe func()) {
	frames, unsubscribe = h.feed.subscribe()
	h.changed()
	return frames, unsubscribe
}

// Status is the state, the configuration in force and the health of the process.
func (h *Hub) Status() api.Status {
	now := time.Now()
	s := api.Status{
		Version: h.opts.Version, GoVersion: runtime.Version(), Started: h.started,
		UptimeSeconds: now.Sub(h.started).Seconds(), Settings: h.Settings(), Client: h.opts.Health(now),
		Store: h.opts.Store.Status(), Config: h.opts.Config,
	}
	for _, l := range h.lanes {
		s.Lanes = append(s.Lanes, l.status(now))
	}
	return s
}

// Ready says why the first target that cannot serve cannot, nil where all can.
func (h *Hub) Ready() error {
	for _, l := range h.lanes {
		if problem := l.target.state(); problem != "" {
			return fmt.Errorf("lane %s: %s", l.opts.Name, problem)
		}
	}
	return nil
}

// lane finds a lane; the error is an [api.ErrNotFound].
func (h *Hub) lane(name string) (*Lane, error) {
	for _, l := range h.lanes {
		if l.opts.Name == name {
			return l, nil
		}
	}
	return nil, fmt.Errorf("%w: there is no lane %q", api.ErrNotFound, name)
}

// Start is [Lane.Start] of the named lane.
func (h *Hub) Start(ctx context.Context, lane, by string, req api.StartRequest) (api.State, error) {
	return call(h, lane, func(l *Lane) (api.State, error) { return l.Start(ctx, by, req) })
}

// Stop is [Lane.Stop] of the named lane.
func (h *Hub) Stop(ctx context.Context, lane, by string, req api.StopRequest) (api.State, error) {
	return call(h, lane, func(l *Lane) (api.State, error) { return l.Stop(ctx, by, req) })
}

// Patch is [Lane.Patch] of the named lane.
func (h *Hub) Patch(ctx context.Context, lane, by string, req api.WorkloadPatch) (api.State, error) {
	return call(h, lane, func(l *Lane) (api.State, error) { return l.Patch(ctx, by, req) })
}

// SetMode is [Lane.SetMode] of the named lane.
func (h *Hub) SetMode(ctx context.Context, lane, by string, req api.ModeRequest) (api.State, error) {
	return call(h, lane, func(l *Lane) (api.State, error) { return l.SetMode(ctx, by, req) })
}

// CancelMode is [Lane.CancelMode] of the named lane.
func (h *Hub) CancelMode(ctx context.Context, lane, by string) (api.State, error) {
	return call(h, lane, func(l *Lane) (api.State, error) { return l.CancelMode(ctx, by) })
}

// Cluster is what is known of the named lane's cluster.
func (h *Hub) Cluster(lane string) (api.Cluster, error) {
	return call(h, lane, func(l *Lane) (api.Cluster, error) { return l.cluster(), nil })
}

// Decisions is [Lane.Decisions] of the named lane.
func (h *Hub) Decisions(ctx context.Context, lane string, limit int) (api.DecisionList, error) {
	return call(h, lane, func(l *Lane) (api.DecisionList, error) { return l.Decisions(ctx, limit) })
}

// Comparison is [Lane.Comparison] of the named lane.
func (h *Hub) Comparison(lane, baseline string) (api.Comparison, error) {
	return call(h, lane, func(l *Lane) (api.Comparison, error) { return l.Comparison(baseline) })
}

// Starter is [Lane.Starter] of the named lane.
func (h *Hub) Starter(lane, id string) (api.Starter, error) {
	return call(h, lane, func(l *Lane) (api.Starter, error) { return l.Starter(id) })
}

func call[T any](h *Hub, lane string, f func(*Lane) (T, error)) (T, error) {
	l, err := h.lane(lane)
	if err != nil {
		var zero T
		return zero, err
	}
	return f(l)
}

// Conversations lists stored conversations, those in progress among them.
func (h *Hub) Conversations(ctx context.Context, q api.ConversationQuery) (api.ConversationList, error) {
	return h.opts.Store.Conversations(ctx, q)
}

// Conversation is one conversation with its ended turns and the one under way.
func (h *Hub) Conversation(ctx context.Context, id string) (api.Conversation, error) {
	c, err := h.opts.Store.Conversation(ctx, id)
	if err != nil {
		return c, err
	}
	for _, l := range h.lanes {
		if live := l.live(id); live != nil && live.Number > len(c.Turns) {
			c.Live = live
		}
	}
	return c, nil
}

// TurnsCSV writes the turns of a step, or of all steps for step 0.
func (h *Hub) TurnsCSV(ctx context.Context, w io.Writer, lane string, step int64) error {
	if _, err := h.lane(lane); err != nil {
		return err
	}
	return h.opts.Store.TurnsCSV(ctx, w, lane, step)
}

// Events lists the newest events.
func (h *Hub) Events(ctx context.Context, lane string, limit int) (api.EventList, error) {
	events, err := h.opts.Store.Events(ctx, lane, limit)
	return api.EventList{Events: events}, err
}

// Settings are those in force.
func (h *Hub) Settings() api.Settings {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.settings
}

// PatchSettings changes settings and stores them before it answers. The error
// is an [api.FieldError], or the store's; then nothing has changed.
func (h *Hub) PatchSettings(ctx context.Context, by string, p api.SettingsPatch) (api.Settings, error) {
	h.writes.Lock()
	defer h.writes.Unlock()
	old := h.Settings()
	next := applySettings(old, p)
	if err := h.checkSettings(next); err != nil {
		return old, err
	}
	if err := h.opts.Store.SaveSettings(ctx, next); err != nil {
		return old, fmt.Errorf("%w: the settings cannot be stored: %w", api.ErrUnavailable, err)
	}
	h.mu.Lock()
	h.settings = next
	h.mu.Unlock()
	for _, l := range h.lanes {
		l.record.SetSLO(next.SLO)
	}
	h.event(ctx, api.EventSettings, by, "settings changed")
	h.changed()
	return next, nil
}

// Baselines lists the built-in, the imported and this target's baselines.
func (h *Hub) Baselines(context.Context) ([]api.Baseline, error) { return h.allBaselines(), nil }

func (h *Hub) allBaselines() []api.Baseline {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.baselines
}

// Baseline finds one by its name; the error is an [api.ErrNotFound].
func (h *Hub) Baseline(_ context.Context, name string) (api.Baseline, error) {
	all := h.allBaselines()
	if i := indexOf(all, name); i >= 0 {
		return all[i], nil
	}
	return api.Baseline{}, fmt.Errorf("%w: there is no baseline %q", api.ErrNotFound, name)
}

func indexOf(all []api.Baseline, name string) int {
	return slices.IndexFunc(all, func(b api.Baseline) bool { return b.Name == name })
}

// SaveBaseline stores an imported baseline before it answers, in place of an
// earlier import of the same name. The built-in ones and this target's own are
// not to be replaced: [api.ErrConflict].
func (h *Hub) SaveBaseline(ctx context.Context, by string, b api.Baseline) (api.Baseline, error) {
	b.Kind = baseline.KindImported
	if err := baseline.Validate(b); err != nil {
		return b, err
	}
	h.writes.Lock()
	defer h.writes.Unlock()
	all := h.allBaselines()
	if i := indexOf(all, b.Name); b.Name == api.ThisTarget || i >= 0 && all[i].Kind != baseline.KindImported {
		return b, fmt.Errorf("%w: %q is the name of a baseline that cannot be replaced; choose another", api.ErrConflict, b.Name)
	}
	if err := h.replace(ctx, b); err != nil {
		return b, fmt.Errorf("%w: the baseline cannot be stored: %w", api.ErrUnavailable, err)
	}
	h.event(ctx, api.EventBaseline, by, "imported baseline "+b.Name)
	h.changed()
	return b, nil
}

// replace stores a baseline and then puts it in the place of one of its name.
func (h *Hub) replace(ctx context.Context, b api.Baseline) error {
	if err := h.opts.Store.SaveBaseline(ctx, b); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	all := slices.Clone(h.baselines)
	if i := indexOf(all, b.Name); i >= 0 {
		all[i] = b
	} else {
		all = append(all, b)
	}
	h.baselines = all
	return nil
}

// measured is [api.ThisTarget] before its first row.
func measured(url string, deployment api.Deployment, shape api.WorkloadShape) api.Baseline {
	deployment.Speculation = "" // a row's own matter
	return api.Baseline{
		Name: api.ThisTarget, Title: "This target, as measured", Kind: baseline.KindMeasured,
		Notes: "Measured against " + url, Deployment: deployment, Workload: &shape, Rows: []api.BaselineRow{},
	}
}

// keepRow adds a measured row to this target's own baseline, of which b is given
// without its rows. The rows of another target, model or workload do not belong
// beside it, and go.
func (h *Hub) keepRow(ctx context.Context, b api.Baseline, row api.BaselineRow) {
	h.writes.Lock()
	defer h.writes.Unlock()
	if own, err := h.Baseline(ctx, api.ThisTarget); err == nil && sameTarget(own, b) && reflect.DeepEqual(own.Workload, b.Workload) {
		b.Rows = own.Rows
	}
	baseline.Merge(&b, row)
	if err := h.replace(ctx, b); err != nil {
		h.opts.Log.Warn("a measured row was not stored", "error", err)
	}
}

// sameTarget says whether two measured baselines are of the same server and model.
func sameTarget(a, b api.Baseline) bool {
	return a.Notes == b.Notes && a.Deployment.Model == b.Deployment.Model
}

func (h *Hub) event(ctx context.Context, kind api.EventKind, by, text string) {
	if _, err := h.opts.Store.SaveEvent(ctx, api.Event{Time: time.Now(), Kind: kind, By: by, Text: text}); err != nil {
		h.opts.Log.Warn("an event was not kept", "error", err, "text", text)
	}
}
