package whatif

import (
	"context"
	"time"

	"kvbooth/sidecar/api"
)

// The names of events of a simulation.
const (
	EventPoint    = "point"    // an [api.SimulationPoint]
	EventProgress = "progress" // an [api.SimulationProgress]
	EventEnd      = "end"      // an [api.SimulationEnd], the last
)

// beat is how often a follower hears of the progress at least.
const beat = 2 * time.Second

// FollowSimulation calls on with what a simulation has computed, with the rest as it
// comes, and with its end. It returns after that, when ctx ends, or with the error
// of on; a simulation that there is not gives an [api.ErrNotFound] at once. A slow
// follower misses points that newer ones have replaced, and holds up nobody.
func (d *Desk) FollowSimulation(ctx context.Context, id string, on func(event string, data any) error) error {
	d.mu.Lock()
	s, err := d.find(id)
	if err != nil {
		d.mu.Unlock()
		return err
	}
	s.readers++
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		s.readers--
		s.lastRead = time.Now()
	}()
	tick := time.NewTicker(beat)
	defer tick.Stop()
	seen := make([]int, len(s.points))
	for {
		events, ended, changed := d.eventsSince(s, seen)
		for _, e := range events {
			if err := on(e.name, e.data); err != nil {
				return err
			}
		}
		if ended {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-tick.C:
		}
	}
}

type event struct {
	name string
	data any
}

// eventsSince gives what has changed since a follower saw these versions of the points.
func (d *Desk) eventsSince(s *simulation, seen []int) (events []event, ended bool, changed <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, p := range s.points {
		if p.version > seen[i] {
			seen[i] = p.version
			events = append(events, event{EventPoint, p.SimulationPoint})
		}
	}
	events = append(events, event{EventProgress, d.progress(s)})
	if s.state.Ended() {
		events = append(events, event{EventEnd, api.SimulationEnd{State: s.state, Error: s.problem, Explanation: s.explanation}})
	}
	return events, s.state.Ended(), s.changed
}
