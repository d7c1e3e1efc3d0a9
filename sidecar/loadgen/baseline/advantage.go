package baseline

import "kvbooth/sidecar/api"

// Advantages say by how much KV-aware routing is better than round-robin at the levels of a baseline that have both, by
// the rule of [Compare]: levels ascend, and values that one of the two lacks are left out.
func Advantages(b api.Baseline) []api.Advantage {
	all := []api.Advantage{}
	for _, m := range modesOf(b) {
		if m.Mode != api.ModeKV {
			continue
		}
		before := rowsOf(b, api.ModeState{Mode: api.ModeRoundRobin, Speculation: m.Speculation})
		levels := map[int]bool{}
		for i := range before {
			levels[before[i].Concurrency] = true
		}
		for _, row := range rowsOf(b, m) {
			if levels[row.Concurrency] {
				levels[row.Concurrency] = false // once, where several rows of one level were measured
				all = append(all, advantage(b, row.Concurrency, m.Speculation))
			}
		}
	}
	return all
}

func advantage(b api.Baseline, level int, speculation api.Speculation) api.Advantage {
	before, _ := At(b, api.ModeRoundRobin, speculation, level)
	after, _ := At(b, api.ModeKV, speculation, level)
	column := Against(before, after)
	a := api.Advantage{Concurrency: level, Speculation: speculation, Of: map[string]api.Improvement{}}
	for name, l := range map[string]*api.LookedUp{
		"ttft_p50": &column.TTFT.P50, "ttft_p95": &column.TTFT.P95,
		"tpot_p50": &column.TPOT.P50, "tpot_p95": &column.TPOT.P95,
		"itl_p50": &column.ITL.P50, "itl_p95": &column.ITL.P95,
		"latency_p50": &column.Latency.P50, "latency_p95": &column.Latency.P95,
		"output_tokens_per_second": &column.OutputTokensPerSecond,
		"requests_per_second":      &column.RequestsPerSecond,
		"kv_hit_ratio":             &column.KVHitRatio,
	} {
		if l.Lookup == api.LookupExact && l.Improvement != nil {
			a.Of[name] = *l.Improvement
		}
	}
	return a
}
