// Package virtual is an in-memory target for tests in virtual time: the model of a cluster with the clock of a
// testing/synctest bubble, as a lane's client and as its mode driver. Texts, tokenizer and router are the real ones;
// hours of a cluster pass in seconds.
package virtual

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/workload"
	"kvbooth/sidecar/sim"
)

// Options configure a [Cluster].
type Options struct {
	Mode    api.Mode
	Seed    uint64
	Restart time.Duration // duration of a change of mode

	Workers  int      // 0: three
	Blocks   int      // of a worker's cache; 0: an H200's
	Forget   bool     // blocks of answers are not reused, as with Dynamo's mock workers
	TokenIDs bool     // answers have the IDs of the prompts' tokens
	Warm     bool     // a switch to the current mode keeps the caches, but reports that they are empty
	Silent   bool     // answers do not report cached tokens
	Holds    api.Mode // in this mode a proxy holds the stream of every third answer until its end
	Alike    bool     // a switch in place changes nothing but the name of the mode
	Asked    bool     // it can be asked which modes serve
}

// Cluster is the model with the clock of the bubble in which it was made. It is safe for concurrent use.
type Cluster struct {
	began time.Time
	poke  chan struct{} // capacity 1; wakes Run, since there may be an earlier event

	mu      sync.Mutex
	model   *sim.Cluster
	mode    api.ModeState
	restart time.Duration
	block   int // tokens
	words   *rand.Rand
	ids     map[string][]uint32 // token IDs by message
	down    *chat.Error
	downIn  []api.Mode // modes to which that applies; nil: all
	turns   []Turn
	options Options
	profile sim.Profile
}

// Turn is a completely answered turn.
type Turn struct {
	Number int           // in its conversation, from 1
	Sent   time.Duration // since the cluster was made
	sim.Report
}

// New returns a cluster of simulated H200, three by default.
func New(o Options) (*Cluster, error) {
	options := sim.DefaultOptions(sim.H200())
	options.Mode, options.Seed, options.Restart, options.ForgetAnswers = o.Mode, o.Seed, o.Restart, o.Forget
	options.Profile.Workers = cmp.Or(o.Workers, options.Profile.Workers)
	options.Profile.KV.Blocks = cmp.Or(o.Blocks, options.Profile.KV.Blocks)
	model, err := sim.New(options)
	if err != nil {
		return nil, err
	}
	return &Cluster{
		began: time.Now(), poke: make(chan struct{}, 1), model: model, block: options.Profile.KV.BlockTokens,
		mode: api.ModeState{Mode: o.Mode, Speculation: api.SpeculationNotRecorded}, restart: o.Restart,
		words: rand.New(rand.NewPCG(1, 2)), ids: map[string][]uint32{}, options: o, profile: options.Profile,
	}, nil
}

// Run runs the model until ctx ends.
func (c *Cluster) Run(ctx context.Context) {
	for {
		c.mu.Lock()
		c.model.Advance(time.Since(c.began))
		next, ok := c.model.Next()
		c.mu.Unlock()
		var due <-chan time.Time
		if ok {
			due = time.After(next - time.Since(c.began))
		}
		select {
		case <-ctx.Done():
			return
		case <-c.poke:
		case <-due:
		}
	}
}

// Turns returns the turns that were completely answered so far.
func (c *Cluster) Turns() []Turn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.turns)
}

// Break makes every further request fail with an error, or those in some modes; nil ends that.
func (c *Cluster) Break(err *chat.Error, modes ...api.Mode) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down, c.downIn = err, modes
}

// problem returns the error of a mode. The lock is held.
func (c *Cluster) problem(m api.Mode) *chat.Error {
	if len(c.downIn) > 0 && !slices.Contains(c.downIn, m) {
		return nil
	}
	return c.down
}

// check returns the error of the first mode that does not serve.
func (c *Cluster) check(_ context.Context, modes []api.ModeState) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range modes {
		if down := c.problem(m.Mode); down != nil {
			return errors.New(down.Message)
		}
	}
	return nil
}

