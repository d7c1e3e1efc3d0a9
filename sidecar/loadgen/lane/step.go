package lane

import (
	"sync"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/workload"
)

// settleSpan is how long counted turns must have been ending before a
// comparison speaks.
const settleSpan = 60 * time.Second

// steps keeps the current step. It is safe for concurrent use.
type steps struct {
	// save hears of each state of a step, in order: a step that has ended must
	// not be stored as one that goes on. It is called with the lock held, and
	// must not wait.
	save func(api.StepRecord)

	mu      sync.Mutex
	lane    string
	now     api.StepRecord
	open    bool
	mixed   bool // conversations of another shape are still in progress
	counted int
	first   time.Time // end of the first counted turn
	actual  int
	target  int
}

// begin opens a new step, which ends the one before. A mixed step does not
// settle before unmix.
func (s *steps) begin(at time.Time, concurrency int, mode api.ModeState, mixed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.close(at)
	s.now = api.StepRecord{
		Lane: s.lane, ID: s.now.ID + 1, Concurrency: concurrency,
		Mode: mode.Mode, Speculation: mode.Speculation, Started: at,
	}
	s.open, s.mixed, s.counted = true, mixed, 0
	s.save(s.now)
}

// resume goes on with a step that a process before this one began.
func (s *steps) resume(step api.StepRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	step.Ended = nil
	s.now, s.open, s.mixed, s.counted = step, true, step.Settled == nil, 0 // it may have been mixed
	s.save(s.now)
}

// current is the step under way, or the last one.
func (s *steps) current() api.StepRecord {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// end closes the current step, if one is open.
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

// active hears the numbers of conversations.
func (s *steps) active(at time.Time, actual, target int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.actual, s.target = actual, target
	s.settle(at)
}

// unmix hears that every conversation in progress has the step's shape.
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

// settle settles a step when the numbers first agree, with each other and with it.
func (s *steps) settle(at time.Time) {
	if s.open && !s.mixed && s.now.Settled == nil && s.actual == s.target && s.target == s.now.Concurrency {
		s.now.Settled = &at
		s.save(s.now)
	}
}

// settleAt settles a step where it is held, or at its target where held is nil.
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

// count says whether a turn that [Marks] count, in a step, ended before that did.
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

// Marks are the turns in progress with the step that each began in. They say which turns count: those that end in a
// settled step after the last of the turns that had begun before it settled. So a turn counts by when it ends, and it
// does not matter how long it took. If the turns from before were left out one by one, the short ones among the others
// would count first. Marks are safe for concurrent use, and their zero value is ready.
type Marks struct {
	mu    sync.Mutex
	began map[*workload.Turn]api.StepRecord
	clear int64 // the latest step in which no turn from before was in progress any more
}

// Begin marks a turn with the step in force.
func (m *Marks) Begin(t *workload.Turn, step api.StepRecord) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.began == nil {
		m.began = map[*workload.Turn]api.StepRecord{}
	}
	m.began[t] = step
}

// Step is the one that a turn in progress began in.
func (m *Marks) Step(t *workload.Turn) api.StepRecord {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.began[t]
}

// End removes a turn that ends in a step. It returns the one that the turn began in, and whether it counts if it ended
// well.
func (m *Marks) End(t *workload.Turn, now api.StepRecord) (began api.StepRecord, counts bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	began = m.began[t]
	delete(m.began, t)
	early := func(s api.StepRecord) bool { return s.ID != now.ID || s.Settled == nil }
	switch {
	case now.Settled == nil || now.Ended != nil || early(began):
		return began, false
	case m.clear == now.ID:
		return began, true
	}
	for _, s := range m.began {
		if early(s) {
			return began, false
		}
	}
	m.clear = now.ID
	return began, true
}

// view is the step as a snapshot shows it, with the time for which it must still
// settle. One that has ended settles no more.
func (s *steps) view(now time.Time) (step api.Step, actual int, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	step = api.Step{ID: s.now.ID, Started: s.now.Started, Settled: s.now.Settled, Held: s.now.Held, Counted: s.counted}
	wait = settleSpan
	if !s.first.IsZero() {
		wait = max(0, settleSpan-now.Sub(s.first))
	}
	return step, s.actual, wait
}
