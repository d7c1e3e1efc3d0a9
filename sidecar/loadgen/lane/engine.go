package lane

import (
	"context"
	"fmt"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/loadgen/shadow/live"
	"kvbooth/sidecar/loadgen/workload"
)

// Runner holds the conversations of a run, from its start to its stop. No method but Run blocks.
type Runner interface {
	// Run holds the conversations until ctx ends, which cancels requests in flight, or until a
	// drain is complete. It returns when the last conversation has ended and is reported.
	Run(ctx context.Context)
	// Set changes the settings.
	Set(s workload.Settings)
	// SetCorpus changes the texts of the conversations that begin from now on.
	SetCorpus(c *corpus.Corpus)
	// Step receives each state of the step in force.
	Step(s api.StepRecord)
	// Drain lets the turns in flight end and starts nothing more.
	Drain()
	// Pace returns the number of conversations so far, and the times that the next one waited.
	Pace() workload.Pace
	// Underway counts the turns under way.
	Underway(now time.Time) workload.Underway
	// Uniform reports whether all conversations in progress were drawn from the settings and the
	// corpus in force.
	Uniform() bool
	// LiveTurn returns the turn under way of a conversation; nil if there is none.
	LiveTurn(ctx context.Context, conversation string) *api.LiveTurn
}

// Engine begins runs whose conversations are held by other processes.
type Engine interface {
	// Begin returns the runner of a new run. It does not block.
	Begin(t Task) Runner
}

// Task describes a run to an engine. Its JSON is what other processes need to hold a part of the
// run.
type Task struct {
	Lane        string            `json:"lane"` // Lane and Run name the run and its conversations; see [workload.Options]
	Run         string            `json:"run"`
	Seed        uint64            `json:"seed"`
	Opened      int64             `json:"opened,omitempty"` // see [workload.Options]
	RampedStart int64             `json:"midway,omitempty"` // see [workload.Options]
	Nonce       string            `json:"nonce,omitempty"`
	Settings    workload.Settings `json:"settings"` // of the whole run
	Step        api.StepRecord    `json:"step"`
	// Taken is true if a sweep has taken the lane. After a crash the sweep begins a new run.
	Taken    bool           `json:"taken,omitempty"`
	Corpus   *corpus.Corpus `json:"-"`
	Receiver RunReceiver    `json:"-"`
	Resumed  bool           `json:"-"` // the run was begun by an earlier process
}

// ResumedRun is a run that other processes hold, and that this process takes over from one that
// has exited.
type ResumedRun struct {
	Task
	Began time.Time `json:"began"`
}

// RunReceiver receives what other processes report of a run, in any order between processes. It
// is safe for concurrent use.
type RunReceiver interface {
	// Active receives each change of the number of conversations in progress, with the target.
	Active(actual, target int)
	// Tokens receives the number of output tokens; see [SpanObserver].
	Tokens(at time.Time, n int)
	// Probes counts requests that belong to no turn.
	Probes(n int64)
	// Conversation receives a conversation that began, completed a turn, or ended.
	Conversation(c api.Conversation)
	// Turn receives a turn that has ended, without its texts. The sender stores it.
	Turn(t *workload.Turn)
	// Shadow returns the lane's shadow, which also follows turns from their beginning; nil if the
	// lane has none.
	Shadow() *live.Live
}

// localRunner is a run in this process.
type localRunner struct{ *workload.Workload }

// Step does nothing: each turn reads the step when it begins.
func (localRunner) Step(api.StepRecord) {}

// LiveTurn implements [Runner].
func (r localRunner) LiveTurn(_ context.Context, conversation string) *api.LiveTurn {
	return r.Workload.LiveTurn(conversation)
}

// resume takes over a run. The engine reports again what it still has of the run's measurements.
func (l *Lane) resume(r ResumedRun) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.started = &r.Began
	l.phase = api.PhaseRunning
	l.settings = r.Settings
	l.nonce = r.Nonce
	l.opened = r.Opened
	l.mode = r.Step.InMode()
	l.record.Reset(r.Began)
	l.beginning.reset(r.Began)
	l.doubt.reset(l.opts.Cluster().KV.Counted)
	l.steps.resume(r.Step)
	l.steps.from(leadStarted, "")
	l.record.BeginStep(r.Step.ID, nil)
	r.Corpus = l.corpus
	r.Resumed = true
	l.holdRun(r.Task, nil)
	l.event(api.EventStart, "load generator", fmt.Sprintf("took over %d conversations, %s", l.settings.Concurrency,
		l.mode.Short()))
}

var _ RunReceiver = (*observer)(nil)

// Tokens implements [RunReceiver].
func (o *observer) Tokens(at time.Time, n int) {
	o.lane.meter.Add(at, n)
	if span := o.span.Load(); span != nil {
		(*span).Tokens(at, n)
	}
}

// Probes implements [RunReceiver].
func (o *observer) Probes(n int64) { o.lane.remoteProbes.Add(n) }

// Conversation stores the state of a conversation that another process holds.
func (o *observer) Conversation(c api.Conversation) {
	o.lane.process.Store.SaveConversation(c)
	if c.Ended == nil {
		return
	}
	o.lane.record.ConversationEnded(c.Status)
	if span := o.span.Load(); span != nil {
		(*span).ConversationEnded(c.Number)
	}
}

// Turn records a turn of another process. Unlike TurnEnded it does not store the turn.
func (o *observer) Turn(t *workload.Turn) {
	t.Counted = t.Counted && o.lane.steps.count(t.Step, t.Ended)
	if t.TTFT != nil && t.Status == api.TurnOK { // other processes report a turn at its end
		o.lane.record.FirstToken(t.Step, t.Ended, *t.TTFT)
	}
	o.checkCached(&t.Turn)
	o.record(t)
}
