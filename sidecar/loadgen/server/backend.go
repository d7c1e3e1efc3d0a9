package server

import (
	"context"
	"fmt"
	"io"
	"slices"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/sim/whatif"
)

// Backend is what the calls do. Its errors may be an [api.FieldError] (422),
// [api.ErrNotFound] (404), [api.ErrConflict] (409) or [api.ErrUnavailable]
// (503); any other is answered as 500 and logged, its text kept from the caller.
// It is called concurrently. by says who asks.
type Backend interface {
	View
	Catalog
	Records
	Simulations
	SweepDesk
	TwinDesk
	// Lane finds a lane by its name.
	Lane(name string) (Lane, error)
}

// Lane controls one lane and returns its data. [lane.Lane] implements it.
type Lane interface {
	Start(ctx context.Context, by string, req api.StartRequest) (api.State, error)
	Stop(ctx context.Context, by string, req api.StopRequest) (api.State, error)
	Patch(ctx context.Context, by string, req api.WorkloadPatch) (api.State, error)
	SetMode(ctx context.Context, by string, req api.ModeRequest) (api.State, error)
	CancelMode(ctx context.Context, by string) (api.State, error)

	Cluster() api.Cluster
	// History is what the lane's snapshots said in the last minutes.
	History() api.History
	Decisions(ctx context.Context, limit int) (api.DecisionList, error)
	// Shadow is what other routers would have hit on the lane's traffic.
	Shadow() api.Shadow
	// Starter is a text of the corpus in use.
	Starter(id string) (api.Starter, error)
	// Comparison puts the live step beside the named baseline, beside the default
	// one where the name is empty.
	Comparison(baseline string) (api.Comparison, error)
}

// View shows all lanes; [lane.View] is one.
type View interface {
	// StatusJSON and SnapshotJSON are at most a second old, with every change that a
	// call before made. They are shared, and not to be written to.
	StatusJSON() ([]byte, error)
	SnapshotJSON() ([]byte, error)
	// Subscribe delivers encoded snapshots: one at once, then one a second and one
	// on each change of state. The channel holds one, the newest: a slow reader
	// loses snapshots. It is closed when there will be no more. unsubscribe is
	// idempotent.
	Subscribe() (frames <-chan []byte, unsubscribe func())
	Conversation(ctx context.Context, id string) (api.Conversation, error)
	// Ready is nil, or says why a target cannot serve, in words that say what to do.
	Ready() error
}

// Catalog holds settings and baselines; [lane.Catalog] is one.
type Catalog interface {
	Baselines() []api.Baseline
	Baseline(name string) (api.Baseline, error)
	SaveBaseline(ctx context.Context, by string, b api.Baseline) (api.Baseline, error)
	// CheckBaseline gives a baseline as SaveBaseline would store it, or its error.
	CheckBaseline(b api.Baseline) (api.Baseline, error)
	// MergeBaseline adds the rows of an import to the imported baseline of its name;
	// with dry it stores nothing.
	MergeBaseline(ctx context.Context, by string, b api.Baseline, dry bool) (api.Baseline, error)
	// DeleteBaseline deletes an imported one, and gives those that are left.
	DeleteBaseline(ctx context.Context, by, name string) ([]api.Baseline, error)

	Settings() api.Settings
	PatchSettings(ctx context.Context, by string, p api.SettingsPatch) (api.Settings, error)
}

// Records are what was stored; [kvbooth/sidecar/loadgen/store.Store] keeps them.
type Records interface {
	Conversations(ctx context.Context, q api.ConversationQuery) (api.ConversationList, error)
	// TurnsCSV writes the turns of a step, of all steps for step 0.
	TurnsCSV(ctx context.Context, w io.Writer, lane string, step int64) error
	// Events lists the newest events of a lane; of all lanes and of none where
	// lane is empty.
	Events(ctx context.Context, lane string, limit int) ([]api.Event, error)
}

// Simulations answers what-if questions; [whatif.Desk] is one.
type Simulations interface {
	Simulations() api.SimulationList
	// StartSimulation takes a question. by is what others see of who asks, who
	// identifies them: a new question replaces the one before.
	StartSimulation(by, who string, req api.SimulationRequest) (api.SimulationResult, error)
	Simulation(id string) (api.SimulationResult, error)
	CancelSimulation(id string) (api.SimulationResult, error)
	// FollowSimulation calls on with each event of a simulation until its end, the end
	// of ctx, or an error of on.
	FollowSimulation(ctx context.Context, id string, on func(event string, data any) error) error
}

