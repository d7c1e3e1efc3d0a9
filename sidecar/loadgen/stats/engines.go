package stats

import (
	"cmp"
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

// CostBasis returns what costs are derived from over the time of the record, without TPOT.
func (e *EngineRecord) CostBasis(d api.Deployment) api.CostBasis {
	if len(e.totals) == 0 {
		return api.EngineTotals{}.CostBasis(api.EngineTotals{}, d)
	}
	return e.totals[len(e.totals)-1].CostBasis(e.totals[0], d)
}

// Fill sets the figures of a row, and their 95 % intervals if the time is long enough for batches. The costs need the
// row's throughput and TPOT, and the deployment that it was measured on.
func (e *EngineRecord) Fill(row *api.BaselineRow, batched bool, d api.Deployment) {
	e.fillCost(row, batched, d)
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
		from, to := e.batch(i)
		parts[i] = to.Since(*from)
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

// batch returns the totals at the beginning and at the end of a batch.
func (e *EngineRecord) batch(i int) (from, to *api.EngineTotals) {
	last := len(e.totals) - 1
	return &e.totals[i*last/batches], &e.totals[(i+1)*last/batches]
}

// fillCost sets the costs of a row. Their intervals are those of the ratios of the batches; where a cost follows from
// the row's throughput or TPOT alone, its interval does, too.
func (e *EngineRecord) fillCost(row *api.BaselineRow, batched bool, d api.Deployment) {
	b := e.CostBasis(d)
	b.Tokens, b.TPOT = row.OutputTokensPerSecond, row.TPOT.P50
	measured := row.Cost
	row.Cost = b.Cost()
	row.JoulesPerGoodTurn = cmp.Or(measured.JoulesPerGoodTurn, row.JoulesPerGoodTurn) // by the SLOs of a sweep
	row.DollarsPerGoodTurn = cmp.Or(measured.DollarsPerGoodTurn, row.DollarsPerGoodTurn)
	in := row.Intervals
	if in == nil {
		return
	}
	if batched && len(e.totals) > 1 {
		var power, perToken, perTurn, price shares
		for i := range batches {
			from, to := e.batch(i)
			part := to.CostBasis(*from, d)
			watts, turns := known(part.Watts), known(part.GoodTurns)
			power.add(i, watts, 1)
			perToken.add(i, watts, known(part.Tokens))
			perTurn.add(i, watts, turns)
			price.add(i, 1, turns)
		}
		in.GPUPowerWatts = power.about(row.GPUPowerWatts)
		in.JoulesPerMillionTokens = perToken.about(row.JoulesPerMillionTokens)
		in.JoulesPerGoodTurn = perTurn.about(row.JoulesPerGoodTurn)
		in.DollarsPerGoodTurn = price.about(row.DollarsPerGoodTurn)
	}
	tokens := row.OutputTokensPerSecond
	in.TokensPerGPU = following(row.TokensPerGPU, tokens, in.OutputTokensPerSecond, false)
	in.DollarsPerMillionTokens = following(row.DollarsPerMillionTokens, tokens, in.OutputTokensPerSecond, true)
	in.TokensPerUser = following(row.TokensPerUser, row.TPOT.P50, in.TPOT.P50, true)
}

func known(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

// about returns the 95 % interval of a value in proportion to the ratio; nil where either is unknown.
func (s *shares) about(value *float64) *[2]float64 {
	ratio, deviation, ok := s.ratio()
	if value == nil || !ok || !(ratio > 0) {
		return nil
	}
	half := *value * Student * deviation / ratio
	return &[2]float64{max(0, *value-half), *value + half}
}

// following returns the interval of a value that is in proportion to another one, or inverse to it, by that one's
// interval; nil where there is none.
func following(value, to *float64, interval *[2]float64, inverse bool) *[2]float64 {
	switch {
	case value == nil || interval == nil || !(interval[0] > 0):
		return nil
	case inverse:
		return &[2]float64{*value * *to / interval[1], *value * *to / interval[0]}
	}
	return &[2]float64{*value * interval[0] / *to, *value * interval[1] / *to}
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
