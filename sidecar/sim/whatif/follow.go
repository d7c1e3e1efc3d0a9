package whatif

import (
	"context"
	"time"

	"kvbooth/sidecar/api"
)

// Names of a simulation's events.
const (
	EventPoint    = "point"    // an [api.SimulationPoint]
	EventProgress = "progress" // an [api.SimulationProgress]
	EventEnd      = "end"      // an [api.SimulationEnd], the last
)

// progressEvery is the longest time between two progress events.
const progressEvery = 2 * time.Second

// FollowSimulation calls on with the results so far, with further results as they come, and with
// the end. It returns after the end, when ctx ends, or with the error of on. An unknown id gives
// an [api.ErrNotFound]. A slow follower misses points that were replaced by newer ones, and does
// not block others.
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
	tick := time.NewTicker(progressEvery)
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

// eventsSince returns the changes since the seen versions of the points.
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
		end := api.SimulationEnd{State: s.state, Error: s.problem, Explanation: s.explanation}
		events = append(events, event{EventEnd, end})
	}
	return events, s.state.Ended(), s.changed
}
