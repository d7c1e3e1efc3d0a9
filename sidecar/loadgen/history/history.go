package history

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
)

// Figures lists the names of the figures that are searched for changes.
var Figures = []string{
	"ttft_mean", "ttft_p50", "ttft_p95", "tpot_p95", "latency_p95", "output_tokens_per_second", "kv_hit_ratio",
}

// maxRuns is the number of latest runs of a series that are searched.
const maxRuns = 200

// List puts runs in their order, in series, and finds the changes of each.
func List(runs []api.RunRecord) api.RunHistory {
	runs = slices.Clone(runs)
	slices.SortStableFunc(runs, func(a, b api.RunRecord) int { return a.Ended.Compare(b.Ended) })
	list := api.RunHistory{Runs: runs}
	rows, places := map[string][]*api.BaselineRow{}, map[string]int{}
	var keys []string
	for i := range runs {
		for j := range runs[i].Result.Rows {
			row := &runs[i].Result.Rows[j]
			key := seriesOf(&runs[i], row)
			if _, known := places[key]; !known {
				places[key] = len(list.Series)
				keys = append(keys, key)
				list.Series = append(list.Series, api.RunSeries{
					Name: runs[i].Result.Name, Level: row.Level, Arm: row.Arm, Mode: row.Mode, Speculation: row.Speculation,
				})
			}
			s := &list.Series[places[key]]
			s.Runs = append(s.Runs, runs[i].ID)
			rows[key] = append(rows[key], row)
		}
	}
	for i, key := range keys {
		s := &list.Series[i]
		for _, figure := range Figures {
			s.Changes = append(s.Changes, changesOf(baseline.QuantityOf(figure), s.Runs, rows[key])...)
		}
	}
	return list
}

// seriesOf identifies what a row of a run measured.
func seriesOf(r *api.RunRecord, row *api.BaselineRow) string {
	workload, err := json.Marshal(r.Result.Workload)
	if err != nil { // cannot happen: numbers and texts
		return ""
	}
	return fmt.Sprintf("%s\n%s\n%v\n%v\n%s", r.Kind, r.Result.Name, row.Level, row.InMode(), workload)
}

// known returns the values of a figure with the runs that have it, on the scale of differences: logarithms of times and
// rates.
func known(q *baseline.Quantity, ids []string, rows []*api.BaselineRow) (runs []string, values []float64) {
	from := max(0, len(rows)-maxRuns)
	for i, row := range rows[from:] {
		v := *q.In(row)
		switch {
		case v == nil, q.Kind != baseline.Share && *v <= 0:
			continue
		case q.Kind == baseline.Share:
			values = append(values, *v)
		default:
			values = append(values, math.Log(*v))
		}
		runs = append(runs, ids[from+i])
	}
	return runs, values
}

func changesOf(q *baseline.Quantity, ids []string, rows []*api.BaselineRow) (all []api.RunChange) {
	runs, values := known(q, ids, rows)
	at := append(Changes(values), len(values))
	start := 0
	for i, change := range at[:len(at)-1] {
		before, after := stat.Mean(values[start:change], nil), stat.Mean(values[change:at[i+1]], nil)
		c := api.RunChange{Figure: q.Name, Run: runs[change], Better: (after < before) == q.Kind.LessIsBetter()}
		c.Before, c.After = before, after
		if q.Kind != baseline.Share {
			c.Before, c.After = math.Exp(before), math.Exp(after)
		}
		all, start = append(all, c), change
	}
	return all
}

// Scatter returns how much a figure differs between runs of a series without a change of the server: one standard
// deviation of a single run, of the figure's logarithm or in points of a share, around the means between the changes.
// Runs that failed do not count. The degrees of freedom are 0 where it is not known.
func Scatter(list api.RunHistory, series *api.RunSeries, figure string) (deviation float64, freedom int) {
	q := baseline.QuantityOf(figure)
	if q == nil {
		return 0, 0
	}
	var rows []*api.BaselineRow
	for _, id := range series.Runs {
		if row := rowOf(list, series, id); row != nil {
			rows = append(rows, row)
		}
	}
	_, values := known(q, make([]string, len(rows)), rows)
	squares, start := 0., 0
	for _, end := range append(Changes(values), len(values)) {
		if part := values[start:end]; len(part) > 1 {
			squares += stat.Variance(part, nil) * float64(len(part)-1)
			freedom += len(part) - 1
		}
		start = end
	}
	if freedom == 0 {
		return 0, 0
	}
	return math.Sqrt(squares / float64(freedom)), freedom
}

// rowOf returns the row of a run in a series; nil if the run failed.
func rowOf(list api.RunHistory, series *api.RunSeries, id string) *api.BaselineRow {
	for i := range list.Runs {
		if list.Runs[i].ID != id || list.Runs[i].Failed {
			continue
		}
		for j := range list.Runs[i].Result.Rows {
			r := &list.Runs[i].Result.Rows[j]
			if r.Level == series.Level && r.Arm == series.Arm && r.Mode == series.Mode &&
				r.Speculation == series.Speculation {
				return r
			}
		}
	}
	return nil
}
