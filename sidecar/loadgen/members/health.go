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

// lagSpan is the time over which a member's lag is measured.
const lagSpan = 10 * time.Second

// noticeable reports whether a member's lag is noticeable in the figures. The lock is held.
func (c *Coordinator) noticeable(m *member, now time.Time) bool {
	lag := m.lags.Between(now.Add(-lagSpan), now)
	return c.opts.Noticeable != nil && lag.Known() && c.opts.Noticeable(&lag)
}

// active returns the number of conversations in progress on all lanes.
func (p *presence) active() (n int) {
	for _, s := range p.Lanes {
		n += s.Active
	}
	return n
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
	worst := api.ClientHealth{
		Verdict:  api.VerdictUnknown,
		Reason:   "there is no member: start one with loadgen member --join",
		CPURatio: own.CPURatio,
	}
	found, foundBusy := false, false
	for _, m := range c.members {
		busy := m.active() > 0
		if m.isExpired() || m.refusal != "" || foundBusy && !busy {
			continue
		}
		first := !found || busy && !foundBusy
		if first || worse(m.Health, worst) {
			worst = m.Health
			worst.Reason = m.Name + ": " + m.Health.Reason
		}
		found = true
		foundBusy = foundBusy || busy
	}
	return worst
}

// worse reports whether a is later than b. A member whose lag is not known counts as the latest.
func worse(a, b api.ClientHealth) bool {
	known := func(h api.ClientHealth) int {
		if h.Verdict == api.VerdictUnknown {
			return 1
		}
		return 0
	}
	return cmp.Or(known(a)-known(b), cmp.Compare(a.LagSeconds, b.LagSeconds)) > 0
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
		one := api.Member{
			ID: m.ID, Name: m.Name, Version: m.Version, Started: m.Started, State: api.MemberPresent,
			Conversations: m.active(), Client: m.Health, LostTurns: m.Lost,
		}
		if m.clock.n > 0 {
			ahead, within := m.clock.ahead()
			one.ClockAheadSeconds, one.ClockWithinSeconds = new(ahead.Seconds()), new(within.Seconds())
		}
		switch {
		case m.refusal != "":
			one.State, one.Reason = api.MemberRefused, m.refusal
		case m.Leaves:
			one.State = api.MemberLeaving
		case m.lateness.late:
			one.State, one.Reason = api.MemberLate, m.Health.Reason
			if onTime := m.lateness.onTimeSince; !onTime.IsZero() {
				one.Reason = fmt.Sprintf("it was late and has been on time for %.0f s; after %.0f s it gets its share back",
					now.Sub(onTime).Seconds(), fineAfter.Seconds())
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
		case m.isExpired() || m.refusal != "" || m.Leaves:
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

// Collect implements [prometheus.Collector]. Members whose lease has ended have no metrics.
func (c *Coordinator) Collect(ch chan<- prometheus.Metric) {
	states := map[api.MemberState]int{api.MemberPresent: 0, api.MemberLate: 0, api.MemberLeaving: 0, api.MemberRefused: 0}
	seen := map[string]bool{}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for _, m := range c.Members(time.Now()) {
		states[m.State]++
		name := m.Name
		if seen[name] { // two members of one name
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
