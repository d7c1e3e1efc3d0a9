package sim

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"kvbooth/sidecar/api"
)

// keptDecisions is how many decisions a router remembers.
const keptDecisions = 1000

// Decision is why a request went where it went.
type Decision struct {
	At           time.Duration
	RequestID    string
	Mode         api.Mode
	Pinned       bool // the request named its worker; the costs decided nothing
	PromptTokens int
	Chosen       int // of Candidates

	// Candidates are the workers that were ready, in their order. Costs are
	// computed in every mode, so that one sees what kv would have done.
	Candidates []Candidate

	blockTokens int
}

// Candidate is one worker as the router saw it for one request, the request's
// own load included.
type Candidate struct {
	Worker        WorkerID
	OverlapBlocks int // blocks of the prompt that the worker holds, from the first on
	PrefillTokens int // to prefill on the worker
	DecodeBlocks  int // that requests in progress have on the worker, as the router counts them: see [RouterSwitches]
	Requests      int // in progress on the worker before this one
	Cost          float64

	index int
}

// Worker is the candidate that was chosen.
func (d *Decision) Worker() Candidate { return d.Candidates[d.Chosen] }

// BlockTokens is how many tokens a block has.
func (d *Decision) BlockTokens() int { return d.blockTokens }

// PredictedHit is the share of the prompt that the router expected in the chosen
// worker's cache.
func (d *Decision) PredictedHit() float64 {
	return float64(d.cachedTokens(d.Worker())) / float64(d.PromptTokens)
}

// OverlapBlocksLost is how many more blocks of the prompt the best worker held
// that the request was free to go to.
func (d *Decision) OverlapBlocksLost() int { return d.best().OverlapBlocks - d.Worker().OverlapBlocks }

// best is the eligible candidate with the largest overlap.
func (d *Decision) best() Candidate {
	if d.Pinned {
		return d.Worker()
	}
	return slices.MaxFunc(d.Candidates, func(a, b Candidate) int { return a.OverlapBlocks - b.OverlapBlocks })
}

func (d *Decision) cachedTokens(c Candidate) int { return c.OverlapBlocks * d.blockTokens }

// uncachedTokens is what the router expects the chosen worker to prefill.
func (d *Decision) uncachedTokens() int { return d.PromptTokens - d.cachedTokens(d.Worker()) }

// RouterStats are a router's counters since the cluster's beginning. A real
// router has those on overlaps under kv only.
type RouterStats struct {
	Requests                int64 // routed
	BestCachedTokens        int64 // cached prefix tokens on the best eligible worker
	SelectedCachedTokens    int64 // on the selected worker
	WorkerReusedTokens      int64 // as the workers reported at the first token
	NonMaxOverlapSelections int64 // the selected worker held less than the best
	OverlapBlocksLost       int64 // by so many blocks, in sum
}

// RouterSwitches are further switches of Dynamo's KV router, by the names of its frontend's
// flags (python -m dynamo.frontend --help, 1.6). Under other modes than kv they change
// what decisions show, and no choice.
type RouterSwitches struct {
	// DecodeActiveRequestWeight is --router-decode-active-request-weight: so many
	// blocks in the cost of a worker for each request in progress on it
	// (scheduling/selector/default.rs).
	DecodeActiveRequestWeight float64
	// TrackOutputBlocks is --router-track-output-blocks: answers count as they grow, a
	// block each time that prompt and answer reach into another one, shared with
	// nobody (OutputBlockTracker; of a chunk that reaches into several it counts one,
	// the model all). The decay towards an expected length is left out: a client
	// would have to send that.
	TrackOutputBlocks bool
	// AssumeKVReuse is --router-assume-kv-reuse: a block that several requests in progress
	// share counts once. Without it every block of every prompt counts, as the blocks then get
	// random hashes.
	AssumeKVReuse bool
	// TrackActiveBlocks is --router-track-active-blocks: without it, blocks of prompts do
	// not count at all.
	TrackActiveBlocks bool
	// TrackPrefillTokens is --router-track-prefill-tokens: without it, the cost has no
	// part for prefill, so that caches decide nothing.
	TrackPrefillTokens bool
	// OverlapScoreCredit is --router-kv-overlap-score-credit, from 0 to 1: how much of a
	// block that a worker holds counts as prefilled.
	OverlapScoreCredit float64
	// OverlapScoreCreditDecay is --router-kv-overlap-score-credit-decay: with d, a worker
	// that has x times the request's prompt more to prefill than the candidate with
	// the least gets 1 / (1 + d·x) of the credit.
	OverlapScoreCreditDecay float64
}

// DefaultRouterSwitches are Dynamo's defaults.
func DefaultRouterSwitches() RouterSwitches {
	return RouterSwitches{AssumeKVReuse: true, TrackActiveBlocks: true, TrackPrefillTokens: true, OverlapScoreCredit: 1}
}

// router is Dynamo's KV router (lib/kv-router of ai-dynamo/dynamo). What it knows
// of the workers' caches comes from their events, what it knows of their load from
// its own bookkeeping: a request is added when it is routed, its prefill is
// cleared at its first token, and it is freed at its end. By default, blocks of answers are not
// counted, and a block that several requests share counts once.
type router struct {
	Costs
	mode api.Mode
	rng  *rand.Rand

	tree   tree    // of the blocks of caches and of requests in progress, by their hashes
	held   workers // that hold a block
	active workers // with requests in progress that have a block in their prompts
	loads  []load
	turn   int // of round_robin
	stats  RouterStats

	decisions []*Decision // a ring once it is full
	oldest    int
}

