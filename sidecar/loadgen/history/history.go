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

// point is a row of a run.
type point struct {
	run *api.RunRecord
	row *api.BaselineRow
}

// Series are the rows of the runs of one name that measured the same. Changes is empty; see [List].
type Series struct {
	api.RunSeries
	points []point
}

// List puts runs in their order, in series, and finds the changes of each.
func List(runs []api.RunRecord) api.RunHistory {
	runs = slices.Clone(runs)
	slices.SortStableFunc(runs, func(a, b api.RunRecord) int { return a.Ended.Compare(b.Ended) })
	list := api.RunHistory{Runs: runs}
	for _, s := range Group(runs) {
		for _, figure := range Figures {
			s.Changes = append(s.Changes, s.changes(baseline.QuantityOf(figure))...)
		}
		list.Series = append(list.Series, s.RunSeries)
	}
	return list
}

// Group puts runs in series, of which each has the order of the runs. The result refers to the runs.
func Group(runs []api.RunRecord) (all []*Series) {
	known := map[string]*Series{}
	for i := range runs {
		for j := range runs[i].Result.Rows {
			row := &runs[i].Result.Rows[j]
			key := seriesOf(&runs[i], row)
			s := known[key]
			if s == nil {
				s = &Series{RunSeries: api.RunSeries{
					Name: runs[i].Result.Name, Level: row.Level, Arm: row.Arm, Mode: row.Mode, Speculation: row.Speculation,
				}}
				known[key], all = s, append(all, s)
			}
			s.Runs, s.points = append(s.Runs, runs[i].ID), append(s.points, point{&runs[i], row})
		}
	}
	return all
}

// seriesOf identifies what a row of a run measured.
func seriesOf(r *api.RunRecord, row *api.BaselineRow) string {
	workload, err := json.Marshal(r.Result.Workload)
	if err != nil { // cannot happen: numbers and texts
		return ""
	}
	return fmt.Sprintf("%s\n%s\n%v\n%v\n%s", r.Kind, r.Result.Name, row.Level, row.InMode(), workload)
}

// known returns the values of a figure in the points that have it, on the scale of differences: logarithms of times and
// rates.
func known(q *baseline.Quantity, points []point) (of []point, values []float64) {
	for _, p := range points[max(0, len(points)-maxRuns):] {
		v := *q.In(p.row)
		switch {
		case v == nil, q.Kind != baseline.Share && *v <= 0:
			continue
		case q.Kind == baseline.Share:
			values = append(values, *v)
		default:
			values = append(values, math.Log(*v))
		}
		of = append(of, p)
	}
	return of, values
}

func (s *Series) changes(q *baseline.Quantity) (all []api.RunChange) {
	points, values := known(q, s.points)
	at := append(Changes(values), len(values))
	start := 0
	for i, change := range at[:len(at)-1] {
		before, after := stat.Mean(values[start:change], nil), stat.Mean(values[change:at[i+1]], nil)
		c := api.RunChange{Figure: q.Name, Run: points[change].run.ID, Better: (after < before) == q.Kind.LessIsBetter()}
		c.Before, c.After = before, after
		if q.Kind != baseline.Share {
			c.Before, c.After = math.Exp(before), math.Exp(after)
		}
		all, start = append(all, c), change
	}
	return all
}

// Scatter returns how much a figure differs between the runs without a change of the server: one standard deviation of
// a single run, of the figure's logarithm or in points of a share, around the means between the changes. Runs that
// failed do not count. The degrees of freedom are 0 where it is not known.
func (s *Series) Scatter(q *baseline.Quantity) (deviation float64, freedom int) {
	passed := slices.DeleteFunc(slices.Clone(s.points), func(p point) bool { return p.run.Failed })
	_, values := known(q, passed)
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
