package server

import (
	"context"
	"io"

	"kvbooth/sidecar/api"
)

// Backend is what the calls do. Its errors may be an [api.FieldError] (422),
// [api.ErrNotFound] (404), [api.ErrConflict] (409) or [api.ErrUnavailable]
// (503); any other is answered as 500 and logged, its text kept from the caller.
// It is called concurrently. by says who asks.
type Backend interface {
	Status() api.Status
	Snapshot() api.Snapshot
	// Subscribe delivers encoded snapshots: one at once, then one a second and one
	// on each change of state. The channel holds one, the newest: a slow reader
	// loses snapshots. It is closed when there will be no more. unsubscribe is
	// idempotent.
	Subscribe() (frames <-chan []byte, unsubscribe func())

	Start(ctx context.Context, lane, by string, req api.StartRequest) (api.State, error)
	Stop(ctx context.Context, lane, by string, req api.StopRequest) (api.State, error)
	Patch(ctx context.Context, lane, by string, req api.WorkloadPatch) (api.State, error)
	SetMode(ctx context.Context, lane, by string, req api.ModeRequest) (api.State, error)
	CancelMode(ctx context.Context, lane, by string) (api.State, error)
	Cluster(lane string) (api.Cluster, error)
	Decisions(ctx context.Context, lane string, limit int) (api.DecisionList, error)

	Conversations(ctx context.Context, q api.ConversationQuery) (api.ConversationList, error)
	Conversation(ctx context.Context, id string) (api.Conversation, error)
	// Starter is a text of the corpus in use in a lane.
	Starter(lane, id string) (api.Starter, error)
	// TurnsCSV writes the turns of a step, of all steps for step 0.
	TurnsCSV(ctx context.Context, w io.Writer, lane string, step int64) error
	// Events lists the newest events of a lane; of all lanes and of none where
	// lane is empty.
	Events(ctx context.Context, lane string, limit int) (api.EventList, error)

	Baselines(ctx context.Context) ([]api.Baseline, error)
	Baseline(ctx context.Context, name string) (api.Baseline, error)
	// Comparison puts a lane's live step beside the named baseline, beside the
	// default one where the name is empty.
	Comparison(lane, baseline string) (api.Comparison, error)
	SaveBaseline(ctx context.Context, by string, b api.Baseline) (api.Baseline, error)

	Settings() api.Settings
	PatchSettings(ctx context.Context, by string, p api.SettingsPatch) (api.Settings, error)

	// Ready is nil, or says why a target cannot serve, in words that say what to do.
	Ready() error
}
