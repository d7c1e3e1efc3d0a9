package sim

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"kvbooth/sidecar/api"
)

// keptDecisions is the number of decisions that a router keeps.
const keptDecisions = 1000

// Decision is the router's choice of a worker for a request, with the costs of all candidates.
type Decision struct {
	At           time.Duration
	RequestID    string
	Mode         api.Mode
	Pinned       bool // the request named its worker, and the costs had no effect
	PromptTokens int
	Chosen       int // index in Candidates

	// Candidates are the ready workers, in their order. Costs are computed in every mode, so that the choice
	// of kv is always known.
	Candidates []Candidate

	blockTokens int
}

// Candidate is the router's view of one worker for one request, the request's own load included.
type Candidate struct {
	Worker        WorkerID
	OverlapBlocks int // length of the prompt's prefix in the worker's cache
	PrefillTokens int // expected tokens to prefill on the worker
	DecodeBlocks  int // blocks of requests in progress on the worker, counted by the rules of [RouterSwitches]
	Requests      int // requests in progress on the worker, without this one
	Cost          float64

	index int
}

// Worker returns the chosen candidate.
func (d *Decision) Worker() Candidate { return d.Candidates[d.Chosen] }

// PredictedHit returns the share of the prompt that the router expects in the chosen worker's cache.
func (d *Decision) PredictedHit() float64 {
	return float64(d.cachedTokens(d.Worker())) / float64(d.PromptTokens)
}

// OverlapBlocksLost returns the difference in overlap between the best candidate and the chosen one, in blocks. A
// pinned request has only one candidate.
func (d *Decision) OverlapBlocksLost() int { return d.best().OverlapBlocks - d.Worker().OverlapBlocks }

// best returns the candidate with the largest overlap, or the pinned one.
func (d *Decision) best() Candidate {
	if d.Pinned {
		return d.Worker()
	}
	return slices.MaxFunc(d.Candidates, func(a, b Candidate) int { return a.OverlapBlocks - b.OverlapBlocks })
}

func (d *Decision) cachedTokens(c Candidate) int { return c.OverlapBlocks * d.blockTokens }

// uncachedTokens returns the number of tokens that the router expects the chosen worker to prefill.
func (d *Decision) uncachedTokens() int { return d.PromptTokens - d.cachedTokens(d.Worker()) }

// RouterStats are a router's counters since the cluster's beginning. A real router counts overlaps under kv only.
type RouterStats struct {
	Requests                int64 // routed requests
	BestCachedTokens        int64 // cached prefix tokens on the best eligible worker
	SelectedCachedTokens    int64 // cached prefix tokens on the selected worker
	WorkerReusedTokens      int64 // cached tokens that the workers report at the first token
	NonMaxOverlapSelections int64 // selections of a worker with less overlap than the best
	OverlapBlocksLost       int64 // total difference of these selections, in blocks
}

// RouterSwitches are further switches of Dynamo's KV router, with the names of its frontend's flags
// (python -m dynamo.frontend --help, 1.6). In modes other than kv they change the recorded costs, but not the choices.
type RouterSwitches struct {
	// DecodeActiveRequestWeight is --router-decode-active-request-weight: the cost of each request in progress on
	// a worker, in blocks (scheduling/selector/default.rs).
	DecodeActiveRequestWeight float64
	// TrackOutputBlocks is --router-track-output-blocks: answers count as they grow. Each time that prompt and
	// answer reach into another block, the router counts one unshared block (OutputBlockTracker; of a chunk that
	// reaches into several blocks it counts one, the model all). The decay toward an expected length is left
	// out, because a client would have to send that length.
	TrackOutputBlocks bool
	// AssumeKVReuse is --router-assume-kv-reuse: a block that several requests in progress share counts once.
	// Without it, every block of every prompt counts, because Dynamo then gives the blocks random hashes.
	AssumeKVReuse bool
	// TrackActiveBlocks is --router-track-active-blocks. Without it, blocks of prompts do not count.
	TrackActiveBlocks bool
	// TrackPrefillTokens is --router-track-prefill-tokens. Without it, the cost has no part for prefill, so that
	// caches have no effect on the choice.
	TrackPrefillTokens bool
	// OverlapScoreCredit is --router-kv-overlap-score-credit, from 0 to 1: the share of a held block that counts
	// as prefilled.
	OverlapScoreCredit float64
	// OverlapScoreCreditDecay is --router-kv-overlap-score-credit-decay. With decay d, a worker whose prefill
	// exceeds that of the least loaded candidate by x times the request's prompt gets 1 / (1 + d·x) of the credit.
	OverlapScoreCreditDecay float64
}

