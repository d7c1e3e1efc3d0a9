package decide

import (
	"math"
	"slices"
)

// Sample holds one time of the turns of a run. A failed turn counts as slower than every successful turn of its block:
// as [Largest] of the block's runs, or as its own wait where that is longer. An arm that fails its slow turns therefore
// does not look fast, a turn that fails at the time-out counts with the time-out, and a turn that is refused at once
// does not outweigh hundreds of others. Quantiles depend on the rank only, as long as they fall on a successful turn.
type Sample struct {
	OK     []float64 // of successful turns
	Failed []float64 // the wait of each failed turn; 0 where there is no comparable time, as for TPOT
}

// Largest returns the largest value of successful turns over the runs of a block, 0 without any.
func Largest(block ...Sample) (largest float64) {
	for _, s := range block {
		for _, v := range s.OK {
			largest = max(largest, v)
		}
	}
	return largest
}

// Mean returns the mean over all turns, NaN without turns.
func (s Sample) Mean(largest float64) float64 {
	sum := 0.0
	for _, v := range s.OK {
		sum += v
	}
	for _, v := range s.Failed {
		sum += max(v, largest)
	}
	return sum / float64(len(s.OK)+len(s.Failed))
}

// Quantile returns the p-quantile over all turns, with linear interpolation (definition 7 of Hyndman and Fan), NaN
// without turns. Where it falls on a failed turn, it is a lower bound.
func (s Sample) Quantile(p, largest float64) float64 {
	all := slices.Clone(s.OK)
	for _, v := range s.Failed {
		all = append(all, max(v, largest))
	}
	if len(all) == 0 {
		return math.NaN()
	}
	slices.Sort(all)
	h := p * float64(len(all)-1)
	i := int(h)
	j := min(i+1, len(all)-1)
	return all[i] + (h-float64(i))*(all[j]-all[i])
}
