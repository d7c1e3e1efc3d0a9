package workload

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/sim/arrival"
)

// open returns settings of single turns that come at a rate.
func open(rate float64) Settings {
	return Settings{
		Level: api.AtRate(rate), Turns: api.Range{Min: 1, Max: 1}, MaxTokens: 2, StartRate: 10,
		Arrivals: api.ArrivalsPoisson, Burstiness: 1, MaxInflight: 1000,
	}
}

// gate is a server that answers each request after a second, except that nothing passes it for a while: requests wait
// before they are sent, as for a connection.
type gate struct {
	server

	from, until time.Time
	mu          sync.Mutex
	turns       []*LiveTurn
}

func (g *gate) Do(ctx context.Context, req chat.Request) chat.Result {
	if now := time.Now(); now.After(g.from) && now.Before(g.until) {
		sleep(ctx, nil, g.until.Sub(now))
	}
	return g.server.Do(ctx, req)
}

// waiting records the turns that have ended.
type waiting struct {
	*recorder
	gate *gate
}

func (w waiting) TurnEnded(c *Conversation, t *LiveTurn) {
	w.recorder.TurnEnded(c, t)
	w.gate.mu.Lock()
	defer w.gate.mu.Unlock()
	w.gate.turns = append(w.gate.turns, t)
}

// A server that stops for 10 s, and so holds back what is to be sent, is no secret: latencies count from the intended
// moments, which are those of the schedule.
func TestOpenLoadHidesNoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{from: time.Now().Add(100 * time.Second), until: time.Now().Add(110 * time.Second)}
		r := run(t, g, open(5), func(o *Options) { o.Observer = waiting{o.Observer.(*recorder), g} })
		advance(200 * time.Second)
		var measured, truth []float64
		schedule := arrival.NewOpen(0, 0, arrival.Ramp{To: 5},
			arrival.Schedule{Gaps: api.ArrivalsPoisson, Burstiness: 1, Seed: 1})
		for range len(g.turns) {
			at := r.begun.Add(schedule.Begin(arrival.State{}))
			wait := ttft
			if at.After(g.from) && at.Before(g.until) {
				wait += g.until.Sub(at)
			}
			truth = append(truth, wait.Seconds())
		}
		for _, turn := range g.turns {
			measured = append(measured, *turn.TTFT)
		}
		slices.Sort(measured)
		slices.Sort(truth)
		require.Greater(t, len(truth), 900)
		p99 := len(truth) * 99 / 100
		assert.InEpsilon(t, truth[p99], measured[p99], .01, "p99")
		assert.Greater(t, truth[p99], 7., "a closed loop would show %v", ttft)
	})
}

// What a schedule begins does not depend on the server, so that two arms get the same conversations at the same
// moments. Beyond the limit of turns in flight, arrivals are dropped and counted, and the others keep their moments.
func TestOpenLoadIsTheSameForAll(t *testing.T) {
	begun := map[string][]string{}
	var dropped int64
	for name, most := range map[string]int{"all": 1000, "few": 3} {
		virtual(t, name, func(t *testing.T) {
			s := open(5)
			s.MaxInflight = most
			r := run(t, &server{}, s)
			advance(time.Minute)
			for _, e := range slices.Concat(r.closed) {
				begun[name] = append(begun[name], e.Started.Sub(r.begun).String()+e.ID)
			}
			p := r.Pace()
			assert.LessOrEqual(t, p.Actual, most)
			if dropped = max(dropped, p.Dropped); most == 3 {
				assert.EqualValues(t, p.Begun-p.Dropped, len(r.closed)+p.Actual)
				assert.Positive(t, p.Dropped)
			}
		})
	}
	assert.Subset(t, begun["all"], begun["few"])
	assert.Greater(t, len(begun["all"]), 250)
}

// A failed target is asked at the rate, not in a hot loop, and further turns wait for the think time.
func TestOpenLoadWithFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &server{fault: func(time.Time) *chat.Error { return &chat.Error{Class: api.ErrorConnect} }}
		s := open(5)
		s.Arrivals = api.ArrivalsConstant
		run(t, g, s)
		advance(60*time.Second + time.Millisecond)
		assert.Len(t, g.requests(), 301)
	})
}
