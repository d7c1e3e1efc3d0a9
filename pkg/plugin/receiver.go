package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/grafana/grafana-plugin-sdk-go/backend"

	"kvbooth/sidecar/api"
)

// receiver is a relay's stream from its first listener until it is ended. It reconnects as often as necessary.
type receiver struct {
	relay *relay
	began time.Time
	wake  chan struct{} // wakes watch

	mu   sync.Mutex // guards the fields below, and is held while they are published
	last time.Time  // time of the newest snapshot; zero: none has arrived
	why  fault      // of the newest attempt; zero: it has received a snapshot, or nothing so far
}

// receive opens the stream, and reopens it whenever it has ended, until ctx ends.
func (s *receiver) receive(ctx context.Context) {
	t := s.relay.limits
	for pause := t.pauses[0]; ; pause = min(2*pause, t.pauses[1]) {
		received, err := s.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		f := s.relay.explain(err)
		s.failed(f)
		if received {
			pause = t.pauses[0]
		}
		wait := pause/2 + rand.N(pause/2+1) // otherwise all instances would reconnect at once
		switch f.reason {
		case reasonToken, reasonHost, reasonSettings, reasonNoURL:
			wait = t.refused
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// follow reads one connection to its end. received reports whether a snapshot has arrived.
func (s *receiver) follow(ctx context.Context) (received bool, err error) {
	for text, err := range s.relay.open(ctx) {
		if err != nil {
			return received, err
		}
		if err := s.received(ctx, text); err != nil {
			return received, err
		}
		received = true
	}
	return received, errors.New("the stream has ended")
}

// received publishes a snapshot. It returns an error if the text is none.
func (s *receiver) received(ctx context.Context, text []byte) error {
	snapshot := &api.Snapshot{}
	if json.Unmarshal(text, snapshot) != nil || snapshot.Time.IsZero() || len(snapshot.Lanes) == 0 {
		return errUnexpected
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.why.reason != "" {
		backend.Logger.Info("the load generator is back")
	}
	s.last, s.why = time.Now(), fault{}
	s.relay.publish(ctx, message{at: s.last, snapshot: snapshot, text: text})
	return nil
}

// failed records why, for watch to publish.
func (s *receiver) failed(why fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.why.reason != why.reason {
		backend.Logger.Warn("no snapshots available", "problem", why.Detail)
	}
	if s.last.IsZero() && s.why.reason == "" {
		s.wake <- struct{}{} // the channel has room, because this happens once
	}
	s.why = why
}

// watch publishes that the load generator is lost: when no snapshot has arrived for limits.silence, or at once if the
// first attempt to connect fails. It repeats the message until a snapshot arrives, and then watches again. It returns
// when ctx ends.
func (s *receiver) watch(ctx context.Context) {
	timer := time.NewTimer(s.relay.limits.silence)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		case <-timer.C:
		}
		timer.Reset(s.publishIfLost(ctx, time.Now()))
	}
}

// publishIfLost publishes the message if it is due, and returns the time until the next call. Before the first snapshot
// there is nothing to wait for.
func (s *receiver) publishIfLost(ctx context.Context, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if left := s.relay.limits.silence - now.Sub(s.last); left > 0 {
		return left
	}
	s.publishLost(ctx, now)
	return s.relay.limits.repeat
}

// publishLost is called with the lock held.
func (s *receiver) publishLost(ctx context.Context, now time.Time) {
	m := message{at: now, since: s.last, problem: s.why.outline().Detail} // listeners may have any role
	if s.last.IsZero() {
		m.since = s.began
	}
	if m.problem == "" {
		m.problem = "the load generator has stopped sending; check that it is running and reachable from the Grafana server"
	}
	m.text, _ = json.Marshal(lost{Lost: true, Since: m.since, Problem: m.problem}) // it cannot fail
	s.relay.publish(ctx, m)
}
