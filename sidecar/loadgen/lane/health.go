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
	"kvbooth/sidecar/loadgen/workload"
)

// checkEvery is how often the target is asked for its models while no turn shows that it serves.
// After a failed probe the pauses grow up to checkMost. A success is news for freshFor.
const (
	checkEvery = 2 * time.Second
	checkMost  = 30 * time.Second
	freshFor   = 5 * time.Second
)

// finalFor is how long a refusal that a repeat cannot change stands for the turns that ask anew:
// the server may be repaired.
const finalFor = 30 * time.Second

// noticeFrom is the number of answers with the same peculiarity from which it is reported.
const noticeFrom = 3

// burstsFrom is the share of answers in bursts from which they are reported. A client that was kept from running for a
// moment reads a few answers in bursts too, whatever the server did.
const burstsFrom = .05

// target watches whether the target can serve, and probes its extensions before
// the first turn and again after it was lost, since another server may have
// come back. It is a [workload.Sender].
type target struct {
	client Client
	notify func() // something that a snapshot shows has changed

	probing chan struct{} // holds one value; its holder probes

	mu          sync.Mutex
	probed      bool
	refusal     *chat.Error // of the last probe that failed
	refused     time.Time   // when it did
	pause       time.Duration
	next        time.Time // not before it does the watch ask again
	problem     string
	status      int  // that the problem came with, 0 where none did
	final       bool // the problem is one that a repeat cannot change
	lastSuccess time.Time
	fresh       time.Duration // how long a success is news
	lastTurn    time.Time     // however it ended
	listed      []string      // the models at the last successful request for them; nil: there was none
	answers     peculiar
}

// peculiar counts the answers that ended well and those of them that lack something, since the
// last probe.
type peculiar struct{ all, unfinished, buffered, hidden int }

// NewSender sends turns to a server that it probes before the first one, and again after it was
// lost. It is safe for concurrent use.
func NewSender(c Client) workload.Sender { return newTarget(c, func() {}) }

func newTarget(c Client, notify func()) *target {
	t := &target{
		client: c, notify: notify, probing: make(chan struct{}, 1), problem: "the target has not answered yet",
		fresh: freshFor,
	}
	t.probing <- struct{}{}
	return t
}

// Do sends a turn, after a probe where none has succeeded yet.
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
		t.fresh = max(freshFor, 2*r.Ended.Sub(r.Sent)) // until then the next answer may end
		t.answers.add(&r)
	}
	t.mu.Unlock()
	switch {
	case r.OK():
		t.serves()
	case r.Err != nil:
		t.failed(r.Err)
	}
	return r
}

// probe makes sure that the target was probed since it was last lost. Who waited
// for another's probe takes its outcome: against a target that hangs, a probe
// each would make the last one wait for hours.
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

// outcome is that of the last probe, if it still holds for who asked at that time.
func (t *target) outcome(asked time.Time) (known bool, err *chat.Error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.probed {
		return true, nil
	}
	stands := t.refusal != nil && t.refusal.Final() && time.Since(t.refused) < finalFor
	return stands || t.refused.After(asked), t.refusal
}

// probeEnded notes what a probe found. While turns are sent it is they who say
// whether the target serves, since a probe asks for much less than a turn.
func (t *target) probeEnded(err *chat.Error) {
	t.mu.Lock()
	t.probed = err == nil
	t.answers = peculiar{}
	if err != nil {
		t.refusal, t.refused = err, time.Now()
		t.backOff(err)
	} else {
		t.refusal, t.pause = nil, 0
	}
	turnsTell := t.turnsTell()
	t.mu.Unlock()
	switch {
	case err != nil:
		t.failed(err)
	case !turnsTell:
		t.serves()
	}
}

// backOff lets the watch wait after a probe that failed: each time twice as long where the server
// answered. A server that is not there is asked as often as before. The lock is held.
func (t *target) backOff(err *chat.Error) {
	if err.Unreached {
		t.pause = 0
		return
	}
	t.pause = min(max(2*t.pause, checkEvery), checkMost)
	t.next = time.Now().Add(t.pause)
}

