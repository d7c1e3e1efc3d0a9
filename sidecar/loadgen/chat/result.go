package chat

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
)

// Timing holds the figures that a Dynamo frontend reports in nvext.timing. TTFT is in seconds. A figure is valid only
// with its Has field.
type Timing struct {
	TTFT              float64
	PredictedHitRatio float64
	QueueDepth        int

	HasTTFT, HasPredicted, HasQueueDepth bool
}

// Chunk is one content chunk. At is the time from sending the request to reading the chunk's last byte. Tokens is 0 if
// the server does not report the tokens of a chunk.
type Chunk struct {
	At     time.Duration
	Tokens int32
}

// Result is the outcome of one request. The caller owns it.
type Result struct {
	Sent   time.Time // when sending began, with the monotonic clock
	Ended  time.Time
	Chunks []Chunk // content chunks in order of arrival

	Content      string // the text of the answer, without its reasoning
	FinishReason string
	Usage        *Usage // nil where the server reported none
	// Hidden is the number of output tokens that were counted but not streamed, such as hidden reasoning; negative: there
	// are some, or may be, in unknown number.
	Hidden   int
	Findings Finding
	// FirstAnswer is the time to the first chunk that is part of the answer and not of its
	// reasoning; 0 where none came.
	FirstAnswer time.Duration
	// Worker names the worker that answered: the value of a response header, else Dynamo's instance id in decimal; empty
	// where neither is reported.
	Worker string
	// Token is that of a session, which the server returned; empty where [Options].Session expects none.
	Token  string
	Timing Timing
	Err    *Error // nil for a complete answer
	// Cancelled: the caller's context ended, and Err is nil; or the process that sent the turn was lost, as Err says.
	Cancelled bool
	Resent    bool  // the request was sent twice: the server had closed the kept connection
	Probes    int64 // probes that the process of [Options].Send has sent since its last result

	TextBytes, FirstTextBytes int // of answer and reasoning, and of those in the first chunk; 0: unknown
}

// OK reports whether the answer is complete.
func (r *Result) OK() bool { return r.Err == nil && !r.Cancelled }

// TTFT returns the time to the first content chunk; ok is false without one.
func (r *Result) TTFT() (d time.Duration, ok bool) {
	if len(r.Chunks) == 0 {
		return 0, false
	}
	return r.Chunks[0].At, true
}

// Latency returns the time to the last content chunk; ok is false without one.
func (r *Result) Latency() (d time.Duration, ok bool) {
	if len(r.Chunks) == 0 {
		return 0, false
	}
	return r.Chunks[len(r.Chunks)-1].At, true
}

// OutputTokens returns the server's count of output tokens, else the number of content chunks. The source is "usage" or
// "chunks".
func (r *Result) OutputTokens() (n int, source string) {
	if r.Usage != nil && r.Usage.Completion > 0 {
		return r.Usage.Completion, "usage"
	}
	return len(r.Chunks), "chunks"
}

// TPOT returns (latency − TTFT) / (output tokens − those of the first chunk), over the streamed tokens. ok is false
// without a token after the first chunk, where the number of streamed tokens is unknown, and for an answer that is
// [Result.Buffered].
func (r *Result) TPOT() (d time.Duration, ok bool) {
	n, known := r.visible()
	if !known || len(r.Chunks) == 0 {
		return 0, false
	}
	rest := n - r.firstTokens(n)
	if rest <= 0 || r.Buffered() {
		return 0, false
	}
	return time.Duration(float64(r.Chunks[len(r.Chunks)-1].At-r.Chunks[0].At) / rest), true
}

// visible returns the number of output tokens that were streamed; known is false where it is not known. Hidden tokens
// that the server counts in the first chunk are not subtracted, since those of that chunk belong to no time.
func (r *Result) visible() (n float64, known bool) {
	total, _ := r.OutputTokens()
	first := 0
	if len(r.Chunks) > 0 {
		first = int(r.Chunks[0].Tokens)
	}
	switch {
	case r.Findings&OutputUnclear != 0:
		return float64(total), false
	case r.Hidden == 0, r.Hidden > 0 && first > r.Hidden:
		return float64(total), true
	case r.Hidden < 0:
		return float64(total), first > 1 && total-first <= r.TextBytes-r.FirstTextBytes+1
	}
	return float64(total - r.Hidden), true
}

