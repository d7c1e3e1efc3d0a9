package lane

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/stats"
	"kvbooth/sidecar/loadgen/workload"
)

// checkEvery is the interval at which the target is asked for its models while no turn shows that
// it serves. After a failed probe the interval grows up to checkMost. A success is recent for
// freshFor.
const (
	checkEvery = 2 * time.Second
	checkMost  = 30 * time.Second
	freshFor   = 5 * time.Second
)

// finalFor is the time for which a refusal that a repeat cannot change applies to further turns.
// After that the target is probed again, since the server may have been repaired.
const finalFor = 30 * time.Second

// noticeFrom is the number of answers with the same defect from which it is reported.
const noticeFrom = 3

// target watches whether the target can serve. It probes the target's extensions before the first
// turn, and again after the target was lost, since another server may have come back. It is a
// [workload.Sender].
type target struct {
	client Client
	notify func() // called when the problem changes, which a snapshot shows

	probing chan struct{} // a lock: holds one value, which is taken for the time of a probe

	mu          sync.Mutex
	probed      bool
	refusal     *chat.Error   // error of the last probe; nil: the probe succeeded
	refused     time.Time     // time of refusal
	pause       time.Duration // current interval between probes after failures
	next        time.Time     // earliest time of the next check
	problem     string        // empty: the target serves
	status      int           // HTTP status of the problem; 0: none
	final       bool          // a repeat cannot change the problem
	lastSuccess time.Time
	fresh       time.Duration // the time for which a success is recent
	lastTurn    time.Time     // end of the last turn, also of a failed one
	listed      []string      // models of the last successful request for them; nil: there was none
	answers     answerCounts
}

// answerCounts counts the answers that ended well since the last probe, and those of them with a
// defect.
type answerCounts struct {
	all, unfinished, buffered int
	found                     [len(findings)]int // by the index in findings
}

// findings are the sentences on what answers' counts of tokens show, with the number of such answers and of all.
var findings = [...]struct {
	chat.Finding
	text string
}{
	{
		chat.ReasoningAdded,
		"%d of %d answers count reasoning tokens outside of completion_tokens, as total_tokens shows: they are " +
			"added to the output tokens.",
	},
	{
		chat.CachedAdded,
		"%d of %d answers count cached tokens outside of prompt_tokens, as total_tokens shows: they are added to " +
			"the input tokens.",
	},
	{
		chat.OutputUnclear,
		"%d of %d answers have a count of output tokens that contradicts the rest of their usage or the stream: " +
			"output tokens are estimated from the chunks, and TPOT and ITL are unknown.",
	},
	{
		chat.InputUnclear,
		"%d of %d answers have a count of input tokens that contradicts the rest of their usage: input tokens are " +
			"unknown.",
	},
	{
		chat.CachedUnclear,
		"%d of %d answers have a count of cached tokens that contradicts the rest of their usage: cached tokens " +
			"are unknown.",
	},
	{
		chat.Hidden,
		"%d of %d answers count output tokens that were not streamed, such as hidden reasoning: TPOT and ITL are " +
			"of the streamed tokens, or unknown where their number is.",
	},
	{
		chat.Split,
		"%d of %d answers had more chunks than tokens: TPOT is by the tokens, and ITL is the time between two " +
			"chunks.",
	},
}

// NewSender returns a sender for a server that it probes before the first turn, and again after the
// server was lost. It is safe for concurrent use.
func NewSender(c Client) workload.Sender { return newTarget(c, func() {}) }

func newTarget(c Client, notify func()) *target {
	t := &target{
		client: c, notify: notify, probing: make(chan struct{}, 1), problem: "the target has not answered yet",
		fresh: freshFor,
	}
	t.probing <- struct{}{}
	return t
}

