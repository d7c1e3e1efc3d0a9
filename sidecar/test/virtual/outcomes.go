package virtual

import (
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/stats"
)

// Output is the name of the throughput in the outcomes of a comparison.
const Output = "output tokens/s"

// Outcomes returns the outcomes by metric of a comparison of a step with a baseline at a level. Metrics that are not
// measured have none.
func Outcomes(step *stats.Report, was api.Baseline, level api.Level) map[string]api.Outcome {
	c := baseline.Compare(lane.Compared(step), was, level).Columns[0]
	found := map[string]api.Outcome{}
	for name, value := range map[string]api.LookedUp{
		"TTFT p50": c.TTFT.P50, "TTFT p95": c.TTFT.P95, "TPOT p50": c.TPOT.P50, "TPOT p95": c.TPOT.P95,
		"ITL p50": c.ITL.P50, "ITL p95": c.ITL.P95, "latency p50": c.Latency.P50, "latency p95": c.Latency.P95,
		Output: c.OutputTokensPerSecond, "requests/s": c.RequestsPerSecond, "hit rate": c.KVHitRatio,
	} {
		if value.Improvement != nil {
			found[name] = value.Improvement.Outcome
		}
	}
	return found
}
