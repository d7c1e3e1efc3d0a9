package report

import (
	"fmt"

	"kvbooth/sidecar/api"
)

// pairRows say how the two lanes differ in the turns that both have.
func (r *Report) pairRows() []row {
	t := r.Pairs
	if t == nil {
		return []row{{"Two lanes", []string{"not compared: the workload had ended"}}}
	}
	lines := []string{fmt.Sprintf("%s at %s against %s at %s, %s", t.A.Mode.Name(), printable(t.A.Target), t.B.Mode.Name(),
		printable(t.B.Target), plural(t.Pairs, "pair"))}
	for _, m := range t.Metrics {
		lines = append(lines, pairLine(m))
	}
	rows := []row{{"Two lanes", lines}}
	if t.Caution != "" {
		rows = append(rows, row{"Note", []string{printable(t.Caution)}})
	}
	return rows
}

// pairLine is one metric: both values, and the difference with its interval.
func pairLine(m api.PairedMetric) string {
	name := map[string]string{
		"ttft": "mean TTFT", "ttft_p95": "TTFT p95", "tpot": "mean TPOT", "latency": "mean latency",
		"kv_hit_ratio": "KV cache hit",
	}[m.Metric]
	number := milliseconds
	if m.Metric == "kv_hit_ratio" {
		number = percent
	}
	if m.A == nil || m.B == nil {
		return name + " not reported"
	}
	text := fmt.Sprintf("%s %s and %s", name, number(*m.A), number(*m.B))
	if in := m.Interval; in != nil {
		text += fmt.Sprintf("; the second less the first: %s (%s to %s)", number(*m.Difference), number(in[0]), number(in[1]))
	}
	return text
}
