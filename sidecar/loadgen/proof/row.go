package proof

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/stats"
)

// SnapshotSeconds is what one snapshot of a span looks back at, as in the recorded results.
const SnapshotSeconds = 60

// runSections is how many sections a single run is cut into: few, so that each is much
// longer than a conversation, in which busy and quiet times make up for each other. More
// of them say too much or too little: the test in sidecar/test/proof judges that.
const runSections = 4

// Row gives what a recording shows as the row of a table, with 95 % intervals from
// its parts, which hold for a time fixed before the start: to look again and again is what [Trial] is for. With
// snapshots, it is read as the recorded results were: the mean of what the last 60 s show at the end of each of so
// many equal parts, of the turns that ended in them. Without any, it is what all of the counted time shows, with each
// TTFT at the time of the first token. Concurrency and mode are the caller's to set. An error is an
// *[api.FieldError]: the recording is too short, or none.
func (r *Recording) Row(snapshots int, slo api.SLO) (api.BaselineRow, error) {
	if err := r.validate(); err != nil {
		return api.BaselineRow{}, err
	}
	whole, sections := r.cut(runSections, slo)
	row := whole.row()
	setIntervals(&row, func(q Quantity) (float64, float64, bool) {
		s := Sectioned{Whole: q.kind().scaled(value(q, &row))}
		for i := range sections {
			part := sections[i].row()
			s.Sections = append(s.Sections, q.kind().scaled(value(q, &part)))
		}
		h := student(alpha, s.df()) * math.Sqrt(s.variance()*inflation([]Sectioned{s}))
		return q.kind().unscaled(s.Whole - h), q.kind().unscaled(s.Whole + h), finite(s.Whole) && finite(h)
	})
	if snapshots > 0 {
		r.shot(&row, snapshots)
	}
	row.N, row.Seconds = len(whole.latency), r.Until-r.CountedFrom
	return row, nil
}

// TokensPerTurn is the mean length of the answers that ended while it counted, 0 without any.
func (r *Recording) TokensPerTurn() float64 {
	n, tokens := 0, 0
	for i := range r.Turns {
		if t := &r.Turns[i]; !t.Failed && r.CountedFrom <= t.Ended && t.Ended < r.Until {
			n, tokens = n+1, tokens+t.OutputTokens
		}
	}
	return float64(tokens) / float64(max(1, n))
}

// shot puts the mean of snapshots in place of a row's figures, and moves the intervals along.
func (r *Recording) shot(row *api.BaselineRow, snapshots int) {
	each := (r.Until - r.CountedFrom) / float64(snapshots)
	rows := make([]api.BaselineRow, snapshots)
	for i := range rows {
		end := r.CountedFrom + float64(i+1)*each
		rows[i] = r.endedIn(max(end-SnapshotSeconds, end-each), end)
	}
	whole := *row
	mean := MeanRow(rows)
	mean.Intervals = nil
	*row = mean
	setIntervals(row, func(q Quantity) (float64, float64, bool) {
		in := *q.IntervalIn(whole.Intervals)
		if in == nil {
			return 0, 0, false
		}
		by := value(q, row) - value(q, &whole)
		return in[0] + by, in[1] + by, finite(by)
	})
}

// endedIn is what the turns show that ended in a span of time, and the tokens that came in it.
func (r *Recording) endedIn(from, to float64) api.BaselineRow {
	t := tally{seconds: to - from}
	for i := range r.Turns {
		if turn := &r.Turns[i]; turn.Ended > from && turn.Ended <= to {
			t.end(turn, api.SLO{})
			if !turn.Failed && turn.FirstToken > 0 {
				t.ttft = append(t.ttft, turn.FirstToken-turn.Sent)
			}
		}
	}
	for second := int(math.Ceil(from)); float64(second+1) <= to && second < len(r.Tokens); second++ {
		t.tokens += r.Tokens[second]
	}
	t.seconds = max(1, math.Floor(to)-math.Ceil(from))
	return t.row()
}

// row is what was counted as the row of a table.
func (t *tally) row() (row api.BaselineRow) {
	set := func(to **float64, v float64) {
		if finite(v) {
			*to = &v
		}
	}
	set(&row.TTFT.P50, percentile(t.ttft, .5))
	set(&row.TTFT.P95, percentile(t.ttft, .95))
	set(&row.TPOT.P50, percentile(t.tpot, .5))
	set(&row.TPOT.P95, percentile(t.tpot, .95))
	set(&row.Latency.P50, percentile(t.latency, .5))
	set(&row.Latency.P95, percentile(t.latency, .95))
	set(&row.OutputTokensPerSecond, t.tokens/t.seconds)
	set(&row.RequestsPerSecond, float64(len(t.latency))/t.seconds)
	set(&row.KVHitRatio, t.cached/t.prompt)
	return row
}

