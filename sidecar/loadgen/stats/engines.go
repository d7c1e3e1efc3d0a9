package stats

import (
	"math"

	"kvbooth/sidecar/api"
)

// EngineRecord holds the totals of a cluster's engines, once a second, for the figures of that time. The zero value is
// empty. It is not safe for concurrent use.
type EngineRecord struct {
	Keep int // seconds to keep; 0: all

	totals []api.EngineTotals
}

// Add adds the totals of a second; nil means unknown.
func (e *EngineRecord) Add(t *api.EngineTotals) {
	if t == nil {
		return
	}
	e.totals = append(e.totals, *t)
	if e.Keep > 0 && len(e.totals) > e.Keep+1 {
		e.totals = e.totals[1:]
	}
}

// Fill sets the figures of a row, and their 95 % intervals if the time is long enough for batches.
func (e *EngineRecord) Fill(row *api.BaselineRow, batched bool) {
	last := len(e.totals) - 1
	if last < 1 {
		return
	}
	use := e.totals[last].Since(e.totals[0])
	row.AcceptanceRate = use.AcceptanceRate
	row.TokensPerStep = use.TokensPerStep
	row.GPUMemoryBytes = use.GPUMemoryBytes
	row.AchievedShare, row.HitCauses = use.AchievedShare, use.HitCauses
	row.FirstToken = use.FirstToken
	if !batched || row.Intervals == nil {
		return
	}
	var parts [batches]api.EngineUse
	for i := range parts {
		parts[i] = e.totals[(i+1)*last/batches].Since(e.totals[i*last/batches])
	}
	in := row.Intervals
	acceptance := func(u api.EngineUse) *float64 { return u.AcceptanceRate }
	perStep := func(u api.EngineUse) *float64 { return u.TokensPerStep }
	memory := func(u api.EngineUse) *float64 { return u.GPUMemoryBytes }
	achieved := func(u api.EngineUse) *float64 { return u.AchievedShare }
	in.AcceptanceRate = around(use.AcceptanceRate, 1, parts, acceptance)
	in.TokensPerStep = around(use.TokensPerStep, math.Inf(1), parts, perStep)
	in.GPUMemoryBytes = around(use.GPUMemoryBytes, math.Inf(1), parts, memory)
	in.AchievedShare = around(use.AchievedShare, math.Inf(1), parts, achieved)
}

// around returns the interval of a figure from those of its batches; nil where a batch has none.
func around(
	value *float64, limit float64, parts [batches]api.EngineUse, figure func(api.EngineUse) *float64,
) *[2]float64 {
	var s shares
	for i := range parts {
		part := figure(parts[i])
		if value == nil || part == nil {
			return nil
		}
		s.add(i, *part, 1)
	}
	_, deviation, _ := s.ratio()
	return &[2]float64{max(0, *value-Student*deviation), min(limit, *value+Student*deviation)}
}
