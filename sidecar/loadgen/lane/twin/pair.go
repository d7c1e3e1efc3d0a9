// Package twin compares two lanes that run the same conversations against two targets, arranges their
// modes, and detects workers that serve both. The lanes themselves start, stop and change together
// (see [lane.Join]).
package twin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/workload"
)

// served has, by the id of a worker, the time at which the latest turn that it answered was sent.
type served map[string]time.Time

// mostServed limits the memory that a target's answers can make a Desk use.
const mostServed = 4096

// freshMetrics is the age that a run must have so that the metrics of its cluster are those of its
// target, and not of a former one.
const freshMetrics = 15 * time.Second

// Join joins two lanes of one catalog, before either of them is used.
func (d *Desk) Join(main, twin *lane.Lane) {
	lane.Join(main, twin)
	d.lanes = [2]*lane.Lane{main, twin}
	d.joined.Store(true)
	d.refresh(time.Now())
}

// states returns the states of both lanes.
func (d *Desk) states() [2]api.State { return [2]api.State{d.lanes[0].State(), d.lanes[1].State()} }

// serves records the worker of an ended turn of a lane.
func (d *Desk) serves(side int, t *workload.Turn) {
	if t.Worker == "" {
		return
	}
	d.seen.Lock()
	defer d.seen.Unlock()
	if d.served[side] == nil {
		d.served[side] = served{}
	}
	if _, known := d.served[side][t.Worker]; known || len(d.served[side]) < mostServed {
		d.served[side][t.Worker] = t.Started
	}
}

// watch reads the state of the lanes each second until ctx ends.
func (d *Desk) watch(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			d.refresh(now)
		}
	}
}

// SharedWorkers returns the ids of workers that served both lanes within the last second, or the
// UUIDs of GPUs if there are no such workers. The list must not be modified.
func (d *Desk) SharedWorkers() []string {
	d.seen.Lock()
	defer d.seen.Unlock()
	return d.shared
}

// refresh updates the modes of the lanes, and the workers that serve both.
func (d *Desk) refresh(now time.Time) {
	states := d.states()
	var seen, gpus [2]map[string]bool
	for i, l := range d.lanes {
		seen[i], gpus[i] = inMetrics(l, states[i], now)
	}
	d.seen.Lock()
	defer d.seen.Unlock()
	_ = d.arrangement(states)
	for i := range d.served {
		d.served[i].forget(begun(states))
		for id := range d.served[i] {
			seen[i][id] = true
		}
	}
	d.shared, d.unnamed = nil, false
	if states[0].Simulation != nil && states[1].Simulation != nil {
		return // simulated clusters share no worker, but their ids are equal for equal seeds
	}
	d.shared = shared(seen, gpus)
	known := now.Sub(begun(states)) >= freshMetrics && states[0].Running && states[1].Running
	d.unnamed = known && (len(seen[0])+len(gpus[0]) == 0 || len(seen[1])+len(gpus[1]) == 0)
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

// arrangement returns the arrangement of modes. A new combination counts as api.TwinApart, and is
// recorded. The lock seen is held.
func (d *Desk) arrangement(states [2]api.State) api.TwinArrangement {
	a, b := states[0].InMode(), states[1].InMode()
	switch {
	case a == b:
		return api.TwinSame
	case a == d.apart[1] && b == d.apart[0]:
		return api.TwinSwapped
	}
	d.apart = [2]api.ModeState{a, b}
	return api.TwinApart
}

// arranged returns the arrangement of modes, and the workers that serve both lanes.
func (d *Desk) arranged(states [2]api.State) (api.TwinArrangement, []string) {
	d.seen.Lock()
	defer d.seen.Unlock()
	return d.arrangement(states), slices.Clone(d.shared)
}

// doubts returns the problems, and a note if workers are not named.
func (d *Desk) doubts() []string {
	all := d.problems()
	d.seen.Lock()
	defer d.seen.Unlock()
	if d.unnamed {
		all = append(all, "not known whether the same workers serve both lanes: "+
			"neither the answers nor the metrics of at least one of them name its workers")
	}
	return all
}

// problems returns the reasons why targets cannot serve.
func (d *Desk) problems() (all []string) {
	names := [2]string{api.DefaultLane, api.TwinLane}
	for i, name := range names {
		if problem := d.lanes[i].Problem(); problem != "" {
			all = append(all, fmt.Sprintf("the target of lane %s cannot serve (%s); lane %s continues alone",
				name, problem, names[1-i]))
		}
	}
	if len(all) > 1 {
		return []string{"neither target can serve: " + d.lanes[0].Problem() + "; " + d.lanes[1].Problem()}
	}
	return all
}

// caution returns the text that is shown beside all figures. Without pairs there is no difference to explain.
func caution(e api.TwinEvidence, hasPairs bool, problems []string) string {
	switch e {
	case api.EvidenceShared:
		problems = append(problems, "the same workers serve both lanes: the lanes affect each other, "+
			"so the results do not show what either router could serve alone")
	case api.EvidenceNone:
		if hasPairs {
			problems = append(problems,
				"whether the two clusters are equal has not been checked: part of the difference may be theirs")
		}
	case api.EvidenceAlike, api.EvidenceDiffer, api.EvidenceSwapped:
	}
	return strings.Join(problems, "; ")
}

// ArrangeTwin begins to switch the lanes to the modes of an arrangement, and returns at once. The
// error is an [api.FieldError] for a mode that a lane's driver does not offer, and an
// [api.ErrConflict] if a lane cannot be changed now, or no second mode is known.
func (d *Desk) ArrangeTwin(_ context.Context, actor string, req api.TwinRequest) (api.Twin, error) {
	states := d.states()
	d.seen.Lock()
	_ = d.arrangement(states)
	wanted := d.apart
	d.seen.Unlock()
	if err := api.CheckLimits(req); err != nil {
		return api.Twin{}, err
	}
	switch {
	case req.Arranged == api.TwinSame:
		wanted = [2]api.ModeState{states[0].InMode(), states[0].InMode()}
	case wanted[0].Mode == "":
		return api.Twin{}, fmt.Errorf("%w: both lanes have had the mode %s since the start; "+
			"switch one of them to another mode first", api.ErrConflict, states[0].InMode().Short())
	case req.Arranged == api.TwinSwapped:
		wanted[0], wanted[1] = wanted[1], wanted[0]
	}
	if err := d.lanes[0].SetModes(actor, wanted[0], wanted[1]); err != nil {
		return api.Twin{}, err
	}
	return d.Twin()
}
