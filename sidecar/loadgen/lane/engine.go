package lane

import (
	"context"
	"fmt"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/loadgen/shadow/live"
	"kvbooth/sidecar/loadgen/stats"
	"kvbooth/sidecar/loadgen/workload"
)

// Runner holds the conversations of a run, from a start to its stop. All but Run never wait.
type Runner interface {
	// Run holds them until ctx ends, which cancels what is in flight, or until a drain is
	// complete. It returns when the last conversation has ended and all is told.
	Run(ctx context.Context)
	Set(s workload.Settings)
	SetCorpus(c *corpus.Corpus)
	// Step hears of each state of the step in force.
	Step(s api.StepRecord)
	Drain()
	Pace() workload.Pace
	Underway(now time.Time) workload.Underway
	// Uniform says whether every conversation in progress was drawn from what is in force.
	Uniform() bool
	// LiveTurn is the turn under way of a conversation; nil where there is none.
	LiveTurn(ctx context.Context, conversation string) *api.LiveTurn
}

// Engine begins runs whose conversations are held by other processes.
type Engine interface {
	Begin(t Task) Runner
}

// Task is a run as an engine needs it.
type Task struct {
	Lane, Run      string // they name the run, and its conversations; see [workload.Options]
	Seed           uint64
	Opened, Midway int64
	Nonce          string
	Settings       workload.Settings
	Corpus         *corpus.Corpus
	Step           api.StepRecord
	Heard          Heard
	Taken          bool // the lane is a sweep's, which goes on with a run of its own after a crash
	Inherited      bool // it goes on: this process takes it over
}

// Inherited is a run that other processes hold, and that this one takes over from one that is
// gone.
type Inherited struct {
	Task
	Began time.Time
}

// Heard hears what other processes tell of a run, in any order between processes. It is safe
// for concurrent use.
type Heard interface {
	// Active hears of each change of the number of conversations in progress, with the target.
	Active(actual, target int)
	// Tokens hears of output tokens; see [Tap].
	Tokens(at time.Time, n int)
	// Probes counts requests of no turn.
	Probes(n int64)
	// Conversation hears of one that began, got on or ended.
	Conversation(c api.Conversation)
	// Turn hears of one that has ended. Whoever tells of it stores it.
	Turn(t TurnElsewhere)
	// Shadow hears of turns when they begin, too; nil: there is none.
	Shadow() *live.Live
}

// TurnElsewhere is a turn that another process held.
type TurnElsewhere struct {
	Sample stats.Sample
	Row    api.Turn // without texts
	Number int64    // of the conversation
	Shape  int      // of the conversation
}

// here is a run in this process.
type here struct{ *workload.Workload }

// Step is told to each turn when it begins.
func (here) Step(api.StepRecord) {}

// LiveTurn is that of the workload.
func (h here) LiveTurn(_ context.Context, conversation string) *api.LiveTurn {
	return h.Workload.LiveTurn(conversation)
}

// inherit takes a run over. What has been measured of it is heard again as far as it is still
// there.
func (l *Lane) inherit(a Inherited) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.started, l.phase, l.settings, l.nonce, l.opened = &a.Began, api.PhaseRunning, a.Settings, a.Nonce, a.Opened
	l.mode = api.ModeState{Mode: a.Step.Mode, Speculation: a.Step.Speculation}
	l.record.Reset(a.Began)
	l.steps.resume(a.Step)
	a.Corpus, a.Inherited = l.corpus, true
	l.holdRun(a.Task, nil)
	l.event(api.EventStart, "load generator", fmt.Sprintf("took over %d conversations, %s", l.settings.Concurrency,
		l.mode.Mode.Name()))
}

var _ Heard = (*observer)(nil)

// Tokens counts tokens that arrived elsewhere.
func (o *observer) Tokens(at time.Time, n int) { o.tokens(at, n) }

// Probes counts those that were sent elsewhere.
func (o *observer) Probes(n int64) { o.lane.probesElsewhere.Add(n) }

// Conversation lists one that is held elsewhere.
func (o *observer) Conversation(c api.Conversation) {
	o.lane.process.Store.SaveConversation(c)
	if c.Ended == nil {
		return
	}
	o.lane.record.ConversationEnded(c.Status)
	if o.tap != nil {
		o.tap.ConversationEnded(c.Number)
	}
}

// Turn takes a turn into the window and hands it on, as TurnEnded does one of this process,
// which also stores it.
func (o *observer) Turn(t TurnElsewhere) {
	t.Sample.Counted = t.Sample.Counted && o.lane.steps.count(t.Row.Step, t.Sample.Ended)
	t.Row.Counted = t.Sample.Counted
	o.heard(t.Sample, t.Row, t.Number, t.Shape)
}
