package shadow

import (
	"slices"
	"time"

	"kvbooth/sidecar/sim"
)

// Decision compares the candidates for a request in the actual world: their costs by the
// router's formula, and the router's real choice.
type Decision struct {
	At           time.Duration
	ID           string // id of the request
	PromptTokens int
	Candidates   []sim.Candidate // one for each worker, in the order of the workers at that time
	Chosen       int             // index of the first candidate with the lowest cost
	Actual       int             // index of the router's real choice
	Margin       float64         // second lowest cost minus the lowest
	Tied         bool            // the margin is 0

	// Clear reports that the margin is larger than the possible effect of requests that began,
	// got their first token or ended within the skew. It is decided one skew later, which
	// Settled reports.
	Clear, Settled bool

	serial uint64
}

// Agrees reports whether the router's choice has the lowest cost.
func (d *Decision) Agrees() bool {
	return d.Candidates[d.Actual].Cost <= d.Candidates[d.Chosen].Cost
}

// Choices is the choice account: how often the router's choice has the lowest cost of the model. A turn agrees if it
// does, and is tied if several workers have the lowest cost.
type Choices struct {
	Turns     int // number of the latest turns, back to the thousandth clear one
	Agreed    int // number of agreeing turns
	Tied      int // number of tied turns
	Clear     int // number of clear turns, at most 1,000; see [Decision]
	ClearOnes int // number of clear turns that agree
}

// Agreement returns the share of the clear turns in which the model's choice is the router's; 0 without any.
func (c Choices) Agreement() float64 { return ratio(int64(c.ClearOnes), int64(c.Clear)) }

// Coverage returns the share of turns that are clear.
func (c Choices) Coverage() float64 { return ratio(int64(c.Clear), int64(c.Turns)) }

const (
	keptDecisions = 1000
	keptOutcomes  = 8192 // outcomes that are searched for maxClear clear ones
	maxClear      = 1000
)

// choices holds the decisions in the actual world.
type choices struct {
	skew      time.Duration
	decisions ring[*Decision]
	unsettled []*Decision
	moves     []move
	outcomes  ring[outcome]
}

// outcome is the result of a settled decision.
type outcome struct{ agreed, tied, clear bool }

// move is a change of a worker's costs.
type move struct {
	at     time.Duration
	serial uint64 // serial number of the flight
	worker sim.WorkerID
	amount float64
}

// decide records the candidates of a request before it enters the actual world.
func (c *choices) decide(w *world, f *Flight) {
	d := &Decision{
		At: f.at, ID: f.ID, PromptTokens: f.PromptTokens,
		Candidates: slices.Clone(w.candidateCosts(&f.query)), Actual: w.shadow.indexOf(f.Worker, true), serial: f.serial,
	}
	second := -1
	for i, candidate := range d.Candidates {
		switch {
		case candidate.Cost < d.Candidates[d.Chosen].Cost:
			second = d.Chosen
			d.Chosen = i
		case i > 0 && (second < 0 || candidate.Cost < d.Candidates[second].Cost):
			second = i
		}
	}
	d.Margin = d.Candidates[second].Cost - d.Candidates[d.Chosen].Cost
	d.Tied = d.Margin == 0
	c.decisions.add(d, keptDecisions)
	c.unsettled = append(c.unsettled, d)
}

// moved records that a flight has changed a worker's costs.
func (c *choices) moved(at time.Duration, serial uint64, worker sim.WorkerID, amount float64) {
	if amount > 0 {
		c.moves = append(c.moves, move{at, serial, worker, amount})
	}
}

// settle decides whether decisions older than the skew were clear.
func (c *choices) settle(now time.Duration) {
	n := 0
	for ; n < len(c.unsettled) && c.unsettled[n].At+c.skew < now; n++ {
		d := c.unsettled[n]
		d.Clear = c.isClear(d)
		d.Settled = true
		c.outcomes.add(outcome{d.Agrees(), d.Tied, d.Clear}, keptOutcomes)
	}
	c.unsettled = slices.Delete(c.unsettled, 0, n)
	oldest := now - 2*c.skew
	if len(c.unsettled) > 0 {
		oldest = min(oldest, c.unsettled[0].At-c.skew)
	}
	old := 0
	for old < len(c.moves) && c.moves[old].at < oldest {
		old++
	}
	c.moves = slices.Delete(c.moves, 0, old)
}

// isClear reports whether no other worker can have had the lowest cost.
func (c *choices) isClear(d *Decision) bool {
	moved := make([]float64, len(d.Candidates))
	for _, m := range c.moves {
		if m.serial == d.serial || m.at < d.At-c.skew || m.at > d.At+c.skew {
			continue
		}
		for i := range d.Candidates {
			if d.Candidates[i].Worker == m.worker {
				moved[i] += m.amount
			}
		}
	}
	for i, candidate := range d.Candidates {
		if i != d.Chosen && candidate.Cost-d.Candidates[d.Chosen].Cost <= moved[i]+moved[d.Chosen] {
			return false
		}
	}
	return true
}

// clear drops decisions made with another set of workers.
func (c *choices) clear() { *c = choices{skew: c.skew} }

func (c *choices) figures() (f Choices) {
	for i := range c.outcomes.all {
		o := c.outcomes.latest(i)
		f.Turns++
		f.Agreed += count(o.agreed)
		f.Tied += count(o.tied)
		f.Clear += count(o.clear)
		f.ClearOnes += count(o.clear && o.agreed)
		if f.Clear == maxClear {
			break
		}
	}
	return f
}

func count(ok bool) int {
	if ok {
		return 1
	}
	return 0
}

// Decisions returns the last thousand decisions, the oldest first. They are shared: Clear and
// Settled of the latest ones may change with the next call of the Shadow, so callers that
// publish them must copy them first.
func (s *Shadow) Decisions() []*Decision {
	r := &s.choices.decisions
	return slices.Concat(r.all[r.next:], r.all[:r.next])
}

// ring keeps the latest values.
type ring[T any] struct {
	all  []T
	next int // index of the oldest value, once the ring is full
}

func (r *ring[T]) add(v T, most int) {
	if len(r.all) < most {
		r.all = append(r.all, v)
		return
	}
	r.all[r.next] = v
	r.next = (r.next + 1) % most
}

// latest returns the value added i-th from the end, from 0.
func (r *ring[T]) latest(i int) T {
	n := len(r.all)
	return r.all[((r.next-1-i)%n+n)%n]
}
