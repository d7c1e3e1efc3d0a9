package draw

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbooth/sidecar/api"
)

func TestLengthStaysWithinBounds(t *testing.T) {
	booth := &api.Distribution{Mean: 830, CV: .15}
	for _, tt := range []struct {
		name  string
		z     float64
		d     *api.Distribution
		limit int
		want  int
	}{
		{"no distribution: the limit", 2, nil, 1024, 1024},
		{"the mean", 0, booth, 1024, 830},
		{"half a deviation above", .5, booth, 1024, 892},
		{"never over the limit", 3, booth, 1024, 1024},
		{"a limit below the mean", 0, booth, 100, 100},
		{"never under a quarter of the mean", -9, booth, 1024, 208},
		{"at least one token", -9, &api.Distribution{Mean: 1, CV: 1}, 1024, 1},
		{"no variation", 3, &api.Distribution{Mean: 50}, 1024, 50},
	} {
		t.Run(tt.name, func(t *testing.T) { assert.Equal(t, tt.want, length(tt.z, tt.d, tt.limit)) })
	}
}

// TestRampedStartShortensFirstConversations checks that conversations that start in their middle have the remaining
// turns of conversations at a random moment. Their other properties and later conversations do not change.
func TestRampedStartShortensFirstConversations(t *testing.T) {
	for _, tt := range []struct {
		turns api.Range
		want  []float64 // shares of one turn left, of two, and so on
	}{
		{api.Range{Min: 1, Max: 1}, []float64{1}},
		{api.Range{Min: 5, Max: 5}, []float64{.2, .2, .2, .2, .2}},
		{api.Range{Min: 3, Max: 5}, []float64{.25, .25, .25, 1. / 6, 1. / 12}}, // (1, 1, 1, 2/3, 1/3) of the mean length, 4
	} {
		t.Run(fmt.Sprint(tt.turns), func(t *testing.T) {
			const n = 20_000
			whole := Shape{Turns: tt.turns, Openings: 10, MaxTokens: 1024, Output: &api.Distribution{Mean: 830, CV: .15}}
			ramped := whole
			ramped.RampedStart = n
			left := make([]float64, len(tt.want))
			for k := range int64(n) {
				a, b := New(7, k, k, whole), New(7, k, k, ramped)
				left[b.Turns-1] += 1. / n
				assert.LessOrEqual(t, b.Turns, tt.turns.Max)
				assert.Equal(t, a.Questions.Uint64(), b.Questions.Uint64())
				b.Turns, b.Questions = a.Turns, a.Questions
				assert.Equal(t, a, b)
			}
			assert.InDeltaSlice(t, tt.want, left, .015)
			assert.Equal(t, New(7, n, n, whole), New(7, n, n, ramped))
		})
	}
}
