package stats

import (
	"math"
	"testing"
	"time"

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

// Energy per token is the ratio of both over four parts of the time, of which neither is as long as the others.
func TestIntervalsOfCosts(t *testing.T) {
	e, start := EngineRecord{}, time.Unix(1_800_000_000, 0)
	watts, tokens, good := []float64{900, 1100, 1000, 1000}, []int64{3000, 3400, 3000, 3200}, []int64{3, 5, 4, 4}
	joules, all, turns := 0., int64(0), int64(0)
	for second := range 41 {
		e.Add(&api.EngineTotals{
			Energy: &api.EnergyTotals{Joules: joules, Seconds: float64(second), Simulated: true},
			Served: &api.ServedTotals{At: start.Add(time.Duration(second) * time.Second), Tokens: all, GoodTurns: turns},
		})
		if second < 40 {
			joules, all = joules+watts[second/10], all+tokens[second/10]/10
			if second%10 == 9 {
				turns += good[second/10]
			}
		}
	}
	row := api.BaselineRow{
		OutputTokensPerSecond: new(315.), TPOT: api.Percentiles{P50: new(.025)},
		Intervals: &api.RowIntervals{
			OutputTokensPerSecond: &[2]float64{300, 330}, TPOT: api.PercentileIntervals{P50: &[2]float64{.02, .04}},
		},
	}
	e.Fill(&row, true, api.Deployment{Workers: 2, TensorParallel: 1, GPUHour: 3.6})
	assert.InDelta(t, 1000/315.*1e6, *row.JoulesPerMillionTokens, 1e-6)
	assert.InDelta(t, 1000/.4, *row.JoulesPerGoodTurn, 1e-9)
	assert.True(t, row.PowerSimulated)
	ratio, squares := 1000/315., 0.
	for i := range watts {
		squares += math.Pow(watts[i]-ratio*float64(tokens[i])/10, 2)
	}
	half := Student * math.Sqrt(squares*4/3) / 1260
	in := row.Intervals
	assert.InDeltaSlice(t, []float64{(ratio - half) * 1e6, (ratio + half) * 1e6}, in.JoulesPerMillionTokens[:], 1e-6)
	assert.InDeltaSlice(t, []float64{150, 165}, in.TokensPerGPU[:], 1e-9)
	assert.InDeltaSlice(t, []float64{25, 50}, in.TokensPerUser[:], 1e-9)
	assert.InDeltaSlice(t, []float64{.002 / 330 * 1e6, .002 / 300 * 1e6}, in.DollarsPerMillionTokens[:], 1e-9)
	assert.Less(t, in.DollarsPerGoodTurn[0], .002/.4)

	row = api.BaselineRow{OutputTokensPerSecond: new(315.), Intervals: &api.RowIntervals{}}
	(&EngineRecord{}).Fill(&row, true, api.Deployment{})
	assert.Equal(t, api.Cost{}, row.Cost, "nothing is read")

	var idle EngineRecord
	for second := range 9 {
		idle.Add(&api.EngineTotals{Energy: &api.EnergyTotals{Seconds: float64(second)}})
	}
	idle.Fill(&row, true, api.Deployment{})
	assert.Zero(t, *row.GPUPowerWatts)
	assert.Nil(t, row.Intervals.GPUPowerWatts, "no energy was counted")
}
