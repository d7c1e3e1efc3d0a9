package lane

import (
	"sync"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/stats"
	"kvbooth/sidecar/loadgen/workload"
)

// settleSpan is the time for which counted turns must have ended before figures are kept.
const settleSpan = 60 * time.Second

// compareSpan is the time for which first tokens must have counted before figures are compared.
const compareSpan = 30 * time.Second

// leadIn is the time that a step needs after it has settled before its first tokens count: least, and a number of mean
// turns.
type leadIn struct {
	least time.Duration
	turns float64
}

// What precedes the first tokens that count. After a change in place, the caches hold what the other mode put there: on
// the simulated cluster, round-robin is 5 % later for half a minute at 60 conversations, and up to 50 % later for a
// minute at 180. Conversations that begin together are in the same turn for a while: round-robin at 60 is 8 % sooner in
// the first half minute after a start, within 2 % of its mean after three turns, and in waves of 30 % for ten minutes
// unless the conversations that begin a run start in their middle.
var (
	leadAnew     = leadIn{}
	leadSwitched = leadIn{least: 30 * time.Second}
	leadStarted  = leadIn{least: 30 * time.Second, turns: 3}
)

func (l leadIn) after(turn time.Duration) time.Duration {
	return max(l.least, min(stats.StepSpan, time.Duration(l.turns*float64(turn))))
}

// steps holds the current step. It is safe for concurrent use.
type steps struct {
	// save receives each state of a step, in order, so that the last state that is stored is the
	// ended one. It is called with the lock held, and must not block.
	save func(api.StepRecord)

	mu      sync.Mutex
	lane    string
	now     api.StepRecord
	open    bool
	mixed   bool // conversations of another shape are still in progress
	lead    leadIn
	caches  api.StepCaches
	counts  time.Time // time from which first tokens count; zero: not known yet
	counted int
	first   time.Time // end of the first counted turn
	actual  int       // conversations in progress
	target  api.Level // the level that the workload was set to
	reached bool      // the load is what the workload was set to
}

// begin ends the current step and begins a new one. A mixed step does not settle before unmix.
func (s *steps) begin(at time.Time, level api.Level, mode api.ModeState, mixed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.close(at)
	s.now = api.StepRecord{
		Lane: s.lane, ID: s.now.ID + 1, Level: level,
		Arm: mode.Arm, Mode: mode.Mode, Speculation: mode.Speculation, Started: at,
	}
	s.open, s.mixed, s.counted = true, mixed, 0
	s.save(s.now)
}

// from sets what precedes the first tokens that count, and what the step's caches hold.
func (s *steps) from(lead leadIn, caches api.StepCaches) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lead, s.caches, s.counts = lead, caches, time.Time{}
}

// countFrom reports whether first tokens count from now on for the first time. turn is the mean latency of a turn; 0:
// it is not known.
func (s *steps) countFrom(now time.Time, turn time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open || s.now.Settled == nil || !s.counts.IsZero() || s.lead.turns > 0 && turn == 0 ||
		now.Before(s.now.Settled.Add(s.lead.after(turn))) {
		return false
	}
	s.counts = now
	return true
}

// isCounting reports whether first tokens count.
func (s *steps) isCounting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.counts.IsZero()
}

// comparedIn estimates the time until figures of the step are compared; 0 where it is not known. turn is the mean
// latency of a turn, and pace the number of conversations that begin in a second; 0: it is not known.
func (s *steps) comparedIn(now time.Time, turn time.Duration, pace float64) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch missing := s.target.Value - float64(s.actual); {
	case !s.counts.IsZero():
		return max(0, s.counts.Add(compareSpan).Sub(now))
	case s.lead.turns > 0 && turn == 0:
		return 0
	case s.now.Settled != nil:
		return max(0, s.now.Settled.Add(s.lead.after(turn)).Sub(now)) + compareSpan
	case s.target.Kind == api.Conversations && missing > 0 && pace > 0:
		return time.Duration(missing/pace*float64(time.Second)) + s.lead.after(turn) + compareSpan
	default:
		return s.lead.after(turn) + compareSpan
	}
}

