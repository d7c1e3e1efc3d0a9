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

// booth returns the settings of the booth's recorded results, without a limit on requests.
func booth(concurrency int) Settings {
	return Settings{
		Level: api.AtConversations(concurrency), Turns: api.Range{Min: 3, Max: 5}, MaxTokens: 1024,
		OutputTokens: api.Distribution{Mean: 830, CV: .15}, StartRate: 10,
	}
}

// articles returns the built-in corpus.
func articles(t testing.TB) *corpus.Corpus {
	t.Helper()
	c, err := corpus.Builtin()
	require.NoError(t, err)
	return c
}

// virtual runs a subtest in virtual time.
func virtual(t *testing.T, name string, test func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

// server is a target in memory. An answer of n tokens takes ttft and n − 1
// times gap; longest is more than any turn of booth takes with ttft and gap.
type server struct {
	fault func(at time.Time) *chat.Error // called for each request; nil: no faults
	text  func(tokens int) string        // text of an answer; nil: short answers that all differ
	usage int                            // tokens of a prompt for each of its messages; 0: not reported

	mu   sync.Mutex
	sent []request
}

const (
	ttft    = 400 * time.Millisecond
	gap     = 20 * time.Millisecond
	longest = 21 * time.Second
)

// request is a request with its arrival time, and its answer with the time of its end.
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
			r.Cancelled = !sleep(ctx, nil, faultDelay(r.Err))
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
	r.Usage = &chat.Usage{Prompt: s.usage * len(req.Messages), Completion: req.MaxTokens}
	r.Content = "Answer to " + req.ID + "."
	if s.text != nil {
		r.Content = s.text(req.MaxTokens)
	}
	return r
}

// faultDelay returns the time until a fault is returned.
func faultDelay(e *chat.Error) time.Duration {
	if e.Class == api.ErrorTimeout {
		return 2 * time.Minute
	}
	return 2 * time.Millisecond
}

// requests returns the requests so far, in order.
func (s *server) requests() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sent)
}

// requestsSince returns the requests that arrived at a time or later.
func (s *server) requestsSince(at time.Time) []request {
	return slices.DeleteFunc(s.requests(), func(r request) bool { return r.at.Before(at) })
}

// conversations returns the requests of each conversation.
func (s *server) conversations() map[string][]request {
	all := map[string][]request{}
	for _, r := range s.requests() {
		id := r.ID[:len(r.ID)-2] // fewer than ten turns
		all[id] = append(all[id], r)
	}
	return all
}

// recorder is an Observer that checks every call against the earlier ones.
type recorder struct {
	t testing.TB

	mu      sync.Mutex
	open    map[string]*entry // by the id of the conversation
	closed  []*entry
	reports []report
	tokens  int
}

// entry is the state of a conversation.
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

func (l *recorder) ConversationStarted(c *Conversation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	assert.Nil(l.t, l.open[c.ID], "%s starts twice", c.ID)
	l.open[c.ID] = &entry{Conversation: c}
}

func (l *recorder) TurnStarted(t *LiveTurn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.open[t.Conversation]
	if !assert.NotNil(l.t, e, "turn %s of no open conversation", t.RequestID) {
		return
	}
	e.turns++
	assert.Equal(l.t, e.turns, t.Number, "turns come in order")
	assert.False(l.t, e.turning, "%s begins within another turn", t.RequestID)
	assert.Same(l.t, t, e.Conversation.Turn(), "the turn under way")
	e.turning = true
}

func (*recorder) FirstToken(*LiveTurn) {}

func (l *recorder) Arrived(tokens int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tokens += tokens
}

func (l *recorder) TurnEnded(c *Conversation, t *LiveTurn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.open[c.ID]
	if !assert.NotNil(l.t, e, "end of %s, of no open conversation", t.RequestID) {
		return
	}
	assert.True(l.t, e.turning, "%s ends without a beginning", t.RequestID)
	assert.Nil(l.t, c.Turn(), "between two turns")
	e.turning, e.last = false, t.Status
	if t.Status == api.TurnOK {
		e.ok++
	}
}

// endings has the permitted status of the last turn for each status of a conversation.
var endings = map[api.ConversationStatus][]api.TurnStatus{
	api.ConversationCompleted: {api.TurnOK},
	api.ConversationRetired:   {api.TurnOK, ""}, // whole turns, perhaps none
	api.ConversationError:     {api.TurnError},
	api.ConversationCancelled: {api.TurnCancelled, api.TurnOK, ""},
}

