package decide

import (
	"math/rand/v2"
	"slices"
)

// Run is one uninterrupted measurement of an arm in a block.
type Run struct {
	Arm    int
	Length int     // in spans: 2 where two neighboring spans of an arm run as one
	At     float64 // middle of the run on the axis of the block's spans, 0 at the middle of the block
	// RunIn is the number of spans before the run counts: one for the first run of a block of two arms, so that it follows
	// a span of its own arm.
	RunIn int
}

// Order returns the runs of a block, from 0, of the arms that are left. Two arms run as ABBA or BAAB with the middle
// pair as one run. The seed draws the first order, which changes after every block: a swing of the speed as long as a
// block, which favors the same arm in each block of one order, then cancels out, and so does a difference in scatter
// between single and double runs. With the run-in, each arm follows itself as often as the other arm, so that the
// after-effects of a run are the same for both. More arms run as in [EachOnce].
func Order(seed uint64, arms []int, block int) []Run {
	if len(arms) == 2 {
		outer, inner := outerInner(seed, arms, block)
		return []Run{
			{Arm: outer, Length: 1, At: -1.5, RunIn: 1}, {Arm: inner, Length: 2}, {Arm: outer, Length: 1, At: 1.5},
		}
	}
	return EachOnce(seed, arms, block)
}

// EachOnce returns the runs of a block of arms that run once each, in the order of a row of a Williams design, in which
// every arm follows every other equally often: "Experimental designs balanced for the estimation of residual effects of
// treatments", Australian Journal of Scientific Research 2 (1949). Two arms run as AB and BA, in turn, so that each
// follows itself from block to block as often as the other. The seed draws the arms' names and the order of the rows.
func EachOnce(seed uint64, arms []int, block int) []Run {
	rng := rand.New(rand.NewPCG(seed, 1<<63))
	names, rows := rng.Perm(len(arms)), williams(len(arms))
	row := rows[rng.Perm(len(rows))[block%len(rows)]]
	runs := make([]Run, len(arms))
	for i, place := range row {
		runs[i] = Run{Arm: arms[names[place]], Length: 1, At: float64(i) - float64(len(arms)-1)/2}
	}
	return runs
}

// SideBySide returns the runs of a block of two arms on two lanes: two runs on each, with the arms exchanged in
// between, so that differences of the lanes cancel out. At is −½ on the first lane and ½ on the second.
func SideBySide(seed uint64, arms []int, block int) [2][2]Run {
	outer, inner := outerInner(seed, arms, block)
	run := func(arm int, at float64) Run { return Run{Arm: arm, Length: 1, At: at} }
	return [2][2]Run{{run(outer, -.5), run(inner, .5)}, {run(inner, -.5), run(outer, .5)}}
}

// Pair returns the runs of a block of two arms that change while conversations go on, one run of each. The seed draws
// the order of every pair by itself, so that no swing of the load keeps time with it. At is 0, since a random order
// leaves no slope to correct.
func Pair(seed uint64, arms []int, block int) []Run {
	first := rand.New(rand.NewPCG(seed, 1<<62+uint64(block))).IntN(2)
	return []Run{{Arm: arms[first], Length: 1}, {Arm: arms[1-first], Length: 1}}
}

// outerInner assigns two arms to the places of ABBA.
func outerInner(seed uint64, arms []int, block int) (outer, inner int) {
	if coin := rand.New(rand.NewPCG(seed, 0)).IntN(2); (coin+block)%2 == 1 {
		return arms[1], arms[0]
	}
	return arms[0], arms[1]
}

// williams returns the rows of a Williams design: k of them for an even number of arms, 2k for an odd one, with the
// reverse of each row.
func williams(k int) (rows [][]int) {
	for shift := range k {
		row := make([]int, k)
		for i := range row {
			place := (i + 1) / 2 // 0, 1, k-1, 2, k-2, …
			if i%2 == 0 {
				place = k - i/2
			}
			row[i] = (place + shift) % k
		}
		rows = append(rows, row)
		if k%2 == 1 {
			row = slices.Clone(row)
			slices.Reverse(row)
			rows = append(rows, row)
		}
	}
	return rows
}
