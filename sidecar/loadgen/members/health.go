package members

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/stats"
)

// lagOf is what a member is judged by.
const lagOf = 10 * time.Second

// noticeable says whether a member's lag is so. The lock is held.
func (c *Coordinator) noticeable(m *member, now time.Time) bool {
	lag := m.lags.Between(now.Add(-lagOf), now)
	return c.opts.Noticeable != nil && lag.Known() && c.opts.Noticeable(&lag)
}

// active are the conversations in progress, in all lanes.
func (p *presence) active() (n int) {
	for _, s := range p.Lanes {
		n += s.Active
	}
	return n
}

// most is how many conversations the member's open files allow, at least one; 0: it has no bound.
func (p *presence) most(filesEach int) int {
	if p.Files == 0 {
		return 0
	}
	return max(1, p.Files/filesEach)
}

// Lag is how late the members that held conversations were between two times, of which nothing
// older than five minutes is remembered. It is false where they told too little.
func (c *Coordinator) Lag(from, to time.Time) (lag stats.Lag, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	lag = c.lags.Between(from, to)
	return lag, lag.Known()
}

// Total is how late they were since the coordinator began.
func (c *Coordinator) Total() stats.Lag {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lags.Total()
}

// Health is that of the latest of the members that hold conversations, or of all while none
// does. Of this process, which measures nothing, it has only
// how much of the machine it uses.
func (c *Coordinator) Health(own api.ClientHealth) api.ClientHealth {
	c.mu.Lock()
	defer c.mu.Unlock()
	worst := api.ClientHealth{
		Verdict:  api.VerdictUnknown,
		Reason:   "there is no member: start one with loadgen member --join",
		CPURatio: own.CPURatio,
	}
	some, busy := false, false
	for _, m := range c.members {
		if m.isExpired() || m.refused != "" || busy && m.active() == 0 {
			continue
		}
		h := m.Health
		if first := !some || !busy && m.active() > 0; first || worse(h, worst) {
			worst = h
			worst.Reason = m.Name + ": " + h.Reason
		}
		some, busy = true, busy || m.active() > 0
	}
	return worst
}

// worse orders by how late they are; one of which that is not known is not in time for certain.
func worse(a, b api.ClientHealth) bool {
	known := func(h api.ClientHealth) int {
		if h.Verdict == api.VerdictUnknown {
			return 1
		}
		return 0
	}
	return cmp.Or(known(a)-known(b), cmp.Compare(a.LagSeconds, b.LagSeconds)) > 0
}

// Members tells of those whose lease holds, and of those that are refused, by name.
func (c *Coordinator) Members(now time.Time) []api.Member {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := []api.Member{}
	for _, m := range c.members {
		if m.isExpired() || now.Sub(m.heard) > leaseSpan {
			continue
		}
		one := api.Member{
			ID: m.ID, Name: m.Name, Version: m.Version, Started: m.Started, State: api.MemberPresent,
			Conversations: m.active(), Client: m.Health, LostTurns: m.Lost,
		}
		if m.clock.n > 0 {
			ahead, within := m.clock.ahead()
			one.ClockAheadSeconds, one.ClockWithinSeconds = new(ahead.Seconds()), new(within.Seconds())
		}
		switch {
		case m.refused != "":
			one.State, one.Reason = api.MemberRefused, m.refused
		case m.Leaves:
			one.State = api.MemberLeaving
		case m.late.is:
			one.State, one.Reason = api.MemberLate, m.Health.Reason
			if !m.late.fine.IsZero() {
				one.Reason = fmt.Sprintf(
					"it was late and has been on time for %.0f s; after %.0f s it gets its share back",
					now.Sub(m.late.fine).Seconds(),
					fineAfter.Seconds(),
				)
			}
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b api.Member) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return all
}

// Check refuses more conversations than the members that are there can hold; where none is yet, it
// allows all. The error is an [api.FieldError] of the field.
func (c *Coordinator) Check(field string, n int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	most, there := 0, 0
	for _, m := range c.members {
		switch {
		case m.isExpired() || m.refused != "" || m.Leaves:
		case m.Files == 0: // it has no bound
			return nil
		default:
			most, there = most+m.most(c.opts.FilesEach), there+1
		}
	}
	if there == 0 || n <= most {
		return nil
	}
	return api.Refuse(
		field,
		n,
		fmt.Sprintf(
			"at most %d, which the open-file limit of the %d members present allows (ulimit -n); start more members, or raise that limit",
			most,
			there,
		),
	)
}

var (
	descMembers = prometheus.NewDesc(
		"loadgen_members",
		"Members by state: present, late, leaving, refused.",
		[]string{"state"},
		nil,
	)
	descHeld = prometheus.NewDesc(
		"loadgen_member_conversations",
		"Conversations in progress that a member holds, in all lanes.",
		[]string{"member"},
		nil,
	)
	descLate = prometheus.NewDesc(
		"loadgen_member_lag_seconds",
		"How late a member's own time stamps are, p95 of the last 10 s.",
		[]string{"member"},
		nil,
	)
	descAhead = prometheus.NewDesc(
		"loadgen_member_clock_ahead_seconds",
		"How far a member's clock is ahead of the coordinator's.",
		[]string{"member"},
		nil,
	)
	descLost = prometheus.NewDesc(
		"loadgen_member_lost_turns_total",
		"Turns that a member could not hand over.",
		[]string{"member"},
		nil,
	)
)

// Describe implements [prometheus.Collector].
func (c *Coordinator) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descMembers, descHeld, descLate, descAhead, descLost} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector]. Of a member that is lost it has nothing.
func (c *Coordinator) Collect(ch chan<- prometheus.Metric) {
	states := map[api.MemberState]int{api.MemberPresent: 0, api.MemberLate: 0, api.MemberLeaving: 0, api.MemberRefused: 0}
	seen := map[string]bool{}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for _, m := range c.Members(time.Now()) {
		states[m.State]++
		name := m.Name
		if seen[name] { // two of one name
			name += " " + m.ID
		}
		seen[name] = true
		if m.State == api.MemberRefused {
			continue
		}
		gauge(descHeld, float64(m.Conversations), name)
		if m.Client.Verdict != api.VerdictUnknown {
			gauge(descLate, m.Client.LagSeconds, name)
		}
		if m.ClockAheadSeconds != nil {
			gauge(descAhead, *m.ClockAheadSeconds, name)
		}
		ch <- prometheus.MustNewConstMetric(descLost, prometheus.CounterValue, float64(m.LostTurns), name)
	}
	for state, n := range states {
		gauge(descMembers, float64(n), string(state))
	}
}