// Do answers one turn with the largest number of words that it allows.
func (c *Cluster) Do(ctx context.Context, req chat.Request) chat.Result {
	w := &watch{onChunk: req.OnChunk, done: make(chan struct{})}
	r := chat.Result{Sent: time.Now()}
	job, err := c.submit(req, w, &r)
	if err != nil {
		r.Ended, r.Err = time.Now(), err
		return r
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		c.mu.Lock()
		c.model.Cancel(job)
		c.mu.Unlock()
		r.Cancelled = true
	}
	r.Ended = time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	w.measure(&r)
	if c.options.Holds == c.mode.Mode && len(c.turns)%3 == 0 && len(r.Chunks) == 2 {
		r.Chunks = r.Chunks[1:]
	}
	if r.Usage != nil {
		r.Usage.HasCached = !c.options.Silent
	}
	if !r.Cancelled && r.Err == nil {
		c.turns = append(c.turns, Turn{(len(req.Messages) + 1) / 2, r.Sent.Sub(c.began), w.report})
	}
	return r
}

func (c *Cluster) submit(req chat.Request, w *watch, r *chat.Result) (*sim.Job, *chat.Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if down := c.problem(c.mode.Mode); down != nil {
		return nil, down
	}
	var prompt []uint32
	for _, m := range req.Messages {
		prompt = append(prompt, c.message(sim.Message{Role: m.Role, Content: chat.Text(m, req.Salt)})...)
	}
	prompt = append(prompt, sim.Encode(sim.RenderChat(nil))...)
	if c.options.TokenIDs && req.OnPrompt != nil {
		req.OnPrompt(slices.Clone(prompt))
	}
	var answer []uint32
	r.Content, answer = c.answer(req.MaxTokens)
	c.ids[r.Content] = asMessage(answer)
	c.model.Advance(time.Since(c.began))
	job, err := c.model.Submit(sim.NewRequest(req.ID, prompt, answer, len(answer), c.block), w)
	if err != nil {
		return nil, &chat.Error{Class: api.ErrorHTTP5xx, Message: err.Error()}
	}
	select {
	case c.poke <- struct{}{}:
	default:
	}
	return job, nil
}

func (c *Cluster) message(m sim.Message) []uint32 {
	ids, ok := c.ids[m.Content]
	if !ok {
		ids = sim.Encode(strings.TrimSuffix(sim.RenderChat([]sim.Message{m}), sim.RenderChat(nil)))
		c.ids[m.Content] = ids
	}
	return ids
}

var vocabulary = strings.Fields("river bridge water stone road town north south night day light sound work time " +
	"house ship train field hill wall")

// encoded are the IDs of the vocabulary's words, at the start of a text and after a space. The tokenizer encodes each
// word separately, so that a text's IDs are those of its words. Encoding whole answers would take half of these
// tests' time.
var encoded = sync.OnceValue(func() (ids [2][][]uint32) {
	for _, word := range vocabulary {
		ids[0], ids[1] = append(ids[0], sim.Encode(word)), append(ids[1], sim.Encode(" "+word))
	}
	return ids
})

// answer returns a text of some words, with its token IDs.
func (c *Cluster) answer(words int) (text string, ids []uint32) {
	var b strings.Builder
	for i := range words {
		word := c.words.IntN(len(vocabulary))
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(vocabulary[word])
		ids = append(ids, encoded()[min(i, 1)][word]...)
	}
	return b.String(), ids
}

// asMessage returns the IDs of an answer in the prompts of later turns.
func asMessage(answer []uint32) []uint32 {
	before := sim.Encode(sim.RenderChat(nil))
	empty := sim.Encode(sim.RenderChat([]sim.Message{{Role: "assistant"}}))
	return slices.Concat(before, answer, empty[len(before):len(empty)-len(before)])
}

// watch waits for a job. The cluster's lock guards it.
type watch struct {
	onChunk func(tokens int)
	worker  sim.WorkerID
	done    chan struct{}
	report  sim.Report
}

func (w *watch) Routed(d *sim.Decision)  { w.worker = d.Worker().Worker }
func (w *watch) FirstToken(r sim.Report) { w.report = r }
func (w *watch) Tokens(_ time.Duration, n int) {
	if w.onChunk != nil {
		w.onChunk(n)
	}
}

func (w *watch) Finished(r sim.Report) {
	w.report = r
	close(w.done)
}

// measure sets what a client measures: of the tokens' times the first and the last, which all of a turn's metrics
// except ITL are based on.
func (w *watch) measure(r *chat.Result) {
	p := w.report
	r.Worker = strconv.FormatUint(uint64(w.worker), 10)
	if p.FirstToken > 0 {
		r.Chunks = append(r.Chunks, chat.Chunk{At: p.FirstToken - p.Submitted, Tokens: 1})
	}
	if r.Cancelled {
		return
	}
	if p.Err != nil {
		r.Err = &chat.Error{Class: api.ErrorHTTP5xx, Message: p.Err.Error()}
		return
	}
	if p.OutputTokens > 1 {
		r.Chunks = append(r.Chunks, chat.Chunk{At: p.Ended - p.Submitted, Tokens: int32(p.OutputTokens - 1)})
	}
	r.FinishReason = "length"
	r.Usage = &chat.Usage{Prompt: p.PromptTokens, Completion: p.OutputTokens, Cached: p.CachedTokens, HasCached: true}
}

