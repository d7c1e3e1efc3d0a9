package cluster

import (
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
)

func TestIncrease(t *testing.T) {
	counter := func(v float64) Sample { return Sample{Name: "x_total", Labels: model.LabelSet{"a": "b"}, Value: v} }
	for _, row := range []struct {
		name   string
		values []float64 // one a second
		want   float64
	}{
		{"what was counted before the first reading is unknown", []float64{500}, 0},
		{"growth", []float64{500, 510, 530}, 30},
		{"a restart: the new value is growth", []float64{500, 510, 4, 6}, 16},
		{"a restart to zero", []float64{500, 0, 0}, 0},
		{"two restarts", []float64{5, 1, 3, 2}, 5},
	} {
		h, growth := history{}, 0.0
		for i, v := range row.values {
			samples := []Sample{counter(v)}
			h.add(start.Add(time.Duration(i)*time.Second), samples)
			growth = samples[0].growth
		}
		require.Equal(t, row.want, growth, row.name)
	}
}

func TestHistoryDropsOldPoints(t *testing.T) {
	sample := Sample{Name: "x_total"}
	h, growth := history{}, 0.0
	for i := range 200 {
		sample.Value = float64(i)
		samples := []Sample{sample, {Name: "a_gauge", Value: 1}}
		h.add(start.Add(time.Duration(i)*time.Second), samples)
		growth = samples[0].growth
	}
	require.Equal(t, 60.0, growth, "points within the window")
	require.Len(t, h.series, 1, "gauges are not kept")
	require.LessOrEqual(t, len(h.series[keyOf(sample)].points), 61)
	h.add(start.Add(400*time.Second), nil)
	require.Empty(t, h.series, "a series that is gone is dropped")
}
