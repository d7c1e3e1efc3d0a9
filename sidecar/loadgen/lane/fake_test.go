package lane

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
)

// fake is a Client that sends nothing, for tests in virtual time. An answer has one chunk per word.
type fake struct {
	noCachedTokens bool // usage has no cached tokens; set before the start

	url, model  string
	extensions  map[string]bool
	noRequestID bool
	context     int // tokens
	planned     bool
	remarks     []string
	router      string

	mu          sync.Mutex
	connect     time.Duration // wait for a connection, before a request is sent
	ttft, gap   time.Duration
	words       int
	perChunk    int           // tokens, as usage says at the end
	turnError   *chat.Error   // result of every turn
	resetEvery  int           // one of so many turns is reset at once; 0: none
	probeError  *chat.Error   // result of every probe
	modelsError *chat.Error   // result of every list of models
	slow        time.Duration // duration of a probe
	probes      int
	asked       int // lists of models
	requests    []request
	finish      string // reason at the end of an answer
	findings    chat.Finding
	prompt      int      // tokens
	cached      int      // tokens of a prompt
	lists       []string // models that are listed; nil: the one that it serves
}

// request is a turn as it was asked for.
type request struct {
	id, first string // of the request; the first message, or its segments
	maxTokens int
}

// run is the part of the id that names the span from start to stop.
func (r *request) run() string { return strings.Join(strings.Split(r.id, "-")[:2], "-") }

var _ Client = (*fake)(nil)

func newFake() *fake {
	return &fake{
		url: "http://gpu.example:8000", model: "test-model",
		ttft: 200 * time.Millisecond, gap: 40 * time.Millisecond, words: 6, perChunk: 1, finish: "length", prompt: 1000,
		cached: 400,
	}
}

func (f *fake) set(change func(*fake)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *fake) Root() string { return f.url }

func (f *fake) Model() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.model
}

func (f *fake) Probes() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return int64(f.probes)
}

// Plan makes the extension for exact lengths available.
func (f *fake) Plan() bool {
	isNew := !f.planned
	f.planned = true
	return isNew
}

func (f *fake) Extensions() map[string]bool { return f.extensions }

func (f *fake) Recognized() chat.Recognized {
	r := chat.Recognized{Router: f.router, NoRequestID: f.noRequestID, Cached: f.router != "", Remarks: f.remarks}
	r.ContextTokens = f.context
	if f.extensions[chat.ExtNVExt] {
		r.Worker = "nvext.worker_id"
	}
	return r
}

func (f *fake) Models(context.Context) ([]string, *chat.Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	if f.modelsError != nil {
		return nil, f.modelsError
	}
	if f.lists != nil {
		return f.lists, nil
	}
	return []string{f.model}, nil
}

func (f *fake) Probe(ctx context.Context) *chat.Error {
	f.mu.Lock()
	f.probes++
	slow, err := f.slow, f.probeError
	f.mu.Unlock()
	if !pause(ctx, slow) {
		return &chat.Error{Class: api.ErrorTimeout, Message: "cut short"}
	}
	return err
}

func (f *fake) Do(ctx context.Context, req chat.Request) chat.Result {
	f.mu.Lock()
	connect, ttft, gap, words, perChunk := f.connect, f.ttft, f.gap, f.words, f.perChunk
	turnError, finish, findings, prompt, cached := f.turnError, f.finish, f.findings, f.prompt, f.cached
	first := req.Messages[0].Text
	if first == "" {
		first = fmt.Sprint(req.Messages[0].Segments)
	}
	f.requests = append(f.requests, request{req.ID, first, req.MaxTokens})
	reset := f.resetEvery > 0 && len(f.requests)%f.resetEvery == 0
	f.mu.Unlock()
	if reset {
		now := time.Now()
		return chat.Result{Sent: now, Ended: now, Err: &chat.Error{Class: api.ErrorConnect, Message: "connection reset"}}
	}
	if connect > 0 && !pause(ctx, connect) {
		return chat.Result{Sent: time.Now(), Ended: time.Now(), Cancelled: true}
	}
	r := chat.Result{Sent: time.Now(), Worker: "16549284283275536882"}
	next := ttft
	for range words {
		if !pause(ctx, next) {
			r.Cancelled = true
			break
		}
		if turnError != nil {
			r.Err = turnError
			break
		}
		r.Chunks = append(r.Chunks, chat.Chunk{At: time.Since(r.Sent), Tokens: 1})
		req.OnChunk(1)
		next = gap
	}
	if r.OK() {
		r.Usage = &chat.Usage{Prompt: prompt, Completion: words * perChunk}
		if !f.noCachedTokens {
			r.Usage.Cached, r.Usage.HasCached = cached, true
		}
		r.Content, r.FinishReason, r.Findings = "An answer.", finish, findings
	}
	r.Ended = time.Now()
	return r
}

// pause waits for d, and reports false if ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// virtual runs a test of a booth on a fake client in virtual time.
func virtual(t *testing.T, test func(t *testing.T, b *booth, f *fake), change ...func(*options)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		b := newBooth(t, f, change...)
		// Samples of each second are taken off the instants at which turns end. In virtual time many turns
		// end at one instant, before the next conversations begin.
		pass(time.Second + 500*time.Microsecond)
		test(t, b, f)
	})
}

// pass advances virtual time and returns when everything that is due has happened.
func pass(d time.Duration) {
	wait.Advance(d)
	synctest.Wait()
}

// holdTurns makes the n turns of a running lane endless.
func (f *fake) holdTurns(b *booth, n int) {
	b.t.Helper()
	f.set(func(f *fake) { f.words = 1e6 })
	pass(5 * time.Second)
	require.Equal(b.t, n, b.lane.underway(time.Now()).Turns)
}

// endTurns makes the turns that begin from now on end again.
func (f *fake) endTurns() { f.set(func(f *fake) { f.words = 6 }) }

// turns returns the requests of the next 5 s.
func (f *fake) turns() []request {
	f.set(func(f *fake) { f.requests = nil })
	pass(5 * time.Second)
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}
