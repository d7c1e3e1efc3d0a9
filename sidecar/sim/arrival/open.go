package arrival

import (
	"math"
	"math/rand/v2"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"kvbooth/sidecar/api"
)

// Schedule draws the arrivals of an [Open] load. Equal schedules give equal arrivals, also if the rate changes in
// between: only the lengths of the gaps are drawn, in means.
type Schedule struct {
	Gaps api.Arrivals // the distribution of gaps
	// Burstiness is the shape of the gamma distribution, more than 0, with the meaning that it has in vLLM's benchmark:
	// the squared coefficient of variation of the gaps is its inverse. Other distributions ignore it.
	Burstiness float64
	Seed       uint64
}

// gap returns the gap before arrival k, in means. Arrival 0 has none with constant gaps, since equal intervals have a
// beginning.
func (s Schedule) gap(k int64) float64 {
	rng := rand.New(rand.NewPCG(s.Seed, arrivals^uint64(k)))
	switch s.Gaps {
	case api.ArrivalsPoisson:
		return rng.ExpFloat64()
	case api.ArrivalsGamma:
		return distuv.Gamma{Alpha: s.Burstiness, Beta: s.Burstiness, Src: rng}.Rand()
	}
	return min(1, float64(k))
}

// arrivals separates the draws of gaps from others of the same seed.
const arrivals = 0x9e3779b97f4a7c15

// Ramp is a rate that changes evenly from one to another, and then stays.
type Ramp struct {
	From, To float64       // conversations per second, more than 0; From is ignored without a time
	Over     time.Duration // 0: To from the beginning on
}

// course is a ramp that begins at a moment.
type course struct {
	Ramp
	from time.Duration
}

func (c course) end() time.Duration { return c.from + c.Over }

// at returns the rate at a moment from the beginning on.
func (c course) at(t time.Duration) float64 {
	if t >= c.end() {
		return c.To
	}
	return c.From + (c.To-c.From)*float64(t-c.from)/float64(c.Over)
}

// between returns the number of arrivals between two moments, in the mean: the integral of the rate.
func (c course) between(t, until time.Duration) float64 {
	bend := min(max(c.end(), t), until)
	return (c.at(t)+c.at(bend))/2*(bend-t).Seconds() + c.To*(until-bend).Seconds()
}

// after returns the moment at which n arrivals have come since t, in the mean.
func (c course) after(t time.Duration, n float64) time.Duration {
	if end := c.end(); t < end {
		if all := c.between(t, end); n >= all {
			n, t = n-all, end
		}
	}
	rate, slope := c.at(t), 0.
	if t < c.end() {
		slope = (c.To - c.From) / c.Over.Seconds()
	}
	// n = rate·x + slope·x²/2
	x := 2 * n / (rate + math.Sqrt(max(0, rate*rate+2*slope*n)))
	return t + time.Duration(math.Min(x*float64(time.Second), math.MaxInt64/4))
}

// Open begins conversations at a rate, however many are in progress. Those that are late are made up for at once.
type Open struct {
	schedule Schedule
	rate     course
	next     time.Duration // moment of the next arrival
	number   int64         // of the next arrival
	first    int64         // number of the first arrival at the rate that stays
}

var _ Process = (*Open)(nil)

// NewOpen returns a load at a rate, from a moment on. number is that of its first arrival.
func NewOpen(from time.Duration, number int64, rate Ramp, s Schedule) *Open {
	o := &Open{schedule: s, rate: course{rate, from}, number: number, first: number}
	o.next = o.rate.after(from, s.gap(number))
	return o
}

// Set changes the rate from now on. The part of the gap in progress that is left becomes as much longer as the rate
// becomes lower.
func (o *Open) Set(now time.Duration, rate Ramp) {
	if rate == o.rate.Ramp {
		return
	}
	changed := course{rate, now}
	if o.next > now {
		o.next = changed.after(now, o.rate.between(now, o.next))
	}
	o.rate, o.first = changed, o.number
}

// Next implements [Process].
func (o *Open) Next(State) (at time.Duration, ok bool) { return o.next, true }

// Begin implements [Process].
func (o *Open) Begin(State) (intended time.Duration) {
	intended = o.next
	o.number++
	if intended < o.rate.end() {
		o.first = o.number
	}
	o.next = o.rate.after(o.next, o.schedule.gap(o.number))
	return intended
}

// Surplus implements [Process].
func (o *Open) Surplus(State) bool { return false }

// Settled implements [Process]. Conversations of all ages are in progress once the first one that began at the rate
// that stays has ended, with all before it. So a ramp settles after its end.
func (o *Open) Settled(s State) bool { return s.Oldest > o.first }

// Waits implements [Process].
func (o *Open) Waits() bool { return false }
