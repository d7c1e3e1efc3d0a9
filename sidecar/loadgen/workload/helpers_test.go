package workload

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/corpus"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Both booths' shape, without a cap of the requests.
func booth(concurrency int) Settings {
	return Settings{
		Concurrency: concurrency, Turns: api.Range{Min: 3, Max: 5}, MaxTokens: 1024,
		Output: &api.Distribution{Mean: 830, CV: .15}, StartRate: 10,
	}
}

// server is a target in memory. An answer of n tokens takes ttft and n − 1
// times gap; longest is more than any turn of booth takes with ttft and gap.
type server struct {
	fault func(at time.Time) *chat.Error // asked when a request comes; nil: none
	text  func(tokens int) string        // nil: short answers that all differ

	mu   sync.Mutex
	sent []request
}

const (
	ttft    = 400 * time.Millisecond
	gap     = 20 * time.Millisecond
	longest = 21 * time.Second
)

// request is what came, when, and when its answer was through.
type request struct {
	chat.Request
	at, ended time.Time
	answer    string
}

func (s *server) Do(ctx context.Context, req chat.Request) chat.Result {
	i := s.note(req)
	r := s.serve(ctx, req)
	r.Ended = time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent[i].ended, s.sent[i].answer = r.Ended, r.Content
	return r
}

func (s *server) note(req chat.Request) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	req.Messages = slices.Clone(req.Messages)
	s.sent = append(s.sent, request{Request: req, at: time.Now()})
	return len(s.sent) - 1
}

func (s *server) serve(ctx context.Context, req chat.Request) chat.Result {
	r := chat.Result{Sent: time.Now()}
	if s.fault != nil {
		if r.Err = s.fault(r.Sent); r.Err != nil {
			r.Cancelled = !sleep(ctx, nil, silence(r.Err))
			return r
		}
	}
	for _, part := range []struct {
		after  time.Duration
		tokens int
	}{{ttft, 1}, {time.Duration(req.MaxTokens-1) * gap, req.MaxTokens - 1}} {
		if !sleep(ctx, nil, part.after) {
			r.Cancelled = true
			return r
		}
		r.Chunks = append(r.Chunks, chat.Chunk{At: time.Since(r.Sent), Tokens: int32(part.tokens)})
		req.OnChunk(part.tokens)
	}
	r.Content = "Answer to " + req.ID + "."
	if s.text != nil {
		r.Content = s.text(req.MaxTokens)
	}
	return r
}

// silence is how long a fault takes to show.
func silence(e *chat.Error) time.Duration {
	if e.Class == api.ErrorTimeout {
		return 2 * time.Minute
	}
	return 2 * time.Millisecond
}

// requests gives what was sent so far, in order.
func (s *server) requests() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sent)
}

// since gives what was sent at or after a moment.
func (s *server) since(at time.Time) []request {
	return slices.DeleteFunc(s.requests(), func(r request) bool { return r.at.Before(at) })
}

// conversations gives the requests of each conversation that sent one.
func (s *server) conversations() map[string][]request {
	all := map[string][]request{}
	for _, r := range s.requests() {
		id := r.ID[:len(r.ID)-2] // fewer than ten turns
		all[id] = append(all[id], r)
	}
	return all
}

// ledger is an Observer that holds every call against those before it.
type ledger struct {
	t testing.TB

	mu      sync.Mutex
	open    map[*Conversation]*entry
	closed  []*entry
	reports []report
	tokens  int
}

// entry is what became of a conversation.
type entry struct {
	*Conversation
	turns, ok int
	turning   bool
	last      api.TurnStatus
	status    api.ConversationStatus
	ended     time.Time
}

type report struct {
	at             time.Time
	actual, target int
}

func (l *ledger) ConversationStarted(c *Conversation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	assert.Nil(l.t, l.open[c], "%s starts twice", c.ID)
	l.open[c] = &entry{Conversation: c}
}

func (l *ledger) TurnStarted(t *Turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.open[t.Conversation]
	if !assert.NotNil(l.t, e, "turn %s of no open conversation", t.RequestID) {
		return
	}
	e.turns++
	assert.Equal(l.t, e.turns, t.Number, "turns come in order")
	assert.False(l.t, e.turning, "%s begins within another turn", t.RequestID)
	assert.Same(l.t, t, t.Conversation.Turn(), "the turn under way")
	e.turning = true
}

func (l *ledger) Chunk(tokens int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tokens += tokens
}

func (l *ledger) TurnEnded(t *Turn, r *chat.Result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.open[t.Conversation]
	if !assert.NotNil(l.t, e, "end of %s, of no open conversation", t.RequestID) {
		return
	}
	assert.True(l.t, e.turning, "%s ends without a beginning", t.RequestID)
	assert.Nil(l.t, t.Conversation.Turn(), "between two turns")
	e.turning, e.last = false, api.TurnOK
	switch {
	case r.Cancelled:
		e.last = api.TurnCancelled
	case r.Err != nil:
		e.last = api.TurnError
	default:
		e.ok++
	}
}