// load is the router's account of one worker.
type load struct {
	requests      int
	prefillTokens int // of requests without a first token
	blocks        int // of requests in progress
	// Of an active block counts how many requests' prompts end in it, and how many
	// of the blocks behind it are active. Here are those with more than one, without that one.
	more map[blockID]int
}

// blockID stands for a [BlockHash] as long as a cache holds it or a request has it.
type blockID int32

func newRouter(o Options, rng *rand.Rand) *router {
	blocks := o.Profile.Workers * o.Profile.KV.Blocks
	r := &router{
		Costs: Costs{RouterSwitches: o.Router, OverlapWeight: o.OverlapWeight, Temperature: o.Temperature, BlockTokens: o.Profile.KV.BlockTokens},
		mode:  o.Mode, rng: rng,
		tree: newTree(blocks), held: newWorkers(o.Profile.Workers, blocks), active: newWorkers(o.Profile.Workers, blocks),
		loads: make([]load, o.Profile.Workers),
	}
	for i := range r.loads {
		r.loads[i].more = map[blockID]int{}
	}
	return r
}

// path gives the ids of blocks. They stand for these blocks until [router.forget].
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

// forget gives up the ids of a path, but for those of blocks that something else has too.
func (r *router) forget(path []blockID) {
	if len(path) > 0 {
		r.tree.drop(int32(path[len(path)-1]))
	}
}

// route decides on a request and adds it to the account of the worker chosen. At
// least one worker must be ready; pinned is one of the ready ones, or nil.
func (r *router) route(now time.Duration, j *Job, ready []*worker, pinned *worker) *Decision {
	q := &j.request
	d := &Decision{At: now, RequestID: q.ID, Mode: r.mode, Pinned: pinned != nil, PromptTokens: q.PromptTokens, blockTokens: r.BlockTokens}
	prompt := j.prompt(r.BlockTokens)
	overlaps, shared := r.held.depths(prompt), r.active.depths(prompt)
	idlest := math.MaxInt
	for _, w := range ready {
		idlest = min(idlest, r.loads[w.index].prefillTokens)
	}
	d.Candidates = make([]Candidate, 0, len(ready))
	for _, w := range ready {
		d.Candidates = append(d.Candidates, r.candidate(w, q.PromptTokens, overlaps[w.index], shared[w.index], idlest))
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

// candidate is a worker that may get a request: see [Costs.Candidate].
func (r *router) candidate(w *worker, promptTokens, overlap, shared, idlest int) Candidate {
	account := &r.loads[w.index]
	c := r.Candidate(Load{account.requests, account.prefillTokens, account.blocks}, promptTokens, overlap, shared, idlest)
	c.Worker, c.index = w.id, w.index
	return c
}

func (r *router) choose(candidates []Candidate) int {
	switch r.mode {
	case api.ModeRoundRobin:
		r.turn++
		return (r.turn - 1) % len(candidates)
	case api.ModeLeastLoaded:
		return LeastLoaded(candidates, r.rng)
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

// activate counts the blocks of a prompt on a worker's account that no other one has.
func (r *router) activate(worker int, prompt []blockID) {
	account := &r.loads[worker]
	for i := len(prompt) - 1; i >= 0; i-- {
		if !r.active.add(prompt[i], worker) {
			account.more[prompt[i]]++
			return
		}
		account.blocks++
	}
}

// grown counts the block of an answer that has begun, if answers count.
func (r *router) grown(j *Job) {
	if !r.TrackOutputBlocks {
		return
	}
	size := r.BlockTokens
	blocks := (j.request.PromptTokens+j.delivered+size-1)/size - (j.request.PromptTokens+size-1)/size
	r.loads[j.worker.index].blocks += blocks - j.answered
	j.answered = blocks
}

// prefilled takes a request's prefill off its worker's account, at its first token.
func (r *router) prefilled(j *Job) {
	r.loads[j.worker.index].prefillTokens -= j.uncached
	j.uncached = 0
	r.stats.WorkerReusedTokens += int64(j.report.CachedTokens)
}

// free takes the rest of a request off its worker's account, at its end.
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

// deactivate takes the blocks of a prompt off a worker's account that no other one has.
func (r *router) deactivate(worker int, prompt []blockID) {
	account := &r.loads[worker]
	for i := len(prompt) - 1; i >= 0; i-- {
		if n := account.more[prompt[i]]; n > 1 {
			account.more[prompt[i]] = n - 1
			return
		} else if n == 1 {
			delete(account.more, prompt[i])
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

// kept are the decisions remembered, the oldest first.
func (r *router) kept() []*Decision {
	return slices.Concat(r.decisions[r.oldest:], r.decisions[:r.oldest])
}

// stored, removed and cleared apply the events of one worker's cache.
func (r *router) stored(worker int, ids []blockID) {
	for _, id := range ids {
		if r.held.add(id, worker) {
			r.tree.hold(int32(id))
		}
	}
}

func (r *router) removed(worker int, ids []blockID) {
	for _, id := range ids {
		if r.held.remove(id, worker) {
			r.tree.drop(int32(id))
		}
	}
}

func (r *router) cleared(worker int) {
	for id := range blockID(len(r.tree.nodes)) {
		if r.held.remove(id, worker) {
			r.tree.drop(int32(id))
		}
	}
}
