package sim

import (
	"slices"
	"time"
)

// WorkerID is an instance id as Dynamo assigns it, a large number.
type WorkerID uint64

// watermark is the share of the cache that must stay available when a request is admitted, so that a preempted request
// is not admitted only to be preempted again (vLLM's default).
const watermark = .01

// WorkerStats is the state of one worker and its counters since the cluster's
// beginning, restarts included.
type WorkerStats struct {
	ID      WorkerID
	Index   int           // from 0
	ReadyAt time.Duration // start of readiness, past or future
	Ready   bool

	Running int // requests in the batch
	Waiting int // requests in the queue

	Computing time.Duration // elapsed time of the current iteration, not yet in Busy
	Launched  time.Duration // the part of Computing with kernels on the GPUs, not yet in Kernels

	TotalBlocks  int
	ActiveBlocks int // blocks in use by requests
	CachedBlocks int // registered blocks, in use or not

	// The router's account of the worker.
	Inflight            int // requests that were routed and have not ended
	ActivePrefillTokens int // expected tokens to prefill for requests without a first token
	ActiveDecodeBlocks  int // blocks of requests in progress, counted by the rules of [RouterSwitches]

	WorkerCounters
}

// CacheUse returns the share of the blocks that requests use, from 0 to 1.
func (s WorkerStats) CacheUse() float64 { return float64(s.ActiveBlocks) / float64(s.TotalBlocks) }

// WorkerCounters are the monotonic counters of a worker.
type WorkerCounters struct {
	Arrived, Completed, Failed int64 // requests; a canceled one is neither completed nor failed
	Preemptions                int64

	Iterations int64
	Busy       time.Duration // total length of completed iterations
	Kernels    time.Duration // the part of Busy with kernels on the GPUs: see [StepCost.Kernels]

	PromptTokens    int64 // prompt tokens of requests at their first admission
	CachedTokens    int64 // the part of PromptTokens that was in the cache
	PrefilledTokens int64 // computed tokens, including those computed again after a preemption
	OutputTokens    int64

	// Each sequence of each decoding iteration is one step of speculation.
	Steps, DraftedTokens, AcceptedTokens int64

	StoredEvents, RemovedEvents, ClearedEvents int64 // events of the cache
	StoredBlocks, RemovedBlocks                int64 // blocks in stored and removed events
}

// worker is one engine: continuous batching over a queue, first come first served, with chunked prefill.
//
// The model is an engine whose host runs ahead of the GPU and is the slower of the two. An iteration is scheduled when
// the one before it has been launched, with all requests that have arrived by then. Its tokens leave the worker
// [Profile.HandOver] of an iteration after the next launch. So a turn that returns to the worker of the previous turn
// arrives just after the beginning of an iteration and waits for nearly all of it: its first token takes three
// iterations, whereas a request that arrives at a random moment takes two and a half.
//
// A request is admitted when a place in the batch and all blocks of its prompt are available. If a decoding sequence
// finds no block for its next tokens, the sequence admitted last is preempted: it loses its blocks, returns to the
// front of the queue, and later computes prompt and answer so far again.
type worker struct {
	cluster  *Cluster
	id       WorkerID
	index    int
	readyAt  time.Duration
	pace     float64 // factor on the profile's iteration times
	cache    *cache[blockID]
	waiting  []*Job        // the queue
	running  []*Job        // in the order of admission
	current  *iteration    // nil when idle
	began    time.Duration // start of the latest iteration
	kernels  float64       // share of the latest iteration with kernels on the GPUs
	counters WorkerCounters
}

func (w *worker) ready() bool { return w.cluster.clock.now >= w.readyAt }

// run is the job's arrival at its worker.
func (j *Job) run() { j.worker.arrive(j) }

