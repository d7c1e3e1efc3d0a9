package stats

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"kvbooth/sidecar/api"
)

// baselineDescs are the gauges of recorded results.
type baselineDescs struct {
	ttft, tpot, itl, latency, output, requests, hits *prometheus.Desc
	acceptance, perStep, memory                      *prometheus.Desc
}

var (
	inForce    = newBaselineDescs("loadgen_baseline_", " at the concurrency in force.")
	everyLevel = newBaselineDescs("loadgen_baseline_level_", " at a level.", "concurrency")

	// descDerived is for tables only. No live value is compared with it.
	descDerived = desc("loadgen_baseline_level_tpot_derived_seconds",
		"Time per output token that was derived from other recorded percentiles, at a level.",
		"baseline", "arm", "mode", "speculation", "concurrency", "percentile")
)

func newBaselineDescs(prefix, where string, more ...string) baselineDescs {
	labels := append([]string{"baseline", "arm", "mode", "speculation"}, more...)
	percentile := append(labels[:len(labels):len(labels)], "percentile")
	return baselineDescs{
		ttft:     desc(prefix+"ttft_seconds", "Recorded time to first token"+where, percentile...),
		tpot:     desc(prefix+"tpot_seconds", "Recorded time per output token"+where, percentile...),
		itl:      desc(prefix+"itl_seconds", "Recorded inter-token latency"+where, percentile...),
		latency:  desc(prefix+"latency_seconds", "Recorded latency of a turn"+where, percentile...),
		output:   desc(prefix+"output_tokens_per_second", "Recorded output tokens a second"+where, labels...),
		requests: desc(prefix+"requests_per_second", "Recorded requests a second"+where, labels...),
		hits:     desc(prefix+"kv_hit_ratio", "Recorded share of prompt tokens from a KV cache"+where, labels...),

		acceptance: desc(prefix+"acceptance_ratio", "Recorded share of drafted tokens that were accepted"+where, labels...),
		perStep:    desc(prefix+"tokens_per_step", "Recorded tokens of a forward pass"+where, labels...),
		memory:     desc(prefix+"gpu_memory_bytes", "Recorded memory in use on a GPU"+where, labels...),
	}
}

func (b *baselineDescs) describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		b.ttft, b.tpot, b.itl, b.latency, b.output, b.requests, b.hits, b.acceptance, b.perStep, b.memory,
	} {
		ch <- d
	}
}

// baseline emits the recorded results. Values that are not recorded, or lie outside the
// recorded range, are absent.
func (e emitter) baseline(g *Gauges) {
	if g.Baseline == nil {
		return
	}
	for _, row := range newest(g.InForce) {
		e.row(&inForce, g.Baseline.Name, row)
	}
	for _, row := range newest(g.OwnInForce) {
		e.row(&inForce, api.ThisTarget, row)
	}
	for _, row := range newest(g.Baseline.Rows) {
		e.row(&everyLevel, g.Baseline.Name, row, strconv.Itoa(row.Concurrency))
		e.derived(g.Baseline.Name, row)
	}
}

// derived emits a level's derived TPOT, if there is one.
func (e emitter) derived(name string, row api.BaselineRow) {
	for percentile, v := range map[string]*float64{"50": row.TPOTDerived.P50, "95": row.TPOTDerived.P95} {
		if v != nil {
			e.gauge(descDerived, *v, name, row.Arm, string(row.Mode), string(row.Speculation), strconv.Itoa(row.Concurrency),
				percentile)
		}
	}
}

// rowKey identifies the series of a baseline's row.
type rowKey struct {
	mode        api.ModeState
	concurrency int
}

// newest keeps the last of several rows for the same series. Two of them would make the
// whole scrape fail.
func newest(rows []api.BaselineRow) map[rowKey]api.BaselineRow {
	last := map[rowKey]api.BaselineRow{}
	for _, row := range rows {
		last[rowKey{row.InMode(), row.Concurrency}] = row
	}
	return last
}

func (e emitter) row(d *baselineDescs, name string, row api.BaselineRow, more ...string) {
	labels := append([]string{name, row.Arm, string(row.Mode), string(row.Speculation)}, more...)
	known := func(desc *prometheus.Desc, v *float64, percentile ...string) {
		if v != nil {
			e.gauge(desc, *v, append(labels[:len(labels):len(labels)], percentile...)...)
		}
	}
	known(d.ttft, row.TTFT.P50, "50")
	known(d.ttft, row.TTFT.P95, "95")
	known(d.tpot, row.TPOT.P50, "50")
	known(d.tpot, row.TPOT.P95, "95")
	known(d.itl, row.ITL.P50, "50")
	known(d.itl, row.ITL.P95, "95")
	known(d.latency, row.Latency.P50, "50")
	known(d.latency, row.Latency.P95, "95")
	known(d.output, row.OutputTokensPerSecond)
	known(d.requests, row.RequestsPerSecond)
	known(d.hits, row.KVHitRatio)
	known(d.acceptance, row.AcceptanceRate)
	known(d.perStep, row.TokensPerStep)
	known(d.memory, row.GPUMemoryBytes)
}
