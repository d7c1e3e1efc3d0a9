package shadow

import (
	"slices"
	"time"

	"kvbooth/sidecar/sim"
)

// Decision is why a request went to its worker, as far as the account tells: the costs of
// the candidates in the actual world, by the router's formula.
type Decision struct {
	At           time.Duration
	ID           string // of the request
	Conversation uint64
	PromptTokens int
	Candidates   []sim.Candidate // as the workers at that time
	Chosen       int             // of Candidates, with the lowest cost: the first of them
	Actual       int             // of Candidates: the router's real choice
	Margin       float64         // by which the second lowest cost is higher
	Tied         bool            // the margin is 0

	// Clear says that the margin is larger than what requests that began, got their first
	// token or ended within the skew can have moved. It is decided one skew later; Settled
	// says whether that is over.
	Clear, Settled bool

	serial uint64
}

// Agrees says whether the router's choice has the lowest cost.
func (d *Decision) Agrees() bool {
	return d.Candidates[d.Actual].Cost <= d.Candidates[d.Chosen].Cost
}

// Choices is the choice account.
type Choices struct {
	Turns     int // the latest ones, back to the thousandth clear one
	Agreed    int // of Turns: the router's choice had the lowest cost
	Tied      int // of Turns: several workers had it
	Clear     int // of Turns, at most 1,000
	ClearOnes int // of Clear: agreed
}

// Agreement is the share of the clear turns in which our choice is the router's; 0 of none.
func (c Choices) Agreement() float64 { return ratio(int64(c.ClearOnes), int64(c.Clear)) }

// Coverage is the share of turns that are clear.
func (c Choices) Coverage() float64 { return ratio(int64(c.Clear), int64(c.Turns)) }

const (
	keptDecisions = 1000
	keptOutcomes  = 8192 // among which a thousand clear ones are looked for
	mostClear     = 1000
)

// choices keeps the decisions of the actual world.
type choices struct {
	skew      time.Duration
	decisions ring[*Decision]
	unsettled []*Decision
	moves     []move
	outcomes  ring[outcome]
}

// outcome is what remains of a decision.
type outcome struct{ agreed, tied, clear bool }

// move is a change of a worker's costs.
type move struct {
	at     time.Duration
	serial uint64 // of the flight
	worker sim.WorkerID
	amount float64
}

// decide weighs the workers for a request that the actual world does not have yet.
func (c *choices) decide(w *world, f *Flight) {
	d := &Decision{
		At: f.at, ID: f.ID, Conversation: f.Conversation, PromptTokens: f.PromptTokens,
		Candidates: slices.Clone(w.weigh(&f.query)), Actual: w.shadow.indexOf(f.Worker, true), serial: f.serial,
	}
	second := -1
	for i, candidate := range d.Candidates {
		switch {
		case candidate.Cost < d.Candidates[d.Chosen].Cost:
			d.Chosen, second = i, d.Chosen
		case i > 0 && (second < 0 || candidate.Cost < d.Candidates[second].Cost):
			second = i
		}
	}
	d.Margin = d.Candidates[second].Cost - d.Candidates[d.Chosen].Cost
	d.Tied = d.Margin == 0
	c.decisions.add(d, keptDecisions)
	c.unsettled = append(c.unsettled, d)
}

// moved notes that a flight has moved a worker's costs.
func (c *choices) moved(at time.Duration, serial uint64, worker sim.WorkerID, amount float64) {
	if amount > 0 {
		c.moves = append(c.moves, move{at, serial, worker, amount})
	}
}

// settle decides which of the decisions that are a skew old were clear.
func (c *choices) settle(now time.Duration) {
	n := 0
	for ; n < len(c.unsettled) && c.unsettled[n].At+c.skew < now; n++ {
		d := c.unsettled[n]
		d.Clear, d.Settled = c.isClear(d), true
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

// isClear says whether no other worker can have had the lowest cost.
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

// clear forgets what was decided among other workers.
func (c *choices) clear() { *c = choices{skew: c.skew} }

func (c *choices) figures() (f Choices) {
	for i := range c.outcomes.all {
		o := c.outcomes.latest(i)
		f.Turns++
		f.Agreed += one(o.agreed)
		f.Tied += one(o.tied)
		f.Clear += one(o.clear)
		f.ClearOnes += one(o.clear && o.agreed)
		if f.Clear == mostClear {
			break
		}
	}
	return f
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}

// Decisions are the last thousand of requests whose worker is known, the oldest first. They
// are shared: Clear and Settled of the latest ones may still change with the next call of the Shadow, so
// that whoever lets others read them copies them first.
func (s *Shadow) Decisions() []*Decision {
	r := &s.choices.decisions
	return slices.Concat(r.all[r.next:], r.all[:r.next])
}

// ring keeps the latest of something.
type ring[T any] struct {
	all  []T
	next int // the oldest, once it is full
}

func (r *ring[T]) add(v T, most int) {
	if len(r.all) < most {
		r.all = append(r.all, v)
		return
	}
	r.all[r.next] = v
	r.next = (r.next + 1) % most
}

// latest is the one that was added as the i-th before the last, from 0.
func (r *ring[T]) latest(i int) T {
	n := len(r.all)
	return r.all[((r.next-1-i)%n+n)%n]
}