// arrive puts a request in the queue. An idle worker starts an iteration at once.
func (w *worker) arrive(j *Job) {
	if j.done {
		return
	}
	j.goal = j.request.PromptTokens
	j.report.Arrived = w.cluster.clock.now
	j.report.QueueAhead = len(w.waiting)
	w.counters.Arrived++
	w.waiting = append(w.waiting, j)
	if w.current == nil {
		w.step()
	}
}

// step begins an iteration if there is work.
func (w *worker) step() {
	iteration := w.schedule()
	if len(w.running) == 0 {
		w.current = nil
		return
	}
	c := w.cluster
	w.began = c.clock.now
	jitter := 1 + c.step.Jitter*c.rng.NormFloat64()
	mean := w.pace * c.step.Milliseconds(iteration)
	length := milliseconds(mean * jitter)
	w.kernels = w.pace * c.step.Kernels(iteration) / mean
	w.current = c.iteration(w, length)
	c.clock.schedule(c.clock.now+length, w.current)
}

// iteration is an iteration of a worker, until its tokens have left the frontend. Its first event is its end.
type iteration struct {
	worker *worker
	length time.Duration
	out    []output
}

// output is the number of tokens that an iteration generates for a job.
type output struct {
	job    *Job
	tokens int
}

// iteration returns a new or a reused iteration of a worker.
func (c *Cluster) iteration(w *worker, length time.Duration) *iteration {
	if n := len(c.spare); n > 0 {
		i := c.spare[n-1]
		c.spare = c.spare[:n-1]
		i.worker, i.length = w, length
		return i
	}
	return &iteration{worker: w, length: length}
}

// run is the end of an iteration. It has no effect if the worker was lost.
func (i *iteration) run() {
	if i.worker.current == i {
		i.worker.finish(i)
	}
}

// delivery is the second event of an iteration: its tokens leave the frontend.
type delivery iteration

func (d *delivery) run() {
	c := d.worker.cluster
	for _, o := range d.out {
		c.deliver(o.job, o.tokens)
	}
	clear(d.out)
	d.out = d.out[:0]
	c.spare = append(c.spare, (*iteration)(d))
}

// schedule composes an iteration: all decoding sequences, each with one token and its draft, then as many prompt
// tokens as max_batched_tokens leaves.
func (w *worker) schedule() Iteration {
	var it Iteration
	c := w.cluster
	tokens := 1 + c.speculation.DraftTokens
	for i := 0; i < len(w.running); i++ {
		if j := w.running[i]; !j.prefilling() && w.grow(j, tokens) {
			it.Sequences++
			it.ContextTokens += float64(j.context())
		}
	}
	budget := c.profile.MaxBatchedTokens - tokens*it.Sequences
	for _, j := range w.running {
		if j.prefilling() {
			budget -= w.takeChunk(j, budget, &it)
		}
	}
	for budget > 0 && len(w.waiting) > 0 && len(w.running) < c.profile.MaxSequences && w.admit(w.waiting[0]) {
		j := w.waiting[0]
		w.waiting = slices.Delete(w.waiting, 0, 1)
		w.running = append(w.running, j)
		budget -= w.takeChunk(j, budget, &it)
	}
	return it
}

// grow reserves the blocks for a sequence's next tokens and preempts other sequences where necessary. It returns false
// if the sequence itself was preempted.
func (w *worker) grow(j *Job, tokens int) bool {
	// The last token of the answer is never computed, so it needs no space.
	tokens = min(j.context()+tokens, j.request.PromptTokens+j.request.OutputTokens)
	kv := &w.cluster.profile.KV
	if tokens <= (j.shared+j.private)*kv.BlockTokens {
		return true
	}
	need := kv.blocksOf(tokens) - j.shared - j.private
	for !w.cache.reserve(need) {
		last := w.running[len(w.running)-1]
		w.preempt(last)
		if last == j {
			return false
		}
	}
	j.private += need
	return true
}

