package members

import (
	"context"
	"encoding/binary"
	"sync"
	"time"
)

// clock estimates how far a member's clock is ahead of the coordinator's, from the fastest of its
// last answers. Half of the round trip is the uncertainty.
type clock struct {
	samples [8]clockSample
	n       int       // number of samples so far
	asked   time.Time // when the latest one was requested
}

// clockSample is the result of one request.
type clockSample struct{ ahead, roundTrip time.Duration }

func (c *clock) add(a clockSample) {
	c.samples[c.n%len(c.samples)] = a
	c.n++
}

// ahead returns the estimate and its uncertainty. The estimate is 0 if it is within the
// uncertainty.
func (c *clock) ahead() (ahead, uncertainty time.Duration) {
	best := clockSample{}
	for i := range min(c.n, len(c.samples)) {
		if a := c.samples[i]; best.roundTrip == 0 || a.roundTrip < best.roundTrip {
			best = a
		}
	}
	uncertainty = best.roundTrip / 2
	if best.ahead.Abs() <= uncertainty {
		return 0, uncertainty
	}
	return best.ahead, uncertainty
}

// Each member is asked for its time every clockInterval, one without an answer so far every
// clockPoll.
const (
	clockInterval = 2 * time.Second
	clockPoll     = 100 * time.Millisecond
)

// readClocks asks members for their time until ctx ends.
func (c *Coordinator) readClocks(ctx context.Context) {
	for pause(ctx, clockPoll) {
		var wg sync.WaitGroup
		for _, id := range c.clocksDue(time.Now()) {
			wg.Go(func() { c.readClock(ctx, id) })
		}
		wg.Wait()
	}
}

// clocksDue returns the ids of the members to be asked for their time now.
func (c *Coordinator) clocksDue(now time.Time) (ids []string) {
	present, _ := c.present(now)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range present {
		if m.clock.n == 0 || now.Sub(m.clock.asked) >= clockInterval {
			m.clock.asked = now
			ids = append(ids, m.key)
		}
	}
	return ids
}

// readClock asks a member for its time.
func (c *Coordinator) readClock(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	sent := time.Now()
	reply, err := c.bus.conn.RequestWithContext(ctx, c.bus.subject+".clock."+id, nil)
	if err != nil || len(reply.Data) != 8 {
		return
	}
	roundTrip := time.Since(sent)
	theirs := time.Unix(0, int64(binary.BigEndian.Uint64(reply.Data)))
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.members[id]; m != nil {
		m.clock.add(clockSample{ahead: theirs.Sub(sent.Add(roundTrip / 2)), roundTrip: roundTrip})
	}
}

// ahead returns how far a member's clock is ahead, and the uncertainty.
func (c *Coordinator) ahead(id string) (ahead, uncertainty time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.members[id]; m != nil {
		return m.clock.ahead()
	}
	return 0, 0
}
