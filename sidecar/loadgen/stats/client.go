package stats

import (
	"github.com/prometheus/client_golang/prometheus"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/plausible"
)

var (
	descClientCPU = desc("loadgen_client_cpu_ratio", "Share of all cores that the load generator uses.")
	descClientLag = desc("loadgen_client_lag_seconds", "How late the load generator's own time stamps are, p95 of the last 10 s.")

	descClientError = desc("loadgen_client_error_seconds", "The most that the load generator itself may be wrong by in a latency of the last 60 s.", "lane", "metric")
	descClientLevel = desc("loadgen_client_error_level", "How large that is: 0 negligible, 1 noticeable, 2 too large.", "lane", "metric")

	descImplausible = desc("loadgen_implausible_values_total", "Implausible values from other programs that were ignored, by source.", "source")
)

type clientCollector func() api.ClientHealth

// NewClientCollector gives the metrics of the load generator's own health, which
// all lanes share, and of the values that [plausible] rejects; the lag is absent while there is no verdict. It calls health
// once a scrape, from any goroutine.
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
	h, e := c(), emitter(ch)
	e.gauge(descClientCPU, h.CPURatio)
	if h.Verdict != api.VerdictUnknown {
		e.gauge(descClientLag, h.LagSeconds)
	}
	for _, m := range h.Metrics {
		e.gauge(descClientError, m.ErrorSeconds, m.Lane, m.Metric)
		e.gauge(descClientLevel, map[api.Verdict]float64{api.VerdictNoticeable: 1, api.VerdictBottleneck: 2}[m.Level], m.Lane, m.Metric)
	}
	for source, n := range plausible.Rejected() {
		e.counter(descImplausible, n, string(source))
	}
}