// preempt returns the sequence admitted last to the front of the queue.
func (w *worker) preempt(j *Job) {
	w.running = w.running[:len(w.running)-1]
	w.release(j)
	if !j.prefilling() {
		j.computed = j.context() - 1 // the latest token is computed together with the next one
	}
	j.reached = max(j.reached, j.computed)
	j.report.Preemptions++
	j.computed, j.goal = 0, j.context()
	w.waiting = slices.Insert(w.waiting, 0, j)
	w.counters.Preemptions++
}

// admit reserves the blocks of a request: those that the cache holds, and new ones for the rest. The last token is
// always computed, because the first token of the answer depends on it.
func (w *worker) admit(j *Job) bool {
	kv := w.cluster.profile.KV
	reusable := min((j.goal-1)/kv.BlockTokens, j.request.PromptTokens/kv.BlockTokens, len(j.path))
	last, found := w.cache.match(j.path[:reusable])
	w.cache.acquire(last)
	need := kv.blocksOf(j.goal) - found
	reserve := int(watermark * float64(kv.Blocks))
	if len(w.running) == 0 {
		reserve = 0 // otherwise a request that fills the cache would wait forever
	}
	if w.cache.available() < need+reserve || !w.cache.reserve(need) {
		w.cache.release(last, 0)
		return false
	}
	j.shared, j.last, j.private, j.computed = found, last, need, found*kv.BlockTokens
	if j.report.Started == 0 {
		j.report.Started = w.cluster.clock.now
		j.report.CachedTokens = j.computed
		w.counters.PromptTokens += int64(j.request.PromptTokens)
		w.counters.CachedTokens += int64(j.computed)
	}
	return true
}

// takeChunk adds a prefill, or as much of it as the budget allows, to an iteration. It returns the tokens of the
// chunk.
func (w *worker) takeChunk(j *Job, budget int, it *Iteration) int {
	j.chunk = min(j.goal-j.computed, budget)
	it.PrefillTokens += j.chunk
	it.ChunkContext += float64(j.chunk) * float64(j.computed)
	return j.chunk
}

// finish ends an iteration and begins the next one.
func (w *worker) finish(i *iteration) {
	w.counters.Iterations++
	w.counters.Busy += i.length
	w.counters.Kernels += time.Duration(w.kernels * float64(i.length))
	unfinished := w.running[:0]
	for at, j := range w.running {
		if n := w.produce(j); n > 0 {
			j.generated += n
			w.counters.OutputTokens += int64(n)
			i.out = append(i.out, output{j, n})
		}
		switch {
		case j.complete():
			w.complete(j)
		case len(unfinished) == at:
			unfinished = w.running[:at+1] // all so far, without a copy
		default:
			unfinished = append(unfinished, j)
		}
	}
	clear(w.running[len(unfinished):])
	w.running = unfinished
	w.send(i)
	w.step()
}

// produce returns the number of tokens that a job got from the completed iteration.
func (w *worker) produce(j *Job) int {
	if !j.prefilling() {
		return w.decode(j)
	}
	j.report.RecomputedTokens += max(min(j.computed+j.chunk, j.reached)-j.computed, 0)
	j.computed += j.chunk
	w.counters.PrefilledTokens += int64(j.chunk)
	j.chunk = 0
	if j.prefilling() {
		return 0
	}
	w.register(j, j.request.PromptTokens)
	if j.generated == 0 {
		j.report.Prefilled = w.cluster.clock.now
	}
	return 1
}

// decode draws the number of tokens that a sequence gets from its draft, limited by the end of the answer.
func (w *worker) decode(j *Job) int {
	kept := 0
	if len(w.cluster.thresholds) > 0 {
		kept = accepted(w.cluster.thresholds, w.cluster.rng.Float64())
	}
	w.counters.Steps++
	w.counters.DraftedTokens += int64(len(w.cluster.thresholds))
	w.counters.AcceptedTokens += int64(kept)
	return min(1+kept, j.request.OutputTokens-j.generated)
}

