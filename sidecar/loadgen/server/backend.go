package server

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/history"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/sim/whatif"
)

// Backend implements the calls. Its errors may be an [api.FieldError] (422), [api.ErrNotFound] (404), [api.ErrConflict]
// (409) or [api.ErrUnavailable] (503). Any other is answered as 500 and logged, and its text is withheld from the
// caller. It is called concurrently. by is the caller's name in events.
type Backend interface {
	View
	Catalog
	Records
	Simulations
	SweepDesk
	TwinDesk
	// Lane finds a lane by its name.
	Lane(name string) (Lane, error)
	// RunHistory returns the newest runs of a name, or of all names where it is empty, and what changed between them.
	RunHistory(ctx context.Context, name string) (api.RunHistory, error)
}

// Lane controls one lane and returns its data. [lane.Lane] implements it.
type Lane interface {
	Start(ctx context.Context, by string, req api.StartRequest) (api.State, error)
	Stop(ctx context.Context, by string, req api.StopRequest) (api.State, error)
	Patch(ctx context.Context, by string, req api.WorkloadPatch) (api.State, error)
	MeasureAnew(ctx context.Context, by string, req api.MeasureRequest) (api.State, error)
	SetMode(ctx context.Context, by string, req api.ModeRequest) (api.State, error)
	CancelMode(ctx context.Context, by string) (api.State, error)

	Cluster() api.Cluster
	// History returns the series of the lane's last minutes.
	History() api.History
	Decisions(ctx context.Context, limit int) (api.DecisionList, error)
	// Shadow returns the cache hits that other routers would have had on the lane's traffic.
	Shadow() api.Shadow
	// Starter returns a text of the corpus in use.
	Starter(id string) (api.Starter, error)
	// Comparison compares the live step with the named baseline, or with the default one where the name is empty.
	Comparison(baseline string) (api.Comparison, error)
	// PreviewTraffic computes what the lane's traffic would be, without sending any.
	PreviewTraffic(ctx context.Context, req api.TrafficPreviewRequest) (api.TrafficPreview, error)
}

// View returns the state of all lanes. [lane.View] implements it.
type View interface {
	// StatusJSON and SnapshotJSON are at most a second old, and include every change of an earlier call. They are shared
	// and must not be modified.
	StatusJSON() ([]byte, error)
	SnapshotJSON() ([]byte, error)
	// Subscribe delivers encoded snapshots: one at once, then one a second and one on each change of state. The channel
	// holds the newest one, so a slow reader misses snapshots. It is closed after the last one. unsubscribe is idempotent.
	Subscribe() (frames <-chan []byte, unsubscribe func())
	Conversation(ctx context.Context, id string) (api.Conversation, error)
	// Ready returns nil, or why a target cannot serve, with what to do.
	Ready() error
}

// Catalog holds settings and baselines. [lane.Catalog] implements it.
type Catalog interface {
	Baselines() []api.Baseline
	Baseline(name string) (api.Baseline, error)
	SaveBaseline(ctx context.Context, by string, b api.Baseline) (api.Baseline, error)
	// CheckBaseline returns a baseline as SaveBaseline would store it, or its error.
	CheckBaseline(b api.Baseline) (api.Baseline, error)
	// MergeBaseline adds the rows of an import to the imported baseline of its name. With dry it stores nothing.
	MergeBaseline(ctx context.Context, by string, b api.Baseline, dry bool) (api.Baseline, error)
	// DeleteBaseline deletes an imported one, and returns the remaining ones.
	DeleteBaseline(ctx context.Context, by, name string) ([]api.Baseline, error)

	Settings() api.Settings
	PatchSettings(ctx context.Context, by string, p api.SettingsPatch) (api.Settings, error)
}

// Records returns stored data. [kvbooth/sidecar/loadgen/store.Store] implements it.
type Records interface {
	Conversations(ctx context.Context, q api.ConversationQuery) (api.ConversationList, error)
	// TurnsCSV writes the turns of a step, or of all steps for step 0.
	TurnsCSV(ctx context.Context, w io.Writer, lane string, step int64) error
	// Events lists the newest events of a lane. Where lane is empty, it lists those of all lanes and those without a lane.
	Events(ctx context.Context, lane string, limit int) ([]api.Event, error)
	// Runs returns the runs of the history, oldest first.
	Runs(ctx context.Context) ([]api.RunRecord, error)
	// AcceptRun sets whether later runs are compared with one.
	AcceptRun(ctx context.Context, id string, accepted bool) (api.RunRecord, error)
}

