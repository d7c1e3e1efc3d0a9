package report

import (
	"testing"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/proof"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// proof.Throughput saturates at the level from which on it grows by less than half as much as the conversations.
func TestSaturation(t *testing.T) {
	for _, c := range []struct {
		rates []float64
		want  string
	}{
		{
			[]float64{2, 3.9, 5.2, 5.18, 5.22},
			"at about 5.20 requests/s: from 80 conversations to 120, throughput grows by less than half as much as " +
				"the conversations, or not at all.",
		},
		{[]float64{2, 3.9, 5.2, 5.8, 6.5}, "not shown: throughput still grows at 120, to 6.50 requests/s."},
		{[]float64{5.1, 5.2, 5.15, 5.2, 5.25}, "not certain: throughput is 5.25 requests/s at 120, the highest level."},
		{[]float64{5, 5.2}, ""},
		// 9.6 % more at each level, which scatters: no level certainly saturates.
		{[]float64{3.1, 3.5, 3.7, 4.2, 4.61}, "not certain: throughput is 4.61 requests/s at 120, the highest level."},
	} {
		b := api.Baseline{Name: "x", Kind: baseline.KindImported}
		for i, v := range c.rates {
			b.Rows = append(b.Rows, api.BaselineRow{
				Level: api.AtConversations(
					[]int{30, 60, 80, 100, 120}[i],
				),
				Mode:              kv.Mode,
				Speculation:       kv.Speculation,
				RequestsPerSecond: new(v),
			})
		}
		r, err := Compare(b, b, proof.Question{})
		require.NoError(t, err)
		assert.Equal(t, c.want, saturation(&r.Sides[0]))
	}
}
