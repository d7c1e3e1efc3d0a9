package members

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/stats"
)

// lagSpan is the time over which a member's lag is measured.
const lagSpan = 10 * time.Second

// noticeable reports whether a member's lag is noticeable in the figures. The lock is held.
func (c *Coordinator) noticeable(m *member, now time.Time) bool {
	lag := m.lags.Between(now.Add(-lagSpan), now)
	return c.opts.Noticeable != nil && lag.Known() && c.opts.Noticeable(&lag)
}

// most returns the number of conversations that the member's open-file limit allows, at least one;
// 0: there is no limit.
func (p *presence) most(filesEach int) int {
	if p.Files == 0 {
		return 0
	}
	return max(1, p.Files/filesEach)
}

// Lag returns how late the members that held conversations were between two times. Data older than
// five minutes is gone. It returns false if there are too few samples.
func (c *Coordinator) Lag(from, to time.Time) (lag stats.Lag, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	lag = c.lags.Between(from, to)
	return lag, lag.Known()
}

// Total returns how late they were since the coordinator began.
func (c *Coordinator) Total() stats.Lag {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lags.Total()
}

// Health returns the worst health among the members that hold conversations, or among all while
// none does. This process measures nothing, so that only its CPU use is reported.
func (c *Coordinator) Health(own api.ClientHealth) api.ClientHealth {
	c.mu.Lock()
	defer c.mu.Unlock()
	var worst *member
	for _, m := range c.members {
		if m.isExpired() || m.refusal != "" {
			continue
		}
		if worst == nil || m.worse(worst) {
			worst = m
		}
	}
	if worst == nil {
		return api.ClientHealth{
			Verdict:  api.VerdictUnknown,
			Reason:   "there is no member: start one with loadgen member --join",
			CPURatio: own.CPURatio,
		}
	}
	health := worst.Client
	health.Reason = worst.Name + ": " + health.Reason
	return health
}

// worse reports whether the member's health counts before another's: a member with conversations
// before one without, then one whose lag is not known, then the one with the longer lag.
func (m *member) worse(o *member) bool {
	if busy := m.Conversations > 0; busy != (o.Conversations > 0) {
		return busy
	}
	if unknown := m.Client.Verdict == api.VerdictUnknown; unknown != (o.Client.Verdict == api.VerdictUnknown) {
		return unknown
	}
	return m.Client.LagSeconds > o.Client.LagSeconds
}

// Members returns the members whose lease holds, and those that are refused, sorted by name.
func (c *Coordinator) Members(now time.Time) []api.Member {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := []api.Member{}
	for _, m := range c.members {
		if m.isExpired() || now.Sub(m.lastReport) > leaseSpan {
			continue
		}
		one := m.Member
		if m.clock.n > 0 {
			ahead, within := m.clock.ahead()
			one.ClockAheadSeconds, one.ClockWithinSeconds = new(ahead.Seconds()), new(within.Seconds())
		}
		switch {
		case m.refusal != "":
			one.State, one.Reason = api.MemberRefused, m.refusal
		case m.State == api.MemberLeaving:
		case m.lateness.late:
			one.State, one.Reason = api.MemberLate, m.Client.Reason
			if !m.lateness.noticeable {
				one.Reason = fmt.Sprintf("it was late and has been on time for %.0f s; after %.0f s it gets its share back",
					now.Sub(m.lateness.since).Seconds(), fineAfter.Seconds())
			}
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b api.Member) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return all
}

// Check refuses more conversations than the members that are present can hold. Without members, it
// allows all. The error is an [api.FieldError] of the field.
func (c *Coordinator) Check(field string, n int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	most, present := 0, 0
	for _, m := range c.members {
		switch {
		case m.isExpired() || m.refusal != "" || m.State == api.MemberLeaving:
		case m.Files == 0: // no limit
			return nil
		default:
			most += m.most(c.opts.FilesEach)
			present++
		}
	}
	if present == 0 || n <= most {
		return nil
	}
	return api.Refuse(field, n, fmt.Sprintf("at most %d, which the open-file limit of the %d members present allows "+
		"(ulimit -n); start more members, or raise that limit", most, present))
}

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