// DefaultRouterSwitches returns Dynamo's defaults.
func DefaultRouterSwitches() RouterSwitches {
	return RouterSwitches{
		AssumeKVReuse: true, TrackActiveBlocks: true, TrackPrefillTokens: true, OverlapScoreCredit: 1,
	}
}

// router is Dynamo's KV router (lib/kv-router of ai-dynamo/dynamo). The workers' cache events are its source for their
// caches. The load is its own account: a request is added when it is routed, its prefill is removed at its first
// token, and the rest at its end. By default, blocks of answers are not counted, and a block that several requests
// share counts once.
type router struct {
	Costs
	mode api.Mode
	rng  *rand.Rand

	bestPlacement bool // see [Options]

	tree   tree    // blocks of caches and of requests in progress, by their hashes
	held   workers // per block, the workers that hold it
	active workers // per block, the workers whose requests in progress have it in their prompts
	loads  []load
	routed int // number of requests that round_robin or the best placement has routed
	stats  RouterStats

	decisions []*Decision // a ring once it is full
	oldest    int
}

// load is the router's account of one worker.
type load struct {
	requests      int
	prefillTokens int // expected tokens to prefill for requests without a first token
	blocks        int // blocks of requests in progress
	// refs counts, for an active block, the prompts that end in it and the active blocks behind it. A block with a
	// single reference has no entry.
	refs map[blockID]int
}

// blockID identifies a [BlockHash] as long as a cache or a request refers to it.
type blockID int32

func newRouter(o Options, rng *rand.Rand) *router {
	blocks := o.Profile.Workers * o.Profile.KV.Blocks
	r := &router{
		Costs: Costs{
			RouterSwitches: o.Router, OverlapWeight: o.OverlapWeight, Temperature: o.Temperature,
			BlockTokens: o.Profile.KV.BlockTokens,
		},
		mode: o.Mode, rng: rng, bestPlacement: o.BestPlacement,
		tree: newTree(blocks), held: newWorkers(o.Profile.Workers, blocks), active: newWorkers(o.Profile.Workers, blocks),
		loads: make([]load, o.Profile.Workers),
	}
	for i := range r.loads {
		r.loads[i].refs = map[blockID]int{}
	}
	return r
}

// path returns the ids of blocks. The ids stay valid until [router.forget].
func (r *router) path(hashes []BlockHash) []blockID {
	path := make([]blockID, len(hashes))
	last := int32(0)
	for i, hash := range hashes {
		next := r.tree.find(last, uint64(hash))
		if next == 0 {
			next = r.tree.add(last, uint64(hash))
		}
		last = next
		path[i] = blockID(next)
	}
	if last != 0 {
		r.tree.hold(last)
	}
	r.held.grow(len(r.tree.nodes))
	r.active.grow(len(r.tree.nodes))
	return path
}

// hashes returns the hashes of blocks.
func (r *router) hashes(ids []blockID) []BlockHash {
	all := make([]BlockHash, len(ids))
	for i, id := range ids {
		all[i] = BlockHash(r.tree.nodes[id].key)
	}
	return all
}

// forget releases the ids of a path. Ids that caches or other requests refer to stay valid.
func (r *router) forget(path []blockID) {
	if len(path) > 0 {
		r.tree.drop(int32(path[len(path)-1]))
	}
}

// route selects a worker for a request and adds the request to that worker's account. At least one worker must be
// ready; pinned is a ready worker or nil.
func (r *router) route(now time.Duration, j *Job, ready []*worker, pinned *worker) *Decision {
	q := &j.request
	d := &Decision{
		At: now, RequestID: q.ID, Mode: r.mode, Pinned: pinned != nil, PromptTokens: q.PromptTokens,
		blockTokens: r.BlockTokens,
	}
	prompt := j.prompt(r.BlockTokens)
	overlaps, shared := r.held.depths(prompt), r.active.depths(prompt)
	leastPrefill := math.MaxInt
	for _, w := range ready {
		leastPrefill = min(leastPrefill, r.loads[w.index].prefillTokens)
	}
	d.Candidates = make([]Candidate, 0, len(ready))
	for _, w := range ready {
		c := r.candidate(w, q.PromptTokens, overlaps[w.index], shared[w.index], leastPrefill)
		d.Candidates = append(d.Candidates, c)
	}
	if d.Pinned {
		d.Chosen = slices.Index(ready, pinned)
	} else {
		d.Chosen = r.choose(d.Candidates)
	}
	if r.TrackPrefillTokens {
		j.uncached = d.uncachedTokens()
	}
	r.add(j, d.Worker().index)
	r.count(d)
	r.keep(d)
	return d
}

// candidate returns a worker with its cost for a request: see [Costs.Candidate].
func (r *router) candidate(w *worker, promptTokens, overlap, shared, leastPrefill int) Candidate {
	account := &r.loads[w.index]
	l := Load{account.requests, account.prefillTokens, account.blocks}
	c := r.Candidate(l, promptTokens, overlap, shared, leastPrefill)
	c.Worker, c.index = w.id, w.index
	return c
}

