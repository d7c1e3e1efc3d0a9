package chat

import (
	"cmp"
	"sync"
	"time"
)

// Usage is the server's own count of tokens. Prompt and Completion are 0 where it reported none.
// Cached prompt tokens count only where HasCached is set.
type Usage struct {
	Prompt, Completion, Cached int
	HasCached                  bool
}

// updated gives the usage after a later report, which it changes: a count that the later one
// lacks stays.
func (u *Usage) updated(later *Usage) *Usage {
	if u == nil {
		return later
	}
	if later.Prompt == 0 {
		later.Prompt = u.Prompt
	}
	if !later.HasCached && u.HasCached && later.Prompt == u.Prompt {
		later.Cached, later.HasCached = u.Cached, true
	}
	if later.Completion == 0 {
		later.Completion = u.Completion
	}
	return later
}

// Timing is what a Dynamo frontend tells of the request in nvext.timing. TTFT
// is in seconds; a value counts only where its Has… is set.
type Timing struct {
	TTFT              float64
	PredictedHitRatio float64
	QueueDepth        int

	HasTTFT, HasPredicted, HasQueueDepth bool
}

// Chunk is one content chunk: when its bytes had been read, since the request
// was sent, and how many tokens it carries, 0 where it does not tell.
type Chunk struct {
	At     time.Duration
	Tokens int32
}

// Result is one request with its streamed answer. It belongs to the caller.
type Result struct {
	Sent   time.Time // when sending began, with the monotonic clock
	Ended  time.Time
	Chunks []Chunk // content chunks in order of arrival

	Content      string // the text of the answer, without its reasoning
	FinishReason string
	Usage        *Usage // nil where the server reported none
	// FirstAnswer is the time to the first chunk that is part of the answer and not of its
	// reasoning; 0 where none came.
	FirstAnswer time.Duration
	Worker      uint64 // Dynamo's instance id, 0 where not reported
	Timing      Timing
	Err         *Error // nil for a whole answer
	Cancelled   bool   // the caller's context ended; then Err is nil
	Resent      bool   // a kept connection had been closed, and the request went out again
}

// OK says whether the answer came whole.
func (r *Result) OK() bool { return r.Err == nil && !r.Cancelled }

// TTFT is the time to the first content chunk; ok is false where none came.
func (r *Result) TTFT() (d time.Duration, ok bool) {
	if len(r.Chunks) == 0 {
		return 0, false
	}
	return r.Chunks[0].At, true
}

// Latency is the time to the last content chunk; ok is false where none came.
func (r *Result) Latency() (d time.Duration, ok bool) {
	if len(r.Chunks) == 0 {
		return 0, false
	}
	return r.Chunks[len(r.Chunks)-1].At, true
}

// OutputTokens is the server's count where it reported one, else the number of
// content chunks; source says which: "usage" or "chunks".
func (r *Result) OutputTokens() (n int, source string) {
	if r.Usage != nil && r.Usage.Completion > 0 {
		return r.Usage.Completion, "usage"
	}
	return len(r.Chunks), "chunks"
}

// TPOT is (latency − TTFT) / (output tokens − 1); ok is false for fewer than
// two output tokens, and for an answer that is [Result.Buffered].
func (r *Result) TPOT() (d time.Duration, ok bool) {
	n, _ := r.OutputTokens()
	first, got := r.TTFT()
	if !got || n < 2 || r.Buffered() {
		return 0, false
	}
	last, _ := r.Latency()
	return (last - first) / time.Duration(n-1), true
}

const (
	// burstGap is the longest time between two chunks of one burst. No engine generates tokens
	// of one answer at this pace (10,000/s).
	burstGap = 100 * time.Microsecond
	// burstChunks is how many chunks a burst has on average in an answer that counts as
	// buffered. A client that reads late sees bursts too, but of fewer chunks.
	burstChunks = 8
)

