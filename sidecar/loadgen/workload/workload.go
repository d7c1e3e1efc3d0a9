package workload

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"
	"unique"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/sim/arrival"
	"kvbooth/sidecar/sim/traffic"
)

// After maxFailures failed turns in a row, or one that the server asks a pause for, no conversation
// starts for a pause, so that an unreachable target is not asked in a hot loop, and one that has
// come back is detected within seconds. The first token of any turn ends the pauses. Fewer failures
// are no reason: a server that fails a share of its turns would lose some of the others, too.
const (
	maxFailures = 5
	firstPause  = 250 * time.Millisecond // doubled with each further failure
	maxPause    = 4 * time.Second
	maxAsked    = time.Minute // longest pause that is granted to a server that asks for one
)

// Sender sends one request; [chat.Client] is one.
type Sender interface {
	Do(ctx context.Context, req chat.Request) chat.Result
}

// Options configure a workload. They do not change while it runs.
type Options struct {
	Lane        string
	Run         string // makes conversation ids of different runs differ
	Seed        uint64
	Opened      int64  // number of conversations of earlier runs; [OneEach] continues after their openings
	RampedStart int64  // number of conversations, from the first on, that start in their middle; see [draw.Shape]
	Nonce       string // begins every opening; empty: none
	Sender      Sender
	Corpus      *corpus.Corpus // at the start; see [Workload.SetCorpus]
	Questioner  corpus.Questioner
	Instance    func() string // see [Abilities]; nil pins no turn
	Observer    Observer
	// ObserveRouting is called right before a turn is sent, and returns what observes its routing. It
	// must not block. nil: the routing of no turn is observed.
	ObserveRouting func(*LiveTurn) RoutingObserver
	// TraceParent returns the header of this name for the request with an id. nil: requests have none.
	TraceParent func(requestID string) string
	// AnswerMemory limits the bytes of all answers in the conversations in progress; 0: no limit.
	AnswerMemory int64
	// Turns is the number of turns that are sent; 0: no limit. The run does not end by itself.
	Turns int64
	// Plan is traffic in place of conversations about the texts of Corpus; nil: there is none. The run ends after its last
	// conversation.
	Plan *Plan
	// Exact has the conversations of a load at a rate begin by a [Timer], which knows no virtual time.
	Exact bool
	// ModelTokens is the length that prompt and answer may have together by the server; 0 means unknown.
	ModelTokens int
}

// Workload is one run, from a start to its stop. It is safe for concurrent use.
type Workload struct {
	opts    Options
	texts   *chat.TextBudget
	breaker chat.Breaker
	origin  time.Time // beginning of the load's times
	paced   waits     // for the load's next conversation
	sends   *pacer
	freed   chan struct{} // receives a value when a conversation has ended; buffered for one
	wg      sync.WaitGroup

	planned    *traffic.Conversation // the next one of the plan; used by the goroutine of Run alone
	plannedFor int64                 // its number
	plannedOf  *Plan                 // its plan

	mu       sync.Mutex
	settings Settings
	draws    arrivalDraws
	plan     *Plan // of the settings or the options; nil: there is none
	load     arrival.Process
	corpus   *corpus.Corpus
	shape    int   // number of changes that affect draws
	begun    int64 // number of conversations begun, with those that were dropped
	dropped  int64 // number of arrivals and further turns that were dropped
	inflight int   // number of turns in flight
	sent     int64 // number of turns sent
	limit    int64 // number of turns to send; 0: no limit
	active   map[*Conversation]struct{}
	drains   bool
	changed  chan struct{} // closed when all waits must be evaluated again
}

// New returns a workload. The settings must have passed [Settings.Check].
func New(opts Options, s Settings) *Workload {
	w := &Workload{
		opts:     opts,
		breaker:  chat.Breaker{Failures: maxFailures, Least: firstPause, Most: maxPause},
		origin:   time.Now(),
		settings: s,
		draws:    arrivalDraws{seed: opts.Seed},
		limit:    opts.Turns,
		plan:     opts.planOf(s),
		load:     s.load(&opts, arrivalDraws{seed: opts.Seed}).Process(0, nil, 0),
		corpus:   opts.Corpus,
		active:   map[*Conversation]struct{}{},
		sends:    newPacer(s.TargetRPS),
		freed:    make(chan struct{}, 1),
		changed:  make(chan struct{}),
	}
	if opts.AnswerMemory > 0 {
		w.texts = chat.NewTextBudget(opts.AnswerMemory)
	}
	return w
}

