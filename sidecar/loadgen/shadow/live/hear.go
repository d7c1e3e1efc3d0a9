package live

import (
	"slices"
	"time"

	"kvbooth/sidecar/sim"
)

const (
	// hold is how long what other processes tell waits for what others tell of the same time:
	// they tell it once a second, and the first time a second after they began.
	hold = 2 * time.Second
	// silence is how long one of them is waited for that tells nothing.
	silence = 10 * time.Second
)

// away is what is known of turns in other processes.
type away struct {
	peers  map[string]*peer
	flying int       // turns that have not ended
	held   []event   // that are too young for the account
	known  time.Time // everything up to here has been released; zero: nobody has told anything
}

// peer is another process.
type peer struct {
	until time.Time // it has told of everything up to here
	turns map[int64]*Turn
	past  map[string][]uint64 // see [Notes]
}

// Hear takes in what another process tells. Its clock is ahead of this one's by so much, give or
// take within.
func (l *Live) Hear(from string, told *Told, ahead, within time.Duration) {
	if l == nil || told == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.account
	if a == nil || told.Serial != a.serial {
		return
	}
	lost := told.Lost
	p := a.away.peer(from)
	for i := range told.Events {
		if !a.hear(p, &told.Events[i], ahead, within) {
			lost++
		}
	}
	p.until = told.Until.Add(-ahead)
	l.queue.mu.Lock()
	l.queue.lost += int64(lost)
	l.queue.mu.Unlock()
	l.look()
}

// Gone says that another process tells nothing more. What it had in flight is cancelled.
func (l *Live) Gone(from string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.account == nil || l.account.away.peers[from] == nil {
		return
	}
	w := &l.account.away
	p := w.peers[from]
	for _, t := range p.turns {
		w.hold(event{kind: ended, turn: t}, p.until)
	}
	w.flying -= len(p.turns)
	delete(w.peers, from)
	l.look()
}

// look has the account brought up to date.
func (l *Live) look() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// peer is the one with a name, which is new where nobody has it.
func (w *away) peer(name string) *peer {
	p := w.peers[name]
	if p == nil {
		if w.peers == nil {
			w.peers = map[string]*peer{}
		}
		p = &peer{turns: map[int64]*Turn{}, past: map[string][]uint64{}}
		w.peers[name] = p
	}
	return p
}

// hear takes in an event; false says that a turn cannot be followed.
func (a *account) hear(p *peer, e *Event, ahead, within time.Duration) bool {
	at := time.Unix(0, e.At).Add(-ahead)
	if e.Over != "" {
		delete(p.past, e.Over)
		return true
	}
	if b := e.Begin; b != nil {
		before := p.past[b.Conversation]
		if b.Kept > len(before) { // the turn before has not been heard of, and what comes after does not fit either
			delete(p.past, b.Conversation)
			return false
		}
		t := &Turn{
			serial: a.serial, ids: a.ids, sent: at.Add(-b.Delay), within: within, text: b.Bytes, tokens: b.Tokens,
			blocks: unpacked(slices.Clip(before[:b.Kept]), b.Blocks),
			Sent: Sent{
				ID: b.ID, Conversation: b.Conversation, Last: b.Last, Instance: b.Instance, Concurrency: b.Concurrency,
			},
		}
		p.past[b.Conversation] = t.blocks
		if a.away.flying >= mostFollowed {
			return false
		}
		p.turns[e.Turn] = t
		a.away.flying++
		a.away.hold(event{kind: routed, turn: t}, at)
		return true
	}
	t := p.turns[e.Turn]
	if t == nil { // nobody has heard of its beginning
		return true
	}
	heard := event{kind: begun, turn: t, worker: e.Worker}
	if e.End != nil {
		heard.kind, heard.worker, heard.result = ended, e.End.Worker, *e.End
		delete(p.turns, e.Turn)
		a.away.flying--
	}
	if heard.worker != 0 {
		a.seen[sim.WorkerID(heard.worker)] = time.Now()
	}
	a.away.hold(heard, at)
	return true
}

// hold keeps an event until everything before it has been told. Those of one turn stay in their
// order whatever is thought of the clock meanwhile.
func (w *away) hold(e event, at time.Time) {
	if at.Before(e.turn.last) {
		at = e.turn.last
	}
	e.at, e.turn.last = at, at
	w.held = append(w.held, e)
}

// release gives the events, in the order of time, before which nothing more is expected, and the
// moment up to when that is so.
func (w *away) release(now time.Time) ([]event, time.Time) {
	if w.peers == nil {
		return nil, now
	}
	known := now.Add(-hold)
	for _, p := range w.peers {
		if now.Sub(p.until) < silence && p.until.Before(known) {
			known = p.until
		}
	}
	if known.After(w.known) {
		w.known = known
	}
	slices.SortStableFunc(w.held, func(x, y event) int { return x.at.Compare(y.at) })
	n := 0
	for n < len(w.held) && !w.held[n].at.After(w.known) {
		n++
	}
	released := slices.Clone(w.held[:n])
	w.held = slices.Delete(w.held, 0, n)
	return released, w.known
}

// reached is the moment up to when everything has been released.
func (w *away) reached(now time.Time) time.Time {
	if w.peers == nil {
		return now
	}
	return w.known
}