// firstTokens returns the tokens of the first chunk, of n in the answer: as the server counts them, else by its share
// of the text, as far as there are more tokens than chunks and the end of the answer.
func (r *Result) firstTokens(n float64) float64 {
	if tokens := r.Chunks[0].Tokens; tokens > 0 {
		return float64(tokens)
	}
	further := n - float64(len(r.Chunks))
	if r.TextBytes == 0 || further <= 1 {
		return 1
	}
	return min(max(1, n*float64(r.FirstTextBytes)/float64(r.TextBytes)), 1+further)
}

const (
	// burstGap is the longest time between two chunks of one burst. No engine generates tokens
	// of one answer at this pace (10,000/s).
	burstGap = 100 * time.Microsecond
	// burstChunks is the mean number of chunks per burst from which an answer counts as buffered. A client that reads
	// late measures bursts too, but of fewer chunks.
	burstChunks = 8
	// heldChunks is the number of chunks in the first burst from which a proxy held it back, if later bursts have a
	// third of them or fewer.
	heldChunks = 4
	// holdTime is the mean time between bursts from which a proxy holds each of them, the first one too: HAProxy does
	// for 200 ms, whatever the pace of the tokens. An engine's first burst is one token, that of the prefill.
	holdTime = 150 * time.Millisecond
)

// Buffered reports whether the server or a proxy collected tokens and sent many at once: in bursts of [burstChunks] on
// average, in bursts of two tokens or more every [holdTime], with a first one of [heldChunks] or more, or with so many
// tokens in the first one that TPOT would be a fifth too low. The time between two tokens is then unknown. The chunks
// of a burst may come in several packets, so that a gap of a twentieth of the mean is none.
func (r *Result) Buffered() bool {
	bursts, held, first, mean := 0, 0, 0.0, r.tokensPerChunk()
	gap := burstGap
	if n := len(r.Chunks); n > 1 {
		gap = max(gap, (r.Chunks[n-1].At-r.Chunks[0].At)/time.Duration(20*(n-1)))
	}
	for i := range r.Chunks {
		if i == 0 || r.Chunks[i].At-r.Chunks[i-1].At > gap {
			bursts++
		}
		if bursts == 1 {
			held++
			first += cmp.Or(float64(r.Chunks[i].Tokens), mean)
		}
	}
	n, _ := r.visible()
	if bursts == 0 {
		return false
	}
	if r.heldEach(bursts, held, n) {
		return true
	}
	leftOut := float64(max(1, r.Chunks[0].Tokens)) // by TPOT
	later := len(r.Chunks) - held
	return len(r.Chunks) >= burstChunks*bursts || n > 1 && (len(r.Chunks) == 1 || 5*(first-leftOut) > n-leftOut) ||
		held >= heldChunks && later > 0 && held*(bursts-1) >= 3*later
}

// heldEach reports whether each burst was held for [holdTime]. first is the number of chunks in the first one, and n
// that of the tokens: a token in several chunks is no burst.
func (r *Result) heldEach(bursts, first int, n float64) bool {
	chunks := float64(len(r.Chunks))
	tokens := min(1, n/chunks) // of a chunk
	took := r.Chunks[len(r.Chunks)-1].At - r.Chunks[0].At
	return bursts > 1 && tokens*float64(first) >= 2 && tokens*chunks >= 2*float64(bursts) &&
		took >= time.Duration(bursts-1)*holdTime
}

// inBurst reports whether chunk i, which is not the first, arrived together with the chunk before it.
func (r *Result) inBurst(i int) bool { return r.Chunks[i].At-r.Chunks[i-1].At <= burstGap }

// Gap is the time between two content chunks, divided among the tokens of the later chunk: Seconds is per token, Tokens
// their number.
type Gap struct {
	Seconds float64 `json:"s,omitempty"`
	Tokens  float64 `json:"n"`
}

