package sim

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The workload that the profile was fitted with, and how long it runs.
const (
	startRate   = 10 // conversations a second
	answerMean  = 830.0
	answerCV    = .15
	tenStarters = 10
	warmUp      = 150 * time.Second
	wholeRun    = 750 * time.Second // of the fit
	shortRun    = 400 * time.Second // where a trend is enough
)

// closedLoop keeps conversations in progress, without think time, on shared
// starters; each turn resends the history.
type closedLoop struct {
	t           testing.TB
	cluster     *Cluster
	rng         *rand.Rand
	starters    []text
	concurrency int

	// What was measured after the warm-up.
	ttft, gap []float64 // milliseconds, one a turn; gap is the mean between tokens
	tokens    int       // that came
	prompt    int       // tokens of prompts
	cached    int       // of those
	spread    []float64 // requests of the busiest worker beyond those of the idlest, once a second
}

// text is a part of a conversation: some tokens that no other part has.
type text struct {
	id     uint64
	tokens int
}

// talk is one conversation, and the observer of its turns.
type talk struct {
	loop    *closedLoop
	history []text
	left    int // turns
}

func newClosedLoop(t testing.TB, o Options, concurrency, starters int) *closedLoop {
	t.Helper()
	c, err := New(o)
	require.NoError(t, err)
	l := &closedLoop{t: t, cluster: c, rng: rand.New(rand.NewPCG(o.Seed, 7)), concurrency: concurrency}
	for range starters {
		l.starters = append(l.starters, l.text(3500+l.rng.Float64()*500))
	}
	return l
}

// text is a new text of so many tokens.
func (l *closedLoop) text(tokens float64) text {
	return text{id: l.rng.Uint64(), tokens: int(math.Round(tokens))}
}

func (l *closedLoop) run(until time.Duration) {
	for i := range l.concurrency {
		l.cluster.Advance(time.Duration(i) * time.Second / startRate)
		l.begin()
	}
	for at := l.cluster.Now(); at < until; at += time.Second {
		l.cluster.Advance(at)
		if l.measures() {
			l.observeSpread()
		}
	}
}

func (l *closedLoop) measures() bool { return l.cluster.Now() > warmUp }

func (l *closedLoop) observeSpread() {
	low, high := math.MaxInt, 0
	for _, w := range l.cluster.Workers() {
		low, high = min(low, w.Inflight), max(high, w.Inflight)
	}
	l.spread = append(l.spread, float64(high-low))
}

// begin opens a conversation of three to five turns.
func (l *closedLoop) begin() {
	c := &talk{loop: l, left: 3 + l.rng.IntN(3)}
	c.history = append(c.history, l.starters[l.rng.IntN(len(l.starters))])
	c.ask()
}

func (c *talk) ask() {
	l := c.loop
	answer := l.text(max(answerMean*(1+answerCV*l.rng.NormFloat64()), answerMean/4))
	_, err := l.cluster.Submit(textRequest(l.cluster.profile.KV.BlockTokens, c.history, answer), c)
	require.NoError(l.t, err)
	c.history = append(c.history, answer)
	c.left--
}

// textRequest is the request for an answer to a prompt. A block is told by the
// text that it ends in, the place in it, and all texts before.
func textRequest(blockTokens int, prompt []text, answer text) Request {
	q := Request{OutputTokens: answer.tokens, Reason: FinishLength}
	hash, total := uint64(0), 0
	for i, part := range append(slices.Clone(prompt), answer) {
		if i == len(prompt) {
			q.PromptTokens = total
		}
		hash = mix(hash ^ part.id)
		for end := (total/blockTokens + 1) * blockTokens; end <= total+part.tokens; end += blockTokens {
			q.Blocks = append(q.Blocks, BlockHash(mix(hash+uint64(end))))
		}
		total += part.tokens
	}
	return q
}

func (*talk) Routed(*Decision)  {}
func (*talk) FirstToken(Report) {}

func (c *talk) Tokens(_ time.Duration, n int) {
	if c.loop.measures() {
		c.loop.tokens += n
	}
}

func (c *talk) Finished(r Report) {
	l := c.loop
	require.NoError(l.t, r.Err)
	if l.measures() {
		l.ttft = append(l.ttft, inMilliseconds(r.FirstToken-r.Submitted))
		l.gap = append(l.gap, inMilliseconds(r.Ended-r.FirstToken)/float64(r.OutputTokens-1))
		l.prompt += r.PromptTokens
		l.cached += r.CachedTokens
	}
	if c.left == 0 {
		l.begin()
		return
	}
	question := l.text(max(150+50*l.rng.NormFloat64(), 10))
	c.history = append(c.history, question)
	c.ask()
}

func inMilliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }
