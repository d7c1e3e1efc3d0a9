// Package twin compares two lanes that run the same conversations against two targets.
// [Pair] arranges their modes, and detects workers that serve both. The lanes themselves start,
// stop and change together (see [lane.Join]).
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
	"kvbooth/sidecar/loadgen/workload"
)

// Pair is two joined lanes. Its methods are safe for concurrent use once the lanes are joined.
// SharedWorkers and TurnEnded, which are options of the lanes, may be called before.
type Pair struct {
	lanes  [2]*lane.Lane // main and twin; written before joined is set
	joined atomic.Bool

	mu     sync.Mutex
	apart  [2]api.ModeState // the modes in the arrangement api.TwinApart; zero: not known yet
	served [2]served
	shared []string // ids of workers that serve both, or else UUIDs of GPUs
	// unnamed is true if both lanes run, and neither answers nor metrics name a worker of one of
	// them, so that it is not known whether the same workers serve both.
	unnamed bool
}

// served has, by the id of a worker, the time at which the latest turn that it answered was sent.
type served map[string]time.Time

// mostServed limits the memory that a target's answers can make a Pair use.
const mostServed = 4096

// freshMetrics is the age that a run must have so that the metrics of its cluster are those of its
// target, and not of a former one.
const freshMetrics = 15 * time.Second

// Join joins two lanes of one catalog, before either of them is used.
func (p *Pair) Join(main, twin *lane.Lane) {
	lane.Join(main, twin)
	p.lanes = [2]*lane.Lane{main, twin}
	p.joined.Store(true)
	p.refresh(time.Now())
}

// TurnEnded records the worker of every ended turn of either lane; see Ended in [lane.Options].
func (p *Pair) TurnEnded(t *workload.Turn) {
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

// Run reads the state of the lanes each second until ctx ends.
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

// SharedWorkers returns the ids of workers that served both lanes within the last second, or the
// UUIDs of GPUs if there are no such workers. The list must not be modified.
func (p *Pair) SharedWorkers() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shared
}

// refresh updates the modes of the lanes, and the workers that serve both.
func (p *Pair) refresh(now time.Time) {
	states := [2]api.State{p.lanes[0].State(), p.lanes[1].State()}
	var seen, gpus [2]map[string]bool
	for i, l := range p.lanes {
		seen[i], gpus[i] = inMetrics(l, states[i], now)
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
	p.shared, p.unnamed = nil, false
	if states[0].Simulation != nil && states[1].Simulation != nil {
		return // simulated clusters share no worker, but their ids are equal for equal seeds
	}
	p.shared = shared(seen, gpus)
	known := now.Sub(begun(states)) >= freshMetrics && states[0].Running && states[1].Running
	p.unnamed = known && (len(seen[0])+len(gpus[0]) == 0 || len(seen[1])+len(gpus[1]) == 0)
}

// shared returns the workers of both lanes, or else the GPUs of both, which a worker with a name for each lane has.
func shared(workers, gpus [2]map[string]bool) (all []string) {
	for _, named := range [][2]map[string]bool{workers, gpus} {
		for id := range named[0] {
			if named[1][id] {
				all = append(all, id)
			}
		}
		if len(all) > 0 {
			break
		}
	}
	slices.Sort(all)
	return all
}

// begun returns the time at which both lanes had begun their current runs.
func begun(states [2]api.State) (at time.Time) {
	for _, s := range states {
		if s.Started != nil && s.Started.After(at) {
			at = *s.Started
		}
	}
	return at
}

// forget removes the workers that have answered no turn that was sent at since or later.
func (s served) forget(since time.Time) {
	for id, sent := range s {
		if sent.Before(since) {
			delete(s, id)
		}
	}
}

// inMetrics returns the workers and GPUs in the metrics of a lane's cluster while the lane runs.
func inMetrics(l *lane.Lane, s api.State, now time.Time) (seen, gpus map[string]bool) {
	seen, gpus = map[string]bool{}, map[string]bool{}
	if !s.Running || s.Started == nil || now.Sub(*s.Started) < freshMetrics {
		return seen, gpus
	}
	for _, w := range l.Cluster().Workers {
		switch {
		case w.ID != "":
			seen[w.ID] = true
		case strings.Contains(w.Name, ":"): // host and port; the name of a pod may exist in several namespaces
			seen[w.Name] = true
		}
		for _, g := range w.GPUs {
			if g.UUID != "" {
				gpus[g.UUID] = true
			}
		}
	}
	return seen, gpus
}

// arranged returns the arrangement of modes. A new combination counts as api.TwinApart, and is
// recorded. The lock is held.
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

// modeOf returns the mode of a lane's state.
func modeOf(s api.State) api.ModeState {
	return s.InMode()
}

// Twin returns the state of the two lanes, without paired figures.
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

// side returns a lane's part of the comparison.
func side(l *lane.Lane, name string, s api.State) api.TwinSide {
	return api.TwinSide{Lane: name, Target: l.Address(), Arm: s.Arm, Mode: s.Mode, Speculation: s.Speculation}
}

// doubts returns the problems, and a note if workers are not named.
func (p *Pair) doubts() []string {
	all := p.problems()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unnamed {
		all = append(all, "not known whether the same workers serve both lanes: "+
			"neither the answers nor the metrics of at least one of them name its workers")
	}
	return all
}

// problems returns the reasons why targets cannot serve.
func (p *Pair) problems() (all []string) {
	names := [2]string{api.DefaultLane, api.TwinLane}
	for i, name := range names {
		if problem := p.lanes[i].Problem(); problem != "" {
			all = append(all, fmt.Sprintf("the target of lane %s cannot serve (%s); lane %s continues alone",
				name, problem, names[1-i]))
		}
	}
	if len(all) > 1 {
		return []string{"neither target can serve: " + p.lanes[0].Problem() + "; " + p.lanes[1].Problem()}
	}
	return all
}

// caution returns the text that is shown beside all figures.
func caution(e api.TwinEvidence, problems []string) string {
	switch e {
	case api.EvidenceShared:
		problems = append(problems, "the same workers serve both lanes: the lanes affect each other, "+
			"so the results do not show what either router could serve alone")
	case api.EvidenceNone:
		problems = append(problems, "the two clusters have not been shown to be equal")
	case api.EvidenceAlike, api.EvidenceDiffer, api.EvidenceSwapped:
	}
	return strings.Join(problems, "; ")
}

// ArrangeTwin begins to switch the lanes to the modes of an arrangement, and returns at once. The
// error is an [api.FieldError] for a mode that a lane's driver does not offer, and an
// [api.ErrConflict] if a lane cannot be changed now, or no second mode is known.
func (p *Pair) ArrangeTwin(_ context.Context, actor string, req api.TwinRequest) (api.Twin, error) {
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
		return api.Twin{}, fmt.Errorf("%w: both lanes have had the mode %s since the start; "+
			"switch one of them to another mode first", api.ErrConflict, states[0].InMode().Short())
	case req.Arranged == api.TwinSwapped:
		wanted[0], wanted[1] = wanted[1], wanted[0]
	}
	if err := p.lanes[0].SetModes(actor, wanted[0], wanted[1]); err != nil {
		return api.Twin{}, err
	}
	return p.Twin()
}
