package lane

import (
	"context"
	"net/http"
	"sync"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/workload"
)

// checkEvery is how often the target is asked for its models while no turn
// tells how it does; a success is good news for freshFor.
const (
	checkEvery = 2 * time.Second
	freshFor   = 5 * time.Second
)

// target watches whether the target can serve, and probes its extensions before
// the first turn and again after it was lost, since another server may have
// come back. It is a [workload.Sender].
type target struct {
	client Client
	notify func() // something that a snapshot shows has changed

	probing chan struct{} // holds one word: whoever has it probes

	mu          sync.Mutex
	probed      bool
	refusal     *chat.Error // of the last probe that failed
	refused     time.Time   // when it did
	problem     string
	lastSuccess time.Time
	lastTurn    time.Time // however it ended
}

// NewSender sends turns to a server that it probes before the first one, and again after it was
// lost. It is safe for concurrent use.
func NewSender(c Client) workload.Sender { return newTarget(c, func() {}) }

func newTarget(c Client, notify func()) *target {
	t := &target{client: c, notify: notify, probing: make(chan struct{}, 1), problem: "the target has not answered yet"}
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
	return t.refused.After(asked), t.refusal
}

// probeEnded notes what a probe found. While turns are sent it is they who say
// whether the target serves, since a probe asks for much less than a turn.
func (t *target) probeEnded(err *chat.Error) {
	t.mu.Lock()
	t.probed = err == nil
	if err != nil {
		t.refusal, t.refused = err, time.Now()
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

// turnsTell says whether turns tell how the target does. The lock is held.
func (t *target) turnsTell() bool { return time.Since(t.lastTurn) < freshFor }

// serves notes a success.
func (t *target) serves() {
	t.mu.Lock()
	changed := t.problem != ""
	t.problem, t.lastSuccess = "", time.Now()
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
	lost := e.Class == api.ErrorConnect || time.Since(t.lastSuccess) > freshFor
	changed := lost && t.problem != e.Message
	if lost {
		t.problem, t.probed = e.Message, false
	}
	t.mu.Unlock()
	if changed {
		t.notify()
	}
}

// state says why the target cannot serve, "" where it can.
func (t *target) state() (problem string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.problem
}

// watch asks the target while no turn does, at once and until ctx ends.
func (t *target) watch(ctx context.Context) {
	t.check(ctx)
	every(ctx, checkEvery, func() { t.check(ctx) })
}

func (t *target) check(ctx context.Context) {
	t.mu.Lock()
	turnsTell, probed := t.turnsTell(), t.probed
	t.mu.Unlock()
	switch {
	case !probed:
		_ = t.probe(ctx) // failed has noted what is wrong
	case !turnsTell: // turns say more than a list of models
		t.askModels(ctx)
	}
}

// askModels asks whether the server still answers. A server that serves without
// listing its models is no worse for it.
func (t *target) askModels(ctx context.Context) {
	_, err := t.client.Models(ctx)
	switch {
	case ctx.Err() != nil:
	case err == nil, err.Status == http.StatusNotFound, err.Status == http.StatusMethodNotAllowed:
		t.serves()
	default:
		t.failed(err)
	}
}