// endings is what the last turn must have been for a conversation to end so.
var endings = map[api.ConversationStatus][]api.TurnStatus{
	api.ConversationCompleted: {api.TurnOK},
	api.ConversationRetired:   {api.TurnOK, ""}, // whole turns, perhaps none
	api.ConversationError:     {api.TurnError},
	api.ConversationCancelled: {api.TurnCancelled, api.TurnOK, ""},
}

func (l *ledger) ConversationEnded(c *Conversation, status api.ConversationStatus, done int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.open[c]
	if !assert.NotNil(l.t, e, "%s ends twice", c.ID) {
		return
	}
	assert.False(l.t, e.turning, "%s ends within a turn", c.ID)
	assert.Equal(l.t, e.ok, done, "turns done")
	assert.Contains(l.t, endings[status], e.last, "how the last turn of a conversation that is %s ended", status)
	assert.Equal(l.t, status == api.ConversationCompleted, done == c.Planned, "a %s conversation did %d of %d turns", status, done, c.Planned)
	e.status, e.ended = status, time.Now()
	delete(l.open, c)
	l.closed = append(l.closed, e)
}

func (l *ledger) Active(actual, target int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := report{target: target}
	if n := len(l.reports); n > 0 {
		last = l.reports[n-1]
	}
	step := actual - last.actual
	if step == 0 {
		assert.NotEmpty(l.t, l.reports, "nothing to report")
	} else {
		assert.True(l.t, step == 1 || step == -1, "from %d to %d at once", last.actual, actual)
		assert.Equal(l.t, last.target, target, "a change of the target is told by itself")
	}
	if step > 0 {
		assert.LessOrEqual(l.t, actual, target, "a start above the target")
	}
	l.reports = append(l.reports, report{time.Now(), actual, target})
}

// actual is the number of conversations as it was last told.
func (l *ledger) actual() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.reports) == 0 {
		return 0
	}
	return l.reports[len(l.reports)-1].actual
}

// mean is the number of conversations between two moments, weighted by time.
func (l *ledger) mean(from, to time.Time) float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	sum := 0.0
	for i, r := range l.reports {
		end := to
		if i+1 < len(l.reports) && l.reports[i+1].at.Before(to) {
			end = l.reports[i+1].at
		}
		if r.at.Before(from) {
			r.at = from
		}
		sum += float64(r.actual) * max(0, end.Sub(r.at).Seconds())
	}
	return sum / to.Sub(from).Seconds()
}

// beginnings are the moments at which conversations started.
func (l *ledger) beginnings() (at []time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, r := range l.reports {
		if r.actual > 0 && (i == 0 || r.actual > l.reports[i-1].actual) {
			at = append(at, r.at)
		}
	}
	return at
}

// ended gives the conversations that have ended, and how many in which way.
func (l *ledger) ended() ([]*entry, map[api.ConversationStatus]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	count := map[api.ConversationStatus]int{}
	for _, e := range l.closed {
		count[e.status]++
	}
	return slices.Clone(l.closed), count
}

// rig is a workload that runs, within a bubble of synctest.
type rig struct {
	*Workload
	*ledger
	begun  time.Time
	cancel context.CancelFunc
	done   chan struct{}
}

// run starts a workload; the test's end stops it and looks at what is left.
func run(t *testing.T, target Sender, s Settings, options ...func(*Options)) *rig {
	t.Helper()
	require.NoError(t, s.Check(1000))
	articles, err := corpus.Builtin()
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	r := &rig{
		ledger: &ledger{t: t, open: map[*Conversation]*entry{}},
		begun:  time.Now(), cancel: cancel, done: make(chan struct{}),
	}
	opts := Options{
		Lane: "main", Run: "r1", Seed: 1, Sender: target, Corpus: articles,
		Questioner: corpus.BuiltinQuestioner{}, Observer: r.ledger,
	}
	for _, change := range options {
		change(&opts)
	}
	r.Workload = New(opts, s)
	go func() {
		defer close(r.done)
		r.Run(ctx)
	}()
	t.Cleanup(r.stop)
	return r
}

// stop ends the workload at once. All must have been told when Run returns.
func (r *rig) stop() {
	r.cancel()
	<-r.done
	assert.Empty(r.t, r.open, "conversations without an end")
	assert.Empty(r.t, r.Conversations())
	assert.Zero(r.t, r.actual())
}

// after lets time pass, and what then happens happen.
func after(d time.Duration) {
	wait.Advance(d)
	synctest.Wait()
}

// reaches waits until so many conversations are in progress.
func (r *rig) reaches(n int, within time.Duration) {
	r.t.Helper()
	begun := time.Now()
	wait.Within(r.t, within, "conversations in progress", func() (any, bool) { return r.actual(), r.actual() == n })
	assert.LessOrEqual(r.t, time.Since(begun), within)
}

// over says whether Run has returned.
func (r *rig) over() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}
