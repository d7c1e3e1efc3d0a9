package proof

import (
	"slices"

	"gonum.org/v1/gonum/stat"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
)

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
			if s.Spoiled != "" || s.Arm == string(ArmPilot) || s.Concurrency != rows[i].Concurrency ||
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
