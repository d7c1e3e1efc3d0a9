//go:build verify

package decisions

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbooth/internal/figure"
	"kvbooth/sidecar/loadgen/decide"
)

// The slots of a switchback with turns of 25 s, and the warm-up of its one run.
const (
	slotSeconds = 75.
	leadIn      = 30.
	slotPairs   = 23 // that fit into an hour
)

// flow is a world whose state goes on from slot to slot.
type flow struct {
	world
	sine   float64 // amplitude of a swing of the speed
	period float64 // of the swing, in slots
	walk   float64 // standard deviation of the step of a random walk of the speed from slot to slot
	rough  [2]float64
	lag    float64 // slowness of the first 30 s after a change of arm, which decays with half of that time
}

// pairs draws the blocks of a switchback of an hour.
func (f *flow) pairs(trial int) (all []decide.Block) {
	rng := rand.New(rand.NewPCG(uint64(trial), 71))
	s := &spans{world: f.world, arms: 2, rng: rng}
	wandered := s.wanders(hour + slotSeconds)
	phase, walked, busy, swung, stalled, clock := rng.Float64(), 0., 0., f.swing*rng.NormFloat64(), math.Inf(-1), 0.
	kept := math.Exp(-1. / rate / memory)
	previous := -1
	for n := range slotPairs {
		var measured []samples
		b := decide.Block{Seconds: 2 * slotSeconds}
		if n == 0 {
			b.Seconds += warmUp
		}
		for _, r := range decide.Pair(uint64(trial), []int{0, 1}, n) {
			var m samples
			level := f.rough[r.Arm] * rng.NormFloat64()
			walked += f.walk * rng.NormFloat64()
			level += walked
			next := 0.
			for t := 0.; t < slotSeconds; t += rng.ExpFloat64() / rate {
				for ; t >= next; next += loadStep {
					busy = nextLoad(busy, rng)
				}
				if f.stalls && rng.Float64() < 1./rate/120 {
					stalled = clock + t + min(.5*math.Pow(rng.Float64(), -1/1.5), 60)
				}
				at := level + wandered[min(int((clock+t)/60), len(wandered)-1)] + f.drift*(clock+t)/slotSeconds +
					f.sine*math.Sin(2*math.Pi*(phase+(clock+t)/slotSeconds/f.period))
				if previous >= 0 && previous != r.Arm {
					at += f.lag * math.Exp(-t/leadIn*2*math.Ln2)
				}
				swung = kept*swung + f.swing*math.Sqrt(1-kept*kept)*rng.NormFloat64()
				ttft := .22 * math.Exp(.3*rng.NormFloat64())
				if rng.Float64() < .14*math.Exp(busy) {
					ttft += .25 * rng.ExpFloat64()
				}
				ttft = ttft*math.Exp(at+swung+s.effectOf(r.Arm)) + max(0, stalled-clock-t)
				tpot := perToken * math.Exp(at+.1*rng.NormFloat64()+.02*busy)
				refused := s.refuses(r.Arm, clock+t)
				if t < leadIn {
					continue
				}
				m.ended++
				if refused {
					m.fails(refusal)
					continue
				}
				m.ttft.OK, m.tpot.OK = append(m.ttft.OK, ttft), append(m.tpot.OK, tpot)
				m.prompt, m.cached = m.prompt+4000, m.cached+4000*min(1, .9+.02*rng.NormFloat64())
				if ttft <= slo.TTFT && tpot <= slo.TPOT {
					m.good++
				}
			}
			for second := leadIn; second < slotSeconds; second++ {
				m.tokens += rate * tokens * math.Exp(.1*rng.NormFloat64()-level)
				m.time++
			}
			if r.Arm == 1 {
				m.fail(f.failing)
			}
			measured = append(measured, m)
			b.Spans = append(b.Spans, decide.Span{Arm: r.Arm, At: r.At})
			clock += slotSeconds
			previous = r.Arm
		}
		slowest := [2]float64{
			decide.Largest(measured[0].ttft, measured[1].ttft), decide.Largest(measured[0].tpot, measured[1].tpot),
		}
		for i := range measured {
			m := &measured[i]
			b.Spans[i].Values, b.Spans[i].Failed, b.Spans[i].Ended = m.values(slowest[0], slowest[1]), m.failed, m.ended
			b.Spans[i].Succeeded = m.succeeded()
		}
		all = append(all, b)
	}
	return all
}

