package stats

import (
	"github.com/prometheus/client_golang/prometheus"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat/plausible"
)

var (
	descClientCPU = desc("loadgen_client_cpu_ratio", "Share of all cores that the load generator uses.")
	descClientLag = desc("loadgen_client_lag_seconds",
		"How late the load generator's own time stamps are, p95 of the last 10 s.")

	descClientError = desc("loadgen_client_error_seconds",
		"The most that the load generator itself may be wrong by in a latency of the last 60 s.", "lane", "metric")
	descClientLevel = desc("loadgen_client_error_level",
		"How large that is: 0 negligible, 1 noticeable, 2 too large.", "lane", "metric")

	descImplausible = desc("loadgen_implausible_values_total",
		"Implausible values from other programs that were ignored, by source.", "source")
)

type clientCollector func() api.ClientHealth

// NewClientCollector returns the metrics of the load generator's own health, which all
// lanes share, and of the values that [plausible] rejects. The lag is absent without a
// verdict. It calls health once a scrape, from any goroutine.
func NewClientCollector(health func() api.ClientHealth) prometheus.Collector {
	return clientCollector(health)
}

// Describe implements [prometheus.Collector].
func (c clientCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- descClientCPU
	ch <- descClientLag
	ch <- descClientError
	ch <- descClientLevel
	ch <- descImplausible
}

// Collect implements [prometheus.Collector].
func (c clientCollector) Collect(ch chan<- prometheus.Metric) {
	h := c()
	e := emitter(ch)
	e.gauge(descClientCPU, h.CPURatio)
	if h.Verdict != api.VerdictUnknown {
		e.gauge(descClientLag, h.LagSeconds)
	}
	for _, m := range h.Metrics {
		e.gauge(descClientError, m.ErrorSeconds, m.Lane, m.Metric)
		e.gauge(descClientLevel, errorLevel(m.Level), m.Lane, m.Metric)
	}
	for source, n := range plausible.Rejected() {
		e.counter(descImplausible, n, string(source))
	}
}

func errorLevel(v api.Verdict) float64 {
	switch v {
	case api.VerdictNoticeable:
		return 1
	case api.VerdictBottleneck:
		return 2
	}
	return 0
}
