package lane

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
)

// Catalog holds the settings and the baselines of a process. A change is stored before it is in
// force. It is safe for concurrent use.
type Catalog struct {
	process Process
	changed *signal
	lanes   []*Lane // all lanes that the settings apply to; complete before the first change

	writes sync.Mutex // held during a change, until the store has committed it

	mu        sync.Mutex // guards only the fields below
	settings  api.Settings
	baselines []api.Baseline // built-in, imported, and this target's; the slice is replaced, never changed
}

// NewCatalog reads settings and baselines from the store. Where the store holds no settings,
// configured applies. The error says that the store cannot be read.
func NewCatalog(ctx context.Context, process Process, configured api.Settings) (*Catalog, error) {
	c := &Catalog{process: process, changed: &signal{c: make(chan struct{}, 1)}, settings: configured}
	kept, ok, err := process.Store.Settings(ctx)
	if err != nil {
		return nil, err
	}
	if ok {
		if !slices.Contains(api.Vendors, kept.Vendor) { // stored by a version without this setting or vendor
			kept.Vendor = configured.Vendor
		}
		c.settings = kept
	}
	own, err := process.Store.Baselines(ctx)
	if err != nil {
		return nil, err
	}
	c.baselines = append(baseline.Builtin(), own...)
	for i := range c.baselines {
		nameTarget(&c.baselines[i])
	}
	return c, nil
}

// nameTarget gives a measured baseline the id of its target. Former versions stored the id only in
// the notes, in this sentence.
func nameTarget(b *api.Baseline) {
	if url, ok := strings.CutPrefix(b.Notes, "Measured against "); ok && b.Kind == baseline.KindMeasured &&
		b.Target == nil {
		b.Target = &api.TargetID{URL: url, Model: b.Deployment.Model}
	}
}

// Settings returns the settings in force.
func (c *Catalog) Settings() api.Settings {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.settings
}

// PatchSettings changes settings. They are stored when it returns. The error is an [api.FieldError]
// or the store's; then nothing has changed.
func (c *Catalog) PatchSettings(ctx context.Context, actor string, p api.SettingsPatch) (api.Settings, error) {
	c.writes.Lock()
	defer c.writes.Unlock()
	old := c.Settings()
	next := old
	api.Merge(&next, p)
	if err := c.checkSettings(next); err != nil {
		return old, err
	}
	if p.MaxConcurrency != nil { // a stored limit is not checked again: it may come from another machine
		if err := c.process.checkConcurrency("max_concurrency", next.MaxConcurrency); err != nil {
			return old, err
		}
	}
	if err := c.process.Store.SaveSettings(ctx, next); err != nil {
		return old, fmt.Errorf("%w: the settings cannot be stored: %w", api.ErrUnavailable, err)
	}
	c.mu.Lock()
	c.settings = next
	c.mu.Unlock()
	for _, l := range c.lanes {
		l.record.SetSLO(next.SLO)
	}
	c.event(ctx, api.EventSettings, actor, "settings changed")
	return next, nil
}

// Baselines returns the built-in, the imported and this target's baselines. They must not be
// modified.
func (c *Catalog) Baselines() []api.Baseline {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.baselines
}

// Baseline returns the baseline with the name. The error is an [api.ErrNotFound].
func (c *Catalog) Baseline(name string) (api.Baseline, error) {
	all := c.Baselines()
	if i := indexOfBaseline(all, name); i >= 0 {
		return all[i], nil
	}
	return api.Baseline{}, errNoBaseline(name)
}

func errNoBaseline(name string) error {
	return fmt.Errorf("%w: no baseline %q", api.ErrNotFound, name)
}

func indexOfBaseline(all []api.Baseline, name string) int {
	return slices.IndexFunc(all, func(b api.Baseline) bool { return b.Name == name })
}

// CheckBaseline returns a baseline as [Catalog.SaveBaseline] would store it, or the error that
// SaveBaseline would return. It stores nothing.
func (c *Catalog) CheckBaseline(b api.Baseline) (api.Baseline, error) {
	b = asImported(b)
	return b, c.check(b)
}