// Gaps appends the turn's inter-token latencies to dst, and none for an answer that is [Result.Buffered] or whose
// number of streamed tokens is unknown. The tokens of a chunk without a count are the turn's mean tokens per chunk,
// at least 1: gaps of an answer with more chunks than tokens are those between chunks. estimated is then true,
// unless usage shows that each chunk was one token. If most chunks arrive in bursts, a burst counts as one chunk:
// the median would be 0 otherwise.
func (r *Result) Gaps(dst []Gap) (gaps []Gap, estimated bool) {
	n, known := r.visible()
	if !known || r.Buffered() {
		return dst, false
	}
	mean, oneEach := r.tokensPerChunk(), r.oneEach(int(n))
	if oneEach {
		mean = 1
	}
	merge, first := r.comesInBursts(), true
	before, tokens := 0, 0.0
	for i := 1; i < len(r.Chunks); i++ {
		if first = first && r.inBurst(i); merge && first {
			before = i // tokens of the first burst belong to no gap
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

// GapPercentiles returns the p50 and p95 of one turn's inter-token latency over its tokens, by nearest rank; NaN
// without gaps. It sorts the gaps.
func GapPercentiles(gaps []Gap) (p50, p95 float64) {
	slices.SortFunc(gaps, func(a, b Gap) int { return cmp.Compare(a.Seconds, b.Seconds) })
	total := 0.0
	for _, g := range gaps {
		total += g.Tokens
	}
	return weightedRank(gaps, .5*total), weightedRank(gaps, .95*total)
}

// weightedRank returns the first of the sorted gaps at which the tokens reach rank.
func weightedRank(sorted []Gap, rank float64) float64 {
	value := math.NaN()
	below := 0.0
	for _, g := range sorted {
		value = g.Seconds
		below += g.Tokens
		if below >= rank {
			break
		}
	}
	return value
}

// comesInBursts reports whether most chunks arrived together with the chunk before them.
func (r *Result) comesInBursts() bool {
	n := 0
	for i := 1; i < len(r.Chunks); i++ {
		if r.inBurst(i) {
			n++
		}
	}
	return 2*n > len(r.Chunks)-1
}

// tokensPerChunk returns the answer's mean tokens per chunk, at least 1.
func (r *Result) tokensPerChunk() float64 {
	n, _ := r.visible()
	if len(r.Chunks) == 0 || n < float64(len(r.Chunks)) {
		return 1
	}
	return n / float64(len(r.Chunks))
}

// bundled reports whether chunks held several tokens of which the server did not count those of each chunk.
func (r *Result) bundled() bool {
	n, known := r.visible()
	return r.OK() && r.Usage != nil && known && len(r.Chunks) > 0 && r.Chunks[len(r.Chunks)-1].Tokens == 0 &&
		int(n) > len(r.Chunks) && !r.oneEach(int(n))
}

// endedItself reports whether the model ended the answer, and not its limit.
func (r *Result) endedItself() bool {
	reason := strings.ToLower(r.FinishReason)
	return normalEnds[reason] && reason != "length" && reason != "max_tokens" && reason != "model_length"
}

// oneEach reports whether usage shows that each chunk was one of n tokens. The end of the sequence is a token without a
// chunk, unless the answer was ended by its limit.
func (r *Result) oneEach(n int) bool {
	further := n - len(r.Chunks)
	return r.Usage != nil && r.Usage.Completion > 0 && (further == 0 || further == 1 && r.endedItself())
}

// Live is the received part of an answer in progress. The zero value is ready to use. It is safe for concurrent use.
type Live struct {
	mu        sync.Mutex
	text      text
	reasoning text
	sent      time.Time
	first     time.Duration
	worker    string
	read      time.Time
}

// Text returns the answer received so far, or the reasoning before the answer begins.
func (l *Live) Text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.read = time.Now()
	if l.text.n == 0 {
		return l.reasoning.String()
	}
	return l.text.String()
}

// answer returns the answer after its end. Only the stream, which adds to it, may call it.
func (l *Live) answer() string {
	l.mu.Lock()
	t := l.text
	l.mu.Unlock()
	t.join()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = t
	return t.whole
}

// First returns when the request was sent, the zero time before that, and the time to the first content chunk. waiting
// is true until the first content chunk arrives.
func (l *Live) First() (sent time.Time, ttft time.Duration, waiting bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent, l.first, l.first == 0
}

// Worker returns what [Result].Worker becomes, empty until it is reported.
func (l *Live) Worker() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.worker
}

// Read returns when [Live.Text] was last called; the zero time: never.
func (l *Live) Read() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.read
}

// Mirror sets what another process has received. Zero values change nothing.
func (l *Live) Mirror(sent time.Time, ttft time.Duration, worker, received string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !sent.IsZero() {
		l.sent = sent
	}
	l.first, l.worker = cmp.Or(ttft, l.first), cmp.Or(worker, l.worker)
	if received != "" {
		l.text = text{whole: received, n: len(received)}
	}
}

func (l *Live) start(sent time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent, l.first, l.worker = sent, 0, ""
	l.text, l.reasoning = text{}, text{}
}

func (l *Live) setWorker(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.worker = name
}

func (l *Live) add(at time.Duration, c chunk) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first == 0 {
		l.first = at
	}
	l.text.add(c.text)
	l.reasoning.add(c.reasoning)
}
