package sim

import (
	"errors"
	"time"

	"kvbooth/sidecar/trace"
)

// BlockHash identifies a block of tokens together with all blocks before it: equal hashes mean equal prefixes.
type BlockHash uint64

// HashBlocks returns the hashes of the full blocks of the concatenated texts. An incomplete block at the end has no
// hash.
func HashBlocks(blockTokens int, texts ...[]uint32) []BlockHash {
	var hashes []BlockHash
	hash, filled := uint64(0), 0
	for _, text := range texts {
		for _, token := range text {
			hash = Mix(hash + uint64(token) + 0x9e3779b97f4a7c15)
			if filled++; filled == blockTokens {
				hashes, filled = append(hashes, BlockHash(hash)), 0
			}
		}
	}
	return hashes
}

// Mix is [trace.Finalize].
func Mix(x uint64) uint64 { return trace.Finalize(x) }

// Request is a request to a cluster. Its answer is known beforehand; the cluster simulates only the times of the
// tokens.
type Request struct {
	ID string // reported in decisions; need not be unique

	PromptTokens int // at least 1
	OutputTokens int // length of the answer, at least 1

	// Blocks are the hashes of the full blocks of the prompt and of the answer behind it, from [HashBlocks]. The
	// answer's blocks make its reuse possible.
	Blocks []BlockHash

	// Tokens are the ids of the prompt and of the answer behind it. Only a [CacheObserver] reads them.
	Tokens []uint32

	Reason   FinishReason // reported at the end of the answer
	Instance WorkerID     // the worker that must serve the request; 0 leaves the choice to the router
}

// FinishReason is the reason why an answer ended.
type FinishReason string

// The finish reasons, with the values of OpenAI's API.
const (
	FinishStop   FinishReason = "stop"   // the answer is complete
	FinishLength FinishReason = "length" // the answer reached the maximum number of tokens
)

// NewRequest returns the request for an answer to a prompt, cut at maxTokens. It hashes both, which takes about 20 µs
// for 7,000 tokens, and keeps neither.
func NewRequest(id string, prompt, answer []uint32, maxTokens, blockTokens int) Request {
	r := Request{ID: id, PromptTokens: len(prompt), Reason: FinishStop}
	if len(answer) > maxTokens {
		answer, r.Reason = answer[:maxTokens], FinishLength
	}
	r.OutputTokens = len(answer)
	r.Blocks = HashBlocks(blockTokens, prompt, answer)
	return r
}

// Errors of refused and failed requests.
var (
	ErrRestarting = errors.New("the cluster is restarting")
	ErrNoWorkers  = errors.New("no worker is ready")
	ErrNoInstance = errors.New("no such instance is ready")
	ErrWorkerLost = errors.New("the worker was lost")
	ErrCanceled   = errors.New("the request was canceled")
)

// Observer receives the events of one request in the order of time, from within [Cluster.Submit] and
// [Cluster.Advance]. It may submit and cancel requests.
type Observer interface {
	// Routed is called once, from within Submit. The decision does not change afterwards.
	Routed(*Decision)
	// FirstToken is called before the first Tokens, with the report so far.
	FirstToken(Report)
	// Tokens is called when n more tokens leave the frontend. They come from one iteration of the worker, and a
	// client receives them as one chunk.
	Tokens(at time.Duration, n int)
	// Finished is called once, last, after success and failure.
	Finished(Report)
}

// CacheObserver receives the changes of the workers' caches in the order of time, as an engine publishes them. It is
// called from within the methods of [Cluster], which it must not call. Workers are numbered from 0.
type CacheObserver interface {
	// Stored is called when a worker's cache holds the blocks of a request from first up to end, without end, which it
	// did not hold before.
	Stored(worker int, r *Request, first, end int)
	// Removed is called when a worker has evicted blocks. The slice is valid during the call.
	Removed(worker int, blocks []BlockHash)
	// Cleared is called when a worker's cache is empty: cleared, or lost with the worker.
	Cleared(worker int)
}

// Report describes a request: its times, tokens and outcome.
type Report struct {
	Timing
	PromptTokens int
	CachedTokens int // prompt tokens that the worker found in its cache
	OutputTokens int // tokens that have left the frontend
	QueueAhead   int // requests that waited at the worker when this one arrived there

	Preemptions      int // number of times that the request lost its blocks
	RecomputedTokens int // tokens of prompt and answer that were computed again after preemptions

	Reason FinishReason // "" until the end, and where Err is set
	Err    error        // ErrRestarting, ErrWorkerLost, ErrCanceled, or nil
}

// Timing holds the times at which a request reached its stages, in virtual time; zero for stages that it has not
// reached. After a preemption, Started and Prefilled keep their first values.
type Timing struct {
	Submitted  time.Duration // the request reaches the frontend
	Arrived    time.Duration // the request reaches the worker
	Started    time.Duration // the first iteration that prefills it begins
	Prefilled  time.Duration // the iteration that computes the first token ends
	FirstToken time.Duration // the first token leaves the frontend
	Ended      time.Duration // the last token leaves the frontend, or the request fails
}

// Job is a request inside a cluster. The fields that every iteration reads come first, so that they share cache lines.
type Job struct {
	observer  Observer
	computed  int   // tokens whose keys and values are in the cache, while the job prefills
	goal      int   // tokens to compute before the next token
	generated int   // tokens of the answer
	shared    int   // registered blocks in use, from the beginning of the prompt
	private   int   // further blocks, which other jobs cannot find
	delivered int   // tokens that have left the frontend
	last      int32 // last of the shared blocks, in the worker's cache
	done      bool  // ended at the frontend

	request  Request
	report   Report
	serial   uint64
	worker   *worker
	path     []blockID // ids of the request's blocks
	uncached int       // tokens that the router expects the worker to prefill
	answered int       // blocks of the answer in the router's account
	chunk    int       // tokens to prefill in the current iteration
	reached  int       // largest number of computed tokens before a preemption
}

// prompt returns the full blocks of the job's prompt.
func (j *Job) prompt(blockTokens int) []blockID { return j.path[:j.request.PromptTokens/blockTokens] }

// prefilling reports whether the job has tokens to compute before it can decode.
func (j *Job) prefilling() bool { return j.computed < j.goal }

// context returns the number of tokens of the job, prompt and answer.
func (j *Job) context() int { return j.request.PromptTokens + j.generated }

// complete reports whether the worker has generated all tokens of the answer.
func (j *Job) complete() bool { return j.generated == j.request.OutputTokens }
