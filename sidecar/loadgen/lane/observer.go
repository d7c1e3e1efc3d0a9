package lane

import (
	"sync/atomic"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/workload"
)

// observer counts, records and stores the events of a workload.
type observer struct {
	lane  *Lane
	span  atomic.Pointer[SpanObserver] // nil: the run belongs to no span
	marks Marks
	// opening returns the number of a conversation's opening with the settings at the run's start.
	opening func(workload.Draw) int64
}

// observe passes events from now on to a span; nil: to none.
func (o *observer) observe(span SpanObserver) {
	if span == nil {
		o.span.Store(nil)
		return
	}
	o.span.Store(&span)
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
	if span := o.span.Load(); span != nil {
		(*span).ConversationEnded(c.Number)
	}
}

func (o *observer) save(c *workload.Conversation, status api.ConversationStatus, done int, ended *time.Time) {
	o.lane.process.Store.SaveConversation(api.Conversation{
		ID: c.ID, Lane: o.lane.opts.Name, Number: c.Number, Topic: c.Topic, Starter: c.Starter,
		Status: status, TurnsPlanned: c.Planned, TurnsDone: done, Started: c.Started, Ended: ended,
	})
}

// TurnStarted marks the turn with the step in force.
func (o *observer) TurnStarted(t *workload.LiveTurn) {
	o.marks.Begin(t, o.lane.steps.current())
	if span := o.span.Load(); span != nil {
		at := t.Began
		if !t.Intended.IsZero() {
			at = t.Intended
		}
		(*span).TurnBegan(t.RequestID, at)
	}
}

// FirstToken records the TTFT of a turn.
func (o *observer) FirstToken(t *workload.LiveTurn) {
	sent, ttft, waiting := t.Live.First()
	if waiting {
		sent, ttft = t.Began, time.Since(t.Began)
	}
	o.lane.record.FirstToken(t.Step, sent.Add(ttft), (t.Late(sent) + ttft).Seconds())
	if span := o.span.Load(); span != nil {
		(*span).FirstToken(t.RequestID, sent.Add(ttft))
	}
}

// Arrived counts tokens as they arrive.
func (o *observer) Arrived(tokens int) {
	now := time.Now()
	o.lane.meter.Add(now, tokens)
	if span := o.span.Load(); span != nil {
		(*span).Tokens(now, tokens)
	}
}

// Active passes the numbers of conversations to the step.
func (o *observer) Active(actual int, target api.Level, settled bool) {
	o.lane.steps.active(time.Now(), actual, target, settled)
}

// TurnEnded stores the turn and records it.
func (o *observer) TurnEnded(c *workload.Conversation, t *workload.LiveTurn) {
	counts := o.marks.End(t, o.lane.steps.current())
	t.Counted = counts && t.Status == api.TurnOK && o.lane.steps.count(t.Step, t.Ended)
	o.checkCached(&t.Turn.Turn)
	o.lane.process.Store.SaveTurn(t.Turn.Turn)
	o.record(&t.Turn)
	if t.Status == api.TurnOK {
		o.save(c, api.ConversationActive, t.Number, nil)
	}
}

// checkCached removes a count of cached tokens that the cluster's counters contradict, also from earlier turns.
func (o *observer) checkCached(t *api.Turn) {
	if o.lane.doubt.add(t, o.lane.opts.Cluster) {
		o.lane.record.DoubtCached(o.lane.doubt.text() != "")
	}
}

// record adds a turn to the window, and passes it to the span, the callback and the log of
// failures.
func (o *observer) record(t *workload.Turn) {
	o.lane.record.Add(&t.Turn, t.Chunks, t.ITL)
	o.lane.beginning.add(t, o.opening)
	o.lane.armWorkers.add(t.Arm, t.Worker)
	if span := o.span.Load(); span != nil {
		(*span).Turn(t)
	}
	if o.lane.opts.Ended != nil {
		o.lane.opts.Ended(t)
	}
	switch t.Status {
	case api.TurnError:
		o.lane.failures.turnFailed(t.Ended, t.ErrorClass, t.ErrorMessage)
	case api.TurnOK:
		o.lane.failures.turnWell(t.Ended)
	}
}
