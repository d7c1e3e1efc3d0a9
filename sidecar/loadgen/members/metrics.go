package members

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kvbooth/sidecar/api"
)

// Metrics of a member.
var (
	descLease = desc("loadgen_member_lease",
		"1 while this member may hold conversations, 0 while the NATS server does not renew its lease.")
	descInHand = desc("loadgen_member_active_conversations",
		"Conversations in progress that this member holds.", "lane")
	descBegan = desc("loadgen_member_conversations_total",
		"Conversations of the run in progress that this member has begun.", "lane")
	descWaiting = desc("loadgen_member_waiting_turns", "Turns that have ended and are not handed over yet.")
	descDropped = desc("loadgen_member_dropped_turns_total",
		"Turns that this member could not hand over under its present lease.")
)

// Metrics of a coordinator.
var (
	descMembers = desc("loadgen_members", "Members by state: present, late, leaving, refused.", "state")
	descHeld    = desc("loadgen_member_conversations",
		"Conversations in progress that a member holds, in all lanes.", "member")
	descLate = desc("loadgen_member_lag_seconds",
		"How late a member's own time stamps are, p95 of the last 10 s.", "member")
	descAhead = desc("loadgen_member_clock_ahead_seconds",
		"How far a member's clock is ahead of the coordinator's.", "member")
	descLost = desc("loadgen_member_lost_turns_total", "Turns that a member could not hand over.", "member")
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// metrics sends metrics to a registry.
type metrics chan<- prometheus.Metric

func (m metrics) gauge(d *prometheus.Desc, v float64, labels ...string) {
	for i, l := range labels {
		labels[i] = api.Printable(l)
	}
	m <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func (m metrics) counter(d *prometheus.Desc, n int64, labels ...string) {
	m <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
}

// memberCollector collects the metrics of a member's current session.
type memberCollector struct{ session atomic.Pointer[memberSession] }

// Describe implements [prometheus.Collector].
func (c *memberCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descLease, descInHand, descBegan, descWaiting, descDropped} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (c *memberCollector) Collect(ch chan<- prometheus.Metric) {
	t := c.session.Load()
	if t == nil {
		return
	}
	m := metrics(ch)
	held := 0.0
	if t.lease.holds() {
		held = 1
	}
	m.gauge(descLease, held)
	m.gauge(descWaiting, float64(len(t.outbox)))
	m.counter(descDropped, t.lost.Load())
	for lane, standing := range t.standings() {
		m.gauge(descInHand, float64(standing.Active), lane)
		m.counter(descBegan, standing.Begun, lane)
	}
}

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
	m := metrics(ch)
	for _, member := range c.Members(time.Now()) {
		states[member.State]++
		name := member.Name
		if seen[name] { // two members of one name
			name += " " + member.ID
		}
		seen[name] = true
		if member.State == api.MemberRefused {
			continue
		}
		m.gauge(descHeld, float64(member.Conversations), name)
		if member.Client.Verdict != api.VerdictUnknown {
			m.gauge(descLate, member.Client.LagSeconds, name)
		}
		if member.ClockAheadSeconds != nil {
			m.gauge(descAhead, *member.ClockAheadSeconds, name)
		}
		m.counter(descLost, member.LostTurns, name)
	}
	for state, n := range states {
		m.gauge(descMembers, float64(n), string(state))
	}
}
