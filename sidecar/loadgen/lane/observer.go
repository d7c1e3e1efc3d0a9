package lane

import (
	"math"
	"strconv"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/stats"
	"kvbooth/sidecar/loadgen/workload"
)

// observer turns the events of a workload into samples, rows and counts.
type observer struct {
	lane   *Lane
	span   SpanObserver // nil: the run belongs to no span
	seed   uint64       // of the run's conversations
	opened int64        // number of conversations before the run
	marks  Marks

	followed Followed
}

// Draw identifies the random choices of a conversation. Two conversations of one draw, on any lanes
// of one workload, open with the same text, and have the same number of turns and the same limits
// of their answers. From turn 2 on, the questions also depend on the answers. All conversations of
// a lane have different draws, except those of the spans of a lease (see [Lane.Take]), which begin
// from 0 each time.
type Draw struct {
	Seed   uint64
	Opened int64 // conversations of the lane's earlier runs
	Number int64 // of the conversation in its run, from 0
	Shape  int   // number of changes of settings or corpus that affect draws, since the run began
}

// EndedTurn is a turn that has ended, as it is stored, with its conversation's draw.
type EndedTurn struct {
	api.Turn
	Draw Draw
}

var _ workload.Observer = (*observer)(nil)

// ConversationStarted stores the conversation.
func (o *observer) ConversationStarted(c *workload.Conversation) {
	o.save(c, api.ConversationActive, 0, nil)
}

// ConversationEnded counts the conversation and stores how it ended.
func (o *observer) ConversationEnded(c *workload.Conversation, status api.ConversationStatus, done int) {
	now := time.Now()
	o.lane.record.ConversationEnded(status)
	o.save(c, status, done, &now)
	if o.span != nil {
		o.span.ConversationEnded(c.Number)
	}
}

func (o *observer) save(c *workload.Conversation, status api.ConversationStatus, done int, ended *time.Time) {
	o.lane.process.Store.SaveConversation(ConversationOf(o.lane.opts.Name, c, status, done, ended))
}

// ConversationOf returns a lane's conversation as it is stored. ended is nil while it is in
// progress.
func ConversationOf(lane string, c *workload.Conversation, status api.ConversationStatus, done int,
	ended *time.Time,
) api.Conversation {
	return api.Conversation{
		ID: c.ID, Lane: lane, Number: c.Number, Topic: c.Topic, Starter: c.Starter,
		Status: status, TurnsPlanned: c.Planned, TurnsDone: done, Started: c.Started, Ended: ended,
	}
}

// TurnStarted marks the turn with the step in force.
func (o *observer) TurnStarted(t *workload.Turn) { o.marks.Begin(t, o.lane.steps.current()) }

// Chunk counts tokens as they arrive.
func (o *observer) Chunk(tokens int) { o.tokens(time.Now(), tokens) }

func (o *observer) tokens(at time.Time, n int) {
	o.lane.meter.Add(at, n)
	if o.span != nil {
		o.span.Tokens(at, n)
	}
}

// Active passes the numbers of conversations to the step.
func (o *observer) Active(actual, target int) { o.lane.steps.active(time.Now(), actual, target) }

// TurnEnded stores the turn and records it.
func (o *observer) TurnEnded(t *workload.Turn, r *chat.Result) {
	began, counts := o.marks.End(t, o.lane.steps.current())
	o.addUncounted(r)
	counted := counts && r.OK() && o.lane.steps.count(began.ID, r.Ended)
	sample, row := Measure(o.lane.opts.Name, t, r, began, counted)
	o.lane.process.Store.SaveTurn(row)
	o.followed.Ended(t, r)
	o.recordTurn(sample, row, t.Conversation.Number, t.Conversation.Shape)
	if r.OK() {
		o.save(t.Conversation, api.ConversationActive, t.Number, nil)
	}
}

// recordTurn adds a turn to the window, and passes it to the span, the callback and the log of
// failures.
func (o *observer) recordTurn(sample stats.Sample, row api.Turn, number int64, shape int) {
	o.lane.record.Add(sample)
	ended := EndedTurn{Turn: row, Draw: Draw{Seed: o.seed, Opened: o.opened, Number: number, Shape: shape}}
	if o.span != nil {
		o.span.Turn(ended)
	}
	if o.lane.opts.Ended != nil {
		o.lane.opts.Ended(ended)
	}
	switch sample.Status {
	case api.TurnError:
		o.lane.failures.turnFailed(row.Ended, row.ErrorClass, row.ErrorMessage)
	case api.TurnOK:
		o.lane.failures.turnWell(row.Ended)
	}
}

