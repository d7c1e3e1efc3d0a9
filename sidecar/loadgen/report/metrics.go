package report

import (
	"io"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"kvbooth/sidecar/api"
)

// metricPrefix distinguishes the figures of a whole run from those of the load generator's /metrics, which are of the
// last 60 s and have the same names otherwise.
const metricPrefix = "loadgen_run_"

// runMetrics collects the figures of a run.
type runMetrics []prometheus.Metric

// Describe implements [prometheus.Collector]. Without descriptions, all metrics are accepted.
func (m runMetrics) Describe(chan<- *prometheus.Desc) {}

// Collect implements [prometheus.Collector].
func (m runMetrics) Collect(ch chan<- prometheus.Metric) {
	for _, one := range m {
		ch <- one
	}
}

// gauge adds a value, unless it is not known. labels are names and values in turn, besides the lane.
func (m *runMetrics) gauge(r *Run, name, help string, v *float64, labels ...string) {
	if v == nil {
		return
	}
	names, values := []string{"lane"}, []string{r.Data.Lane}
	for i := 0; i < len(labels); i += 2 {
		names, values = append(names, labels[i]), append(values, labels[i+1])
	}
	d := prometheus.NewDesc(metricPrefix+name, help, names, nil)
	*m = append(*m, prometheus.MustNewConstMetric(d, prometheus.GaugeValue, *v, values...))
}

// add adds the figures of a lane.
func (m *runMetrics) add(r *Run) {
	m.gauge(r, "info", "What the run was.", new(1.), "version", r.Program, "target", r.Target.URL, "model", r.Target.Model,
		"level", r.Level.String(), "arm", r.Arm, "mode", string(r.Mode), "speculation", string(r.Speculation))
	m.gauge(r, "duration_seconds", "Time of all figures.", &r.Seconds)
	if ended, err := time.Parse(time.RFC3339, r.Ended); err == nil {
		m.gauge(r, "end_timestamp_seconds", "End of the run.", new(float64(ended.Unix())))
	}
	for _, n := range []struct {
		status string
		n      int
	}{{"ok", r.Turns.OK}, {"error", r.Turns.Failed}, {"cancelled", r.Turns.Cancelled}} {
		m.gauge(r, "requests", "Ended turns by status.", new(float64(n.n)), "status", n.status)
	}
	for _, f := range api.Times {
		q := f.Quantiles(&r.Metrics)
		values, sum := map[float64]float64{}, math.NaN()
		for p, v := range map[float64]*float64{.5: q.P50, .95: q.P95, .99: q.P99} {
			if v != nil {
				values[p] = *v
			}
		}
		if q.Mean != nil {
			sum = *q.Mean * float64(q.N)
		}
		d := prometheus.NewDesc(metricPrefix+f.Metric, f.Help, []string{"lane"}, nil)
		*m = append(*m, prometheus.MustNewConstSummary(d, uint64(q.N), sum, values, r.Data.Lane))
	}
	use := r.Cluster.EngineUse
	for key, v := range map[string]*float64{
		"requests_per_second": r.RequestsPerSecond.Value, "output_tokens_per_second": r.OutputTokensPerSecond.Value,
		"kv_hit_ratio": r.KVHitRatio.Value, "acceptance_rate": use.AcceptanceRate, "tokens_per_step": use.TokensPerStep,
		"gpu_memory_bytes": use.GPUMemoryBytes,
	} {
		f := api.FigureOf(key)
		m.gauge(r, f.Metric, f.Help, v)
	}
	for _, f := range api.Costs {
		m.gauge(r, f.Metric, f.Help, f.Cost(&r.Cost))
	}
	m.gauge(r, "error_ratio", api.FigureOf("error_ratio").Help, r.ErrorRatio)
	m.gauge(r, "goodput_ratio", "Turns that met every SLO / finished turns.", r.GoodputRatio)
	for _, c := range r.Conditions {
		m.gauge(r, "condition", "1 for the outcome of each --fail-if condition.", new(1.), "condition", c.Condition,
			"outcome", string(c.Outcome))
	}
}

// writeMetrics writes the figures of the run in the text format of Prometheus.
func (r *Run) writeMetrics(w io.Writer) error {
	var all runMetrics
	for _, lane := range r.lanes() {
		all.add(lane)
	}
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(all); err != nil {
		return err
	}
	families, err := registry.Gather()
	if err != nil {
		return err
	}
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(w, f); err != nil {
			return err
		}
	}
	return nil
}

// lanes returns the reports of both lanes, or of the only one.
func (r *Run) lanes() []*Run {
	if r.Twin == nil {
		return []*Run{r}
	}
	return []*Run{r, r.Twin}
}
