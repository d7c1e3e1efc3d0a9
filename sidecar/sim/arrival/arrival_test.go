package arrival

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat/distuv"

	"kvbooth/sidecar/api"
)

// starts runs a process until a moment, looking at it with a granularity, and returns the moments of the beginnings.
func starts(p Process, from, until, granularity time.Duration, active func(n int) int) (all []time.Duration) {
	for now := from; now < until; {
		s := State{Now: now, Active: active(len(all))}
		if at, ok := p.Next(s); ok && at <= now {
			p.Begin(s)
			all = append(all, now)
			continue
		}
		now += granularity
	}
	return all
}

func held(n int) int { return n }
func none(int) int   { return 0 }

// A closed loop fills up at its rate and then stays, with any granularity of its clock. It is settled at its number.
func TestClosedLoop(t *testing.T) {
	l := NewClosedLoop(5, 2)
	all := starts(l, 0, time.Minute, 10*time.Millisecond, held)
	assert.Equal(t, []time.Duration{0, 500 * time.Millisecond, time.Second, 1500 * time.Millisecond, 2 * time.Second}, all)
	assert.True(t, l.Settled(State{Active: 5}))
	assert.False(t, l.Settled(State{Active: 4}))
	assert.False(t, l.Surplus(State{Active: 5}))
	assert.True(t, l.Surplus(State{Active: 6}))
	for _, rate := range []float64{1, 50, 1000} {
		n := len(starts(NewClosedLoop(1e6, rate), 0, 10*time.Second, 3*time.Millisecond, none))
		assert.InDelta(t, 10*rate, float64(n), max(2, .14*10*rate), "%v conversations/s", rate)
	}
	assert.Len(t, starts(NewClosedLoop(1000, 0), 0, time.Millisecond, time.Millisecond, held), 1000, "without a rate")
}

// A pause in which none was missing is not made up for.
func TestClosedLoopAfterAPause(t *testing.T) {
	l := NewClosedLoop(1e6, 10)
	l.Begin(State{Now: 0})
	assert.Len(t, starts(l, time.Hour, time.Hour+time.Second, time.Millisecond, none), 10)
}

// Another rate applies to the wait in progress.
func TestClosedLoopSetAnew(t *testing.T) {
	l := NewClosedLoop(10, .1)
	l.Begin(State{Now: 0})
	l.Set(5*time.Second, 10, 1) // half of the interval is left
	at, ok := l.Next(State{})
	assert.Equal(t, 5500*time.Millisecond, at)
	assert.True(t, ok)
	l.Set(5*time.Second, 0, 0)
	at, ok = l.Next(State{})
	assert.Equal(t, 5*time.Second, at, "without a limit, at once")
	assert.False(t, ok, "none is missing")
}

// A constant rate goes on whatever is in progress, and makes up for what was late, which was intended for earlier.
func TestOpenConstant(t *testing.T) {
	o := NewOpen(time.Second, 0, Ramp{To: 4}, Schedule{Gaps: api.ArrivalsConstant})
	assert.Len(t, starts(o, 0, 11*time.Second, 70*time.Millisecond, held), 40)
	assert.False(t, o.Surplus(State{Active: 1000}))
	assert.False(t, o.Waits())
	at, ok := o.Next(State{})
	require.True(t, ok)
	assert.Equal(t, 11*time.Second, at)
	assert.Equal(t, at, o.Begin(State{Now: 13 * time.Second}))
	assert.Len(t, starts(o, 13*time.Second, 13*time.Second+time.Nanosecond, time.Millisecond, held), 8)
}