// Simulations answers what-if questions. [whatif.Desk] implements it.
type Simulations interface {
	Simulations() api.SimulationList
	// StartSimulation starts a simulation. by is the name that others see, and who identifies the caller: a caller's new
	// simulation replaces the one before.
	StartSimulation(by, who string, req api.SimulationRequest) (api.SimulationResult, error)
	Simulation(id string) (api.SimulationResult, error)
	CancelSimulation(id string) (api.SimulationResult, error)
	// FollowSimulation calls on with each event of a simulation until its end, the end of ctx, or an error of on.
	FollowSimulation(ctx context.Context, id string, on func(event string, data any) error) error
}

// SweepDesk runs trials, sweeps and capacity searches, one at a time, and reports on them.
// [kvbooth/sidecar/loadgen/sweep.Desk] implements it.
type SweepDesk interface {
	Sweeps(ctx context.Context) api.SweepList
	// StartSweep begins one on a lane. While one is in progress, it returns an [api.ErrConflict].
	StartSweep(ctx context.Context, by, lane string, req api.SweepRequest) (api.Sweep, error)
	// SweepOutlook returns what a request would find, without starting it.
	SweepOutlook(ctx context.Context, lane string, req api.SweepRequest) (api.SweepOutlook, error)
	Sweep(ctx context.Context, id string) (api.Sweep, error)
	PatchSweep(ctx context.Context, by, id string, p api.SweepPatch) (api.Sweep, error)
	// DeleteSweep deletes one that has ended, and returns the remaining ones.
	DeleteSweep(ctx context.Context, by, id string) (api.SweepList, error)
	// SweepBaseline makes a baseline of a sweep's rows.
	SweepBaseline(ctx context.Context, by, id string, req api.SweepBaselineRequest) (api.Baseline, error)
	// WriteSeconds writes the cluster's metrics in each second of each counted span, as CSV.
	WriteSeconds(ctx context.Context, w io.Writer, id string) error
	// WriteSweepReport writes the report of a sweep, also while it is in progress.
	WriteSweepReport(ctx context.Context, w io.Writer, id string, f api.ReportFormat) error
	// WriteReport writes the report that compares b with a.
	WriteReport(
		ctx context.Context, w io.Writer, a, b api.ReportSide, levels []api.LevelRange, f api.ReportFormat,
	) error
}

// TwinDesk compares two lanes that run the same conversations. With one lane, every call returns an [api.ErrNotFound].
type TwinDesk interface {
	Twin() (api.Twin, error)
	// ArrangeTwin begins to switch the modes of the lanes, and returns at once.
	ArrangeTwin(ctx context.Context, by string, req api.TwinRequest) (api.Twin, error)
	// StartShowcase sends one conversation to both lanes, and replaces the one before.
	StartShowcase(ctx context.Context, by string, req api.ShowcaseRequest) (api.Twin, error)
	// StopShowcase ends it. Without one in progress it returns an [api.ErrConflict].
	StopShowcase(ctx context.Context, by string) (api.Twin, error)
}

// OneLane is the TwinDesk of a load generator with one lane.
type OneLane struct{}

var errOneLane = fmt.Errorf("%w: there is only one lane; set twin.target.url to run the same conversations against a "+
	"second target", api.ErrNotFound)

// Twin returns [api.ErrNotFound].
func (OneLane) Twin() (api.Twin, error) { return api.Twin{}, errOneLane }

// ArrangeTwin returns [api.ErrNotFound].
func (OneLane) ArrangeTwin(context.Context, string, api.TwinRequest) (api.Twin, error) {
	return api.Twin{}, errOneLane
}

// StartShowcase returns [api.ErrNotFound].
func (OneLane) StartShowcase(context.Context, string, api.ShowcaseRequest) (api.Twin, error) {
	return api.Twin{}, errOneLane
}

// StopShowcase returns [api.ErrNotFound].
func (OneLane) StopShowcase(context.Context, string) (api.Twin, error) {
	return api.Twin{}, errOneLane
}

// Parts combines the parts of a load generator to a Backend.
type Parts struct {
	*lane.View
	*lane.Catalog
	Records
	*whatif.Desk
	SweepDesk
	TwinDesk
}

// Baselines lists the baselines with their sustained levels under the SLOs in force.
func (p Parts) Baselines() []api.Baseline {
	all := slices.Clone(p.Catalog.Baselines())
	for i := range all {
		all[i] = p.judged(all[i])
	}
	return all
}

