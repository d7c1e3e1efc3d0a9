package baseline

import (
	"slices"

	"kvbooth/sidecar/api"
)

// Advantages returns by how much KV-aware routing is better than round-robin at the levels of a baseline that have
// both, by the rule of [Compare]. Levels ascend. Values that one of the two lacks are omitted. Of several rows of one
// level the latest is used.
func Advantages(b api.Baseline) []api.Advantage {
	all := []api.Advantage{}
	t := NewTable(b)
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

// latest returns the latest row of each level.
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
	for _, q := range values {
		if l := q.LookedUpIn(&column); l.Improvement != nil {
			a.Of[q.Name] = *l.Improvement
		}
	}
	return a
}
