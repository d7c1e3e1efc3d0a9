package sweep

import (
	"fmt"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim/arrival"
)

// When a span at a rate is looked at for a queue that grows without end, besides at its end.
const (
	leastLook = 30  // seconds after its warm-up
	nextLook  = 1.5 // times as long since the load began
)

// queue is what a span at a rate shows of whether its target keeps up.
type queue struct {
	active []float64 // conversations in progress in each second since the load, or the slot, began
	filled int       // seconds until the conversations that began it had ended; 0: not yet
	look   int       // seconds until the next look; 0: not yet known
	before int64     // arrivals that were dropped before the slot
}

// open reports whether the span is at a rate.
func (a *attempt) open() bool { return a.span.Level.Kind == api.Rate }

// overloads takes in a second of a span at a rate, and reports whether its target does not keep up: whether arrivals
// were dropped, or the number of conversations in progress grows without end. That is looked at when the span has
// counted for long enough, and before that at intervals which grow, so that few looks find growth by chance.
func (a *attempt) overloads(second float64, last bool) bool {
	if !a.open() || a.overloaded != "" {
		return a.overloaded != ""
	}
	q, pace := &a.queue, a.run.Pace()
	for n := int(second - a.record.seconds(a.start)); len(q.active) <= n; {
		q.active = append(q.active, float64(pace.Actual))
	}
	switch {
	case pace.Dropped > q.before:
		a.overloaded = fmt.Sprintf("%d arrivals were dropped (max_inflight)", pace.Dropped-q.before)
	case q.grows(!a.slot && a.record.warmingUp() == 0, last):
		a.overloaded = fmt.Sprintf("the number of conversations in progress grew to %d without end", pace.Actual)
	}
	return a.overloaded != ""
}

// growth returns how many more conversations were in progress at the end of the counted time than at its beginning.
func (a *attempt) growth(until float64) float64 {
	at := func(second float64) float64 {
		n := int(second - a.record.seconds(a.start))
		return a.queue.active[min(max(0, n), len(a.queue.active)-1)]
	}
	if len(a.queue.active) == 0 {
		return 0
	}
	return at(until) - at(a.from)
}

// grows reports whether the number of conversations in progress grows without end, where a look is due, as the last one
// is. Growth until the conversations that began the load have ended is none.
func (q *queue) grows(filled, last bool) bool {
	n := len(q.active)
	if filled && q.filled == 0 {
		q.filled = n
		q.look = n + max(leastLook, n/2)
	}
	early := q.look > 0 && n >= q.look
	if early {
		q.look = int(nextLook * float64(n))
	}
	return (early || last) && arrival.Grows(q.active[max(0, 2*q.filled-n):])
}

// awaits reports whether turns that count are still in flight at a rate. The arrivals go on meanwhile. After as much
// time as counted, those without a first token have failed.
func (a *attempt) awaits(second float64) bool {
	if !a.open() || a.overloaded != "" || second >= 2*a.until-a.from || !a.record.underway(a.from, a.until) {
		return false
	}
	n := a.state(api.SpanCounting, a.record.at(a.until), nil)
	n.Message = "waiting for the end of the turns that count"
	a.publish(n)
	return true
}