// Baseline finds one by its name, with its sustained levels under the SLOs in force. The error is an [api.ErrNotFound].
func (p Parts) Baseline(name string) (api.Baseline, error) {
	b, err := p.Catalog.Baseline(name)
	return p.judged(b), err
}

// CheckBaseline is [lane.Catalog.CheckBaseline], with the baseline's sustained levels under the SLOs in force.
func (p Parts) CheckBaseline(b api.Baseline) (api.Baseline, error) {
	b, err := p.Catalog.CheckBaseline(b)
	return p.judged(b), err
}

// maxRuns is the number of newest runs that are listed.
const maxRuns = 500

// RunHistory implements [Backend].
func (p Parts) RunHistory(ctx context.Context, name string) (api.RunHistory, error) {
	all, err := p.Runs(ctx)
	if err != nil {
		return api.RunHistory{}, err
	}
	all = slices.DeleteFunc(all, func(r api.RunRecord) bool { return name != "" && r.Result.Name != name })
	return history.List(all[max(0, len(all)-maxRuns):]), nil
}

// SaveBaseline is [lane.Catalog.SaveBaseline], with the baseline's sustained levels under the SLOs in force.
func (p Parts) SaveBaseline(ctx context.Context, by string, b api.Baseline) (api.Baseline, error) {
	b, err := p.Catalog.SaveBaseline(ctx, by, b)
	return p.judged(b), err
}

// MergeBaseline is [lane.Catalog.MergeBaseline], with the baseline's sustained levels under the SLOs in force.
func (p Parts) MergeBaseline(ctx context.Context, by string, b api.Baseline, dry bool) (api.Baseline, error) {
	b, err := p.Catalog.MergeBaseline(ctx, by, b, dry)
	return p.judged(b), err
}

// DeleteBaseline is [lane.Catalog.DeleteBaseline], and returns the remaining baselines.
func (p Parts) DeleteBaseline(ctx context.Context, by, name string) ([]api.Baseline, error) {
	if err := p.Catalog.DeleteBaseline(ctx, by, name); err != nil {
		return nil, err
	}
	return p.Baselines(), nil
}

// judged adds the values that follow from the rows and the settings. They are not stored.
func (p Parts) judged(b api.Baseline) api.Baseline {
	b.Sustained, b.Advantages = baseline.Sustained(b, p.Settings().SLO), baseline.Advantages(b)
	return b
}

// Lane finds a lane by its name. The error is an [api.ErrNotFound].
func (p Parts) Lane(name string) (Lane, error) { return p.View.Lane(name) }

// Playback returns recorded data, in place of a [Backend]. [kvbooth/sidecar/loadgen/replay.Player] implements it.
type Playback interface {
	View
	// Answer returns the recorded answer to GET at a path below [api.Prefix].
	Answer(path string, query url.Values) ([]byte, error)
}

// playback is a backend of which the routes of a recording use only the view.
type playback struct {
	View
	Catalog
	Records
	simulations
	SweepDesk
	TwinDesk
}

type simulations = Simulations // a field of that name would hide the method

func (playback) Lane(string) (Lane, error) { return nil, api.ErrNotFound }

func (playback) RunHistory(context.Context, string) (api.RunHistory, error) {
	return api.RunHistory{}, api.ErrNotFound
}

// errRecording refuses calls that would change something.
var errRecording = fmt.Errorf("%w: this is the replay of a recording, in which nothing can be started or changed",
	api.ErrConflict)

// played replaces the routes of a load generator by a recording's answers.
func (s *Server) played(all []route) []route {
	for i, rt := range all {
		method, path, _ := strings.Cut(rt.pattern, " ")
		switch {
		case path == api.Prefix+"/stream", path == api.Prefix+"/snapshot", path == api.Prefix+"/openapi.yaml":
		case rt.access == write:
			all[i].handle = func(http.ResponseWriter, *http.Request) error { return errRecording }
		case rt.access == read && method == http.MethodGet:
			all[i].handle = s.recorded
		}
	}
	return all
}

func (s *Server) recorded(w http.ResponseWriter, r *http.Request) error {
	text, err := s.opts.Playback.Answer(strings.TrimPrefix(cmp.Or(r.URL.RawPath, r.URL.Path), api.Prefix), r.URL.Query())
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // a reader that does not read has disconnected
	return nil
}
