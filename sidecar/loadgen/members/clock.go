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
	n       int // number of samples so far
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
	asked := time.Time{}
	for pause(ctx, clockPoll) {
		all := time.Since(asked) >= clockInterval
		if all {
			asked = time.Now()
		}
		var wg sync.WaitGroup
		for _, id := range c.memberIDs(!all) {
			wg.Go(func() {
				one, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				sent := time.Now()
				reply, err := c.bus.conn.RequestWithContext(one, c.bus.subject+".clock."+id, nil)
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
			})
		}
		wg.Wait()
	}
}

// memberIDs returns the ids of the members whose lease holds, or only of those whose clock is not
// known.
func (c *Coordinator) memberIDs(unknown bool) (ids []string) {
	present, _ := c.present(time.Now())
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range present {
		if !unknown || m.clock.n == 0 {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// ids returns the ids of members. It takes the lock, since a report may change a member at any time.
func (c *Coordinator) ids(members []*member) (ids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range members {
		ids = append(ids, m.ID)
	}
	return ids
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