// Run holds the conversations until ctx ends, which cancels requests in flight, until a drain is
// complete, or until the plan ends. It returns when the last conversation has ended.
func (w *Workload) Run(ctx context.Context) {
	defer w.wg.Wait()
	w.prepare(w.upcoming()) // before the load begins, since a shape or a trace takes a while to draw the first one
	w.mu.Lock()
	w.origin = time.Now()
	w.mu.Unlock()
	for ctx.Err() == nil {
		n := w.upcoming()
		if !w.prepare(n) {
			return
		}
		switch {
		case n.drained:
			return
		case !n.missing:
			select {
			case <-ctx.Done():
			case <-n.changed:
			case <-w.freed:
			}
		// A failed target is not asked. A load that waits for no server is not held back, since arrivals that are held back
		// would all come at the end of the pause.
		case n.waits && w.breaker.Wait(time.Now()) > 0:
			sleep(ctx, n.changed, w.breaker.Wait(time.Now()))
		case n.wait > 0 && n.waits:
			w.paced.during(func() { sleep(ctx, n.changed, n.wait) })
		case n.wait > 0 && w.opts.Exact: // between arrivals, nothing holds the load back
			sleepExactly(ctx, n.changed, n.wait)
		case n.wait > 0:
			sleep(ctx, n.changed, n.wait)
		// A conversation begins when its first turn may be sent, so that none is in progress that
		// only waits for the limit on requests.
		case w.sends.pass(ctx, n.changed):
			w.start(ctx, n)
		}
	}
}

// upcoming is the state in which Run waits for the next conversation.
type upcoming struct {
	number   int64
	plan     *Plan
	settings Settings
	texts    *corpus.Corpus
	wait     time.Duration   // until the conversation may begin
	missing  bool            // it may begin once the wait is over
	drained  bool            // none begins any more
	waits    bool            // conversations wait for the server
	changed  <-chan struct{} // closed when the state may differ
}

func (w *Workload) upcoming() upcoming {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.state(time.Now())
	at, ok := w.load.Next(s)
	return upcoming{
		number: w.begun, plan: w.plan, settings: w.settings, texts: w.corpus,
		wait: max(at, s.Now) - s.Now, missing: ok && !w.spent(), drained: w.drains, waits: w.load.Waits(), changed: w.changed,
	}
}

// state is the load's state. The lock is held.
func (w *Workload) state(now time.Time) arrival.State {
	return arrival.State{Now: now.Sub(w.origin), Active: len(w.active)}
}

// spent reports whether the number of turns is reached. The lock is held.
func (w *Workload) spent() bool { return w.limit > 0 && w.sent >= w.limit }

// take reserves one of the limited number of turns. It reports false if none is left. The lock is held.
func (w *Workload) take() bool {
	if w.spent() {
		return false
	}
	if w.sent++; w.spent() {
		w.notify()
	}
	return true
}

// LimitTurns limits the number of turns that are sent from now on, as [Options].Turns does from the beginning; 0: no
// limit.
func (w *Workload) LimitTurns(n int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.limit = 0; n > 0 {
		w.limit = w.sent + n
	}
	w.notify()
}

// Pace is how the conversations of a workload have begun so far.
type Pace struct {
	Begun   int64                         // number of conversations begun
	Dropped int64                         // number of arrivals and further turns beyond [Settings.MaxInflight]
	Actual  int                           // number of conversations in progress
	Sent    int64                         // number of turns sent
	Waited  map[api.Limiter]time.Duration // time in which a turn or the next conversation waited, by limit
}

// Pace returns how the conversations have begun so far.
func (w *Workload) Pace() Pace {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	waited := map[api.Limiter]time.Duration{
		api.LimitedByStartRate: w.paced.waited(now), api.LimitedByTargetRPS: w.sends.waited(now),
	}
	return Pace{Begun: w.begun, Dropped: w.dropped, Actual: len(w.active), Sent: w.sent, Waited: waited}
}

// Set changes the settings of the running workload.
func (w *Workload) Set(s Settings) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !s.drawsAs(w.settings) {
		w.shape++
	}
	if s.TrafficShape != w.settings.TrafficShape {
		w.plan = w.opts.planOf(s)
	}
	w.settings = s
	w.load = s.load(&w.opts, w.draws).Process(time.Since(w.origin), w.load, w.begun)
	w.sends.set(s.TargetRPS)
	w.report()
	w.notify()
}

// BeginArrivals begins the arrivals at a rate anew, with the draws of another seed from now on. It changes nothing at a
// number of conversations.
func (w *Workload) BeginArrivals(seed uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.draws = arrivalDraws{seed, w.begun}
	w.load = w.settings.load(&w.opts, w.draws).Process(time.Since(w.origin), w.load, w.begun)
	w.notify()
}

