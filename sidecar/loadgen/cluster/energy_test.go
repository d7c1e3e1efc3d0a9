package cluster

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// powerPage returns the page of a DCGM exporter with two GPUs. Further lines follow.
func powerPage(host string, watts [2]float64, joules [2]float64) string {
	page := ""
	for i := range watts {
		labels := fmt.Sprintf(`{gpu="%d",UUID="%s-%d",Hostname=%q,modelName="NVIDIA H200"}`, i, host, i, host)
		page += fmt.Sprintf("DCGM_FI_DEV_GPU_UTIL%s 50\n", labels)
		if watts[i] >= 0 {
			page += fmt.Sprintf("DCGM_FI_DEV_POWER_USAGE%s %v\n", labels, watts[i])
		}
		if joules[i] >= 0 {
			page += fmt.Sprintf("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION%s %v\n", labels, 1000*joules[i])
		}
	}
	return page
}

var none = [2]float64{-1, -1}

// Ten seconds of two GPUs of a worker. Each row gives what the exporter reports at a second; nil is a failed scrape.
func TestEnergyOfPages(t *testing.T) {
	page := func(watts, joules [2]float64) func(int) *string {
		return func(int) *string { return new(powerPage("n1", watts, joules)) }
	}
	counts := func(second int, each float64) [2]float64 {
		return [2]float64{each * float64(second), each * float64(second)}
	}
	for name, row := range map[string]struct {
		at   func(second int) *string
		want any // watts of both together; nil: not known
	}{
		"a power gauge":                   {page([2]float64{300, 250}, none), 550.},
		"neither":                         {page(none, none), nil},
		"one GPU without":                 {page([2]float64{300, -1}, none), nil},
		"a counter that never moves":      {page([2]float64{300, 250}, [2]float64{7, 9}), 550.},
		"a counter without a power gauge": {func(s int) *string { return new(powerPage("n1", none, counts(s, 410))) }, nil},
		"a counter, whatever the gauge": {func(s int) *string {
			return new(powerPage("n1", [2]float64{0, 0}, counts(s, 410)))
		}, 738.},
		"a counter of 3 s": {func(s int) *string {
			return new(powerPage("n1", [2]float64{410, 410}, counts(s/3*3, 410)))
		}, 820.},
		"a reset": {func(s int) *string { return new(powerPage("n1", [2]float64{410, 410}, counts(s%6, 410))) }, 820.},
		"an absurd jump": {func(s int) *string {
			joules := counts(s, 410)
			joules[0] += 1e9 * float64(s/5)
			return new(powerPage("n1", [2]float64{410, 410}, joules))
		}, 820.},
		"two failed scrapes": {func(s int) *string {
			if s == 4 || s == 5 {
				return nil
			}
			return new(powerPage("n1", [2]float64{300, 300}, none))
		}, 600.},
		"six failed scrapes of a gauge": {func(s int) *string {
			if s > 2 && s < 9 {
				return nil
			}
			return new(powerPage("n1", [2]float64{300, 300}, none))
		}, nil},
		"six failed scrapes of a counter": {func(s int) *string {
			if s > 2 && s < 9 {
				return nil
			}
			return new(powerPage("n1", [2]float64{410, 410}, counts(s, 410)))
		}, 820.},
		"one GPU not read at the end": {func(s int) *string {
			if s > 8 {
				return new(powerPage("n1", [2]float64{300, 300}, none)[:len(powerPage("n1", [2]float64{300, 300}, none))/2])
			}
			return new(powerPage("n1", [2]float64{300, 300}, none))
		}, 600.},
		"none read between": {func(s int) *string {
			if s > 3 && s < 7 {
				return new("")
			}
			return new(powerPage("n1", [2]float64{300, 300}, none))
		}, 600.},
		"GPUs that come": {func(s int) *string {
			if s < 3 {
				return new(powerPage("n1", [2]float64{300, 300}, none)[:len(powerPage("n1", [2]float64{300, 300}, none))/2])
			}
			return new(powerPage("n1", [2]float64{300, 300}, none))
		}, nil},
		"MIG": {func(int) *string {
			return new(`DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="u",Hostname="n1",GPU_I_PROFILE="2g.20gb",GPU_I_ID="3"} 300` + "\n")
		}, nil},
	} {
		var m energyMeter
		var first, last *api.EnergyTotals
		for second := range 11 {
			gpus := row.at(second)
			if gpus == nil {
				continue
			}
			c := watched(t, api.SpeculationOff, scene{
				"n1:8081": workerPage("a", 1), "n2:8081": workerPage("b", 1), "n1:9400": *gpus,
				"other:9400": powerPage("other", [2]float64{1000, 1000}, none), // of no worker
			})
			last = m.add(time.Unix(1_800_000_000+int64(second), 0), c.Engines.GPUs)
			if first == nil {
				first = last
			}
		}
		if name == "MIG" {
			assert.Zero(t, last.GPUs, name)
		} else {
			assert.Equal(t, 2, last.GPUs, name)
		}
		got := last.Since(first)
		if row.want == nil {
			assert.Nil(t, got, name)
			continue
		}
		require.NotNil(t, got, name)
		assert.InDelta(t, row.want, *got, 1e-9, name)
	}
}

// TestCostOfAKnownPower computes the costs of 100 s at 1,200 W, with 30,000 output tokens and 60 turns within the SLOs,
// on 2 GPUs at 3.60 dollars an hour.
func TestCostOfAKnownPower(t *testing.T) {
	var m energyMeter
	start := time.Unix(1_800_000_000, 0)
	at := func(second int) api.EngineTotals {
		now := start.Add(time.Duration(second) * time.Second)
		joules := 600 * float64(second)
		c := watched(t, api.SpeculationOff, scene{
			"n1:8081": workerPage("a", 1), "n1:9400": powerPage("n1", [2]float64{600, 600}, [2]float64{joules, joules}),
		})
		totals := *c.Engines
		totals.Energy = m.add(now, totals.GPUs)
		totals.Served = &api.ServedTotals{At: now, Tokens: int64(300 * second), GoodTurns: int64(second * 6 / 10)}
		return totals
	}
	before := at(0)
	var after api.EngineTotals
	for second := range 100 {
		after = at(second + 1)
	}
	basis := after.CostBasis(before, api.Deployment{GPUHour: 3.6, Workers: 7, TensorParallel: 7})
	basis.TPOT = new(.025)
	assert.Equal(t, api.Cost{
		GPUs: new(2.), GPUPowerWatts: new(1200.), JoulesPerMillionTokens: new(4e6), JoulesPerGoodTurn: new(2000.),
		DollarsPerMillionTokens: new(.002 / 300 * 1e6), DollarsPerGoodTurn: new(.002 / .6),
		TokensPerGPU: new(150.), TokensPerUser: new(40.),
	}, basis.Cost())

	other := *before.Energy
	other.GPUs = 3
	before.Energy = &other
	assert.Nil(t, after.CostBasis(before, api.Deployment{}).Cost().TokensPerGPU, "the number has changed")

	without := api.EngineTotals{Served: after.Served}.CostBasis(api.EngineTotals{Served: before.Served},
		api.Deployment{GPUHour: 3.6, Workers: 1, TensorParallel: 2}).Cost()
	assert.Nil(t, without.JoulesPerMillionTokens)
	assert.Nil(t, without.GPUPowerWatts)
	assert.Equal(t, new(.002/300*1e6), without.DollarsPerMillionTokens, "a price and a number of GPUs suffice")
	assert.Equal(t, api.Cost{GPUPowerWatts: new(1200.)}, api.CostBasis{Watts: new(1200.)}.Cost())
}
