package sim

import (
	"errors"
	"time"
)

// BlockHash stands for a block of tokens and for everything before it: equal
// hashes, equal prefixes.
type BlockHash uint64

// HashBlocks gives the hashes of the full blocks of some texts, one after the
// other. What is left over at the end has none.
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

// Mix spreads each bit of a number over all bits of the result: the finaliser of
// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
func Mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Request is what a cluster is asked for. The answer is known beforehand; the
// cluster says when its tokens come.
type Request struct {
	ID string // for the observer and the decisions; need not be unique

	PromptTokens int // at least 1
	OutputTokens int // of the answer, at least 1

	// Blocks are the hashes of the full blocks of the prompt and, so that it can
	// be reused, of the answer behind it, as [HashBlocks] gives them.
	Blocks []BlockHash

	Reason   FinishReason // how the answer ends
	Instance WorkerID     // the worker that must serve it; 0 leaves that to the router
}

// FinishReason says why an answer ended.
type FinishReason string

// The reasons for the end of an answer, in OpenAI's words.
const (
	FinishStop   FinishReason = "stop"   // it was complete
	FinishLength FinishReason = "length" // the most tokens allowed were reached
)

// NewRequest is the request for an answer to a prompt, cut at a number of tokens.
// It hashes both, about 20 µs for 7,000 tokens, and keeps neither.
func NewRequest(id string, prompt, answer []uint32, maxTokens, blockTokens int) Request {
	r := Request{ID: id, PromptTokens: len(prompt), Reason: FinishStop}
	if len(answer) > maxTokens {
		answer, r.Reason = answer[:maxTokens], FinishLength
	}
	r.OutputTokens = len(answer)
	r.Blocks = HashBlocks(blockTokens, prompt, answer)
	return r
}

// Why a request is refused or fails.
var (
	ErrRestarting = errors.New("the cluster is restarting")
	ErrNoWorkers  = errors.New("no worker is ready")
	ErrNoInstance = errors.New("no such instance is ready")
	ErrWorkerLost = errors.New("the worker was lost")
	ErrCancelled  = errors.New("the request was cancelled")
)

// Observer is told what becomes of one request, from within [Cluster.Submit] and
// [Cluster.Advance], in the order of time. It may submit and cancel requests.
type Observer interface {
	// Routed comes once, from within Submit. The decision does not change any more.
	Routed(*Decision)
	// FirstToken comes before the first Tokens, with the report so far.
	FirstToken(Report)
	// Tokens says that so many more tokens left the frontend. They come from one
	// iteration of the worker: a client sees them as one chunk.
	Tokens(at time.Duration, n int)
	// Finished comes once, as the last, whatever happened.
	Finished(Report)
}

// Report is what is known of a request.
type Report struct {
	Timing
	PromptTokens int
	CachedTokens int // prompt tokens that the worker found in its cache
	OutputTokens int // that have left the frontend
	QueueAhead   int // requests that waited at the worker when it arrived there

	Preemptions      int // times that it had to give up its blocks
	RecomputedTokens int // of prompt and answer, computed once more for that

	Reason FinishReason // "" until the end, and where Err is set
	Err    error        // ErrRestarting, ErrWorkerLost, ErrCancelled, or nil
}

// Timing is when a request reached its stages, in virtual time; zero for stages
// that it has not reached. After a preemption, Started and Prefilled stay those
// of the first time.
type Timing struct {
	Submitted  time.Duration // to the frontend
	Arrived    time.Duration // at the worker
	Started    time.Duration // the first iteration that prefills it begins
	Prefilled  time.Duration // the iteration that gives the first token ends
	FirstToken time.Duration // the first token leaves the frontend
	Ended      time.Duration // the last one does, or it fails
}

// Job is a request inside a cluster. What every iteration asks for comes first, since
// the processor fetches it together.
type Job struct {
	observer  Observer
	computed  int   // tokens whose keys and values the cache holds, while it prefills
	goal      int   // tokens to compute until the next token comes
	generated int   // tokens of the answer
	shared    int   // registered blocks in use, from the beginning of the prompt on
	private   int   // further blocks, whose contents nobody else can find
	delivered int   // tokens that have left the frontend
	last      int32 // of the shared blocks, for the cache
	done      bool  // ended, for the frontend

	request  Request
	report   Report
	serial   uint64
	worker   *worker
	path     []blockID // of the request's blocks
	uncached int       // tokens that the router expects to be prefilled
	answered int       // blocks of the answer that the router counts
	chunk    int       // of the iteration under way
	reached  int       // tokens that had been computed when it was preempted
}

// prompt are the full blocks of the job's prompt.
func (j *Job) prompt(blockTokens int) []blockID { return j.path[:j.request.PromptTokens/blockTokens] }

// prefilling says whether the job has tokens to compute before it can decode.
func (j *Job) prefilling() bool { return j.computed < j.goal }

// context is how many tokens the job has, prompt and answer.
func (j *Job) context() int { return j.request.PromptTokens + j.generated }

// complete says whether the worker has given all tokens of the answer.
func (j *Job) complete() bool { return j.generated == j.request.OutputTokens }