// SetCorpus changes the texts of the conversations that begin from now on. Those in progress keep
// theirs.
func (w *Workload) SetCorpus(c *corpus.Corpus) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c != w.corpus {
		w.shape++
	}
	w.corpus = c
}

// Drain starts nothing more and lets the turns in flight end. Then Run returns.
func (w *Workload) Drain() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drains = true
	w.notify()
}

// notify wakes all waits. The lock is held.
func (w *Workload) notify() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// Conversations returns those in progress, in no order.
func (w *Workload) Conversations() []*Conversation {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]*Conversation, 0, len(w.active))
	for c := range w.active {
		all = append(all, c)
	}
	return all
}

// start begins the next conversation, unless there are enough by now, or the target has failed.
func (w *Workload) start(ctx context.Context, n upcoming) {
	for {
		now := time.Now()
		var d drawn
		if n.plan == nil {
			own := w.opts.Opened + n.number
			d = newDraw(w.opts.Seed, n.number, own, w.opts.RampedStart, n.settings, n.texts) // may take a few ms
		}
		c, again := w.begin(now, n.number, d, n.settings, n.texts)
		if c != nil {
			w.wg.Go(func() { w.converse(ctx, c) })
		}
		if !again {
			return
		}
		n = w.upcoming()
	}
}

// begin adds a conversation to those in progress, unless there are enough, or the target has
// failed. again reports that settings or corpus have changed, so that it must be drawn again.
func (w *Workload) begin(
	now time.Time,
	k int64,
	d drawn,
	settings Settings,
	texts *corpus.Corpus,
) (c *Conversation, again bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case settings != w.settings || texts != w.corpus:
		return nil, true
	case w.plannedOf != w.plan || w.plannedFor != k: // Run prepares the conversation before it starts it
		return nil, false
	case w.drains || w.spent():
		return nil, false
	}
	state := w.state(now)
	if at, ok := w.load.Next(state); !ok || at > state.Now || w.load.Waits() && !w.breaker.Admit(now) {
		return nil, false
	}
	intended := w.load.Begin(state)
	w.begun++
	if w.full() {
		return nil, false
	}
	w.take()
	w.inflight++
	c = &Conversation{
		ID:    fmt.Sprintf("%s-%s-%d", w.opts.Lane, w.opts.Run, k),
		Draw:  Draw{Seed: w.opts.Seed, Opened: w.opts.Opened, Number: k, Shape: w.shape},
		Topic: d.starter.Topic, Starter: d.starter.ID, Planned: d.Turns, Started: now, draw: d,
	}
	if !w.load.Waits() {
		c.intended = w.origin.Add(intended)
	}
	if w.planned != nil {
		c.plan, c.salt, c.limit = w.planned, salt(w.opts.Nonce), settings.MaxTokens
		c.Topic, c.Planned = w.planned.Name, len(w.planned.Turns)
		c.scheduled, c.origin = c.intended, cmp.Or(c.intended, now)
	}
	w.active[c] = struct{}{}
	w.report()
	return c, false
}

// full reports whether no further turn may be sent at a rate, and counts the one that is not. The lock is held.
func (w *Workload) full() bool {
	if w.load.Waits() || w.inflight < w.settings.MaxInflight {
		return false
	}
	w.dropped++
	return true
}

// report passes the numbers to the observer. The lock, which is held, keeps the reports in order.
func (w *Workload) report() {
	s := w.state(time.Now())
	if s.Oldest = w.begun; !w.load.Waits() {
		for c := range w.active {
			s.Oldest = min(s.Oldest, c.Number)
		}
	}
	w.opts.Observer.Active(len(w.active), w.settings.Level, w.load.Settled(s))
}

// retireOrContinue decides before turn n whether a conversation retires, because there are too many,
// or no further turn is left. Then it is removed from those in progress. It also returns the think
// time since the turn before has ended.
func (w *Workload) retireOrContinue(c *Conversation, n int, ended time.Time) (
	retires bool, think time.Duration, changed <-chan struct{},
) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.drains && !w.load.Surplus(w.state(time.Now())) && (n == 1 || !w.spent()) {
		return false, w.pauseBefore(c, n, ended), w.changed
	}
	if n == 1 {
		w.sent-- // taken at the beginning of the conversation
	}
	delete(w.active, c)
	w.report()
	return true, 0, nil
}

// end removes a conversation that has ended, and wakes Run.
func (w *Workload) end(c *Conversation) {
	w.mu.Lock()
	if _, ok := w.active[c]; ok {
		delete(w.active, c)
		w.report()
	}
	w.mu.Unlock()
	select {
	case w.freed <- struct{}{}:
	default:
	}
}

