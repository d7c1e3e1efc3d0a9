package stats

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
)

// recordedGauge is the gauge of a quantity of recorded results.
type recordedGauge struct {
	desc       *prometheus.Desc
	quantity   *baseline.Quantity
	percentile string // "": the quantity is none
}

var (
	inForce    = recordedGauges("loadgen_baseline_", "at the concurrency in force.")
	everyLevel = append(recordedGauges("loadgen_baseline_level_", "at a level.", "concurrency"), derivedGauges()...)
)

// recordedGauges returns the gauges of all figures that are recorded, with more labels than those of every one.
func recordedGauges(prefix, where string, more ...string) (all []recordedGauge) {
	labels := append([]string{"baseline", "arm", "mode", "speculation"}, more...)
	for _, f := range api.Figures {
		help := f.Help + " Recorded, " + where
		switch {
		case f.Metric == "":
		case f.Quantiles != nil:
			d := desc(prefix+f.Metric, help, slices.Concat(labels, []string{"percentile"})...)
			all = append(all, percentileGauges(d, f.Key)...)
		default:
			all = append(all, recordedGauge{desc(prefix+f.Metric, help, labels...), baseline.QuantityOf(f.Key), ""})
		}
	}
	return all
}

func percentileGauges(d *prometheus.Desc, key string) []recordedGauge {
	return []recordedGauge{
		{d, baseline.QuantityOf(key + "_p50"), "50"},
		{d, baseline.QuantityOf(key + "_p95"), "95"},
	}
}

// derivedGauges are for tables only. No live value is compared with them.
func derivedGauges() []recordedGauge {
	return percentileGauges(desc("loadgen_baseline_level_tpot_derived_seconds",
		"Time per output token that was derived from other recorded percentiles, at a level.",
		"baseline", "arm", "mode", "speculation", "concurrency", "percentile"), "tpot_derived")
}

// baseline emits the recorded results. Values that are not recorded, or lie outside the
// recorded range, are absent.
func (e emitter) baseline(g *Gauges) {
	if g.Baseline == nil {
		return
	}
	for _, row := range newest(g.InForce) {
		e.row(inForce, g.Baseline.Name, row)
	}
	for _, row := range newest(g.OwnInForce) {
		e.row(inForce, api.ThisTarget, row)
	}
	for _, row := range newest(g.Baseline.Rows) {
		e.row(everyLevel, g.Baseline.Name, row, row.Level.String())
	}
}

// rowKey identifies the series of a baseline's row.
type rowKey struct {
	mode  api.ModeState
	level api.Level
}

// newest keeps the last of several rows for the same series. Two of them would make the
// whole scrape fail.
func newest(rows []api.BaselineRow) map[rowKey]api.BaselineRow {
	last := map[rowKey]api.BaselineRow{}
	for _, row := range rows {
		last[rowKey{row.InMode(), row.Level}] = row
	}
	return last
}

func (e emitter) row(gauges []recordedGauge, name string, row api.BaselineRow, more ...string) {
	labels := append([]string{name, row.Arm, string(row.Mode), string(row.Speculation)}, more...)
	for _, g := range gauges {
		v := *g.quantity.In(&row)
		switch {
		case v == nil:
		case g.percentile != "":
			e.gauge(g.desc, *v, append(slices.Clone(labels), g.percentile)...)
		default:
			e.gauge(g.desc, *v, labels...)
		}
	}
}
