package members

import (
	"cmp"
	"fmt"
	"slices"
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
