//go:build verify

package decisions

import (
	"cmp"
	"math"
	"math/rand/v2"

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
	period float64 // of the swing, in slots; 0: 1
	walk   float64 // standard deviation of the step of a random walk of the speed from slot to slot
	rough  [2]float64
	lag    float64 // slowness of the first 30 s after a change of arm, which decays with half of that time
}

// blocks draws the pairs of slots of a switchback of an hour.
func (f flow) blocks(trial int) (all []decide.Block) {
	rng := rand.New(rand.NewPCG(uint64(trial), 71))
	s := &spans{world: f.world, arms: 2, rng: rng}
	wandered := s.wanders(hour + slotSeconds)
	phase, walked, busy, swung, stalled, clock := rng.Float64(), 0., 0., f.swing*rng.NormFloat64(), math.Inf(-1), 0.
	period, previous := cmp.Or(f.period, 1), -1
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
				stalled = s.stall(clock+t, stalled)
				at := level + wandered[min(int((clock+t)/60), len(wandered)-1)] + f.drift*(clock+t)/slotSeconds +
					f.sine*math.Sin(2*math.Pi*(phase+(clock+t)/slotSeconds/period))
				if previous >= 0 && previous != r.Arm {
					at += f.lag * math.Exp(-t/leadIn*2*math.Ln2)
				}
				swung = s.swings(swung)
				ttft := drawTTFT(busy, rng)*math.Exp(at+swung+s.effectOf(r.Arm)) + max(0, stalled-clock-t)
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
		measure(&b, measured)
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