// Do sends a turn, after a probe if none has succeeded yet.
func (t *target) Do(ctx context.Context, req chat.Request) chat.Result {
	if err := t.probe(ctx); err != nil {
		now := time.Now()
		r := chat.Result{Sent: now, Ended: now, Err: err}
		if ctx.Err() != nil {
			r.Err, r.Cancelled = nil, true
		}
		return r
	}
	r := t.client.Do(ctx, req)
	t.mu.Lock()
	t.lastTurn = time.Now()
	if r.OK() {
		t.fresh = max(freshFor, 2*r.Ended.Sub(r.Sent)) // the next answer is expected within this time
		t.answers.add(&r)
	}
	t.mu.Unlock()
	switch {
	case r.OK():
		t.serves()
	case r.Err != nil && !r.Cancelled:
		t.failed(r.Err, t.lost())
	}
	return r
}

// lost reports whether no turn has succeeded for so long that a failed one shows the state of the
// target.
func (t *target) lost() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Since(t.lastSuccess) > t.fresh
}

// probe makes sure that the target was probed since it was last lost. Concurrent callers share one
// probe: against a target that does not respond, one probe each would block the last caller for
// hours.
func (t *target) probe(ctx context.Context) *chat.Error {
	asked := time.Now()
	if known, err := t.outcome(asked); known {
		return err
	}
	select {
	case <-ctx.Done():
		return &chat.Error{Class: api.ErrorConnect, Message: ctx.Err().Error()}
	case <-t.probing:
	}
	defer func() { t.probing <- struct{}{} }()
	if known, err := t.outcome(asked); known {
		return err
	}
	err := t.client.Probe(ctx)
	if ctx.Err() == nil {
		t.probeEnded(err)
	}
	return err
}

// plan probes the target anew for requests of a plan, the first time. Its health has the error.
func (t *target) plan(ctx context.Context) {
	if !t.client.Plan() {
		return
	}
	t.mu.Lock()
	t.probed = false
	t.mu.Unlock()
	_ = t.probe(ctx)
}

// outcome returns the result of the last probe, and whether it applies to a caller that asked at
// the given time.
func (t *target) outcome(asked time.Time) (known bool, err *chat.Error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.probed {
		return true, nil
	}
	final := t.refusal != nil && t.refusal.Final() && time.Since(t.refused) < finalFor
	return final || t.refused.After(asked), t.refusal
}

// probeEnded records the result of a probe. While turns are sent, only they show that the target
// serves, since a probe asks for much less than a turn.
func (t *target) probeEnded(err *chat.Error) {
	t.mu.Lock()
	t.probed = err == nil
	t.answers = answerCounts{}
	if err != nil {
		t.refusal, t.refused = err, time.Now()
		t.backOff(err)
	} else {
		t.refusal, t.pause = nil, 0
	}
	recent := t.turnsAreRecent()
	t.mu.Unlock()
	switch {
	case err != nil:
		t.failed(err, t.lost() || err.Class == api.ErrorConnect)
	case !recent:
		t.serves()
	}
}

// backOff doubles the interval to the next probe after a failed one. A server that cannot be
// reached is probed at the initial interval. The lock is held.
func (t *target) backOff(err *chat.Error) {
	if err.Unreached {
		t.pause = 0
		return
	}
	t.pause = min(max(2*t.pause, checkEvery), checkMost)
	t.next = time.Now().Add(t.pause)
}

// turnsAreRecent reports whether a turn ended recently enough to show the state of the target. The
// lock is held.
func (t *target) turnsAreRecent() bool { return time.Since(t.lastTurn) < freshFor }

// serves records a success.
func (t *target) serves() {
	t.mu.Lock()
	changed := t.problem != ""
	t.problem, t.status, t.final = "", 0, false
	t.lastSuccess = time.Now()
	t.mu.Unlock()
	if changed {
		t.notify()
	}
}

// failed records a failure. One failed turn among good ones is not a problem of the target, whether
// the server refuses it or the connection is reset. After a target was lost, the next answer may come
// from another server, so the extensions are probed again.
func (t *target) failed(e *chat.Error, lost bool) {
	t.mu.Lock()
	changed := lost && t.problem != e.Message && (!t.final || e.Final() || e.Unreached)
	if lost {
		t.probed = false
	}
	if changed { // a final error stays, since it says what to do
		t.problem, t.status, t.final = e.Message, 0, e.Final()
		if e.Status >= http.StatusBadRequest {
			t.status = e.Status
		}
	}
	t.mu.Unlock()
	if changed {
		t.notify()
	}
}

