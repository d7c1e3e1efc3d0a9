package members

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/shadow/live"
	"kvbooth/sidecar/loadgen/stats"
	"kvbooth/sidecar/loadgen/workload"
)

// part is what a member holds of a lane's run. It observes its workload, and collects the data of
// the next report.
type part struct {
	lane, run string
	work      *workload.Workload
	cancel    context.CancelFunc
	ended     chan struct{} // closed when the last conversation has ended
	reported  chan struct{} // closed when the end is reported and all turns are delivered or given up
	store     func(handedTurn, *atomic.Int64)
	unsent    atomic.Int64 // turns on their way to the server
	granted   int64        // numbers below this one have been passed to the workload
	settings  workload.Settings
	texts     string // digest of the corpus
	grant     atomic.Int64
	order     atomic.Pointer[order]
	instance  atomic.Int64 // index of the next turn's instance, from the first conversation number on

	marks lane.Marks
	notes live.Recorder

	probes func() int64 // the sender's count of probes; nil: none
	probed int64        // count of probes that were reported

	mu   sync.Mutex
	next report
}

// newPart returns a part that does nothing before hold.
func newPart(
	o *order,
	s Share,
	texts *corpus.Corpus,
	asker corpus.Questioner,
	sender workload.Sender,
	store func(handedTurn, *atomic.Int64),
) *part {
	p := &part{
		lane: o.Lane, run: o.Run, ended: make(chan struct{}), reported: make(chan struct{}), store: store,
		texts: o.Digest,
	}
	p.order.Store(o)
	p.notes.Use(o.Shadow)
	p.settings = settingsOf(o, s)
	p.work = workload.New(workload.Options{
		Lane: o.Lane, Run: o.Run, Seed: o.Seed, Opened: o.Opened, RampedStart: o.RampedStart, Nonce: o.Nonce, Sender: sender,
		Corpus: texts, Questioner: asker, Instance: p.pin, Observer: p, ObserveRouting: p.follow, Granted: true,
		AnswerMemory: o.Target.AnswerMemory,
	}, p.settings)
	p.take(s)
	return p
}

// hold holds the conversations until ctx ends or a drain is complete.
func (p *part) hold(ctx context.Context) {
	defer close(p.ended)
	p.work.Run(ctx)
}

// settingsOf returns the settings of a member's part.
func settingsOf(o *order, s Share) workload.Settings {
	settings := o.Settings
	settings.Concurrency, settings.StartRate = s.Concurrency, s.StartRate
	if settings.TargetRPS > 0 {
		settings.TargetRPS = s.TargetRPS
	}
	return settings
}

// set applies a changed order and share. texts are the texts of the order; nil if they have not
// changed.
func (p *part) set(o *order, s Share, texts *corpus.Corpus) {
	p.order.Store(o)
	p.notes.Use(o.Shadow)
	if o.Digest != p.texts {
		p.texts = o.Digest
		p.work.SetCorpus(texts)
	}
	if next := settingsOf(o, s); next != p.settings {
		p.settings = next
		p.work.Set(next)
	}
	p.take(s)
	if o.End == endDrain {
		p.work.Drain()
	}
}

// take passes the new numbers of a share to the workload. The first number also selects the first
// turn's instance, as if one process picked instances for all conversations, so that members do not
// all begin with the same instance.
func (p *part) take(s Share) {
	for _, b := range s.Blocks {
		if p.granted == 0 {
			p.instance.Store(b.From)
		}
		if b.To > p.granted {
			p.work.Grant(max(b.From, p.granted), b.To)
			p.granted = b.To
		}
	}
	p.grant.Store(s.Grant)
}

// pin returns the worker instance of the next turn.
func (p *part) pin() string {
	instances := p.order.Load().Instances
	if len(instances) == 0 {
		return ""
	}
	return instances[(p.instance.Add(1)-1)%int64(len(instances))]
}

// standing returns the state of the part.
func (p *part) standing() standing {
	pace := p.work.Pace()
	return standing{
		Run: p.run, Grant: p.grant.Load(), Active: pace.Actual, Begun: pace.Begun,
		Uniform: p.work.Uniform(), Step: p.order.Load().Step.ID,
	}
}

// collect returns a report of what has happened since the last call.
func (p *part) collect() report {
	p.mu.Lock()
	r := p.next
	p.next = report{}
	p.mu.Unlock()
	r.Shadow = p.notes.Take()
	if p.probes != nil {
		sent := p.probes()
		r.Probes, p.probed = sent-p.probed, sent
	}
	r.Lane, r.Run = p.lane, p.run
	r.Underway = p.work.Underway(time.Now())
	r.Waited = p.work.Pace().Waited
	return r
}

var _ workload.Observer = (*part)(nil)

// follow records a turn for the shadow.
func (p *part) follow(t *workload.LiveTurn) workload.RoutingObserver {
	return p.notes.Follow(lane.Sent(t))
}

// ConversationStarted records the conversation.
func (p *part) ConversationStarted(c *workload.Conversation) {
	p.note(c, api.ConversationActive, 0, nil)
}

// ConversationEnded records how the conversation ended.
func (p *part) ConversationEnded(c *workload.Conversation, status api.ConversationStatus, done int) {
	p.note(c, status, done, new(time.Now()))
	p.notes.EndConversation(c.ID)
}

// note adds the state of a conversation to the next report.
func (p *part) note(c *workload.Conversation, status api.ConversationStatus, done int, ended *time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next.Conversations = append(p.next.Conversations, lane.ConversationOf(p.lane, c, status, done, ended))
}

// TurnStarted marks the turn with the step of the latest order.
func (p *part) TurnStarted(t *workload.LiveTurn) { p.marks.Begin(t, p.order.Load().Step) }

// FirstToken does nothing: the coordinator takes the TTFT from the ended turn.
func (*part) FirstToken(*workload.LiveTurn) {}

// Arrived counts tokens as they arrive.
func (p *part) Arrived(tokens int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next.Tokens += tokens
}

// TurnEnded adds the turn to the next report, and sends it to the store.
func (p *part) TurnEnded(c *workload.Conversation, t *workload.LiveTurn) {
	ok := t.Status == api.TurnOK
	t.Counted = p.marks.End(t, p.order.Load().Step) && ok
	done := t.Number
	if !ok {
		done--
	}
	conversation := lane.ConversationOf(p.lane, c, api.ConversationActive, done, nil)
	handed := t.Turn
	handed.ITL = nil
	p.store(handedTurn{p.run, handed, conversation}, &p.unsent)
	reported := withoutTexts(t.Turn)
	reported.ITL = nil
	if ok { // the window ignores the gaps of other turns
		reported.ITL = stats.Compact(t.ITL)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next.Turns = append(p.next.Turns, reported)
	if ok {
		p.next.Conversations = append(p.next.Conversations, conversation)
	}
}

// Active does nothing: each presence has the number of conversations.
func (p *part) Active(int, int) {}
