package proof

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/stats"
)

// SnapshotSeconds is the time that one snapshot of a span covers, as in the recorded results.
const SnapshotSeconds = 60

// runSections is the number of sections of a single run. Each section should be much longer than a conversation, since
// busy and quiet times cancel out within one. With more sections the intervals have the wrong width; the test in
// sidecar/test/proof checks that.
const runSections = 4

// Row returns the figures of a recording as the row of a table, with 95 % intervals from its sections. The intervals
// hold only for a length that was fixed before the start; [Trial] is for repeated looks. With snapshots above 0, the
// counted time is divided into that many equal parts, and the row is the mean over the turns that ended in the last 60
// s of each part, as in the recorded results. With 0, the row covers all of the counted time, and each TTFT counts at
// the time of the first token. The caller sets concurrency and mode. The error is an *[api.FieldError] if the recording
// is invalid or too short.
func (r *Recording) Row(snapshots int, slo api.SLO) (api.BaselineRow, error) {
	if err := r.validate(); err != nil {
		return api.BaselineRow{}, err
	}
	whole, sections := r.cut(runSections, slo)
	row := whole.row()
	setIntervals(&row, func(q Quantity) (float64, float64, bool) {
		s := Sectioned{Whole: scaled(q.Kind, value(q, &row))}
		for i := range sections {
			part := sections[i].row()
			s.Sections = append(s.Sections, scaled(q.Kind, value(q, &part)))
		}
		h := student(alpha, s.df()) * math.Sqrt(s.variance()*inflation([]Sectioned{s}))
		return unscaled(q.Kind, s.Whole-h), unscaled(q.Kind, s.Whole+h), finite(s.Whole) && finite(h)
	})
	if snapshots > 0 {
		r.shot(&row, snapshots)
	}
	row.Cost = whole.costs(r.Basis)
	row.N, row.Seconds = len(whole.times[api.TimeLatency]), r.Until-r.CountedFrom
	return row, nil
}

// TokensPerTurn returns the mean output tokens of the turns that succeeded in the counted time; 0 without turns.
func (r *Recording) TokensPerTurn() float64 {
	n, tokens := 0, 0
	for t := range r.answered() {
		n, tokens = n+1, tokens+t.OutputTokens
	}
	return float64(tokens) / float64(max(1, n))
}

// shot replaces the figures of a row by the mean of snapshots, and shifts the intervals by the same amounts.
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
		shift := value(q, row) - value(q, &whole)
		return in[0] + shift, in[1] + shift, finite(shift)
	})
}

// endedIn returns the figures of the turns that count between two times by their ends, and of the tokens that arrived
// between them.
func (r *Recording) endedIn(from, to float64) api.BaselineRow {
	t := tally{seconds: to - from}
	for i := range r.Turns {
		turn := &r.Turns[i]
		end, ok := turn.End()
		if at := r.when(turn, end); ok && at > from && at <= to {
			t.end(turn, api.SLO{})
			if turn.OK() && !turn.Waiting() {
				t.addTTFT(turn)
			}
		}
	}
	for second := int(math.Ceil(from)); float64(second+1) <= to && second < len(r.Tokens); second++ {
		t.tokens += r.Tokens[second]
	}
	t.seconds = max(1, math.Floor(to)-math.Ceil(from))
	if stats.HeldBack(r.InBursts()) {
		t.times[api.TimeTPOT] = nil
	}
	return t.row()
}

// row returns the tally as the row of a table. Undefined figures stay nil.
func (t *tally) row() (row api.BaselineRow) {
	set := func(to **float64, v float64) {
		if finite(v) {
			*to = &v
		}
	}
	for i, f := range api.Times {
		set(&f.Row(&row).P50, percentile(t.times[i], .5))
		set(&f.Row(&row).P95, percentile(t.times[i], .95))
	}
	set(&row.TTFTMean, t.value(MeanTTFT))
	set(&row.OutputTokensPerSecond, t.tokens/t.seconds)
	set(&row.RequestsPerSecond, float64(len(t.times[api.TimeLatency]))/t.seconds)
	set(&row.KVHitRatio, t.cached/t.prompt)
	return row
}

