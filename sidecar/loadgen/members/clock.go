package members

import (
	"context"
	"encoding/binary"
	"sync"
	"time"
)

// clock is how far a member's clock is ahead of the coordinator's, from the quickest of its
// last answers: half of the time there and back is how wrong it may be.
type clock struct {
	answers [8]answer
	n       int
}

type answer struct{ ahead, took time.Duration }

func (c *clock) note(a answer) {
	c.answers[c.n%len(c.answers)] = a
	c.n++
}

// ahead is the estimate, 0 where it is not known to be anything else, with how wrong it may be.
func (c *clock) ahead() (ahead, within time.Duration) {
	best := answer{}
	for i := range min(c.n, len(c.answers)) {
		if a := c.answers[i]; best.took == 0 || a.took < best.took {
			best = a
		}
	}
	within = best.took / 2
	if best.ahead.Abs() <= within {
		return 0, within
	}
	return best.ahead, within
}

// A member is asked for its time so often, and one that has not answered yet at every look.
const (
	clocksEvery    = 2 * time.Second
	clocksAreAsked = 100 * time.Millisecond
)

// readClocks asks members for their time until ctx ends.
func (c *Coordinator) readClocks(ctx context.Context) {
	asked := time.Time{}
	for pause(ctx, clocksAreAsked) {
		all := time.Since(asked) >= clocksEvery
		if all {
			asked = time.Now()
		}
		var wg sync.WaitGroup
		for _, id := range c.present(!all) {
			wg.Go(func() {
				one, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				sent := time.Now()
				reply, err := c.bus.conn.RequestWithContext(one, c.bus.subject+".clock."+id, nil)
				if err != nil || len(reply.Data) != 8 {
					return
				}
				took := time.Since(sent)
				theirs := time.Unix(0, int64(binary.BigEndian.Uint64(reply.Data)))
				c.mu.Lock()
				defer c.mu.Unlock()
				if m := c.members[id]; m != nil {
					m.clock.note(answer{ahead: theirs.Sub(sent.Add(took / 2)), took: took})
				}
			})
		}
		wg.Wait()
	}
}

// present are the ids of the members whose lease holds, or of those whose clock is not known.
func (c *Coordinator) present(unknown bool) (ids []string) {
	all, _ := c.alive(time.Now())
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range all {
		if !unknown || m.clock.n == 0 {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// ids are those of members, which say of themselves what they are at any time.
func (c *Coordinator) ids(of []*member) (ids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range of {
		ids = append(ids, m.ID)
	}
	return ids
}

// ahead is how far a member's clock is ahead, and how wrong that may be.
func (c *Coordinator) ahead(id string) (ahead, within time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.members[id]; m != nil {
		return m.clock.ahead()
	}
	return 0, 0
}
