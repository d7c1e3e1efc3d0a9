//go:build verify

package decisions

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbooth/internal/figure"
	"kvbooth/sidecar/loadgen/decide"
)

// ends counts how trials of one world end.
type ends struct {
	verdicts  map[string]int
	blocks    []int
	wrong     int // trials in which the primary metric shows a difference at the end
	faster    int // trials that call the last arm better
	failures  int // trials in which failures are shown to differ at the end
	succeeded int // trials whose means are those of successful turns at the end
}

func (e *ends) add(p decide.Plan, all []decide.Block) {
	d := decide.Decide(p, all)
	n := d.Looks[len(d.Looks)-1].Blocks
	verdict := string(d.Verdict)
	if d.Verdict == decide.Better {
		verdict = []string{"A better", "B better"}[d.Left[0]]
	}
	e.verdicts[verdict]++
	e.blocks = append(e.blocks, n)
	for _, counted := range []struct {
		n    *int
		here bool
	}{
		{&e.wrong, d.Primary[0].Shown != 0},
		{&e.failures, d.MoreFailures(0, 1) != 0},
		{&e.faster, verdict == "B better"},
		{&e.succeeded, d.Succeeded},
	} {
		if counted.here {
			*counted.n++
		}
	}
}

func (e *ends) String() (text string) {
	n := len(e.blocks)
	for _, v := range []string{
		"A better", "B better", "trade_off", "failures_differ", "no_difference", "time_over", "running",
	} {
		if e.verdicts[v] > 0 {
			text += fmt.Sprintf("%s %s, ", v, percent(e.verdicts[v], n))
		}
	}
	slices.Sort(e.blocks)
	return text + fmt.Sprintf("median %d blocks; primary differs %s, failures %s, means of successful turns %s",
		e.blocks[n/2], percent(e.wrong, n), percent(e.failures, n), percent(e.succeeded, n))
}

// Failures are decided beside the primary metric. Equal arms that fail as often are rarely called different in either,
// an arm that fails its slowest turns is rarely called better, and where failures certainly differ no trial ends
// without saying so.
func TestFailuresAreDecided(t *testing.T) {
	t.Parallel()
	sooner := []float64{0, math.Log1p(-.18)}
	both := func(share float64) world { return world{refused: []float64{share, share}, restart: .01} }
	for _, w := range []struct {
		name string
		world
		equal   bool // arms are equal in all
		censors bool // B is equal but for its failures
		certain bool // failures differ so much that the trial shows it
	}{
		{"B 18 % sooner, refuses 3 %", world{effect: sooner, refused: []float64{0, .03}, restart: .01}, false, false, true},
		{"B refuses 3 %", world{refused: []float64{0, .03}, restart: .01}, false, true, true},
		{"both refuse 0.5 %", both(.005), true, false, false},
		{"both refuse 3 %", both(.03), true, false, false},
		{"both refuse 10 %", both(.1), true, false, false},
		{"both refuse 3 %, for 5 s", world{refused: []float64{.03, .03}, outage: 5, restart: .01}, true, false, false},
		{"B fails its slowest 0.5 %", world{failing: .005, restart: .01}, false, true, false},
		{"B fails its slowest 0.9 %", world{failing: .009, restart: .01}, false, true, false},
		{"B fails its slowest 2 %", world{failing: .02, restart: .01}, false, true, true},
		{"B fails its slowest 4.5 %", world{failing: .045, restart: .01}, false, true, true},
	} {
		for _, slots := range []bool{false, true} {
			known, n := &decide.Boundaries{}, several()
			cells := []*ends{{verdicts: map[string]int{}}, {verdicts: map[string]int{}}, {verdicts: map[string]int{}}}
			primaries := []int{0, 1, 4}
			for i := range n {
				var all []decide.Block
				if slots {
					all = (&flow{world: w.world, rough: [2]float64{w.restart, w.restart}, period: 1}).pairs(i)
				} else {
					all = blocks(w.world, i)
				}
				for k, primary := range primaries {
					p := plan(2, primary, known)
					p.Switchback = slots
					cells[k].add(p, all)
				}
			}
			how := "blocks"
			if slots {
				how = "slots"
			}
			for k, c := range cells {
				name := fmt.Sprintf("%s, %s, %s", w.name, how, metrics[primaries[k]].Name)
				figure.Report(t, "%s: %s", name, c)
				if w.equal {
					assert.LessOrEqual(t, c.wrong, most(n), name)
					assert.LessOrEqual(t, c.failures, most(n), name)
				}
				if w.censors {
					assert.LessOrEqual(t, c.faster, most(n), name)
				}
				if w.certain {
					assert.LessOrEqual(t, c.verdicts["no_difference"]+c.verdicts["time_over"]+c.faster, n/20, name)
				}
			}
		}
	}
}
