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

// AddClusterFigures sets the cluster's figures of rows, combined by [MeanFigures] over the spans of the same level and
// mode. Spoiled spans and pilot spans are left out.
func AddClusterFigures(rows []api.BaselineRow, spans []api.SweepSpan) {
	for i := range rows {
		var all []*api.ClusterFigures
		for j := range spans {
			s := &spans[j]
			counts := s.Spoiled == "" && s.Causes != nil && s.Arm != string(ArmPilot)
			if counts && s.Concurrency == rows[i].Concurrency &&
				s.Mode == rows[i].InMode() {
				all = append(all, &s.Causes.ClusterFigures)
			}
		}
		if len(all) > 0 {
			rows[i].ClusterFigures = MeanFigures(all)
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