// The gaps have the distribution that they are named after, by the test of Kolmogorov and Smirnov at 1 %.
func TestOpenGaps(t *testing.T) {
	const n, rate = 20_000, 50.
	for name, row := range map[string]struct {
		schedule Schedule
		cdf      func(seconds float64) float64
	}{
		"poisson": {Schedule{api.ArrivalsPoisson, 0, 1}, distuv.Exponential{Rate: rate}.CDF},
		"bursty":  {Schedule{api.ArrivalsGamma, .5, 1}, distuv.Gamma{Alpha: .5, Beta: .5 * rate}.CDF},
		"regular": {Schedule{api.ArrivalsGamma, 4, 1}, distuv.Gamma{Alpha: 4, Beta: 4 * rate}.CDF},
	} {
		o, gaps, last := NewOpen(0, 0, Ramp{To: rate}, row.schedule), make([]float64, n), time.Duration(0)
		for i := range gaps {
			at := o.Begin(State{})
			gaps[i], last = (at - last).Seconds(), at
		}
		slices.Sort(gaps)
		distance := 0.
		for i, gap := range gaps {
			p := row.cdf(gap)
			distance = max(distance, p-float64(i)/n, float64(i+1)/n-p)
		}
		assert.Less(t, distance, 1.63/math.Sqrt(n), name)
	}
}

// Another rate applies to the gap in progress, and changes nothing in the draws. It is settled once conversations of
// all ages began at that rate.
func TestOpenSetAnew(t *testing.T) {
	schedule := Schedule{Gaps: api.ArrivalsPoisson, Seed: 3}
	slow, fast := NewOpen(0, 0, Ramp{To: 1}, schedule), NewOpen(0, 0, Ramp{To: 1}, schedule)
	fast.Set(0, Ramp{To: 4})
	for range 100 {
		assert.InDelta(t, slow.Begin(State{}).Seconds(), 4*fast.Begin(State{}).Seconds(), 1e-6)
	}
	o := NewOpen(0, 0, Ramp{To: 1}, Schedule{Gaps: api.ArrivalsConstant})
	assert.False(t, o.Settled(State{Oldest: 0}))
	assert.True(t, o.Settled(State{Oldest: 1}), "the first one has ended")
	o.Begin(State{})
	o.Set(500*time.Millisecond, Ramp{To: .5})
	at, _ := o.Next(State{})
	assert.Equal(t, 1500*time.Millisecond, at, "half of the gap is left, and takes twice as long")
	assert.False(t, o.Settled(State{Oldest: 1}))
	assert.True(t, o.Settled(State{Oldest: 2}))
}

// A ramp has at each moment as many arrivals as the area below its rate, with the draws of a constant rate: a gap in
// means is a piece of that area. It settles after its end.
func TestRamp(t *testing.T) {
	for name, ramp := range map[string]Ramp{"rises": {2, 20, 10 * time.Minute}, "falls": {20, 2, 10 * time.Minute}} {
		o := NewOpen(time.Hour, 0, ramp, Schedule{Gaps: api.ArrivalsConstant})
		all := starts(o, time.Hour, time.Hour+20*time.Minute, 10*time.Millisecond, held)
		for _, minutes := range []float64{1, 5, 10, 15} {
			at := min(minutes, 10) * 60
			area := at*ramp.From + at*at/600*(ramp.To-ramp.From)/2 + max(0, minutes-10)*60*ramp.To
			until := time.Hour + time.Duration(minutes*float64(time.Minute))
			n := 0
			for n < len(all) && all[n] <= until {
				n++
			}
			assert.InDelta(t, area, n, 2, "%s, after %v minutes", name, minutes)
		}
		during := NewOpen(0, 0, ramp, Schedule{Gaps: api.ArrivalsConstant})
		for during.next < 10*time.Minute {
			during.Begin(State{})
			require.False(t, during.Settled(State{Oldest: during.number}), "%s at %v", name, during.next)
		}
		during.Begin(State{})
		assert.True(t, during.Settled(State{Oldest: during.number}), name)
	}
}

// Setting the same ramp anew, as another change of settings does, goes on with it; another rate begins where it is.
func TestRampSetAnew(t *testing.T) {
	ramp, schedule := Ramp{1, 10, time.Minute}, Schedule{Gaps: api.ArrivalsPoisson, Seed: 2}
	same, other := NewOpen(0, 0, ramp, schedule), NewOpen(0, 0, ramp, schedule)
	for range 50 {
		require.Equal(t, same.Begin(State{}), other.Begin(State{}))
		same.Set(same.next-1, ramp)
	}
	now := same.next - 100*time.Millisecond
	left := same.rate.between(now, same.next)
	same.Set(now, Ramp{To: 1})
	assert.InDelta(t, left, (same.next - now).Seconds(), 1e-6)
}
