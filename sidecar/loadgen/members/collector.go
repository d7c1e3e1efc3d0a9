package members

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// memberCollector collects the metrics of a member's current session.
type memberCollector struct{ session atomic.Pointer[memberSession] }

var (
	descLease = prometheus.NewDesc(
		"loadgen_member_lease",
		"1 while this member may hold conversations, 0 while the NATS server does not renew its lease.",
		nil,
		nil,
	)
	descInHand = prometheus.NewDesc(
		"loadgen_member_active_conversations",
		"Conversations in progress that this member holds.",
		[]string{"lane"},
		nil,
	)
	descBegan = prometheus.NewDesc(
		"loadgen_member_conversations_total",
		"Conversations of the run in progress that this member has begun.",
		[]string{"lane"},
		nil,
	)
	descWaiting = prometheus.NewDesc(
		"loadgen_member_waiting_turns",
		"Turns that have ended and are not handed over yet.",
		nil,
		nil,
	)
	descDropped = prometheus.NewDesc(
		"loadgen_member_dropped_turns_total",
		"Turns that this member could not hand over under its present lease.",
		nil,
		nil,
	)
)

// newMemberCollector returns a collector without a session.
func newMemberCollector() *memberCollector { return &memberCollector{} }

// Describe implements [prometheus.Collector].
func (s *memberCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descLease, descInHand, descBegan, descWaiting, descDropped} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (s *memberCollector) Collect(ch chan<- prometheus.Metric) {
	t := s.session.Load()
	if t == nil {
		return
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	p := t.presence(time.Now())
	held := 0.0
	if t.lease.holds() {
		held = 1
	}
	gauge(descLease, held)
	gauge(descWaiting, float64(len(t.outbox)))
	ch <- prometheus.MustNewConstMetric(descDropped, prometheus.CounterValue, float64(p.Lost))
	for lane, standing := range p.Lanes {
		gauge(descInHand, float64(standing.Active), lane)
		ch <- prometheus.MustNewConstMetric(descBegan, prometheus.CounterValue, float64(standing.Begun), lane)
	}
}