// turnsTell reports whether turns show how the target does. The lock is held.
func (t *target) turnsTell() bool { return time.Since(t.lastTurn) < freshFor }

// serves notes a success.
func (t *target) serves() {
	t.mu.Lock()
	changed := t.problem != ""
	t.problem, t.status, t.final, t.lastSuccess = "", 0, false, time.Now()
	t.mu.Unlock()
	if changed {
		t.notify()
	}
}

// failed notes a failure. One failed turn among good ones is no problem of the
// target's; a connection that cannot be made is one at once. Either way another
// server may answer next, whose extensions are not known.
func (t *target) failed(e *chat.Error) {
	t.mu.Lock()
	lost := e.Class == api.ErrorConnect || time.Since(t.lastSuccess) > t.fresh
	changed := lost && t.problem != e.Message && (!t.final || e.Final() || e.Unreached)
	if lost {
		t.probed = false
	}
	if changed { // else the first error that says what to do stays
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

// state says why the target cannot serve, "" where it can, and the HTTP status that it answers with, 0 for none.
func (t *target) state() (problem string, status int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.problem, t.status
}

// watch asks the target while no turn does, at once and until ctx ends.
func (t *target) watch(ctx context.Context) {
	t.check(ctx)
	every(ctx, checkEvery, func() { t.check(ctx) })
}

func (t *target) check(ctx context.Context) {
	t.mu.Lock()
	turnsTell, probed := t.turnsTell(), t.probed
	waits := t.pause > 0 && time.Now().Before(t.next)
	final := t.refusal != nil && t.refusal.Final()
	t.mu.Unlock()
	switch {
	case !probed && waits:
	case !probed && final:
		t.askAgain(ctx)
	case !probed:
		_ = t.probe(ctx) // failed has noted what is wrong
	case !turnsTell: // turns say more than a list of models
		t.askModels(ctx)
	}
}

// askAgain looks whether a server that refused for good lists other models by now, which costs
// no tokens. Only then is it probed again.
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

// list asks for the models and keeps them. It gives those that were kept before, nil where there
// was no list.
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

// askModels asks whether the server still answers. One that serves without listing its models is
// no worse for it: a list that never came proves nothing, unless there is no connection at all.
func (t *target) askModels(ctx context.Context) {
	before, err := t.list(ctx)
	switch {
	case ctx.Err() != nil:
	case err == nil:
		t.serves()
	case err.Unreached, before != nil && !err.Final():
		t.failed(err)
	}
}

// add counts an answer that ended well.
func (p *peculiar) add(r *chat.Result) {
	p.all++
	if r.FinishReason == "" {
		p.unfinished++
	}
	if r.Buffered() {
		p.buffered++
	}
	if len(r.Chunks) == 0 {
		p.hidden++
	}
}

// notices are what is odd about the target and does not keep it from serving.
func (t *target) notices() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []string
	if n := t.answers.buffered; n >= noticeFrom && float64(n) >= burstsFrom*float64(t.answers.all) {
		all = append(all, fmt.Sprintf("%d of %d answers came in bursts: the server or a proxy buffers its streams. "+
			"Their TPOT and ITL are unknown, and TTFT includes the time in the buffer.", n, t.answers.all))
	}
	if n := t.answers.hidden; n >= noticeFrom {
		all = append(all, fmt.Sprintf("%d of %d answers had tokens, after the server's count, but no text: their latencies "+
			"are unknown. "+
			"Check the server's chat template and its reasoning parser.", n, t.answers.all))
	}
	if n := t.answers.unfinished; n >= noticeFrom {
		all = append(all, fmt.Sprintf("%d of %d answers ended without a finish reason.", n, t.answers.all))
	}
	if model := t.client.Model(); model != "" && len(t.listed) > 0 && !slices.Contains(t.listed, model) {
		all = append(all, fmt.Sprintf("The server's list of models lacks %q, which it is asked for.", model))
	}
	return all
}
