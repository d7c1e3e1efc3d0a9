package decide

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Two arms: each block is ABBA or BAAB with the middle as one run, once each in two blocks; the seed draws which.
func TestOrderOfTwoArmsBalances(t *testing.T) {
	first := map[int]int{}
	for seed := range uint64(200) {
		for block := 0; block < 6; block += 2 {
			a, b := Order(seed, []int{0, 1}, block), Order(seed, []int{0, 1}, block+1)
			assert.Equal(t, 1-a[0].Arm, b[0].Arm, "the second block is the other order")
			for _, runs := range [][]Run{a, b} {
				assert.Equal(t, []Run{{runs[0].Arm, 1, -1.5}, {1 - runs[0].Arm, 2, 0}, {runs[0].Arm, 1, 1.5}}, runs)
			}
			first[a[0].Arm]++
		}
	}
	assert.InDelta(t, 300, first[0], 60)
	assert.Equal(t, 7, Order(1, []int{3, 7}, 0)[0].Arm+Order(1, []int{3, 7}, 1)[0].Arm-3, "the arms that are left")
}

// More arms: each once in a block, and over a whole design each follows every other equally often.
func TestOrderOfMoreArmsBalances(t *testing.T) {
	for _, arms := range [][]int{{0, 1, 2}, {0, 1, 2, 3}, {0, 2, 5, 6, 9}, {0, 1, 2, 3, 4, 5}} {
		k := len(arms)
		rows := k
		if k%2 == 1 {
			rows = 2 * k
		}
		follows, places := map[[2]int]int{}, map[[2]int]int{}
		for block := range rows {
			runs := Order(11, arms, block)
			assert.Equal(t, runs, Order(11, arms, block+rows), "the design is repeated")
			for i, run := range runs {
				places[[2]int{run.Arm, i}]++
				if i > 0 {
					follows[[2]int{runs[i-1].Arm, run.Arm}]++
				}
			}
		}
		for _, a := range arms {
			for i, b := range arms {
				assert.Equal(t, rows/k, places[[2]int{a, i}], "arm %d at place %d of %d", a, i, k)
				if a != b {
					assert.Equal(t, rows/k, follows[[2]int{a, b}], "%d after %d of %d", b, a, k)
				}
			}
		}
	}
}
