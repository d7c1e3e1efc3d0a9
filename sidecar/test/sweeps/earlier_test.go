package sweeps

import (
	_ "embed"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// paused is a trial with one span, as a load generator stored it before its times had the names of their flags.
//
//go:embed testdata/paused.json
var paused []byte

func TestEarlierTrialGoesOn(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		const id = "mx39ogaj"
		require.NoError(t, b.process.Store.SaveSweep(t.Context(), id, paused, 0, nil))
		b.kill()
		b.begin()
		synctest.Wait() // the desk runs
		_, err := b.process.desk.PatchSweep(t.Context(), "bob", id, api.SweepPatch{State: api.SweepRunning})
		require.NoError(t, err)
		s := b.until(id, "a second span", limit, func(s api.Sweep) bool { return s.Progress.Spans == 2 })
		assert.Equal(t, []any{new(2.), new(900.)}, []any{s.Request.Seconds, s.Request.MaxSeconds})
		assert.Equal(t, api.ModeKV, s.Spans[0].Mode.Mode)
		assert.Equal(t, api.ModeRoundRobin, s.Spans[1].Mode.Mode)
	})
}
