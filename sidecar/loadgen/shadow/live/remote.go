package live

import (
	"slices"
	"time"

	"kvbooth/sidecar/sim"
)

const (
	// reorderDelay is the time for which events of one process wait for simultaneous events of
	// others. A process reports once a second, the first time a second after it began.
	reorderDelay = 2 * time.Second
	// peerTimeout bounds the wait for a process that does not report.
	peerTimeout = 10 * time.Second
)

// remotePeers holds the turns of other processes.
type remotePeers struct {
	peers    map[string]*peer
	inFlight int       // turns that have not ended
	held     []event   // events that are too recent for the account
	known    time.Time // all events up to this time were released; zero before the first report
}

// peer is another process.
type peer struct {
	until time.Time // all its events up to this time were reported
	turns map[int64]*Turn
	past  map[string][]uint64 // see [Recorder]
}

// Receive takes in the report of another process. The peer's clock is ahead by so much, with an
// uncertainty of within.
func (l *Live) Receive(from string, report *Report, ahead, within time.Duration) {
	if l == nil || report == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.account
	if a == nil || report.Serial != a.serial {
		return
	}
	lost := report.Lost
	p := a.remote.peer(from)
	for i := range report.Events {
		if !a.receive(p, &report.Events[i], ahead, within) {
			lost++
		}
	}
	p.until = report.Until.Add(-ahead)
	l.queue.mu.Lock()
	l.queue.lost += int64(lost)
	l.queue.mu.Unlock()
	l.wakeUp()
}

// Disconnect removes another process. Its turns in flight are canceled.
func (l *Live) Disconnect(from string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.account == nil || l.account.remote.peers[from] == nil {
		return
	}
	w := &l.account.remote
	p := w.peers[from]
	for _, t := range p.turns {
		w.add(event{kind: eventEnded, turn: t}, p.until)
	}
	w.inFlight -= len(p.turns)
	delete(w.peers, from)
	l.wakeUp()
}

// wakeUp makes Run advance the account.
func (l *Live) wakeUp() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// peer returns the peer with a name, and adds it if it is new.
func (w *remotePeers) peer(name string) *peer {
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

// receive takes in an event. It returns false for a turn that cannot be followed.
func (a *account) receive(p *peer, e *Event, ahead, within time.Duration) bool {
	at := time.Unix(0, e.At).Add(-ahead)
	if e.Over != "" {
		delete(p.past, e.Over)
		return true
	}
	if b := e.Begin; b != nil {
		before := p.past[b.Conversation]
		if b.Kept > len(before) { // the report of the previous turn was lost, so the blocks of later ones do not fit
			delete(p.past, b.Conversation)
			return false
		}
		t := &Turn{
			serial: a.serial, ids: a.ids, sent: at.Add(-b.Delay), within: within, text: b.Bytes, tokens: b.Tokens,
			blocks: unpacked(slices.Clip(before[:b.Kept]), b.Blocks), Sent: b.Sent,
		}
		p.past[b.Conversation] = t.blocks
		if a.remote.inFlight >= maxFollowed {
			return false
		}
		p.turns[e.Turn] = t
		a.remote.inFlight++
		a.remote.add(event{kind: eventRouted, turn: t}, at)
		return true
	}
	t := p.turns[e.Turn]
	if t == nil { // the report of its beginning was lost
		return true
	}
	received := event{kind: eventFirstToken, turn: t, worker: e.Worker}
	if e.End != nil {
		received.kind = eventEnded
		received.worker = e.End.Worker
		received.result = *e.End
		delete(p.turns, e.Turn)
		a.remote.inFlight--
	}
	if received.worker != 0 {
		a.seen[sim.WorkerID(received.worker)] = time.Now()
	}
	a.remote.add(received, at)
	return true
}

// add holds an event until all earlier events were reported. Events of one turn keep their order
// even if the estimate of the clock changes.
func (w *remotePeers) add(e event, at time.Time) {
	if at.Before(e.turn.last) {
		at = e.turn.last
	}
	e.at = at
	e.turn.last = at
	w.held = append(w.held, e)
}

// release removes the events that are complete, and returns them in the order of time with the
// time up to which they are complete.
func (w *remotePeers) release(now time.Time) ([]event, time.Time) {
	if w.peers == nil {
		return nil, now
	}
	known := now.Add(-reorderDelay)
	for _, p := range w.peers {
		if now.Sub(p.until) < peerTimeout && p.until.Before(known) {
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

// reached returns the time up to which all events were released.
func (w *remotePeers) reached(now time.Time) time.Time {
	if w.peers == nil {
		return now
	}
	return w.known
}
