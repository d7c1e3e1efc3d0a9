package lane

import (
	"context"
	"fmt"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/workload"
)

// followEvery is how often a cluster that tells its mode is asked for it: more
// often than it could restart in another one and have served turns unnoticed.
const followEvery = time.Second

// follow keeps the lane in the mode that the cluster is in, whoever switched it,
// until ctx ends. That a cluster does not answer is seen by its turns.
func (l *Lane) follow(ctx context.Context, d workload.Teller) {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		before := l.State()
		if before.Phase == api.PhaseSwitching {
			continue
		}
		if found, err := d.Current(ctx); err == nil {
			l.adopt(api.ModeState{Mode: before.Mode, Speculation: before.Speculation}, found)
		}
	}
}

// adopt takes the mode that the cluster was found in, unless the lane has
// changed its own since it was asked. What goes on does so in a new step, so that
// no turn of one mode counts for another.
func (l *Lane) adopt(before, found api.ModeState) {
	l.mu.Lock()
	if found == l.mode || before != l.mode || l.phase == api.PhaseSwitching || l.open() != nil {
		l.mu.Unlock()
		return
	}
	now, mixed := time.Now(), l.steps.isMixed()
	if l.phase == api.PhaseRunning {
		l.endStep(now)
	}
	l.mode, l.change = found, nil // a change that had failed left another mode than this one
	l.event(api.EventModeChange, "cluster", transition(before, found)+": the cluster is in that mode")
	if l.phase == api.PhaseRunning {
		l.steps.begin(now, l.settings.Concurrency, l.mode, mixed)
		l.run.workload.Set(l.settings) // tells the new step how many are in progress
	}
	l.mu.Unlock()
	if l.opts.ModeChanged != nil {
		l.opts.ModeChanged(found)
	}
	l.notify()
}

// Decisions gives the newest decisions of the cluster's router, newest first, at
// most limit; none, with a message, where the target does not tell them. The
// error is an [api.ErrUnavailable] where it cannot be asked.
func (l *Lane) Decisions(ctx context.Context, limit int) (api.DecisionList, error) {
	d, ok := l.opts.Driver.(workload.Decider)
	if !ok {
		return api.DecisionList{
			Decisions: []api.RoutingDecision{},
			Message:   fmt.Sprintf("this target does not tell its decisions (mode.driver is %s); the simulated cluster does", l.opts.Driver.Name()),
		}, nil
	}
	decisions, err := d.Decisions(ctx, limit)
	return api.DecisionList{Decisions: notNil(decisions), Source: l.opts.Driver.Name()}, err
}