// current returns the step under way, or the last one.
func (s *steps) current() api.StepRecord {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// end ends the current step if it is open.
func (s *steps) end(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.close(at)
}

func (s *steps) close(at time.Time) {
	if !s.open {
		return
	}
	s.open, s.first = false, time.Time{}
	s.now.Ended = &at
	s.save(s.now)
}

// active records the numbers of conversations, and settles the step if the load is what it was set to.
func (s *steps) active(at time.Time, actual int, target api.Level, reached bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.actual, s.target, s.reached = actual, target, reached
	s.settle(at)
}

// inMode sets the mode that the step has been in since it began.
func (s *steps) inMode(mode api.ModeState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now.Arm, s.now.Mode, s.now.Speculation = mode.Arm, mode.Mode, mode.Speculation
	if s.open {
		s.save(s.now)
	}
}

// unmix records that every conversation in progress has the step's shape.
func (s *steps) unmix(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mixed = false
	s.settle(at)
}

func (s *steps) isMixed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open && s.mixed
}

// settle settles a step when the load is first what it is set to, with the step's settings.
// The lock is held.
func (s *steps) settle(at time.Time) {
	if s.open && !s.mixed && s.now.Settled == nil && s.reached && s.target == s.now.Level {
		s.now.Settled = &at
		s.save(s.now)
	}
}

// settleAt settles a step that is held, or one at its target if held is nil.
func (s *steps) settleAt(at time.Time, held *api.Held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if held == nil {
		s.settle(at)
		return
	}
	s.now.Settled, s.now.Held = &at, held
	s.save(s.now)
}

// count counts a turn that [Marks] count in a step. It reports false if that step has ended.
func (s *steps) count(step int64, ended time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open || step != s.now.ID {
		return false
	}
	s.counted++
	if s.first.IsZero() {
		s.first = ended
	}
	return true
}

// Marks counts the turns in progress by the step that they began in, and decides which turns
// count: those that end in a settled step after the last of the turns that had begun before it
// settled. So a turn counts by its end, whatever its duration. If the earlier turns were left out
// one by one, the short ones among the others would count first. Marks is safe for concurrent use,
// and its zero value is ready.
type Marks struct {
	mu         sync.Mutex
	inProgress map[startState]int // number of turns
	clear      int64              // the latest step in which all earlier turns have ended
}

// startState is the step in which a turn began, and whether the step had settled by then.
type startState struct {
	step    int64
	settled bool
}

func startStateOf(t *workload.LiveTurn) startState { return startState{t.Step, t.Settled} }

// Begin marks a turn with the step in force.
func (m *Marks) Begin(t *workload.LiveTurn, step api.StepRecord) {
	t.Begin(step)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.inProgress == nil {
		m.inProgress = map[startState]int{}
	}
	m.inProgress[startStateOf(t)]++
}

// End removes a turn that ends in the step now, and reports whether it counts if it ended well.
func (m *Marks) End(t *workload.LiveTurn, now api.StepRecord) (counts bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	began, settled := startStateOf(t), startState{now.ID, true}
	if m.inProgress[began]--; m.inProgress[began] == 0 {
		delete(m.inProgress, began)
	}
	switch {
	case now.Settled == nil || now.Ended != nil || began != settled:
		return false
	case m.clear == now.ID:
		return true
	}
	for other := range m.inProgress {
		if other != settled {
			return false
		}
	}
	m.clear = now.ID
	return true
}

// view returns the step as a snapshot shows it, the number of conversations in progress, and the
// time until its turns have counted for long enough for a row.
func (s *steps) view(now time.Time) (step api.Step, actual int, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	step = api.Step{
		ID: s.now.ID, Started: s.now.Started, Settled: s.now.Settled, Held: s.now.Held, Counted: s.counted, Caches: s.caches,
	}
	wait = settleSpan
	if !s.first.IsZero() {
		wait = max(0, settleSpan-now.Sub(s.first))
	}
	return step, s.actual, wait
}