// state returns the reason why the target cannot serve, "" if it can, and the HTTP status of that
// reason, 0 for none.
func (t *target) state() (problem string, status int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.problem, t.status
}

// watch checks the target at once, and then periodically until ctx ends.
func (t *target) watch(ctx context.Context) {
	t.check(ctx)
	every(ctx, checkEvery, func() { t.check(ctx) })
}

// check probes a target that is not probed, and asks a probed one for its models. It does nothing
// during a pause, and while turns show the state of the target.
func (t *target) check(ctx context.Context) {
	t.mu.Lock()
	recent, probed := t.turnsAreRecent(), t.probed
	waits := t.pause > 0 && time.Now().Before(t.next)
	final := t.refusal != nil && t.refusal.Final()
	t.mu.Unlock()
	switch {
	case !probed && waits:
	case !probed && final:
		t.askAgain(ctx)
	case !probed:
		_ = t.probe(ctx) // the error is recorded by failed
	case !recent:
		t.askModels(ctx)
	}
}

// askAgain probes a server that refused finally only if its list of models has changed. Listing
// models costs no tokens.
func (t *target) askAgain(ctx context.Context) {
	before, err := t.list(ctx)
	t.mu.Lock()
	changed := err == nil && before != nil && !slices.Equal(before, t.listed)
	if changed {
		t.refusal, t.pause = nil, 0
	} else {
		t.backOff(&chat.Error{})
	}
	t.mu.Unlock()
	if changed {
		_ = t.probe(ctx)
	}
}

// list requests the models and stores them. It returns the list that was stored before, nil if
// there was none.
func (t *target) list(ctx context.Context) (before []string, err *chat.Error) {
	models, err := t.client.Models(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	before = t.listed
	if err == nil {
		t.listed = append(make([]string, 0, len(models)), models...)
	}
	return before, err
}

// askModels requests the models to see whether the server still answers. A server that never listed
// its models may serve all the same, so for it only a failed connection counts.
func (t *target) askModels(ctx context.Context) {
	before, err := t.list(ctx)
	switch {
	case ctx.Err() != nil:
	case err == nil:
		t.serves()
	case err.Unreached, before != nil && !err.Final():
		t.failed(err, err.Unreached || t.lost())
	}
}

// add counts an answer that ended well.
func (p *answerCounts) add(r *chat.Result) {
	p.all++
	if r.FinishReason == "" {
		p.unfinished++
	}
	if r.Buffered() {
		p.buffered++
	}
	for i := range findings {
		if r.Findings&findings[i].Finding != 0 {
			p.found[i]++
		}
	}
}

// notices returns defects of the target's answers that do not keep it from serving. lag is that of the load generator;
// nil: it is not known.
func (t *target) notices(lag *stats.Lag) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []string
	if n, answers := t.answers.buffered, t.answers.all; stats.HeldBack(n, answers) {
		cause := ": the server or a proxy buffers its streams. TPOT and ITL are unknown, and TTFT includes the time in " +
			"the buffer."
		if lag != nil && lag.ExplainsBursts(float64(n)/float64(answers)) {
			cause = ". TPOT and ITL are unknown. The load generator itself was late, so whether the server or a proxy " +
				"buffers its streams is not known."
		}
		all = append(all, fmt.Sprintf("%d of %d answers came in bursts%s", n, answers, cause))
	}
	for i, n := range t.answers.found {
		if n >= noticeFrom {
			all = append(all, fmt.Sprintf(findings[i].text, n, t.answers.all))
		}
	}
	if n := t.answers.unfinished; n >= noticeFrom {
		all = append(all, fmt.Sprintf("%d of %d answers ended without a finish reason.", n, t.answers.all))
	}
	// A server that answers under the name serves the model, as sglang-router, which lists it as "unknown".
	model, unproven := t.client.Model(), len(t.listed) > 0 && t.answers.all == 0
	if unproven && model != "" && !slices.Contains(t.listed, model) {
		all = append(all, fmt.Sprintf("The server's list of models lacks %q, which it is asked for.", model))
	}
	return all
}
