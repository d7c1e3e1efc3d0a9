package lane

import (
	"context"
	"log/slog"
	"time"

	"kvbooth/sidecar/api"
)

// Store keeps what must not be lost; [kvbooth/sidecar/loadgen/store.Store] is one. The
// methods without an error hand over and never wait.
type Store interface {
	SaveConversation(api.Conversation)
	SaveTurn(api.Turn)
	SaveStep(api.StepRecord)
	LostTurns() int64
	Status() api.StoreStatus

	SaveEvent(context.Context, api.Event) (api.Event, error)
	SaveSettings(context.Context, api.Settings) error
	Settings(context.Context) (s api.Settings, kept bool, err error)
	SaveBaseline(context.Context, api.Baseline) error
	Baselines(context.Context) ([]api.Baseline, error)
	Conversation(ctx context.Context, id string) (api.Conversation, error)
}

// Process is what all parts of one load generator share. Every field but Config is needed.
type Process struct {
	Version string
	Config  map[string]string // in force, without secrets, for the status
	Store   Store
	Health  func(time.Time) api.ClientHealth // whether the load generator itself can be trusted
	Log     *slog.Logger
}

// signal says that something has changed, however often since it was last received.
type signal chan struct{}

// raise never waits.
func (s signal) raise() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// every calls f after each period until ctx ends.
func every(ctx context.Context, period time.Duration, f func()) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			f()
		}
	}
}
