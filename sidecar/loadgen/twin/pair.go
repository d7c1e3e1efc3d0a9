// Package twin compares two lanes that run the same conversations against two targets.
// [Pair] arranges their modes, and says when they disturb each other. That they start, stop
// and change together is the lanes' own matter (see [lane.Join]).
package twin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/lane"
)

// Pair is two lanes that are steered as one. Its methods are safe for concurrent use once
// the lanes are joined; SharedWorkers and Heard, which the lanes are made with, before that,
// too.
type Pair struct {
	lanes  [2]*lane.Lane // main and twin; written before joined is set
	joined atomic.Bool

	mu     sync.Mutex
	apart  [2]api.ModeState // the modes of the lanes in the arrangement of that name; zero: not known yet
	served [2]served
	shared []string // ids of workers that serve both
	// nameless says that both lanes run and one of them has no worker that answers or metrics name:
	// whether the same workers serve both is not known.
	nameless bool
}

// served is when the latest turn that each worker has answered was sent, by the worker's id.
type served map[string]time.Time

// mostServed bounds what a target's answers can make a Pair remember.
const mostServed = 4096

// freshMetrics is how old a run must be for the metrics of its cluster to be those of the
// target that it sends to, and no longer of one before.
const freshMetrics = 15 * time.Second

// Join makes two lanes of one catalogue be steered as one, before anything is.
func (p *Pair) Join(main, twin *lane.Lane) {
	lane.Join(main, twin)
	p.lanes = [2]*lane.Lane{main, twin}
	p.joined.Store(true)
	p.refresh(time.Now())
}

// Heard hears of every ended turn of either lane: see [lane.Options].
func (p *Pair) TurnEnded(t lane.EndedTurn) {
	if t.Worker == "" {
		return
	}
	i := 0
	if t.Lane == api.TwinLane {
		i = 1
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.served[i] == nil {
		p.served[i] = served{}
	}
	if _, known := p.served[i][t.Worker]; known || len(p.served[i]) < mostServed {
		p.served[i][t.Worker] = t.Started
	}
}

// Run looks at what the lanes tell until ctx ends.
func (p *Pair) Run(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			p.refresh(now)
		}
	}
}

// SharedWorkers are the ids of workers that serve both lanes, as of the last second. The
// list is not to be written to.
func (p *Pair) SharedWorkers() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shared
}

