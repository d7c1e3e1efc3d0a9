package baseline

import "kvbooth/sidecar/api"

// SLOColor is the level of a value against its threshold.
type SLOColor string

// The levels, which are green, yellow and red on a screen.
const (
	SLOMet    SLOColor = "met"    // below 90 % of the threshold
	SLONear   SLOColor = "near"   // from 90 % of the threshold to the threshold itself
	SLOMissed SLOColor = "missed" // above the threshold
)

// rounding is the relative error of decimal thresholds and interpolated values in binary. A value this close to a limit
// counts as equal to it.
const rounding = 1e-9

// Judge compares a latency with the threshold of its SLO, both in seconds. An SLO is met at the threshold itself; near
// is met too. Every screen, alert and report uses this function. A value or threshold that is not a number is missed.
func Judge(value, threshold float64) SLOColor {
	switch {
	case !(value <= threshold*(1+rounding)): // the negation includes NaN
		return SLOMissed
	case value >= threshold*0.9*(1-rounding):
		return SLONear
	default:
		return SLOMet
	}
}

// FailuresMiss reports whether so many turns failed that an SLO is missed, whatever the times of the others: an SLO is
// about a p95, and a failed turn counts as slower than every successful one. nil means that the ratio is unknown.
func FailuresMiss(ratio *float64) bool { return ratio != nil && *ratio > .05 }

// Meets reports whether a row meets every SLO: TTFT p95 and TPOT p95. A row whose TPOT p95 was not recorded is judged
// by TTFT alone. A row without a TTFT p95 cannot be judged and does not meet.
func Meets(row api.BaselineRow, slo api.SLO) bool {
	if FailuresMiss(row.ErrorRatio) || row.TTFT.P95 == nil || Judge(*row.TTFT.P95, slo.TTFT) == SLOMissed {
		return false
	}
	return row.TPOT.P95 == nil || Judge(*row.TPOT.P95, slo.TPOT) != SLOMissed
}

// decidable reports whether the result of [Meets] for a row is independent of the load generator's own error, and of
// turns that were cut.
func decidable(row api.BaselineRow, slo api.SLO) bool {
	if FailuresMiss(row.ErrorRatio) {
		return true
	}
	if QuantityOf("ttft_p95").AtLeastIn(&row) && Judge(*row.TTFT.P95, slo.TTFT) != SLOMissed {
		return false
	}
	certain := func(p api.Percentiles, e *float64, threshold float64, bothWays bool) bool {
		return p.P95 == nil || e == nil || api.Decidable(*p.P95, *e, threshold, bothWays)
	}
	return row.Errors == nil ||
		certain(row.TTFT, row.Errors.TTFT.P95, slo.TTFT, false) && certain(row.TPOT, row.Errors.TPOT.P95, slo.TPOT, true)
}

// Sustained returns the levels that each mode and speculation of a baseline sustains under the SLOs, in the order of
// [Columns], each level judged by [Meets]. Every screen and report uses it. It is never nil. A level on which the load
// generator's own error, or turns that were cut, could change the outcome counts as untested.
func Sustained(b api.Baseline, slo api.SLO) []api.Sustained {
	list := []api.Sustained{}
	for _, m := range modesOf(b) {
		list = append(list, sustained(rowsOf(b, m), m, slo))
	}
	return list
}

// sustained judges the rows of one mode, in ascending order of concurrency.
func sustained(rows []api.BaselineRow, m api.ModeState, slo api.SLO) api.Sustained {
	s := api.Sustained{
		Arm: m.Arm, Mode: m.Mode, Speculation: m.Speculation, SLO: slo,
		Isolated: []api.Level{}, TTFTOnly: []api.Level{}, Untested: []api.Level{},
	}
	level, broken := api.Level{}, false
	for _, row := range rows {
		if row.TTFT.P95 == nil || !decidable(row, slo) {
			s.Untested = append(s.Untested, row.Level)
			continue
		}
		s.Level = &level
		if row.TPOT.P95 == nil {
			s.TTFTOnly = append(s.TTFTOnly, row.Level)
		}
		switch {
		case !Meets(row, slo):
			broken = true
		case broken:
			s.Isolated = append(s.Isolated, row.Level)
		default:
			level = row.Level
		}
	}
	return s
}