func (r *router) choose(candidates []Candidate) int {
	switch r.mode {
	case api.ModeRoundRobin:
		r.routed++
		return (r.routed - 1) % len(candidates)
	case api.ModeLeastLoaded:
		return LeastLoaded(candidates, r.rng)
	}
	if r.bestPlacement {
		r.routed++
		return BestPlacement(candidates, (r.routed-1)%len(candidates))
	}
	return r.Choose(candidates, r.rng)
}

func (r *router) add(j *Job, worker int) {
	account, prompt := &r.loads[worker], j.prompt(r.BlockTokens)
	account.requests++
	account.prefillTokens += j.uncached
	switch {
	case !r.TrackActiveBlocks:
	case !r.AssumeKVReuse:
		account.blocks += len(prompt)
	default:
		r.activate(worker, prompt)
	}
}

// activate adds the blocks of a prompt to a worker's account. Blocks that other prompts there share count once.
func (r *router) activate(worker int, prompt []blockID) {
	account := &r.loads[worker]
	for i := len(prompt) - 1; i >= 0; i-- {
		if !r.active.add(prompt[i], worker) {
			account.refs[prompt[i]]++
			return
		}
		account.blocks++
	}
}

// grown adds a newly begun block of an answer to the worker's account, if answers count.
func (r *router) grown(j *Job) {
	if !r.TrackOutputBlocks {
		return
	}
	size := r.BlockTokens
	blocks := (j.request.PromptTokens+j.delivered+size-1)/size - (j.request.PromptTokens+size-1)/size
	r.loads[j.worker.index].blocks += blocks - j.answered
	j.answered = blocks
}

// prefilled removes a request's prefill from its worker's account at its first token.
func (r *router) prefilled(j *Job) {
	r.loads[j.worker.index].prefillTokens -= j.uncached
	j.uncached = 0
	r.stats.WorkerReusedTokens += int64(j.report.CachedTokens)
}

// free removes the rest of a request from its worker's account at its end.
func (r *router) free(j *Job) {
	account, prompt := &r.loads[j.worker.index], j.prompt(r.BlockTokens)
	account.requests--
	account.prefillTokens -= j.uncached
	account.blocks -= j.answered
	switch {
	case !r.TrackActiveBlocks:
	case !r.AssumeKVReuse:
		account.blocks -= len(prompt)
	default:
		r.deactivate(j.worker.index, prompt)
	}
	r.forget(j.path)
}

// deactivate removes the blocks of a prompt from a worker's account, except those that other prompts there share.
func (r *router) deactivate(worker int, prompt []blockID) {
	account := &r.loads[worker]
	for i := len(prompt) - 1; i >= 0; i-- {
		switch refs := account.refs[prompt[i]]; {
		case refs > 1:
			account.refs[prompt[i]] = refs - 1
			return
		case refs == 1:
			delete(account.refs, prompt[i])
			return
		}
		r.active.remove(prompt[i], worker)
		account.blocks--
	}
}

func (r *router) count(d *Decision) {
	r.stats.Requests++
	r.stats.BestCachedTokens += int64(d.cachedTokens(d.best()))
	r.stats.SelectedCachedTokens += int64(d.cachedTokens(d.Worker()))
	if lost := d.OverlapBlocksLost(); lost > 0 {
		r.stats.NonMaxOverlapSelections++
		r.stats.OverlapBlocksLost += int64(lost)
	}
}

func (r *router) keep(d *Decision) {
	if len(r.decisions) < keptDecisions {
		r.decisions = append(r.decisions, d)
		return
	}
	r.decisions[r.oldest] = d
	r.oldest = (r.oldest + 1) % keptDecisions
}

// kept returns the kept decisions, the oldest first.
func (r *router) kept() []*Decision {
	return slices.Concat(r.decisions[r.oldest:], r.decisions[:r.oldest])
}

// stored records the blocks that a worker's cache has stored.
func (r *router) stored(worker int, ids []blockID) {
	for _, id := range ids {
		if r.held.add(id, worker) {
			r.tree.hold(int32(id))
		}
	}
}

// removed records the blocks that a worker's cache has evicted.
func (r *router) removed(worker int, ids []blockID) {
	for _, id := range ids {
		if r.held.remove(id, worker) {
			r.tree.drop(int32(id))
		}
	}
}

// cleared records that a worker's cache is empty.
func (r *router) cleared(worker int) {
	for id := range blockID(len(r.tree.nodes)) {
		if r.held.remove(id, worker) {
			r.tree.drop(int32(id))
		}
	}
}
