package sim

import (
	"math"
	"math/bits"
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
	DecodeBlocks  int // different blocks of prompts in progress on the worker
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

// router is Dynamo's KV router (lib/kv-router of ai-dynamo/dynamo). What it knows
// of the workers' caches comes from their events, what it knows of their load from
// its own bookkeeping: a request is added when it is routed, its prefill is
// cleared at its first token, and it is freed at its end. Blocks of answers are not
// counted, and a block that several requests share counts once.
type router struct {
	mode          api.Mode
	overlapWeight float64
	temperature   float64
	blockTokens   int
	rng           *rand.Rand

	index map[BlockHash]uint64 // the workers that hold a block, one bit each
	loads []load
	turn  int // of round_robin
	stats RouterStats

	decisions []*Decision // a ring once it is full
	oldest    int
}

// load is the router's account of one worker.
type load struct {
	requests      int
	prefillTokens int               // of requests without a first token
	blocks        map[BlockHash]int // requests in progress, by the blocks of their prompts
}

func newRouter(o Options, rng *rand.Rand) *router {
	r := &router{
		mode: o.Mode, overlapWeight: o.OverlapWeight, temperature: o.Temperature,
		blockTokens: o.Profile.KV.BlockTokens, rng: rng,
		index: map[BlockHash]uint64{}, loads: make([]load, o.Profile.Workers),
	}
	for i := range r.loads {
		r.loads[i].blocks = map[BlockHash]int{}
	}
	return r
}

// route decides on a request and adds it to the account of the worker chosen. At
// least one worker must be ready; pinned is one of the ready ones, or nil.
func (r *router) route(now time.Duration, q *Request, ready []*worker, pinned *worker) *Decision {
	d := &Decision{At: now, RequestID: q.ID, Mode: r.mode, Pinned: pinned != nil, PromptTokens: q.PromptTokens, blockTokens: r.blockTokens}
	prompt := q.Blocks[:q.PromptTokens/r.blockTokens]
	overlaps := r.overlaps(prompt)
	for _, w := range ready {
		d.Candidates = append(d.Candidates, r.candidate(w, q.PromptTokens, prompt, overlaps[w.index]))
	}
	if d.Pinned {
		d.Chosen = slices.Index(ready, pinned)
	} else {
		d.Chosen = r.choose(d.Candidates)
	}
	r.add(d, prompt)
	r.count(d)
	r.keep(d)
	return d
}

// overlaps is, for each worker, how many of the blocks it holds from the first on.
func (r *router) overlaps(blocks []BlockHash) []int {
	overlaps := make([]int, len(r.loads))
	holders := uint64(1)<<len(r.loads) - 1
	for i, hash := range blocks {
		still := holders & r.index[hash]
		for gone := holders &^ still; gone != 0; gone &= gone - 1 {
			overlaps[bits.TrailingZeros64(gone)] = i
		}
		if holders = still; holders == 0 {
			break
		}
	}
	for ; holders != 0; holders &= holders - 1 {
		overlaps[bits.TrailingZeros64(holders)] = len(blocks)
	}
	return overlaps
}

// candidate is Dynamo's cost of a worker for a request, in blocks:
//
//	cost           = overlap weight × prefill blocks + decode blocks
//	prefill blocks = (prefill tokens in progress + prompt tokens − overlap) / block size
//	decode blocks  = different blocks in progress, the request's included
func (r *router) candidate(w *worker, promptTokens int, prompt []BlockHash, overlap int) Candidate {
	account := &r.loads[w.index]
	c := Candidate{
		Worker: w.id, index: w.index, OverlapBlocks: overlap, Requests: account.requests,
		PrefillTokens: account.prefillTokens + promptTokens - overlap*r.blockTokens,
		DecodeBlocks:  len(account.blocks) + len(prompt),
	}
	for _, hash := range prompt {
		if account.blocks[hash] == 0 {
			break // and none of those after it, which stand for it too
		}
		c.DecodeBlocks--
	}
	c.Cost = r.overlapWeight*float64(c.PrefillTokens)/float64(r.blockTokens) + float64(c.DecodeBlocks)
	return c
}

func (r *router) choose(candidates []Candidate) int {
	switch r.mode {
	case api.ModeRoundRobin:
		r.turn++
		return (r.turn - 1) % len(candidates)
	case api.ModeLeastLoaded:
		return r.lowest(candidates, func(c Candidate) float64 { return float64(c.Requests) })
	}
	if r.temperature > 0 {
		return r.sample(candidates)
	}
	return r.lowest(candidates, func(c Candidate) float64 { return c.Cost })
}

// lowest is the candidate with the lowest value, any of them where several have it.
func (r *router) lowest(candidates []Candidate, value func(Candidate) float64) int {
	chosen, ties := 0, 0
	for i, c := range candidates {
		switch v, least := value(c), value(candidates[chosen]); {
		case i == 0 || v < least:
			chosen, ties = i, 1
		case v == least:
			if ties++; r.rng.IntN(ties) == 0 {
				chosen = i
			}
		}
	}
	return chosen
}

// sample draws a candidate with a probability ∝ exp(−(c − min) / ((max − min)·T)),
// Dynamo's softmax over costs.
func (r *router) sample(candidates []Candidate) int {
	low, high := candidates[0].Cost, candidates[0].Cost
	for _, c := range candidates {
		low, high = min(low, c.Cost), max(high, c.Cost)
	}
	if low == high {
		return r.rng.IntN(len(candidates))
	}
	weights, sum := make([]float64, len(candidates)), 0.0
	for i, c := range candidates {
		weights[i] = math.Exp(-(c.Cost - low) / ((high - low) * r.temperature))
		sum += weights[i]
	}
	drawn := r.rng.Float64() * sum
	for i, weight := range weights {
		if drawn -= weight; drawn < 0 {
			return i
		}
	}
	return len(candidates) - 1
}

func (r *router) add(d *Decision, prompt []BlockHash) {
	account := &r.loads[d.Worker().index]
	account.requests++
	account.prefillTokens += d.uncachedTokens()
	for _, hash := range prompt {
		account.blocks[hash]++
	}
}

// prefilled takes a request's prefill off its worker's account, at its first token.
func (r *router) prefilled(j *Job) {
	r.loads[j.worker.index].prefillTokens -= j.decision.uncachedTokens()
	r.stats.WorkerReusedTokens += int64(j.report.CachedTokens)
}

// free takes the rest of a request off its worker's account, at its end.
func (r *router) free(j *Job) {
	account := &r.loads[j.worker.index]
	account.requests--
	if j.report.FirstToken == 0 {
		account.prefillTokens -= j.decision.uncachedTokens()
	}
	for _, hash := range j.request.Blocks[:j.request.PromptTokens/r.blockTokens] {
		if account.blocks[hash]--; account.blocks[hash] == 0 {
			delete(account.blocks, hash)
		}
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
func (r *router) stored(worker int, hashes []BlockHash) {
	for _, hash := range hashes {
		r.index[hash] |= 1 << worker
	}
}

func (r *router) removed(worker int, hashes []BlockHash) {
	for _, hash := range hashes {
		if r.index[hash] &^= 1 << worker; r.index[hash] == 0 {
			delete(r.index, hash)
		}
	}
}

func (r *router) cleared(worker int) {
	for hash, holders := range r.index {
		if holders &^= 1 << worker; holders == 0 {
			delete(r.index, hash)
		} else {
			r.index[hash] = holders
		}
	}
}
