package lane

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/stats"
)

// Store keeps the data of a process; [kvbooth/sidecar/loadgen/store.Store] is one. The methods
// without an error queue the data and do not block.
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
	DeleteBaseline(ctx context.Context, name string) error
	Baselines(context.Context) ([]api.Baseline, error)
	Conversation(ctx context.Context, id string) (api.Conversation, error)
}

// Process is shared by all parts of one load generator. All fields but Config, Members, Lag and
// CheckConcurrency are required.
type Process struct {
	Version string
	Config  map[string]string // the configuration in force, without secrets
	Store   Store
	Health  func(time.Time) api.ClientHealth // accuracy of the load generator itself
	Log     *slog.Logger
	// Members returns the members that hold conversations for this process; nil: it holds them
	// itself.
	Members func(time.Time) []api.Member
	// Lag returns the load generator's own delays between two times, the second of which is the
	// present; false if they are not known. nil: they are never known.
	Lag func(from, to time.Time) (lag stats.Lag, known bool)
	// CheckConcurrency refuses, with an [api.FieldError] of the field, more conversations than the
	// machine can serve. nil disables the check.
	CheckConcurrency func(field string, n int) error
}

func (p Process) checkConcurrency(field string, n int) error {
	if p.CheckConcurrency == nil {
		return nil
	}
	return p.CheckConcurrency(field, n)
}

// allow adds the load generator's own error to the intervals of a report that ends now. It returns
// the lag over the time of the report (p95); nil if it is not known.
func (p Process) allow(r *stats.Report, now time.Time) *float64 {
	if p.Lag == nil {
		return nil
	}
	since := min(time.Duration(r.Window.Seconds*float64(time.Second)), stats.StepSpan)
	lag, known := p.Lag(now.Add(-since), now)
	if !known {
		return nil
	}
	r.Allow(&lag)
	return new(lag.Quantile(.95))
}

// lag returns the load generator's own delays of the last minutes; nil if they are not known.
func (p Process) lag(now time.Time) *stats.Lag {
	if p.Lag == nil {
		return nil
	}
	if lag, known := p.Lag(now.Add(-stats.StepSpan), now); known {
		return &lag
	}
	return nil
}

// signal reports that something has changed at least once since it was last received.
type signal struct {
	c     chan struct{} // buffered for one
	count atomic.Uint64 // number of changes
}

// raise counts a change and reports it. It does not block.
func (s *signal) raise() {
	s.count.Add(1)
	select {
	case s.c <- struct{}{}:
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
