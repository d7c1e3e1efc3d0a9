package arrival

import (
	"math"
	"math/rand/v2"
	"time"

	"gonum.org/v1/gonum/stat/distuv"
)

// Gaps is the distribution of the time between two arrivals of an [Open] load.
type Gaps string

// The distributions. The mean is the same for all.
const (
	GapsConstant Gaps = "constant" // equal intervals
	GapsPoisson  Gaps = "poisson"  // exponential: each moment is as likely as any other
	GapsGamma    Gaps = "gamma"    // burstier than poisson below a burstiness of 1, more regular above
)

// Schedule draws the arrivals of an [Open] load. Equal schedules give equal arrivals, also if the rate changes in
// between: only the lengths of the gaps are drawn, in means.
type Schedule struct {
	Gaps Gaps
	// Burstiness is the shape of the gamma distribution, more than 0, with the meaning that it has in vLLM's benchmark:
	// the squared coefficient of variation of the gaps is its inverse. Other distributions ignore it.
	Burstiness float64
	Seed       uint64
	First      int64 // number of the arrival that has the first draws
}

// gap returns the gap before arrival k, in means. Arrival 0 has none with constant gaps, since equal intervals have a
// beginning.
func (s Schedule) gap(k int64) float64 {
	k -= s.First
	rng := rand.New(rand.NewPCG(s.Seed, arrivals^uint64(k)))
	switch s.Gaps {
	case GapsPoisson:
		return rng.ExpFloat64()
	case GapsGamma:
		return distuv.Gamma{Alpha: s.Burstiness, Beta: s.Burstiness, Src: rng}.Rand()
	}
	return min(1, float64(k))
}

// arrivals separates the draws of gaps from others of the same seed.
const arrivals = 0x9e3779b97f4a7c15

// Open begins conversations at a rate, however many are in progress. Those that are late are made up for at once.
type Open struct {
	schedule Schedule
	rate     float64
	next     time.Duration // moment of the next arrival
	number   int64         // of the next arrival
	first    int64         // number of the first arrival at the present rate
}

var _ Process = (*Open)(nil)

// NewOpen returns a load with a rate per second, more than 0, from a moment on. number is that of its first arrival.
func NewOpen(from time.Duration, number int64, rate float64, s Schedule) *Open {
	o := &Open{schedule: s, rate: rate, next: from, number: number, first: number}
	o.next += o.wait()
	return o
}

// wait is the time from the arrival before the next one to the next one.
func (o *Open) wait() time.Duration {
	return time.Duration(math.Min(o.schedule.gap(o.number)/o.rate*float64(time.Second), math.MaxInt64/2))
}

// Follows reports whether the load draws by a schedule.
func (o *Open) Follows(s Schedule) bool { return o.schedule == s }

// Set changes the rate from now on. The part of the gap in progress that is left becomes as much longer as the rate
// becomes lower.
func (o *Open) Set(now time.Duration, rate float64) {
	if rate == o.rate {
		return
	}
	if o.next > now {
		o.next = now + time.Duration(float64(o.next-now)*o.rate/rate)
	}
	o.rate, o.first = rate, o.number
}

// Next implements [Process].
func (o *Open) Next(State) (at time.Duration, ok bool) { return o.next, true }

// Begin implements [Process].
func (o *Open) Begin(State) (intended time.Duration) {
	intended = o.next
	o.number++
	o.next += o.wait()
	return intended
}

// Surplus implements [Process].
func (o *Open) Surplus(State) bool { return false }

// Settled implements [Process]. Conversations of all ages are in progress once the first one that began at the present
// rate has ended, with all before it.
func (o *Open) Settled(s State) bool { return s.Oldest > o.first }

// Waits implements [Process].
func (o *Open) Waits() bool { return false }
