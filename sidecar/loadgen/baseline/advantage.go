package baseline

import (
	"slices"

	"kvbooth/sidecar/api"
)

// Advantages say by how much KV-aware routing is better than round-robin at the levels of a baseline that have both, by
// the rule of [Compare]: levels ascend, and values that one of the two lacks are left out. Of several rows of one level
// the latest counts.
func Advantages(b api.Baseline) []api.Advantage {
	all := []api.Advantage{}
	t := tableOf(b)
	for i, m := range t.modes {
		before := slices.Index(t.modes, api.ModeState{Mode: api.ModeRoundRobin, Speculation: m.Speculation})
		if m.Mode != api.ModeKV || before < 0 {
			continue
		}
		roundRobin, kv := latest(t.rows[before]), latest(t.rows[i])
		for j := range t.rows[i] {
			level := t.rows[i][j].Concurrency
			if roundRobin[level] != nil && kv[level] == &t.rows[i][j] {
				all = append(all, advantage(t.exactly(roundRobin[level]), t.exactly(kv[level])))
				all[len(all)-1].Concurrency = level
			}
		}
	}
	return all
}

// latest are the rows by their levels.
func latest(rows []api.BaselineRow) map[int]*api.BaselineRow {
	found := map[int]*api.BaselineRow{}
	for i := range rows {
		r := &rows[i]
		was := found[r.Concurrency]
		if was == nil || r.Measured != nil && (was.Measured == nil || !r.Measured.Before(*was.Measured)) {
			found[r.Concurrency] = r
		}
	}
	return found
}

func advantage(before, after api.Column) api.Advantage {
	column := Against(before, after)
	a := api.Advantage{Speculation: after.Speculation, Of: map[string]api.Improvement{}}
	for name, l := range map[string]*api.LookedUp{
		"ttft_p50": &column.TTFT.P50, "ttft_p95": &column.TTFT.P95,
		"tpot_p50": &column.TPOT.P50, "tpot_p95": &column.TPOT.P95,
		"itl_p50": &column.ITL.P50, "itl_p95": &column.ITL.P95,
		"latency_p50": &column.Latency.P50, "latency_p95": &column.Latency.P95,
		"output_tokens_per_second": &column.OutputTokensPerSecond,
		"requests_per_second":      &column.RequestsPerSecond,
		"kv_hit_ratio":             &column.KVHitRatio,
	} {
		if l.Improvement != nil {
			a.Of[name] = *l.Improvement
		}
	}
	return a
}
