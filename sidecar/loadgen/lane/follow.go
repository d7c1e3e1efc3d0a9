package lane

import (
	"cmp"
	"context"
	"time"

	"kvbooth/sidecar/api"
)

// followEvery is the interval at which a cluster that reports its mode is asked for it. A cluster
// cannot restart in another mode and serve turns within it.
const followEvery = time.Second

// detectWithin is the longest time that a start waits for a cluster to report its mode and its context.
const detectWithin = 5 * time.Second

// DetectMode adopts the modes that the clusters of the joined lanes report, so that a run which
// starts after it is in one step from the beginning. It returns after detectWithin at the latest.
// Without an answer until then, the mode is followed during the run. With a shape, it also probes the
// targets, so that a start refuses a shape that is larger than the context of the model.
func (l *Lane) DetectMode(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, detectWithin)
	defer cancel()
	l.mu.Lock()
	lanes := l.lanes
	l.mu.Unlock()
	concurrently(len(lanes), func(i int) {
		if shape := lanes[i].State().TrafficShape; !shape.Recorded() {
			_ = lanes[i].target.probe(ctx)
		}
		if lanes[i].opts.Driver.Abilities().Current == nil || lanes[i].follow(ctx) == nil {
			return
		}
		retries, stop := context.WithCancel(ctx)
		defer stop()
		every(retries, followEvery/4, func() {
			if lanes[i].follow(ctx) == nil {
				stop()
			}
		})
	})
}

// follow adopts the mode that the cluster is in, also after a switch by another client. It ignores
// a cluster that does not answer, since its turns fail as well, and returns the error.
func (l *Lane) follow(ctx context.Context) error {
	d := l.opts.Driver.Abilities()
	before := l.State()
	if before.Phase == api.PhaseSwitching || before.ModeChange != nil && !before.ModeChange.Failed {
		return nil
	}
	found, err := d.Current(ctx)
	known := before.InMode()
	if err != nil || found == known {
		return err
	}
	source, why := api.ModeFromDriver, "the cluster is in that mode"
	if found.Mode == api.ModeUnknown {
		source, why = "", "the cluster is being switched by another client"
	}
	if d.Author != nil {
		if author := d.Author(ctx); author != "" {
			why += ", last changed by " + author
		}
	}
	l.adopt(known, found, source, why)
	return nil
}

// adoptRouterMode adopts the mode that a router's own metrics show, where there is no other source:
// they show whether it chooses workers by the content of their KV caches. Where it does not, the
// mode may be round-robin, random or least-loaded, which look the same in the metrics. A mode that
// was known from the metrics is then unknown again.
func (l *Lane) adoptRouterMode() {
	byKV := l.opts.Cluster().RoutesByKV
	if byKV == nil || !l.acceptsDeclaredMode() {
		return
	}
	l.mu.Lock()
	before, from := l.mode, l.modeFrom
	l.mu.Unlock()
	if offersArms(l.opts.Driver.Offers()) {
		return // the metrics show modes of a Dynamo only
	}
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

// offersArms reports whether a driver offers arms of the user's own, not the modes of a Dynamo.
func offersArms(offers []api.ModeState) bool { return len(offers) > 0 && offers[0].Arm != "" }

// adopt takes the mode that the cluster was found in, unless the lane's mode is no longer the one
// that the comparison was made with. It begins a new step, so that no turn of one mode counts for
// another. A mode that was unknown until the router's metrics showed it was in force before, too:
// the step goes on in it.
func (l *Lane) adopt(before, found api.ModeState, from api.ModeSource, why string) {
	l.mu.Lock()
	if found == l.mode || before != l.mode || l.changes() || l.checkOpen() != nil {
		l.mu.Unlock()
		return
	}
	l.event(api.EventModeChange, "cluster", transition(before, found)+": "+why)
	// The message of a failed change names the former mode, so it is removed.
	take := func() { l.mode, l.modeFrom, l.change = found, from, nil }
	if from == api.ModeFromMetrics {
		take()
		l.steps.inMode(found)
	} else {
		l.inNewStep(leadSwitched, take)
	}
	if from == api.ModeFromDriver {
		l.shadow.Reset() // a cluster that is switched restarts its workers
	}
	l.mu.Unlock()
	l.modeChanged(found)
	l.notify()
}

// Decisions returns the newest decisions of the cluster's router, newest first, at most limit.
// Where the cluster does not report decisions, they are those that the shadow infers, or none and a
// message. The error is an [api.ErrUnavailable] if the cluster cannot be asked.
func (l *Lane) Decisions(ctx context.Context, limit int) (api.DecisionList, error) {
	ask := l.opts.Driver.Abilities().Decisions
	if ask == nil {
		return l.shadow.Decisions(limit), nil
	}
	decisions, err := ask(ctx, limit)
	return api.DecisionList{Decisions: notNil(decisions), Source: l.opts.Driver.Name()}, err
}

// Problem returns the reason why the target cannot serve, "" if it can.
func (l *Lane) Problem() string {
	problem, _ := l.target.state()
	return problem
}

// Router describes the router in front of the workers: which one it is, where that is known, which driver sets its
// mode, whether its own metrics show that it chooses workers by the content of their caches, and the note of the arm.
func (l *Lane) Router() string {
	l.mu.Lock()
	mode := l.mode
	l.mu.Unlock()
	text := l.seenRouter(mode.Mode)
	if l.opts.Note != nil {
		if note := l.opts.Note(mode.Arm); note != "" {
			text += "; " + note
		}
	}
	return text
}

// seenRouter describes the router without the note. What chooses its workers is of interest in a mode alone.
func (l *Lane) seenRouter(mode api.Mode) string {
	text, name := "mode set by the driver "+l.opts.Driver.Name(), cmp.Or(l.opts.Client.Recognized().Router,
		l.Cluster().Router)
	if mode == api.ModeUnknown {
		return cmp.Or(name, "not recognized")
	}
	if name != "" {
		text = name + ", " + text
	}
	switch byKV := l.Cluster().RoutesByKV; {
	case byKV == nil:
		return text + "; no metrics say how it chooses workers"
	case *byKV:
		return text + "; by its metrics it chooses workers by their caches"
	}
	return text + "; by its metrics it does not choose workers by their caches"
}

// Address returns the address that turns are sent to.
func (l *Lane) Address() string {
	if c, ok := l.opts.Client.(Redirected); ok {
		return c.Endpoint()
	}
	return l.opts.Client.Root()
}