// Probe succeeds unless the cluster is broken.
func (c *Cluster) Probe(context.Context) *chat.Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.problem(c.mode.Mode)
}

// Models returns the cluster's only model.
func (c *Cluster) Models(context.Context) ([]string, *chat.Error) { return []string{c.Model()}, nil }

// Root returns an address without a server.
func (*Cluster) Root() string { return "http://virtual.invalid" }

// Model returns the name of the model.
func (*Cluster) Model() string { return "simulated" }

// Extensions returns those with worker IDs and, if the options have TokenIDs, those with token IDs.
func (c *Cluster) Extensions() map[string]bool {
	return map[string]bool{chat.ExtNVExt: true, chat.ExtTokenIDs: c.options.TokenIDs}
}

// Recognized returns that answers name their worker.
func (*Cluster) Recognized() chat.Recognized { return chat.Recognized{Worker: chat.ExtNVExt} }

// State returns the figures of the cluster's metrics.
func (c *Cluster) State() api.Cluster {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := api.Cluster{Available: true, CacheBlocks: new(float64(c.profile.KV.Blocks)), BlockTokens: new(float64(c.block))}
	for i, w := range c.model.Workers() {
		id := strconv.FormatUint(uint64(w.ID), 10)
		s.Workers = append(s.Workers, api.Worker{ID: id, Name: fmt.Sprintf("worker %d", i)})
	}
	return s
}

// Engines returns the totals of the engines' counters since the cluster's last start.
func (c *Cluster) Engines() *api.EngineTotals {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &api.EngineTotals{}
	for _, w := range c.model.Workers() {
		t.Drafts += float64(w.Steps)
		t.Drafted += float64(w.DraftedTokens)
		t.Accepted += float64(w.AcceptedTokens)
	}
	return t
}

// Name returns the name of the driver for simulated clusters.
func (*Cluster) Name() string { return "simulated" }

// Offers returns kv, round-robin and least-loaded.
func (*Cluster) Offers() (all []api.ModeState) {
	for _, m := range []api.Mode{api.ModeKV, api.ModeRoundRobin, api.ModeLeastLoaded} {
		all = append(all, api.ModeState{Mode: m, Speculation: api.SpeculationNotRecorded})
	}
	return all
}

// Switch restarts the cluster in a mode.
func (c *Cluster) Switch(
	ctx context.Context, _, to api.ModeState, report func(phase, message string),
) (cold bool, err error) {
	c.mu.Lock()
	down := c.problem(to.Mode)
	if down == nil && !(c.options.Warm && to == c.mode) {
		c.model.Advance(time.Since(c.began))
		err = c.model.Switch(to.Mode, to.Speculation)
		c.mode = to
	}
	c.mu.Unlock()
	switch {
	case down != nil:
		return false, errors.New(down.Message)
	case err != nil:
		return false, err
	}
	report("switching", fmt.Sprintf("the cluster restarts: %.0f s", c.restart.Seconds()))
	timer := time.NewTimer(c.restart + time.Millisecond)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case <-timer.C:
		return true, nil
	}
}

// Abilities returns SwitchWarm, which changes every mode in place.
func (c *Cluster) Abilities() workload.Abilities {
	a := workload.Abilities{SwitchWarm: c.SwitchWarm, InPlace: workload.Always, SameWorkers: workload.Always}
	if c.options.Asked {
		a.Check = c.check
	}
	return a
}

// SwitchWarm changes the mode of the router in place.
func (c *Cluster) SwitchWarm(
	_ context.Context, _, to api.ModeState, _ func(phase, message string),
) (cold bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.model.Advance(time.Since(c.began))
	if !c.options.Alike {
		err = c.model.Route(to.Mode)
	}
	if err == nil {
		c.mode = to
	}
	return false, err
}

// Mode returns the current mode.
func (c *Cluster) Mode() api.ModeState {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mode
}

// Plan changes nothing: answers have the lengths that are asked for.
func (c *Cluster) Plan() bool { return false }

// Probes returns 0: a probe sends no request.
func (c *Cluster) Probes() int64 { return 0 }
