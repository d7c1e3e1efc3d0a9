package stats

import (
	"github.com/prometheus/client_golang/prometheus"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/plausible"
)

var (
	descClientCPU = desc("loadgen_client_cpu_ratio", "Share of all cores that the load generator uses.")
	descClientLag = desc("loadgen_client_lag_seconds", "How late the load generator's own time stamps are, p95 of the last 10 s.")

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
	ch <- descImplausible
}

// Collect implements [prometheus.Collector].
func (c clientCollector) Collect(ch chan<- prometheus.Metric) {
	h, e := c(), emitter(ch)
	e.gauge(descClientCPU, h.CPURatio)
	if h.Verdict != api.VerdictUnknown {
		e.gauge(descClientLag, h.LagSeconds)
	}
	for source, n := range plausible.Rejected() {
		e.counter(descImplausible, n, string(source))
	}
}
