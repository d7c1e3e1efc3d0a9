package report

import (
	"fmt"
	"strings"

	"kvbooth/sidecar/api"
)

// pairItems compares the two lanes by the turns that succeeded on both.
func (r *Run) pairItems() []Item {
	t := r.Pairs
	if t == nil {
		return []Item{{"Two lanes", "not compared: the workload had ended"}}
	}
	lines := []string{fmt.Sprintf("%s at %s against %s at %s, %s", t.A.Mode.Name(), printable(t.A.Target), t.B.Mode.Name(),
		printable(t.B.Target), plural(t.Pairs, "pair"))}
	for _, m := range t.Metrics {
		lines = append(lines, pairLine(m))
	}
	all := []Item{{"Two lanes", strings.Join(lines, "\n")}}
	if t.Caution != "" {
		all = append(all, Item{"Note", printable(t.Caution)})
	}
	return all
}

// pairLine formats both values of a metric, and their difference with its interval.
func pairLine(m api.PairedMetric) string {
	name := map[string]string{
		"ttft": "mean TTFT", "ttft_p95": "TTFT p95", "tpot": "mean TPOT", "latency": "mean latency",
		"kv_hit_ratio": "KV cache hit",
	}[m.Metric]
	number := inMilliseconds
	if m.Metric == "kv_hit_ratio" {
		number = share100
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