// MeanRow returns the mean of several rows of one level and mode, with 95 % intervals by Student's t. A single row is
// returned unchanged. A figure that any row lacks is left out. It panics without rows.
func MeanRow(rows []api.BaselineRow) api.BaselineRow {
	mean := rows[0]
	if len(rows) == 1 {
		return mean
	}
	mean.N, mean.Seconds, mean.Intervals, mean.Measured, mean.AtLeast = 0, 0, nil, nil, nil
	for _, r := range rows {
		mean.N += r.N
		mean.Seconds += r.Seconds
		if r.Measured != nil && (mean.Measured == nil || r.Measured.After(*mean.Measured)) {
			mean.Measured = r.Measured
		}
		mean.AtLeast = append(mean.AtLeast, r.AtLeast...)
		mean.PowerSimulated = mean.PowerSimulated || r.PowerSimulated
		if r.LagSeconds != nil && (mean.LagSeconds == nil || *r.LagSeconds > *mean.LagSeconds) {
			mean.LagSeconds = r.LagSeconds
		}
	}
	mean.TTFTMean = MeanFigure(rows, func(r *api.BaselineRow) **float64 { return &r.TTFTMean })
	mean.Errors = meanErrors(rows)
	mean.ErrorRatio = failedShare(rows)
	spread := map[Quantity]float64{}
	for _, q := range averaged {
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
	slices.Sort(mean.AtLeast)
	mean.AtLeast = slices.DeleteFunc(slices.Compact(mean.AtLeast), func(name string) bool {
		return *baseline.QuantityOf(name).In(&mean) == nil
	})
	setIntervals(&mean, func(q Quantity) (float64, float64, bool) {
		h, ok := spread[q]
		return value(q, &mean) - h, value(q, &mean) + h, ok
	})
	if mean.Errors != nil {
		for _, q := range baseline.Erring {
			in := q.IntervalIn(mean.Intervals)
			*in = stats.Widen(*in, *q.ErrorIn(mean.Errors), q.BothWays)
		}
	}
	return mean
}

// MeanFigure returns the mean of a figure over rows, or nil if any row lacks it.
func MeanFigure(rows []api.BaselineRow, figure func(*api.BaselineRow) **float64) *float64 {
	var values []float64
	for i := range rows {
		if v := *figure(&rows[i]); v != nil {
			values = append(values, *v)
		}
	}
	if len(values) < len(rows) {
		return nil
	}
	return new(stat.Mean(values, nil))
}

// failedShare returns the share of failed turns over the turns of all rows, or nil if any row lacks its own. Where the
// turns of a row are not known, all rows have the same weight.
func failedShare(rows []api.BaselineRow) *float64 {
	failed, ended := 0., 0.
	for i := range rows {
		r := &rows[i]
		if r.ErrorRatio == nil || r.N == 0 || *r.ErrorRatio >= 1 {
			return MeanFigure(rows, func(r *api.BaselineRow) **float64 { return &r.ErrorRatio })
		}
		turns := float64(r.N) / (1 - *r.ErrorRatio) // N are those that succeeded
		failed, ended = failed+turns**r.ErrorRatio, ended+turns
	}
	return new(failed / ended)
}

// meanErrors returns the mean of the load generator's own errors over rows, or nil if any row lacks them.
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

// setIntervals replaces the intervals of a row. interval returns the ends for each quantity that the row has. They are
// limited to possible values: no quantity is negative, and no share exceeds 1.
func setIntervals(row *api.BaselineRow, interval func(Quantity) (low, high float64, ok bool)) {
	row.Intervals = &api.RowIntervals{}
	known := slices.DeleteFunc(slices.Clone(averaged), func(q Quantity) bool { return *q.In(row) == nil })
	for _, q := range known {
		if low, high, ok := interval(q); ok {
			if q.Kind == baseline.Share {
				high = min(high, 1)
			}
			*q.IntervalIn(row.Intervals) = &[2]float64{max(0, low), high}
		}
	}
}

// value returns a figure of a row, or NaN if the row lacks it.
func value(q Quantity, row *api.BaselineRow) float64 {
	if v := *q.In(row); v != nil {
		return *v
	}
	return math.NaN()
}

// scaled converts a value to the scale of differences; see [Metric.scaled].
func scaled(k baseline.Kind, v float64) float64 {
	if k == baseline.Share {
		return v
	}
	return math.Log(v)
}

// unscaled is the inverse of scaled.
func unscaled(k baseline.Kind, v float64) float64 {
	if k == baseline.Share {
		return min(max(v, 0), 1)
	}
	return math.Exp(v)
}

// extremes maps the figures that are combined by their largest or smallest value instead of the mean.
var extremes = map[string]func([]float64) float64{
	"queue_largest": slices.Max[[]float64], "queue_second": slices.Max[[]float64], "queue_least": slices.Max[[]float64],
	"engine_ttft_largest": slices.Max[[]float64], "inflight_largest": slices.Max[[]float64],
	"inflight_spread_min": slices.Min[[]float64], "inflight_spread_max": slices.Max[[]float64],
}

// AddSpanFigures sets the figures of rows that are no means over the spans' own rows: the cluster's, combined by
// [MeanFigures], and the share of failed turns, over the turns of all spans of the same level and mode. Spoiled spans
// and pilot spans are left out.
func AddSpanFigures(rows []api.BaselineRow, spans []api.SweepSpan) {
	for i := range rows {
		var all []*api.ClusterFigures
		failed, ended := 0, 0
		for j := range spans {
			s := &spans[j]
			if s.Spoiled != "" || s.Arm == string(ArmPilot) || s.Level != rows[i].Level ||
				s.Mode != rows[i].InMode() {
				continue
			}
			failed, ended = failed+s.Failed, ended+s.Turns+s.Failed
			if s.Causes != nil {
				all = append(all, &s.Causes.ClusterFigures)
			}
		}
		if len(all) > 0 {
			rows[i].ClusterFigures = MeanFigures(all)
		}
		if ended > 0 {
			rows[i].ErrorRatio = new(float64(failed) / float64(ended))
		}
	}
}

// MeanFigures returns the mean of each figure over the spans that have it, or its extreme for the figures in extremes.
// A figure that no span has stays nil.
func MeanFigures(all []*api.ClusterFigures) (m api.ClusterFigures) {
	for _, q := range baseline.OfCluster {
		var values []float64
		for _, f := range all {
			if v := *q.InCluster(f); v != nil && finite(*v) {
				values = append(values, *v)
			}
		}
		if len(values) > 0 {
			over := extremes[q.Name]
			if over == nil {
				over = meanValues
			}
			*q.InCluster(&m) = new(over(values))
		}
	}
	return m
}

func meanValues(values []float64) float64 { return stat.Mean(values, nil) }