func (l *recorder) ConversationEnded(c *Conversation, status api.ConversationStatus, done int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.open[c.ID]
	if !assert.NotNil(l.t, e, "%s ends twice", c.ID) {
		return
	}
	assert.False(l.t, e.turning, "%s ends within a turn", c.ID)
	assert.Equal(l.t, e.ok, done, "turns done")
	assert.Contains(l.t, endings[status], e.last, "how the last turn of a conversation that is %s ended", status)
	assert.Equal(l.t, status == api.ConversationCompleted, done == c.Planned,
		"a %s conversation did %d of %d turns", status, done, c.Planned)
	e.status, e.ended = status, time.Now()
	delete(l.open, c.ID)
	l.closed = append(l.closed, e)
}

func (l *recorder) Active(actual int, target api.Level, settled bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := report{target: target.Conversations()}
	if n := len(l.reports); n > 0 {
		last = l.reports[n-1]
	}
	step := actual - last.actual
	if step == 0 {
		assert.NotEmpty(l.t, l.reports, "nothing to report")
	} else {
		assert.True(l.t, step == 1 || step == -1, "from %d to %d at once", last.actual, actual)
		assert.Equal(l.t, last.target, target.Conversations(), "a change of the target is reported separately")
	}
	if step > 0 && target.Kind == api.Conversations {
		assert.LessOrEqual(l.t, actual, target.Conversations(), "a start above the target")
	}
	l.reports = append(l.reports, report{time.Now(), actual, target.Conversations()})
}

// actual returns the last reported number of conversations.
func (l *recorder) actual() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.reports) == 0 {
		return 0
	}
	return l.reports[len(l.reports)-1].actual
}

// mean returns the mean number of conversations between two times, weighted by time.
func (l *recorder) mean(from, to time.Time) float64 {
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

// beginnings returns the times at which conversations started.
func (l *recorder) beginnings() (at []time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, r := range l.reports {
		if r.actual > 0 && (i == 0 || r.actual > l.reports[i-1].actual) {
			at = append(at, r.at)
		}
	}
	return at
}

// ended returns the conversations that have ended, and their number by status.
func (l *recorder) ended() ([]*entry, map[api.ConversationStatus]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	count := map[api.ConversationStatus]int{}
	for _, e := range l.closed {
		count[e.status]++
	}
	return slices.Clone(l.closed), count
}

// testRun is a workload that runs, within a bubble of synctest.
type testRun struct {
	*Workload
	*recorder
	begun  time.Time
	cancel context.CancelFunc
	done   chan struct{}
}

// run starts a workload. The end of the test stops it and checks that nothing is left.
func run(t *testing.T, target Sender, s Settings, options ...func(*Options)) *testRun {
	t.Helper()
	require.NoError(t, s.Check(1000))
	ctx, cancel := context.WithCancel(context.Background())
	r := &testRun{
		recorder: &recorder{t: t, open: map[string]*entry{}},
		begun:    time.Now(), cancel: cancel, done: make(chan struct{}),
	}
	opts := Options{
		Lane: "main", Run: "r1", Seed: 1, Sender: target, Corpus: articles(t),
		Questioner: corpus.BuiltinQuestioner{}, Observer: r.recorder,
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

// stop ends the workload at once, and checks that all ends were reported when Run returns.
func (r *testRun) stop() {
	r.cancel()
	<-r.done
	assert.Empty(r.t, r.open, "conversations without an end")
	assert.Empty(r.t, r.Conversations())
	assert.Zero(r.t, r.actual())
}

// advance advances virtual time, and returns when everything that is due has happened.
func advance(d time.Duration) {
	wait.Advance(d)
	synctest.Wait()
}

// waitActive waits until n conversations are in progress.
func (r *testRun) waitActive(n int, within time.Duration) {
	r.t.Helper()
	begun := time.Now()
	wait.Within(r.t, within, "conversations in progress", func() (any, bool) { return r.actual(), r.actual() == n })
	assert.LessOrEqual(r.t, time.Since(begun), within)
}

// hasReturned reports whether Run has returned.
func (r *testRun) hasReturned() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}
