package decide

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Each block of two arms is ABBA or BAAB with the middle as one run. The seed draws the first order, which changes
// after every block.
func TestOrderOfTwoArmsBalances(t *testing.T) {
	first := map[int]int{}
	for seed := range uint64(200) {
		outer := Order(seed, []int{3, 7}, 0)[0].Arm
		first[outer]++
		for block := range 8 {
			a, b := outer, 10-outer
			if block%2 == 1 {
				a, b = b, a
			}
			want := []Run{{Arm: a, Length: 1, At: -1.5, RunIn: 1}, {Arm: b, Length: 2}, {Arm: a, Length: 1, At: 1.5}}
			assert.Equal(t, want, Order(seed, []int{3, 7}, block))
			lanes := SideBySide(seed, []int{3, 7}, block)
			assert.Equal(t, [2][2]int{{a, b}, {b, a}}, [2][2]int{
				{lanes[0][0].Arm, lanes[0][1].Arm},
				{lanes[1][0].Arm, lanes[1][1].Arm},
			})
		}
	}
	assert.InDelta(t, 100, first[3], 30)
	assert.Equal(t, []Run{{Arm: 4, Length: 1}}, Order(1, []int{4}, 0))
}

// Over a whole design of arms that run once each in a block, each follows every other equally often. More than two arms
// always run so.
func TestArmsOnceEachBalance(t *testing.T) {
	for _, arms := range [][]int{{3, 7}, {0, 1, 2}, {0, 1, 2, 3}, {0, 2, 5, 6, 9}, {0, 1, 2, 3, 4, 5}} {
		k := len(arms)
		rows := k
		if k%2 == 1 {
			rows = 2 * k
		}
		follows, places := map[[2]int]int{}, map[[2]int]int{}
		for block := range rows {
			runs := EachOnce(11, arms, block)
			assert.Equal(t, runs, EachOnce(11, arms, block+rows), "the design is repeated")
			assert.Equal(t, k > 2, slices.Equal(runs, Order(11, arms, block)))
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