// converse holds one conversation from its first turn to its end.
func (w *Workload) converse(ctx context.Context, c *Conversation) {
	w.opts.Observer.ConversationStarted(c)
	status := api.ConversationStatus("")
	for n := 1; n <= c.Planned; n++ {
		if status = w.awaitTurn(ctx, c, n); status != "" {
			if n == 1 {
				w.landed()
			}
			break
		}
		if status = w.turn(ctx, c, n); status != "" {
			break
		}
		c.done = n
	}
	if status == "" {
		status = api.ConversationCompleted
	}
	// The conversation is removed only after its last event, so that an empty workload has
	// reported every turn.
	w.opts.Observer.ConversationEnded(c, status, c.done)
	w.texts.Release(c.answers)
	w.end(c)
}

// awaitTurn blocks until turn n may be sent: for the think time, the question, and the limit on
// requests. A status that is not empty ends the conversation.
func (w *Workload) awaitTurn(ctx context.Context, c *Conversation, n int) api.ConversationStatus {
	waitStart := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	var question <-chan struct{} // closed when the question is generated
	defer func() {
		cancel()
		if question != nil {
			<-question
		}
	}()
	for ctx.Err() == nil {
		retires, think, changed := w.retireOrContinue(c, n, waitStart)
		if retires {
			return api.ConversationRetired
		}
		if n > 1 && question == nil && c.plan == nil {
			question = c.generateQuestion(ctx, w.opts.Questioner)
		}
		if n > 1 && !(sleep(ctx, changed, think-time.Since(waitStart)) &&
			(question == nil || await(ctx, changed, question))) {
			continue
		}
		if n == 1 { // it has passed with the start of the conversation
			return ""
		}
		if !w.sends.pass(ctx, changed) {
			continue
		}
		switch ok, dropped := w.mayContinue(); {
		case dropped:
			return api.ConversationRetired
		case ok:
			c.intend(waitStart.Add(think))
			return ""
		}
	}
	return api.ConversationCancelled
}

// mayContinue is take for a further turn of a conversation. dropped reports that too many turns are in flight.
func (w *Workload) mayContinue() (ok, dropped bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.full():
		return false, true
	case !w.take():
		return false, false
	}
	w.inflight++
	return true, false
}

// intend sets when the next turn of an open load was to be sent: after the think time, once its question was there.
func (c *Conversation) intend(at time.Time) {
	if c.intended.IsZero() {
		return
	}
	c.intended = at
	if c.questioned.After(at) {
		c.intended = c.questioned
	}
}

// await blocks until done is closed. It returns false if ctx ended or changed was closed first.
func await(ctx context.Context, changed, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
	}
	select {
	case <-done:
		return true
	case <-ctx.Done():
	case <-changed:
	}
	return false
}

// turn sends one turn. A status that is not empty ends the conversation.
func (w *Workload) turn(ctx context.Context, c *Conversation, n int) api.ConversationStatus {
	t := &LiveTurn{
		Turn: Turn{Turn: api.Turn{
			Lane: w.opts.Lane, Conversation: c.ID, Number: n, RequestID: fmt.Sprintf("%s-%d", c.ID, n),
		}, Draw: c.Draw},
		Last: n == c.Planned, Began: time.Now(), Intended: c.intended, Scheduled: c.scheduled,
	}
	c.appendQuestion(w.opts, t)
	c.setTurn(t)
	w.opts.Observer.TurnStarted(t)
	r := w.opts.Sender.Do(ctx, w.request(c, t))
	w.landed()
	c.setTurn(nil)
	c.token = cmp.Or(r.Token, c.token)
	w.updateBreaker(t, &r)
	w.endTurn(c, t, &r)
	switch t.Status {
	case api.TurnCancelled:
		return api.ConversationCancelled
	case api.TurnError:
		return api.ConversationError
	}
	answer := chat.Message{Role: chat.RoleAssistant, Text: r.Content}
	if c.plan != nil {
		c.keep(n, answer, w.texts)
		return ""
	}
	c.messages = append(c.messages, answer)
	c.answers += chat.TextMemory(len(r.Content))
	if c.outgrows(t, w.opts.ModelTokens) {
		c.done = n
		return api.ConversationRetired
	}
	return ""
}

// questionTokens is the room for a follow-up question in the context of a model.
const questionTokens = 100

