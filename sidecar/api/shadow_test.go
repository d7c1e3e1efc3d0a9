package api

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestAchievedShare checks the share of a time, and that one that is not reliable is not known.
func TestAchievedShare(t *testing.T) {
	before := PlacementTotals{
		Account: 1, Requests: 100, Prompt: 1e5, Measured: 4e4, Modeled: 4e4, Followed: 1e5, Achievable: 6e4,
	}
	after := PlacementTotals{
		Account: 1, Requests: 200, Prompt: 2e5, Measured: 1e5, Modeled: 1.02e5, Followed: 2.1e5, Achievable: 1.48e5,
	}
	const share = .6 / .8
	for name, tt := range map[string]struct {
		change func(before, after *PlacementTotals)
		want   any
	}{
		"of the time":      {func(_, _ *PlacementTotals) {}, share},
		"few turns":        {func(b, _ *PlacementTotals) { b.Requests = 151 }, nil},
		"model is off":     {func(_, a *PlacementTotals) { a.Modeled += 2e3 }, nil},
		"other moment":     {func(_, a *PlacementTotals) { a.Late = true }, nil},
		"none achievable":  {func(b, _ *PlacementTotals) { b.Achievable = 1.48e5 }, nil},
		"another account":  {func(b, _ *PlacementTotals) { b.Account = 2 }, .5 / (1.48 / 2.1)},
		"sums begun later": {func(_, a *PlacementTotals) { a.Start = time.Second }, .5 / (1.48 / 2.1)},
	} {
		b, a := before, after
		tt.change(&b, &a)
		got, why := a.Since(&b)
		if tt.want == nil {
			assert.Nil(t, got, name)
			assert.NotEmpty(t, why, name)
			continue
		}
		assert.InDelta(t, tt.want, *got, 1e-9, name)
	}
	whole, _ := after.Since(nil)
	assert.InDelta(t, .5/(1.48/2.1), *whole, 1e-9)
	none, why := (&PlacementTotals{Problem: "not followed"}).Since(&before)
	assert.Nil(t, none)
	assert.Equal(t, "not followed", why)
}

// What became of the prompt tokens of a time are shares that add up to 1, unless the moment of a hit has changed.
func TestCausesSince(t *testing.T) {
	before := PlacementTotals{Account: 1, Prompt: 100, Causes: CauseTotals{40, 60}}
	after := PlacementTotals{Account: 1, Prompt: 300, Causes: CauseTotals{140, 80, 30, 20, 10, 25, -5}}
	shares := after.CausesSince(&before)
	assert.Equal(t, map[HitCauseKind]float64{
		CauseFound: .5, CauseNew: .1, CauseElsewhere: .15, CauseSpilled: .1, CauseEvicted: .05, CauseRemainder: .125,
		CauseUnexplained: -.025,
	}, shares)
	other := before
	other.Account = 2
	assert.InDelta(t, 80./300, after.CausesSince(&other)[CauseNew], 1e-12)
	other = before
	other.Late = true
	assert.Nil(t, after.CausesSince(&other))
	assert.Nil(t, before.CausesSince(&before))
}