// register registers the full blocks of a job's first tokens.
func (w *worker) register(j *Job, tokens int) {
	full := min(tokens/w.cluster.profile.KV.BlockTokens, len(j.path))
	ids := j.path[j.shared:max(full, j.shared)]
	if len(ids) == 0 {
		return
	}
	before := w.cache.registered()
	j.last = w.cache.register(j.last, ids)
	j.shared += len(ids)
	j.private -= len(ids)
	// Behind a new block, all blocks are new.
	if added := w.cache.registered() - before; added > 0 && w.cluster.options.Caches != nil {
		w.cluster.options.Caches.Stored(w.index, &j.request, j.shared-added, j.shared)
	}
}

// complete removes a job with a complete answer. The last token was never computed, so a block that contains it
// cannot be reused.
func (w *worker) complete(j *Job) {
	if !w.cluster.options.ForgetAnswers {
		w.register(j, j.context()-1)
	}
	w.release(j)
	w.counters.Completed++
}

func (w *worker) release(j *Job) {
	w.cache.release(j.last, j.private)
	j.shared, j.last, j.private = 0, 0, 0
}

// send schedules the delivery of an iteration's tokens: after a part of the next decode step and the frontend's time.
func (w *worker) send(i *iteration) {
	c := w.cluster
	if len(i.out) == 0 {
		c.spare = append(c.spare, i)
		return
	}
	var next Iteration
	for _, j := range w.running {
		if !j.prefilling() {
			next.Sequences++
			next.ContextTokens += float64(j.context())
		}
	}
	delay := c.profile.HandOver*w.pace*c.step.Milliseconds(next) + c.profile.Frontend.Out
	c.clock.schedule(c.clock.now+milliseconds(delay), (*delivery)(i))
}

// drop removes a job from the queue or the batch.
func (w *worker) drop(j *Job) {
	isJob := func(other *Job) bool { return other == j }
	w.waiting = slices.DeleteFunc(w.waiting, isJob)
	if slices.Contains(w.running, j) {
		w.running = slices.DeleteFunc(w.running, isJob)
		w.release(j)
	}
}

// lose empties the worker and makes it unavailable until readyAt.
func (w *worker) lose(readyAt time.Duration) {
	w.readyAt = readyAt
	w.waiting, w.running, w.current = nil, nil, nil
	w.cache.clear()
}

// stored counts the cache's event and passes it to the router.
func (w *worker) stored(ids []blockID) {
	w.counters.StoredEvents++
	w.counters.StoredBlocks += int64(len(ids))
	w.cluster.router.stored(w.index, ids)
}

// removed counts the cache's event and passes it to the router.
func (w *worker) removed(ids []blockID) {
	w.counters.RemovedEvents++
	w.counters.RemovedBlocks += int64(len(ids))
	if observer := w.cluster.options.Caches; observer != nil {
		observer.Removed(w.index, w.cluster.router.hashes(ids))
	}
	w.cluster.router.removed(w.index, ids)
}

// cleared counts the cache's event and passes it to the router.
func (w *worker) cleared() {
	w.counters.ClearedEvents++
	if observer := w.cluster.options.Caches; observer != nil {
		observer.Cleared(w.index)
	}
	w.cluster.router.cleared(w.index)
}

func (w *worker) stats() WorkerStats {
	account := &w.cluster.router.loads[w.index]
	var computing time.Duration
	if w.current != nil {
		computing = w.cluster.clock.now - w.began
	}
	return WorkerStats{
		ID: w.id, Index: w.index, ReadyAt: w.readyAt, Ready: w.ready(),
		Running: len(w.running), Waiting: len(w.waiting),
		Computing: computing, Launched: time.Duration(w.kernels * float64(computing)),
		TotalBlocks: w.cache.capacity, ActiveBlocks: w.cache.active(), CachedBlocks: w.cache.registered(),
		Inflight: account.requests, ActivePrefillTokens: account.prefillTokens, ActiveDecodeBlocks: account.blocks,
		WorkerCounters: w.counters,
	}
}