// SweepDesk runs trials, sweeps and capacity searches, one at a time, and reports on them;
// [kvbooth/sidecar/loadgen/sweep.Desk] is one.
type SweepDesk interface {
	Sweeps(ctx context.Context) api.SweepList
	// StartSweep begins one on a lane. A second one at a time is an [api.ErrConflict].
	StartSweep(ctx context.Context, by, lane string, req api.SweepRequest) (api.Sweep, error)
	// SweepOutlook says what one can find that is not begun.
	SweepOutlook(ctx context.Context, lane string, req api.SweepRequest) (api.SweepOutlook, error)
	Sweep(ctx context.Context, id string) (api.Sweep, error)
	PatchSweep(ctx context.Context, by, id string, p api.SweepPatch) (api.Sweep, error)
	// DeleteSweep deletes one that has ended, and gives those that are left.
	DeleteSweep(ctx context.Context, by, id string) (api.SweepList, error)
	// SweepBaseline makes a baseline of a sweep's rows.
	SweepBaseline(ctx context.Context, by, id string, req api.SweepBaselineRequest) (api.Baseline, error)
	// WriteSeconds writes what the cluster said of itself in each second of each
	// counted span, as CSV.
	WriteSeconds(ctx context.Context, w io.Writer, id string) error
	// WriteSweepReport writes the report of a sweep, whether it has ended or not.
	WriteSweepReport(ctx context.Context, w io.Writer, id string, f api.ReportFormat) error
	// WriteReport writes the report on any two results: b compared with a.
	WriteReport(
		ctx context.Context, w io.Writer, a, b api.ReportSide, levels []api.LevelRange, f api.ReportFormat,
	) error
}

// TwinDesk compares two lanes that run the same conversations. With one lane, all of it is
// an [api.ErrNotFound].
type TwinDesk interface {
	Twin() (api.Twin, error)
	// ArrangeTwin begins to switch the modes of the lanes, and returns at once.
	ArrangeTwin(ctx context.Context, by string, req api.TwinRequest) (api.Twin, error)
	// StartShowcase sends one conversation to both lanes, in the place of the one before.
	StartShowcase(ctx context.Context, by string, req api.ShowcaseRequest) (api.Twin, error)
	// StopShowcase ends it; without one under way it is an [api.ErrConflict].
	StopShowcase(ctx context.Context, by string) (api.Twin, error)
}

// OneLane is the TwinDesk of a load generator with one lane.
type OneLane struct{}

var errOneLane = fmt.Errorf("%w: there is only one lane; set twin.target.url to run the same conversations against a "+
	"second target", api.ErrNotFound)

// Twin says that there is none.
func (OneLane) Twin() (api.Twin, error) { return api.Twin{}, errOneLane }

// ArrangeTwin says that there is none.
func (OneLane) ArrangeTwin(context.Context, string, api.TwinRequest) (api.Twin, error) {
	return api.Twin{}, errOneLane
}

// StartShowcase says that there is none.
func (OneLane) StartShowcase(context.Context, string, api.ShowcaseRequest) (api.Twin, error) {
	return api.Twin{}, errOneLane
}

// StopShowcase says that there is none.
func (OneLane) StopShowcase(context.Context, string) (api.Twin, error) {
	return api.Twin{}, errOneLane
}

// Parts are the Backend of a load generator.
type Parts struct {
	*lane.View
	*lane.Catalog
	Records
	*whatif.Desk
	SweepDesk
	TwinDesk
}

// Baselines lists the baselines with what they sustain under the SLOs in force.
func (p Parts) Baselines() []api.Baseline {
	all := slices.Clone(p.Catalog.Baselines())
	for i := range all {
		all[i] = p.judged(all[i])
	}
	return all
}

// Baseline finds one by its name, with what it sustains under the SLOs in force; the
// error is an [api.ErrNotFound].
func (p Parts) Baseline(name string) (api.Baseline, error) {
	b, err := p.Catalog.Baseline(name)
	return p.judged(b), err
}

// CheckBaseline is [lane.Catalog.CheckBaseline], with what the baseline sustains under
// the SLOs in force.
func (p Parts) CheckBaseline(b api.Baseline) (api.Baseline, error) {
	b, err := p.Catalog.CheckBaseline(b)
	return p.judged(b), err
}

// SaveBaseline is [lane.Catalog.SaveBaseline], with what the baseline sustains under
// the SLOs in force.
func (p Parts) SaveBaseline(ctx context.Context, by string, b api.Baseline) (api.Baseline, error) {
	b, err := p.Catalog.SaveBaseline(ctx, by, b)
	return p.judged(b), err
}

// MergeBaseline is [lane.Catalog.MergeBaseline], with what the baseline sustains under
// the SLOs in force.
func (p Parts) MergeBaseline(ctx context.Context, by string, b api.Baseline, dry bool) (api.Baseline, error) {
	b, err := p.Catalog.MergeBaseline(ctx, by, b, dry)
	return p.judged(b), err
}

// DeleteBaseline is [lane.Catalog.DeleteBaseline], and gives the baselines that are left.
func (p Parts) DeleteBaseline(ctx context.Context, by, name string) ([]api.Baseline, error) {
	if err := p.Catalog.DeleteBaseline(ctx, by, name); err != nil {
		return nil, err
	}
	return p.Baselines(), nil
}

// judged adds what follows from the rows, some of it by the settings, and is therefore stored nowhere.
func (p Parts) judged(b api.Baseline) api.Baseline {
	b.Sustained, b.Advantages = baseline.Sustained(b, p.Settings().SLO), baseline.Advantages(b)
	return b
}

// Lane finds a lane by its name; the error is an [api.ErrNotFound].
func (p Parts) Lane(name string) (Lane, error) { return p.View.Lane(name) }
