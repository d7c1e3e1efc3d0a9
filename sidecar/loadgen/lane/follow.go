package lane

import (
	"context"
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
	found, err := d.Current(l.ctx)
	known := api.ModeState{Mode: before.Mode, Speculation: before.Speculation}
	if err != nil || found == known {
		return
	}
	source, why := api.ModeFromDriver, "the cluster is in that mode"
	if found.Mode == api.ModeUnknown {
		source, why = "", "the cluster is being switched by another client"
	}
	if a, ok := d.(workload.Attributor); ok {
		if by := a.Author(l.ctx); by != "" {
			why += ", last changed by " + by
		}
	}
	l.adopt(known, found, source, why)
}

// adoptRouterMode takes what a router's own metrics show of its mode where no other source does:
// that it chooses by what the KV caches hold. That it does not is no other mode, as
// round-robin, random and least-loaded look the same in them: then a mode that the
// metrics had told is unknown again.
func (l *Lane) adoptRouterMode() {
	byKV := l.opts.Cluster().RoutesByKV
	if byKV == nil || !l.takesWord() {
		return
	}
	l.mu.Lock()
	before, from := l.mode, l.modeFrom
	l.mu.Unlock()
	found := before
	switch {
	case *byKV && before.Mode == api.ModeUnknown:
		found.Mode = api.ModeKV
		l.adopt(before, found, api.ModeFromMetrics, "according to the router's own metrics")
	case !*byKV && from == api.ModeFromMetrics:
		found.Mode = api.ModeUnknown
		l.adopt(before, found, "", "the router's metrics show no KV-aware routing")
	}
}

// adopt takes the mode that the cluster was found in, unless the lane has changed
// its own since it was asked. No turn of one mode counts for another.
func (l *Lane) adopt(before, found api.ModeState, from api.ModeSource, why string) {
	l.mu.Lock()
	if found == l.mode || before != l.mode || l.phase == api.PhaseSwitching || l.open() != nil {
		l.mu.Unlock()
		return
	}
	l.event(api.EventModeChange, "cluster", transition(before, found)+": "+why)
	// a change that had failed left another mode than this one
	l.inNewStep(func() { l.mode, l.modeFrom, l.change = found, from, nil })
	if from == api.ModeFromDriver {
		l.shadow.Reset() // a cluster that is switched restarts its workers
	}
	l.mu.Unlock()
	l.modeChanged(found)
	l.notify()
}

// Decisions gives the newest decisions of the cluster's router, newest first, at
// most limit: its own where it tells them, else those that the shadow infers; none,
// with a message, where it cannot. The error is an [api.ErrUnavailable] where the
// cluster cannot be asked.
func (l *Lane) Decisions(ctx context.Context, limit int) (api.DecisionList, error) {
	d, ok := l.opts.Driver.(workload.Decider)
	if !ok {
		return l.shadow.Decisions(limit), nil
	}
	decisions, err := d.Decisions(ctx, limit)
	return api.DecisionList{Decisions: notNil(decisions), Source: l.opts.Driver.Name()}, err
}

// Problem says why the target cannot serve, "" where it can.
func (l *Lane) Problem() string {
	problem, _ := l.target.state()
	return problem
}

// Router is what is known of the router in front of the workers, in words: who sets its mode, and
// whether its own metrics say that it chooses workers by what their caches hold.
func (l *Lane) Router() string {
	text := "mode set by the driver " + l.opts.Driver.Name()
	switch by := l.Cluster().RoutesByKV; {
	case by == nil:
		return text + "; no metrics say how it chooses workers"
	case *by:
		return text + "; by its metrics it chooses workers by their caches"
	}
	return text + "; by its metrics it does not choose workers by their caches"
}

// Address is where turns are sent.
func (l *Lane) Address() string {
	if c, ok := l.opts.Client.(Redirected); ok {
		return c.Endpoint()
	}
	return l.opts.Client.Root()
}
