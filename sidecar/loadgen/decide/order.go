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
}

// Order returns the runs of a block, from 0, of the arms that are left. Two arms run as ABBA or BAAB with the middle
// pair as one run, and each order is used once in blocks 2k and 2k+1, so that both arms have as many single and double
// runs. More arms run once each in the order of a row of a Williams design, in which every arm follows every other
// equally often: "Experimental designs balanced for the estimation of residual effects of treatments", Australian
// Journal of Scientific Research 2 (1949). The seed draws names and order of the rows.
func Order(seed uint64, arms []int, block int) []Run {
	switch len(arms) {
	case 0:
		return nil
	case 1:
		return []Run{{Arm: arms[0], Length: 1}}
	case 2:
		outer, inner := arms[0], arms[1]
		if coin := rand.New(rand.NewPCG(seed, uint64(block/2))).IntN(2); (coin+block)%2 == 1 {
			outer, inner = inner, outer
		}
		return []Run{{outer, 1, -1.5}, {inner, 2, 0}, {outer, 1, 1.5}}
	}
	rng := rand.New(rand.NewPCG(seed, 1<<63))
	names, rows := rng.Perm(len(arms)), williams(len(arms))
	row := rows[rng.Perm(len(rows))[block%len(rows)]]
	runs := make([]Run, len(arms))
	for i, place := range row {
		runs[i] = Run{Arm: arms[names[place]], Length: 1, At: float64(i) - float64(len(arms)-1)/2}
	}
	return runs
}

// williams returns the rows of a Williams design: k of them for an even number of arms, 2k for an odd one, where each
// row comes with its reverse.
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
