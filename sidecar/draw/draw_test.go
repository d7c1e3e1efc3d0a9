package draw

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbooth/sidecar/api"
)

func TestAnswerLength(t *testing.T) {
	booth := &api.Distribution{Mean: 830, CV: .15}
	for _, tt := range []struct {
		name  string
		z     float64
		d     *api.Distribution
		limit int
		want  int
	}{
		{"no distribution: the cap", 2, nil, 1024, 1024},
		{"the mean", 0, booth, 1024, 830},
		{"half a deviation above", .5, booth, 1024, 892},
		{"never over the cap", 3, booth, 1024, 1024},
		{"a cap below the mean", 0, booth, 100, 100},
		{"never under a quarter of the mean", -9, booth, 1024, 208},
		{"always a token", -9, &api.Distribution{Mean: 1, CV: 1}, 1024, 1},
		{"no variation", 3, &api.Distribution{Mean: 50}, 1024, 50},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.want, length(tt.z, tt.d, tt.limit))
		})
	}
}