// refresh takes in the modes of the lanes, and which workers serve both.
func (p *Pair) refresh(now time.Time) {
	states := [2]api.State{p.lanes[0].State(), p.lanes[1].State()}
	var seen [2]map[string]bool
	for i, l := range p.lanes {
		seen[i] = inMetrics(l, states[i], now)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.arranged(states)
	for i := range p.served {
		p.served[i].forget(begun(states))
		for id := range p.served[i] {
			seen[i][id] = true
		}
	}
	p.shared, p.nameless = nil, false
	if states[0].Simulation != nil && states[1].Simulation != nil {
		return // each has its own frontend, and its workers no other: equal seeds give equal ids
	}
	for id := range seen[0] {
		if seen[1][id] {
			p.shared = append(p.shared, id)
		}
	}
	slices.Sort(p.shared)
	known := now.Sub(begun(states)) >= freshMetrics && states[0].Running && states[1].Running
	p.nameless = known && (len(seen[0]) == 0 || len(seen[1]) == 0)
}

// begun is when both lanes had begun what they run now.
func begun(states [2]api.State) (at time.Time) {
	for _, s := range states {
		if s.Started != nil && s.Started.After(at) {
			at = *s.Started
		}
	}
	return at
}

// forget leaves out the workers that have answered nothing that was sent since.
func (s served) forget(since time.Time) {
	for id, sent := range s {
		if sent.Before(since) {
			delete(s, id)
		}
	}
}

// inMetrics are the workers and GPUs that a lane's cluster tells of while it runs.
func inMetrics(l *lane.Lane, s api.State, now time.Time) map[string]bool {
	seen := map[string]bool{}
	if !s.Running || s.Started == nil || now.Sub(*s.Started) < freshMetrics {
		return seen
	}
	for _, w := range l.Cluster().Workers {
		switch {
		case w.ID != "":
			seen[w.ID] = true
		case strings.Contains(w.Name, ":"): // host and port; a pod of this name may be in another namespace, too
			seen[w.Name] = true
		}
		for _, g := range w.GPUs {
			if g.UUID != "" {
				seen[g.UUID] = true
			}
		}
	}
	return seen
}

// arranged names the arrangement of modes; what is none of the others is apart. The lock is
// held.
func (p *Pair) arranged(states [2]api.State) api.TwinArrangement {
	a, b := modeOf(states[0]), modeOf(states[1])
	switch {
	case a == b:
		return api.TwinSame
	case a == p.apart[1] && b == p.apart[0]:
		return api.TwinSwapped
	}
	p.apart = [2]api.ModeState{a, b}
	return api.TwinApart
}

func modeOf(s api.State) api.ModeState {
	return api.ModeState{Mode: s.Mode, Speculation: s.Speculation}
}

// Twin tells of the two lanes; there are no pairs of turns in it.
func (p *Pair) Twin() (api.Twin, error) {
	states := [2]api.State{p.lanes[0].State(), p.lanes[1].State()}
	p.mu.Lock()
	arranged, shared := p.arranged(states), p.shared
	p.mu.Unlock()
	t := api.Twin{
		A:             side(p.lanes[0], api.DefaultLane, states[0]),
		B:             side(p.lanes[1], api.TwinLane, states[1]),
		Arranged:      arranged,
		Metrics:       []api.PairedMetric{},
		Evidence:      api.EvidenceNone,
		SharedWorkers: append([]string{}, shared...),
	}
	if len(shared) > 0 {
		t.Evidence = api.EvidenceShared
	}
	t.Caution = caution(t.Evidence, p.doubts())
	return t, nil
}

func side(l *lane.Lane, name string, s api.State) api.TwinSide {
	return api.TwinSide{Lane: name, Target: l.Address(), Mode: s.Mode, Speculation: s.Speculation}
}

// doubts are the problems, and that nothing names the workers.
func (p *Pair) doubts() []string {
	all := p.problems()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.nameless {
		all = append(
			all,
			"not known whether the same workers serve both lanes: neither the answers nor the metrics of at least one of them name its workers",
		)
	}
	return all
}

// problems are why targets cannot serve, in words.
func (p *Pair) problems() (all []string) {
	for i, name := range []string{api.DefaultLane, api.TwinLane} {
		if problem := p.lanes[i].Problem(); problem != "" {
			all = append(
				all,
				fmt.Sprintf(
					"the target of lane %s cannot serve (%s); lane %s continues alone",
					name,
					problem,
					[]string{api.TwinLane, api.DefaultLane}[i],
				),
			)
		}
	}
	if len(all) > 1 {
		return []string{"neither target can serve: " + p.lanes[0].Problem() + "; " + p.lanes[1].Problem()}
	}
	return all
}

// caution is what stands beside every figure.
func caution(e api.TwinEvidence, problems []string) string {
	switch e {
	case api.EvidenceShared:
		problems = append(
			problems,
			"the same workers serve both lanes: the lanes affect each other, so the results do not show what either router could serve alone",
		)
	case api.EvidenceNone:
		problems = append(problems, "the two clusters have not been shown to be equal")
	case api.EvidenceAlike, api.EvidenceDiffer, api.EvidenceSwapped:
	}
	return strings.Join(problems, "; ")
}

// ArrangeTwin begins to deal the modes out to the lanes as asked, and returns at once. The
// error is an [api.FieldError] for a mode that a lane's driver does not offer, and an
// [api.ErrConflict] where a lane cannot be changed now, or no second mode is known.
func (p *Pair) ArrangeTwin(_ context.Context, by string, req api.TwinRequest) (api.Twin, error) {
	states := [2]api.State{p.lanes[0].State(), p.lanes[1].State()}
	p.mu.Lock()
	_ = p.arranged(states)
	wanted := p.apart
	p.mu.Unlock()
	if err := api.CheckLimits(req); err != nil {
		return api.Twin{}, err
	}
	switch {
	case req.Arranged == api.TwinSame:
		wanted = [2]api.ModeState{modeOf(states[0]), modeOf(states[0])}
	case wanted[0].Mode == "":
		return api.Twin{}, fmt.Errorf(
			"%w: both lanes have had the mode %s since the start; switch one of them to another mode first",
			api.ErrConflict,
			states[0].Mode.Name(),
		)
	case req.Arranged == api.TwinSwapped:
		wanted[0], wanted[1] = wanted[1], wanted[0]
	}
	if err := p.lanes[0].SetModes(by, wanted[0], wanted[1]); err != nil {
		return api.Twin{}, err
	}
	return p.Twin()
}