// asImported returns a baseline as an import. The fields that only the product itself sets are removed.
func asImported(b api.Baseline) api.Baseline {
	b.Kind = baseline.KindImported
	b.Target = nil
	b.Sustained = nil
	b.Advantages = nil
	return b
}

// check returns the reason why a baseline cannot be stored.
func (c *Catalog) check(b api.Baseline) error {
	if err := baseline.Validate(b); err != nil {
		return err
	}
	if old, err := c.Baseline(b.Name); isOwn(b.Name) || err == nil && old.Kind == baseline.KindRecorded {
		return fmt.Errorf("%w: %q is the name of a baseline that cannot be replaced; choose another", api.ErrConflict, b.Name)
	}
	return c.checkRoom(b)
}

// checkRoom refuses a baseline that exceeds the limits on stored baselines and rows. A stored
// baseline of the same name does not count, since it is replaced.
func (c *Catalog) checkRoom(b api.Baseline) error {
	number, rows := 0, 0
	for _, other := range c.Baselines() {
		if other.Kind != baseline.KindRecorded && !isOwn(other.Name) && other.Name != b.Name {
			number++
			rows += len(other.Rows)
		}
	}
	switch left := max(0, api.MaxBaselineRows-rows); {
	case number >= api.MaxBaselines:
		return api.Refuse("name", strconv.Quote(b.Name), fmt.Sprintf(
			"the name of a stored baseline, which it replaces: there are %d, which is the limit; or delete one first", number))
	case len(b.Rows) > left:
		return api.Refuse("rows", len(b.Rows), fmt.Sprintf(
			"at most %d: all stored baselines have %d rows together, of %d that are allowed; delete one first",
			left, rows, api.MaxBaselineRows))
	}
	return nil
}

// SaveBaseline stores an imported baseline, in place of an earlier one of the same name. The
// built-in ones and this target's own cannot be replaced: [api.ErrConflict].
func (c *Catalog) SaveBaseline(ctx context.Context, actor string, b api.Baseline) (api.Baseline, error) {
	return c.save(ctx, actor, asImported(b), "imported baseline ")
}

// SaveMeasured stores a baseline that was measured here. Unlike [Catalog.SaveBaseline] it keeps
// the target.
func (c *Catalog) SaveMeasured(ctx context.Context, actor string, b api.Baseline) (api.Baseline, error) {
	b.Kind, b.Sustained, b.Advantages = baseline.KindMeasured, nil, nil
	return c.save(ctx, actor, b, "made baseline ")
}

// MergeBaseline adds the rows of an import to the imported baseline of the same name, as
// [baseline.Join] does, and stores the result. Where there is none, it stores the import. With dry
// it stores nothing. Rows cannot be added to a baseline that was not imported: [api.ErrConflict].
func (c *Catalog) MergeBaseline(ctx context.Context, actor string, b api.Baseline, dry bool) (api.Baseline, error) {
	c.writes.Lock()
	defer c.writes.Unlock()
	b = asImported(b)
	if old, err := c.Baseline(b.Name); err == nil {
		if old.Kind != baseline.KindImported {
			return b, fmt.Errorf("%w: %q was not imported; rows can only be added to imported baselines", api.ErrConflict,
				b.Name)
		}
		if b, err = baseline.Join(old, b); err != nil {
			return b, err
		}
	}
	if dry {
		return b, c.check(b)
	}
	return c.store(ctx, actor, b, "imported rows into baseline ")
}

func (c *Catalog) save(ctx context.Context, actor string, b api.Baseline, done string) (api.Baseline, error) {
	c.writes.Lock()
	defer c.writes.Unlock()
	return c.store(ctx, actor, b, done)
}

// store checks a baseline and stores it. The lock for writes is held.
func (c *Catalog) store(ctx context.Context, actor string, b api.Baseline, done string) (api.Baseline, error) {
	if err := c.check(b); err != nil {
		return b, err
	}
	if err := c.replace(ctx, b); err != nil {
		return b, fmt.Errorf("%w: the baseline cannot be stored: %w", api.ErrUnavailable, err)
	}
	c.event(ctx, api.EventBaseline, actor, done+b.Name)
	return b, nil
}