// MeanRow is the mean of several rows of one level and mode, with 95 % intervals by
// Student's t over them; of one row it is that row. A figure that not all of them have
// is left out. It panics without any.
func MeanRow(rows []api.BaselineRow) api.BaselineRow {
	mean := rows[0]
	if len(rows) == 1 {
		return mean
	}
	mean.N, mean.Seconds, mean.Intervals, mean.Measured = 0, 0, nil, nil
	for _, r := range rows {
		mean.N += r.N
		mean.Seconds += r.Seconds
		if r.Measured != nil && (mean.Measured == nil || r.Measured.After(*mean.Measured)) {
			mean.Measured = r.Measured
		}
		if r.LagSeconds != nil && (mean.LagSeconds == nil || *r.LagSeconds > *mean.LagSeconds) {
			mean.LagSeconds = r.LagSeconds
		}
	}
	mean.Errors = meanErrors(rows)
	mean.ErrorRatio = MeanFigure(rows, func(r *api.BaselineRow) **float64 { return &r.ErrorRatio })
	spread := map[Quantity]float64{}
	for _, q := range quantities {
		var values []float64
		for i := range rows {
			if v := q.In(&rows[i]); *v != nil {
				values = append(values, **v)
			}
		}
		*q.In(&mean) = nil
		if len(values) == len(rows) {
			m, deviation := stat.MeanStdDev(values, nil)
			*q.In(&mean) = &m
			spread[q] = student(alpha, float64(len(values)-1)) * stat.StdErr(deviation, float64(len(values)))
		}
	}
	setIntervals(&mean, func(q Quantity) (float64, float64, bool) {
		h, ok := spread[q]
		low, high := value(q, &mean)-h, value(q, &mean)+h
		if q.kind() == share {
			high = min(high, 1)
		}
		return max(0, low), high, ok
	})
	if mean.Errors != nil {
		for _, q := range baseline.Erring {
			in := q.IntervalIn(mean.Intervals)
			*in = stats.Widen(*in, *q.ErrorIn(mean.Errors), q.BothWays)
		}
	}
	return mean
}

// MeanFigure is the mean of a value that all rows have; else nil.
func MeanFigure(rows []api.BaselineRow, of func(*api.BaselineRow) **float64) *float64 {
	var values []float64
	for i := range rows {
		if v := *of(&rows[i]); v != nil {
			values = append(values, *v)
		}
	}
	if len(values) < len(rows) {
		return nil
	}
	return new(stat.Mean(values, nil))
}

// meanErrors are the means of the load generator's own errors in rows; nil where not all have them.
func meanErrors(rows []api.BaselineRow) *api.RowErrors {
	var mean api.RowErrors
	for i := range rows {
		if rows[i].Errors == nil {
			return nil
		}
		for _, q := range baseline.Erring {
			e := *q.ErrorIn(rows[i].Errors)
			if e == nil {
				continue
			}
			sum := *e / float64(len(rows))
			if before := *q.ErrorIn(&mean); before != nil {
				sum += *before
			}
			*q.ErrorIn(&mean) = &sum
		}
	}
	return &mean
}

// setIntervals gives a row those that are known.
func setIntervals(row *api.BaselineRow, of func(Quantity) (low, high float64, ok bool)) {
	row.Intervals = &api.RowIntervals{}
	known := slices.DeleteFunc(slices.Clone(quantities), func(q Quantity) bool { return *q.In(row) == nil })
	for _, q := range known {
		if low, high, ok := of(q); ok {
			*q.IntervalIn(row.Intervals) = &[2]float64{low, high}
		}
	}
}

// value is a figure of a row, NaN where it has none.
func value(q Quantity, row *api.BaselineRow) float64 {
	if v := *q.In(row); v != nil {
		return *v
	}
	return math.NaN()
}

// scaled brings a figure to the scale on which variances are taken; see [Metric.scaled].
func (k kind) scaled(v float64) float64 {
	if k == share {
		return v
	}
	return math.Log(v)
}

// unscaled is the inverse of scaled.
func (k kind) unscaled(v float64) float64 {
	if k == share {
		return min(max(v, 0), 1)
	}
	return math.Exp(v)
}
