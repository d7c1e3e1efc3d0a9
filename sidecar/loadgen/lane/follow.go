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

// follow takes the mode that the cluster is in, whoever switched it. That a
// cluster does not answer is seen by its turns.
func (l *Lane) follow(d workload.Teller) {
	before := l.State()
	if before.Phase == api.PhaseSwitching {
		return
	}
	if found, err := d.Current(l.ctx); err == nil {
		l.adopt(api.ModeState{Mode: before.Mode, Speculation: before.Speculation}, found)
	}
}

// adopt takes the mode that the cluster was found in, unless the lane has changed
// its own since it was asked. No turn of one mode counts for another.
func (l *Lane) adopt(before, found api.ModeState) {
	l.mu.Lock()
	if found == l.mode || before != l.mode || l.phase == api.PhaseSwitching || l.open() != nil {
		l.mu.Unlock()
		return
	}
	l.event(api.EventModeChange, "cluster", transition(before, found)+": the cluster is in that mode")
	l.inNewStep(func() { l.mode, l.change = found, nil }) // a change that had failed left another mode than this one
	l.mu.Unlock()
	l.modeChanged(found)
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