// fail makes a share of the turns fail, the slowest ones, at the time of their first token.
func (s *samples) fail(share float64) {
	n := int(math.Round(share * float64(len(s.ttft.OK))))
	for range n {
		slowest := 0
		for i, v := range s.ttft.OK {
			if v > s.ttft.OK[slowest] {
				slowest = i
			}
		}
		s.fails(s.ttft.OK[slowest])
		s.ttft.OK = append(s.ttft.OK[:slowest], s.ttft.OK[slowest+1:]...)
	}
}

// switchbacks runs switchbacks in one world, once with each of the first metrics as the primary one.
func switchbacks(f flow, primaries int, truth float64) []*cell {
	cells, known := make([]*cell, primaries), &decide.Boundaries{}
	for i := range trials() {
		all := f.pairs(i)
		for primary := range primaries {
			if cells[primary] == nil {
				cells[primary] = &cell{}
			}
			p := plan(2, primary, known)
			p.Switchback = true
			d := decide.Decide(p, all)
			if d.Verdict == decide.Running {
				d.Verdict = decide.TimeOver
			}
			cells[primary].add(d, taken(all, d.Looks[len(d.Looks)-1].Blocks), truth)
		}
	}
	return cells
}

// Equal arms of a switchback are called different in at most 5 % of trials, whatever else changes the speed.
func TestEqualArmsOfSwitchback(t *testing.T) {
	t.Parallel()
	for _, w := range []struct {
		name string
		flow
	}{
		{"nothing but chance", flow{}},
		{"slots scatter by 2 % under A, 6 % under B", flow{rough: [2]float64{.02, .06}}},
		{"random walk of 3 % a slot", flow{walk: .03}},
		{"drift of 1 % a slot", flow{world: world{drift: .01}}},
		{"swing of 5 %, period of 2 slots", flow{sine: .05, period: 2}},
		{"swing of 5 %, period of 3 slots", flow{sine: .05, period: 3}},
		{"swing of 5 %, period of 4 slots", flow{sine: .05, period: 4}},
		{"swing of 5 %, period of 5 slots", flow{sine: .05, period: 5}},
		{"load swings by 15 % with a memory of 30 s", flow{world: world{swing: .15}}},
		{"speed wanders by 2 %", flow{world: world{wander: .02}}},
		{"10 % slower at a change of arm", flow{lag: .1}},
		{"heavy-tailed stalls", flow{world: world{stalls: true}}},
	} {
		if w.period == 0 {
			w.period = 1
		}
		cells := switchbacks(w.flow, 5, 0)
		var shares []string
		for i, c := range cells {
			wrong := c.better + c.worse
			shares = append(shares, percent(wrong, trials()))
			assert.LessOrEqual(t, wrong, most(trials()), "%s, %s", w.name, metrics[i].Name)
		}
		figure.Report(t, "switchback, %s: called different, in %%: %v (%s); others %s", w.name, shares,
			"TTFT mean, p95, p50, TPOT p95, throughput", percent(cells[0].others, trials()))
	}
}

// A true difference is found in fewer minutes than by a trial on cold caches, and the interval holds it.
func TestSwitchbackFindsTrueDifferences(t *testing.T) {
	t.Parallel()
	for _, effect := range []float64{-.05, -.10, -.14, -.18, -.26, -.33} {
		truth := math.Log1p(effect)
		f := flow{world: world{effect: []float64{0, truth}}, rough: [2]float64{.01, .01}, period: 1}
		c := switchbacks(f, 2, truth)
		for i, name := range []string{"TTFT mean", "TTFT p95"} {
			figure.Report(t, "switchback, %+.0f %%, %s: decided %s %%, median %.0f minutes, covered %s %%, estimate %.2f",
				100*effect, name, percent(c[i].better, trials()), c[i].median(), percent(c[i].covered, c[i].final),
				c[i].bias/float64(max(1, c[i].final))/truth)
		}
		if effect <= -.1 {
			assert.Greater(t, c[0].better, trials()*9/10)
			assert.Zero(t, c[0].worse)
		}
	}
}