// Buffered reports whether the server, or a proxy, held the tokens back and sent many at once:
// in bursts of [burstChunks] on average, or with so many tokens in the first burst that TPOT, in
// which they have no time, would be a fifth too low. The time between two tokens is then unknown.
func (r *Result) Buffered() bool {
	bursts, first, mean := 0, 0.0, r.tokensPerChunk()
	for i := range r.Chunks {
		if i == 0 || !r.inBurst(i) {
			bursts++
		}
		if bursts == 1 {
			first += cmp.Or(float64(r.Chunks[i].Tokens), mean)
		}
	}
	n, _ := r.OutputTokens()
	return bursts > 0 && len(r.Chunks) >= burstChunks*bursts || 5*(first-1) > float64(n-1) && n > 1
}

// inBurst reports whether a chunk that is not the first came at once with the one before it.
func (r *Result) inBurst(i int) bool { return r.Chunks[i].At-r.Chunks[i-1].At <= burstGap }

// Gap is the time between two content chunks, shared by the tokens of the later
// one: Seconds per token, Tokens of them.
type Gap struct {
	Seconds float64
	Tokens  float64
}

// Gaps appends the turn's inter-token latencies to dst; none of an answer that is
// [Result.Buffered]. A chunk that does not tell its tokens shares its gap by the turn's mean
// tokens per chunk; then estimated is true, unless the server's usage says that each chunk was
// one token. Where most chunks come in bursts, a burst counts as one chunk: the median would be 0.
func (r *Result) Gaps(dst []Gap) (gaps []Gap, estimated bool) {
	if r.Buffered() {
		return dst, false
	}
	mean := r.tokensPerChunk()
	oneEach := r.Usage != nil && r.Usage.Completion == len(r.Chunks)
	merge, first := r.comesInBursts(), true
	before, tokens := 0, 0.0
	for i := 1; i < len(r.Chunks); i++ {
		if first = first && r.inBurst(i); merge && first {
			before = i // its tokens belong to no gap
			continue
		}
		if n := r.Chunks[i].Tokens; n > 0 {
			tokens += float64(n)
		} else {
			tokens += mean
			estimated = estimated || !oneEach
		}
		if merge && i+1 < len(r.Chunks) && r.inBurst(i+1) {
			continue
		}
		gap := (r.Chunks[i].At - r.Chunks[before].At).Seconds()
		dst = append(dst, Gap{Seconds: gap / tokens, Tokens: tokens})
		before, tokens = i, 0
	}
	return dst, estimated
}

// comesInBursts reports whether most of the chunks came at once with the one before.
func (r *Result) comesInBursts() bool {
	n := 0
	for i := 1; i < len(r.Chunks); i++ {
		if r.inBurst(i) {
			n++
		}
	}
	return 2*n > len(r.Chunks)-1
}

// tokensPerChunk is the mean over the answer, never below the smallest whole
// share a chunk can have.
func (r *Result) tokensPerChunk() float64 {
	n, _ := r.OutputTokens()
	if len(r.Chunks) == 0 || n < len(r.Chunks) {
		return 1
	}
	return float64(n) / float64(len(r.Chunks))
}

// Live is the part of an answer that has come so far. The zero value is ready;
// it may be read while the stream writes it.
type Live struct {
	mu        sync.Mutex
	text      []byte
	reasoning []byte
	sent      time.Time
	first     time.Duration
	worker    uint64
}

// Text is what has come of the answer so far; before it begins, of its reasoning.
func (l *Live) Text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.text) == 0 {
		return string(l.reasoning)
	}
	return string(l.text)
}

// answer is what has come of the answer.
func (l *Live) answer() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}

// First says when the request was sent and how long its first content chunk
// took; waiting is true while none has come. A request that was not sent yet has
// a zero time.
func (l *Live) First() (sent time.Time, ttft time.Duration, waiting bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent, l.first, l.first == 0
}

// Worker is Dynamo's instance id, 0 while not told.
func (l *Live) Worker() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.worker
}

func (l *Live) start(sent time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent, l.first, l.worker, l.text, l.reasoning = sent, 0, 0, l.text[:0], l.reasoning[:0]
}

func (l *Live) add(at time.Duration, c chunk) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first == 0 {
		l.first = at
	}
	if c.worker != 0 {
		l.worker = c.worker
	}
	l.text = append(l.text, c.text...)
	l.reasoning = append(l.reasoning, c.reasoning...)
}
