package api_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

func TestRates(t *testing.T) {
	threeRates := []api.Level{api.AtRate(2), api.AtRate(4), api.AtRate(8)}
	for text, want := range map[string]struct {
		level api.Level
		ramp  api.Ramp
		steps []api.Level
		each  time.Duration
	}{
		"12/s":            {level: api.AtRate(12)},
		"2/s..20/s/10m":   {level: api.AtRate(20), ramp: api.Ramp{From: api.AtRate(2), Seconds: 600}, each: 10 * time.Minute},
		"2/s,4/s,8/s/90s": {level: api.AtRate(2), steps: threeRates, each: 90 * time.Second},
	} {
		var r, again api.Rates
		require.NoError(t, r.UnmarshalText([]byte(text)))
		assert.Equal(t, want.level, r.Level(), text)
		assert.Equal(t, want.ramp, r.Ramp(), text)
		assert.Equal(t, want.steps, r.Steps(), text)
		assert.Equal(t, want.each, r.Each, text)
		require.NoError(t, again.UnmarshalText([]byte(r.String())))
		assert.Equal(t, r, again, text)
	}
}
