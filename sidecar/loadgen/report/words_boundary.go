package report

import (
	"fmt"

	"kvbooth/sidecar/loadgen/proof"
)

// boundaryWords names TTFT p95 of both sides at the highest level that either sustains, where the SLOs begin to
// separate them. It is empty if both sustain the same level, if one of them was not measured at that level, or if the
// two are not compared.
func (r *Results) boundaryWords(p *proof.Pair) []string {
	better, other := &r.Sides[p.B], &r.Sides[p.A]
	x, y := better.Sustained, other.Sustained
	if p.Withheld != "" || x == nil || y == nil || x.Level == nil || y.Level == nil {
		return nil
	}
	if x.Level.Compare(*y.Level) < 0 {
		better, other, x, y = other, better, y, x
	}
	mine, theirs := better.Row(*x.Level), other.Row(*x.Level)
	if *x.Level == *y.Level || mine == nil || theirs == nil || mine.TTFT.P95 == nil || theirs.TTFT.P95 == nil {
		return nil
	}
	ttft := describe(proof.QuantityTTFT95)
	return []string{fmt.Sprintf("At %s, the most that %s sustains, TTFT p95 is %s, against %s under %s.",
		x.Level.InWords(), better.Name, ttft.value(*mine.TTFT.P95), ttft.value(*theirs.TTFT.P95), other.Name)}
}