// DeleteBaseline deletes an imported baseline, or one that was made of a sweep. The error is an
// [api.ErrNotFound], an [api.ErrConflict] for any other kind and for the settings' default
// baseline, or the store's; then nothing has changed.
func (c *Catalog) DeleteBaseline(ctx context.Context, actor, name string) error {
	c.writes.Lock()
	defer c.writes.Unlock()
	b, err := c.Baseline(name)
	switch {
	case err != nil:
		return err
	case b.Kind == baseline.KindRecorded || isOwn(name):
		return fmt.Errorf("%w: %q is built in or this target's own; only imported baselines and those made of a sweep can "+
			"be deleted", api.ErrConflict, name)
	case c.Settings().DefaultBaseline == name:
		return fmt.Errorf("%w: %q is the default baseline; choose another default first", api.ErrConflict, name)
	}
	if err := c.process.Store.DeleteBaseline(ctx, name); err != nil {
		return fmt.Errorf("%w: the baseline cannot be deleted: %w", api.ErrUnavailable, err)
	}
	c.mu.Lock()
	c.baselines = slices.DeleteFunc(slices.Clone(c.baselines), func(b api.Baseline) bool { return b.Name == name })
	c.mu.Unlock()
	c.event(ctx, api.EventBaseline, actor, "deleted baseline "+name)
	return nil
}

// replace stores a baseline and then replaces the one of the same name in memory. The lock for
// writes is held.
func (c *Catalog) replace(ctx context.Context, b api.Baseline) error {
	if err := c.process.Store.SaveBaseline(ctx, b); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.Clone(c.baselines)
	if i := indexOfBaseline(all, b.Name); i >= 0 {
		all[i] = b
	} else {
		all = append(all, b)
	}
	c.baselines = all
	return nil
}

// isOwn reports whether a name is reserved for what a lane measures of its own target.
func isOwn(name string) bool {
	return name == api.ThisTarget || name == api.OwnBaseline(api.TwinLane)
}

// keepRow adds a measured row to a target's own baseline. b is that baseline without its rows.
// Stored rows of another target, model or workload are dropped, since they are not comparable.
func (c *Catalog) keepRow(ctx context.Context, b api.Baseline, row api.BaselineRow) {
	c.writes.Lock()
	defer c.writes.Unlock()
	if own, err := c.Baseline(b.Name); err == nil && isOfTarget(own, *b.Target) &&
		reflect.DeepEqual(own.Workload, b.Workload) {
		b.Rows = own.Rows
	}
	baseline.Merge(&b, row)
	if err := c.replace(ctx, b); err != nil {
		c.process.Log.Warn("a measured row was not stored", "error", err)
	}
}

// measured returns the baseline of a lane's own results before its first row.
func measured(lane, url string, deployment api.Deployment, shape api.WorkloadShape) api.Baseline {
	deployment.Speculation = "" // each row has its own
	title := ownTitle
	if lane != api.DefaultLane {
		title = fmt.Sprintf("The target of lane %s, as measured", lane)
	}
	return api.Baseline{
		Name: api.OwnBaseline(lane), Title: title, Kind: baseline.KindMeasured,
		Notes: "Measured against " + url, Target: &api.TargetID{URL: url, Model: deployment.Model}, Deployment: deployment,
		Workload: &shape, Rows: []api.BaselineRow{},
	}
}

// ownTitle is the title under which a lane shows the results of its own target.
const ownTitle = "This target, as measured"

// isOfTarget reports whether a baseline was measured against the target.
func isOfTarget(b api.Baseline, id api.TargetID) bool { return b.Target != nil && *b.Target == id }

// event stores a change in the list of events, and requests a snapshot.
func (c *Catalog) event(ctx context.Context, kind api.EventKind, actor, text string) {
	e := api.Event{Time: time.Now(), Kind: kind, By: actor, Text: text}
	if _, err := c.process.Store.SaveEvent(ctx, e); err != nil {
		c.process.Log.Warn("an event was dropped", "error", err, "text", text)
	}
	c.changed.raise()
}
