package stats

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbooth/sidecar/api"
)

// The figures cover the kept seconds, with intervals from four parts of them.
func TestEngineRecord(t *testing.T) {
	fill := func(keep int, rates ...float64) api.BaselineRow {
		e := EngineRecord{Keep: keep}
		total := api.EngineTotals{Drafts: 7, Drafted: 1000, Accepted: 1000}
		e.Add(&total)
		for _, rate := range rates {
			total.Drafts, total.Drafted, total.Accepted = total.Drafts+10, total.Drafted+30, total.Accepted+30*rate
			total.GPUMemory = api.GaugeTotal{Sum: total.GPUMemory.Sum + 5e9, Readings: total.GPUMemory.Readings + 1}
			e.Add(&total)
		}
		e.Add(nil)
		row := api.BaselineRow{Intervals: &api.RowIntervals{}}
		e.Fill(&row, true, api.Deployment{})
		return row
	}
	row := fill(0, .5, .6, .7, .8)
	assert.InDelta(t, .65, *row.AcceptanceRate, 1e-9)
	assert.InDelta(t, 1+3*.65, *row.TokensPerStep, 1e-9)
	assert.InDelta(t, 5e9, *row.GPUMemoryBytes, 1)
	half := Student * .1291 / 2 // of four parts, with their standard deviation
	assert.InDeltaSlice(t, []float64{.65 - half, .65 + half}, row.Intervals.AcceptanceRate[:], 1e-4)
	assert.InDeltaSlice(t, []float64{5e9, 5e9}, row.Intervals.GPUMemoryBytes[:], 1)
	assert.InDeltaSlice(t, []float64{2.95 - 3*half, 2.95 + 3*half}, row.Intervals.TokensPerStep[:], 1e-3)

	assert.InDelta(t, .75, *fill(2, .5, .6, .7, .8).AcceptanceRate, 1e-9, "the last two seconds")
	assert.Nil(t, fill(0, .5, .6, .7).Intervals.AcceptanceRate, "too few seconds")
	assert.InDelta(t, 1, fill(0, .5, 1, 1, 1).Intervals.AcceptanceRate[1], 1e-9, "no share is larger")
	assert.Nil(t, fill(0).AcceptanceRate)
}