// addUncounted adds the tokens to the meter that the usage reports beyond those counted by chunks.
func (o *observer) addUncounted(r *chat.Result) {
	if n := Uncounted(r); n != 0 {
		o.tokens(r.Ended, n)
	}
}

// Uncounted returns the number of output tokens that a turn's usage reports beyond those counted by
// chunks as they arrived. It is negative if the usage reports fewer.
func Uncounted(r *chat.Result) int {
	counted := 0
	for _, c := range r.Chunks {
		counted += max(1, int(c.Tokens))
	}
	n, _ := r.OutputTokens()
	return n - counted
}

// Measure returns the sample and the stored row of a lane's turn that began in a step.
func Measure(lane string, t *workload.Turn, r *chat.Result, step api.StepRecord, counted bool) (stats.Sample,
	api.Turn,
) {
	s := newSample(t, r, step, counted)
	return s, newTurn(lane, t, r, step, &s)
}

// newSample returns the turn as the window takes it.
func newSample(t *workload.Turn, r *chat.Result, step api.StepRecord, counted bool) stats.Sample {
	s := stats.Sample{
		Ended: r.Ended, Turn: t.Number, Step: step.ID, Counted: counted, Status: status(r),
		TTFT: seconds(r.TTFT()), TPOT: seconds(r.TPOT()), Latency: seconds(r.Latency()),
	}
	if ttft, _ := r.TTFT(); r.FirstAnswer > ttft {
		s.FirstAnswer = r.FirstAnswer.Seconds()
	}
	n, source := r.OutputTokens()
	s.OutputTokens, s.OutputEstimated = n, source == "chunks"
	if r.Err != nil {
		s.Class = r.Err.Class
	}
	if r.Usage != nil {
		s.PromptTokens, s.CachedTokens, s.HasCached = r.Usage.Prompt, r.Usage.Cached, r.Usage.HasCached
	}
	gaps, estimated := r.Gaps(nil)
	s.ITLEstimated, s.Chunks = estimated, len(r.Chunks)
	s.ITL = make([]stats.Gap, len(gaps))
	for i, g := range gaps {
		s.ITL[i] = stats.Gap(g)
	}
	return s
}

func status(r *chat.Result) api.TurnStatus {
	switch {
	case r.Cancelled:
		return api.TurnCancelled
	case r.Err != nil:
		return api.TurnError
	}
	return api.TurnOK
}

func seconds(d time.Duration, ok bool) float64 {
	if !ok {
		return math.NaN()
	}
	return d.Seconds()
}

// newTurn returns the turn as it is stored.
func newTurn(lane string, t *workload.Turn, r *chat.Result, step api.StepRecord, s *stats.Sample) api.Turn {
	row := api.Turn{
		Lane: lane, Conversation: t.Conversation.ID, Number: t.Number, RequestID: t.RequestID,
		Step: step.ID, Concurrency: step.Concurrency,
		Arm: step.Arm, Mode: step.Mode, Speculation: step.Speculation,
		Counted: s.Counted, Status: s.Status, Started: r.Sent, Ended: r.Ended,
		TTFT: finite(s.TTFT), TPOT: finite(s.TPOT), Latency: finite(s.Latency), ITLEstimated: s.ITLEstimated,
		FinishReason: r.FinishReason, UserMessage: t.UserMessage, AssistantMessage: r.Content,
	}
	if s.FirstAnswer > 0 {
		row.FirstAnswer = new(s.FirstAnswer)
	}
	p50, p95 := stats.GapPercentiles(s.ITL)
	row.ITLP50, row.ITLP95 = finite(p50), finite(p95)
	n, source := r.OutputTokens()
	row.OutputTokens, row.TokenSource = &n, source
	if r.Usage != nil && r.Usage.Prompt > 0 {
		row.PromptTokens = &r.Usage.Prompt
		if r.Usage.HasCached {
			row.CachedTokens = &r.Usage.Cached
		}
	}
	if r.Err != nil {
		row.ErrorClass, row.ErrorMessage = r.Err.Class, r.Err.Message
	}
	addRouting(&row, r)
	return row
}

// addRouting adds what Dynamo reported of the turn.
func addRouting(row *api.Turn, r *chat.Result) {
	if r.Worker != 0 {
		row.Worker = strconv.FormatUint(r.Worker, 10)
	}
	if r.Timing.HasTTFT {
		row.ServerTTFT = new(r.Timing.TTFT) // a copy, so that the row does not keep the result in memory
	}
	if r.Timing.HasPredicted {
		row.PredictedRatio = new(r.Timing.PredictedHitRatio)
	}
	if r.Timing.HasQueueDepth {
		row.QueueDepth = new(r.Timing.QueueDepth)
	}
}

func finite(v float64) *float64 {
	if math.IsNaN(v) {
		return nil
	}
	return &v
}
