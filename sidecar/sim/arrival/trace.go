package arrival

import "time"

// Times are the recorded moments of arrivals, in order. ok is false from the first number on that has none.
type Times func(number int64) (at time.Duration, ok bool)

// Trace begins conversations at recorded times, however many are in progress. Those that are late are made up for at
// once.
type Trace struct {
	times  Times
	speed  float64
	origin time.Duration // moment of the recorded time 0 at the present speed
	number int64         // of the next arrival
	first  int64         // number of the first arrival at the present speed
}

var _ Process = (*Trace)(nil)

// NewTrace returns a load that replays times from a moment on, at a multiple of their speed, more than 0. number is
// that of its first arrival.
func NewTrace(from time.Duration, number int64, speed float64, times Times) *Trace {
	t := &Trace{times: times, speed: speed, origin: from, number: number, first: number}
	if at, ok := times(number); ok && number > 0 {
		t.origin -= t.atSpeed(at)
	}
	return t
}

func (t *Trace) atSpeed(d time.Duration) time.Duration { return time.Duration(float64(d) / t.speed) }

// Set changes the speed from now on.
func (t *Trace) Set(now time.Duration, speed float64) {
	if speed == t.speed {
		return
	}
	position := time.Duration(float64(now-t.origin) * t.speed)
	t.speed, t.first = speed, t.number
	t.origin = now - t.atSpeed(position)
}

// Next implements [Process]. ok is false after the last arrival.
func (t *Trace) Next(State) (at time.Duration, ok bool) {
	at, ok = t.times(t.number)
	return t.origin + t.atSpeed(at), ok
}

// Begin implements [Process].
func (t *Trace) Begin(s State) (intended time.Duration) {
	intended, _ = t.Next(s)
	t.number++
	return intended
}

// Surplus implements [Process].
func (t *Trace) Surplus(State) bool { return false }

// Settled implements [Process], as [Open] does.
func (t *Trace) Settled(s State) bool { return s.Oldest > t.first }

// Waits implements [Process].
func (t *Trace) Waits() bool { return false }
