package members

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/shadow/live"
	"kvbooth/sidecar/loadgen/stats"
	"kvbooth/sidecar/loadgen/workload"
)

// part is what a member holds of a lane's run. It is the observer of its workload, and keeps
// what there is to report.
type part struct {
	lane, run string
	work      *workload.Workload
	cancel    context.CancelFunc
	over      chan struct{} // closed when the last conversation has ended
	told      chan struct{} // closed when that has been reported and its turns are handed over, or never will be
	store     func(handed, *atomic.Int64)
	unsent    atomic.Int64 // turns that are on their way to the server
	granted   int64        // numbers below this one have been handed to the workload
	settings  workload.Settings
	texts     string // digest
	grant     atomic.Int64
	order     atomic.Pointer[order]
	instance  atomic.Int64 // counts the turns that were pinned, from the first number on

	marks    lane.Marks
	notes    live.Recorder
	followed lane.Followed

	probes func() int64 // that the sender has sent so far
	probed int64        // those that were reported

	mu   sync.Mutex
	next report
}

// newPart makes one that does nothing before its run.
func newPart(
	o *order,
	s Share,
	texts *corpus.Corpus,
	asker corpus.Questioner,
	sender workload.Sender,
	store func(handed, *atomic.Int64),
) *part {
	p := &part{
		lane:  o.Lane,
		run:   o.Run,
		over:  make(chan struct{}),
		told:  make(chan struct{}),
		store: store,
		texts: o.Corpus,
	}
	p.order.Store(o)
	p.notes.Use(o.Shadow)
	p.settings = settingsOf(o, s)
	p.work = workload.New(workload.Options{
		Lane: o.Lane, Run: o.Run, Seed: o.Seed, Opened: o.Opened, Midway: o.Midway, Nonce: o.Nonce, Sender: sender,
		Corpus: texts, Questioner: asker, Instance: p.pin, Observer: p, RoutingObserver: p, Granted: true,
		AnswerMemory: o.Target.AnswerMemory,
	}, p.settings)
	p.take(s)
	return p
}

// hold holds the conversations until ctx ends or a drain is complete.
func (p *part) hold(ctx context.Context) {
	defer close(p.over)
	p.work.Run(ctx)
}

// settingsOf are those of a member's part.
func settingsOf(o *order, s Share) workload.Settings {
	settings := o.Settings
	settings.Concurrency, settings.StartRate = s.Concurrency, s.StartRate
	if settings.TargetRPS > 0 {
		settings.TargetRPS = s.TargetRPS
	}
	return settings
}

// set takes what has changed; texts are those of the order.
func (p *part) set(o *order, s Share, texts *corpus.Corpus) {
	p.order.Store(o)
	p.notes.Use(o.Shadow)
	if o.Corpus != p.texts {
		p.texts = o.Corpus
		p.work.SetCorpus(texts)
	}
	if next := settingsOf(o, s); next != p.settings {
		p.settings = next
		p.work.Set(next)
	}
	p.take(s)
	if o.End == drains {
		p.work.Drain()
	}
}

// take hands over the numbers of a share that are new. By the first of them its turns are dealt
// out as one process would deal those of its conversations, so that no two members begin alike.
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

// pin names the worker instance of the next turn.
func (p *part) pin() string {
	instances := p.order.Load().Instances
	if len(instances) == 0 {
		return ""
	}
	return instances[(p.instance.Add(1)-1)%int64(len(instances))]
}

// standing is where the part is.
func (p *part) standing() standing {
	pace := p.work.Pace()
	return standing{
		Run: p.run, Grant: p.grant.Load(), Active: pace.Actual, Begun: pace.Begun,
		Uniform: p.work.Uniform(), Step: p.order.Load().Step.ID,
	}
}

// collect gives what has happened since the last time.
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
	r.Lane, r.Run, r.Underway, r.Waited = p.lane, p.run, p.work.Underway(time.Now()), p.work.Pace().Waited
	return r
}

var (
	_ workload.Observer        = (*part)(nil)
	_ workload.RoutingObserver = (*part)(nil)
)

// Sent notes a turn for the shadow.
func (p *part) Sent(t *workload.Turn) func(ids []uint32) {
	return p.followed.Sent(t, p.marks.Step(t).Concurrency, p.notes.Follow)
}

// FirstToken notes where a turn went.
func (p *part) FirstToken(t *workload.Turn) { p.followed.FirstToken(t) }

// ConversationStarted notes the conversation.
func (p *part) ConversationStarted(c *workload.Conversation) {
	p.note(c, api.ConversationActive, 0, nil)
}

// ConversationEnded notes how it ended.
func (p *part) ConversationEnded(c *workload.Conversation, status api.ConversationStatus, done int) {
	p.note(c, status, done, new(time.Now()))
	p.notes.EndConversation(c.ID)
}

func (p *part) note(c *workload.Conversation, status api.ConversationStatus, done int, ended *time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next.Conversations = append(p.next.Conversations, lane.ConversationOf(p.lane, c, status, done, ended))
}

// TurnStarted marks the turn with the step in which it begins, by the latest order.
func (p *part) TurnStarted(t *workload.Turn) { p.marks.Begin(t, p.order.Load().Step) }

// Chunk counts tokens as they arrive.
func (p *part) Chunk(tokens int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next.Tokens += tokens
}

// TurnEnded notes what the turn was like, and hands it to the store.
func (p *part) TurnEnded(t *workload.Turn, r *chat.Result) {
	p.followed.Ended(t, r)
	began, counts := p.marks.End(t, p.order.Load().Step)
	sample, row := lane.Measure(p.lane, t, r, began, counts && r.OK())
	m := measured{Row: row, Number: t.Conversation.Number, Shape: t.Conversation.Shape, Chunks: len(r.Chunks)}
	m.Row.UserMessage, m.Row.AssistantMessage = "", ""
	if r.OK() { // of others the window takes no gaps
		m.ITL = stats.Compact(sample.ITL)
	}
	done := t.Number
	if !r.OK() {
		done--
	}
	conversation := lane.ConversationOf(p.lane, t.Conversation, api.ConversationActive, done, nil)
	p.store(handed{p.run, row, conversation, t.Conversation.Shape}, &p.unsent)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next.Turns = append(p.next.Turns, m)
	p.next.Tokens += lane.Uncounted(r)
	if r.OK() {
		p.next.Conversations = append(p.next.Conversations, conversation)
	}
}

// Active is told with the lease.
func (p *part) Active(int, int) {}
