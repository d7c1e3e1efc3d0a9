//go:build verify

package decisions

import (
	"math"
	"testing"

	"kvbooth/sidecar/loadgen/decide"
	"kvbooth/sidecar/test/montecarlo"
)

// refusing are two arms of which some turns fail.
type refusing struct {
	world
	equal   bool // arms are equal in all
	censors bool // B is equal but for its failures
	certain bool // failures differ so much that the trial shows it
}

// ends are the verdicts beside that of a better arm.
var ends = []decide.Verdict{
	decide.TradeOff, decide.FailuresDiffer, decide.NoDifference, decide.TimeOver, decide.Running,
}

// Failures are decided beside the primary metric. Equal arms that fail as often are rarely called different in either,
// an arm that fails its slowest turns is rarely called better, and where failures certainly differ no trial ends
// without saying so.
func TestFailuresAreDecided(t *testing.T) {
	t.Parallel()
	sooner := []float64{0, math.Log1p(-.18)}
	both := func(share float64) world { return world{refused: []float64{share, share}, restart: .01} }
	montecarlo.Run(t, "failures", map[string]refusing{
		"B 18 % sooner, refuses 3 %": {
			world{effect: sooner, refused: []float64{0, .03}, restart: .01}, false, false, true,
		},
		"B refuses 3 %":     {world{refused: []float64{0, .03}, restart: .01}, false, true, true},
		"both refuse 0.5 %": {both(.005), true, false, false},
		"both refuse 3 %":   {both(.03), true, false, false},
		"both refuse 10 %":  {both(.1), true, false, false},
		"both refuse 3 %, for 5 s": {
			world{refused: []float64{.03, .03}, outage: 5, restart: .01}, true, false, false,
		},
		"B fails its slowest 0.5 %": {world{failing: .005, restart: .01}, false, true, false},
		"B fails its slowest 0.9 %": {world{failing: .009, restart: .01}, false, true, false},
		"B fails its slowest 2 %":   {world{failing: .02, restart: .01}, false, true, true},
		"B fails its slowest 4.5 %": {world{failing: .045, restart: .01}, false, true, true},
	}, func(t *testing.T, w refusing, r *montecarlo.Results) {
		n, known := several(), &decide.Boundaries{}
		for _, from := range []target{w.world, flow{world: w.world, rough: [2]float64{w.restart, w.restart}}} {
			how := "blocks, "
			_, slots := from.(flow)
			if slots {
				how = "slots, "
			}
			for i := range n {
				all := from.blocks(i)
				for _, primary := range []int{0, 1, 4} {
					p := plan(2, primary, known)
					p.Switchback = slots
					countEnd(r.Cell(how+metrics[primary].Name), decide.Decide(p, all))
				}
			}
			for _, primary := range []int{0, 1, 4} {
				c := r.Cell(how + metrics[primary].Name)
				if w.equal {
					c.AtMost(t, "primary differs", montecarlo.Most(n))
					c.AtMost(t, "failures differ", montecarlo.Most(n))
				}
				if w.censors {
					c.AtMost(t, "B better", montecarlo.Most(n))
				}
				if w.certain {
					c.AtMost(t, "says nothing of failures", n/20)
				}
			}
		}
	})
}

// countEnd counts how a trial ends.
func countEnd(c *montecarlo.Cell, d decide.Decision) {
	better := d.Verdict == decide.Better
	b := better && d.Left[0] == 1
	c.Count("A better", better && d.Left[0] == 0)
	c.Count("B better", b)
	for _, v := range ends {
		c.Count(string(v), d.Verdict == v)
	}
	c.Count("says nothing of failures", b || d.Verdict == decide.NoDifference || d.Verdict == decide.TimeOver)
	c.Sample("blocks", float64(d.Looks[len(d.Looks)-1].Blocks))
	c.Count("primary differs", d.Primary[0].Shown != 0)
	c.Count("failures differ", d.MoreFailures(0, 1) != 0)
	c.Count("means of successful turns", d.Succeeded)
}