// outgrows reports whether the turn after t could exceed the context of the model; 0 means that it is unknown.
func (c *Conversation) outgrows(t *LiveTurn, context int) bool {
	if context == 0 || t.PromptTokens == nil || t.Number == c.Planned {
		return false
	}
	return *t.PromptTokens+*t.OutputTokens+questionTokens+c.draw.MaxTokens[t.Number] > context
}

// landed counts a turn that is no longer in flight.
func (w *Workload) landed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inflight--
}

// endTurn sets the outcome of a turn and passes it on.
func (w *Workload) endTurn(c *Conversation, t *LiveTurn, r *chat.Result) {
	t.end(r)
	if n := uncounted(r); n != 0 {
		w.opts.Observer.Arrived(n)
	}
	if t.routing != nil {
		t.routing.Ended(&t.Turn.Turn)
	}
	w.opts.Observer.TurnEnded(c, t)
}

// updateBreaker reports the result of a turn to the breaker. Success was already reported at the
// first token. A cancelled turn has no result, unless the process that sent it was lost.
func (w *Workload) updateBreaker(t *LiveTurn, r *chat.Result) {
	switch {
	case r.Err != nil:
		w.notifyIf(w.breaker.Failure(time.Now(), t.Began, min(r.Err.RetryAfter, maxAsked)))
	case len(r.Chunks) == 0 && !r.Cancelled:
		w.notifyIf(w.breaker.Success())
	}
}

// notifyIf wakes all waits if the breaker has changed.
func (w *Workload) notifyIf(changed bool) {
	if changed {
		w.mu.Lock()
		w.notify()
		w.mu.Unlock()
	}
}

func (w *Workload) request(c *Conversation, t *LiveTurn) chat.Request {
	first := true // OnChunk is called from one goroutine
	req := chat.Request{
		ID: t.RequestID, Conversation: c.ID, Token: c.token,
		Messages: c.messages, Live: &t.Live, Texts: w.texts,
		OnChunk: func(n int) {
			if first {
				first = false
				w.notifyIf(w.breaker.Success())
				w.opts.Observer.FirstToken(t)
				if t.routing != nil {
					t.routing.FirstToken(t.Live.Worker())
				}
			}
			w.opts.Observer.Arrived(n)
		},
	}
	if c.plan != nil {
		turn := &c.plan.Turns[t.Number-1]
		req.Model, req.Salt = c.plan.Model, c.salt
		t.Model = req.Model
		req.MaxTokens, req.Exact = cmp.Or(turn.MaxTokens, c.limit), turn.Exact
	} else {
		req.MaxTokens = c.draw.MaxTokens[t.Number-1]
	}
	if w.opts.TraceParent != nil {
		req.TraceParent = w.opts.TraceParent(t.RequestID)
	}
	if w.opts.Instance != nil {
		req.Instance = w.opts.Instance()
	}
	if w.opts.ObserveRouting != nil {
		t.Instance = req.Instance
		t.routing = w.opts.ObserveRouting(t)
		if t.routing.WantsIDs() {
			req.OnPrompt = t.routing.Routed
		}
	}
	return req
}

// appendQuestion appends the user's next message. The first one begins with the starter's text,
// byte-identical in all conversations on it, so that its prefix is shared.
func (c *Conversation) appendQuestion(o Options, t *LiveTurn) {
	if c.plan != nil {
		c.nextPlanned(o, t)
		return
	}
	var content string
	if t.Number == 1 {
		t.UserMessage = c.draw.starter.Asker(o.Questioner).Open(c.draw.Questions, c.Topic)
		content = FirstMessage(o.Nonce, c.draw.starter.Text, t.UserMessage)
		c.draw.starter.Text = "" // frees a text that no other conversation has
		c.opening = unique.Make(content)
		content = c.opening.Value()
	} else {
		t.UserMessage = c.question
		content = t.UserMessage
	}
	c.asked = append(c.asked, t.UserMessage)
	c.messages = append(c.messages, chat.Message{Role: chat.RoleUser, Text: content})
	t.prompt = c.messages
}

// FirstMessage returns the first message of a conversation on a text. Without a nonce, it begins
// with the text.
func FirstMessage(nonce, text, question string) string {
	content := question
	if text != "" {
		content = text + "\n\n" + question
	}
	if nonce != "" {
		content = nonce + "\n" + content
	}
	return content
}

// generateQuestion begins to generate the question on the last answer. The channel is closed when
// the question is generated. The end of ctx ends it.
func (c *Conversation) generateQuestion(ctx context.Context, q corpus.Questioner) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		answer := c.messages[len(c.messages)-1].Text
		c.question = c.draw.starter.Asker(q).Follow(ctx, c.draw.Questions, c.Topic, c.asked, answer)
		c.questioned = time.Now()
	}()
	return done
}
