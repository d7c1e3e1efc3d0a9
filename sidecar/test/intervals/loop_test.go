//go:build !race

package intervals

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/stats"
	"kvbooth/sidecar/sim"
)

// The workload is the one that the simulated cluster was fitted with.
const (
	startRate  = 10 // conversations a second
	answerMean = 830.0
	answerCV   = .15
	starters   = 10
)

// setting is what a run does not change.
type setting struct {
	concurrency int
	mode        api.Mode
	seed        uint64
	slower      float64 // what all iterations take, as a multiple of the profile's; 0: 1
}

// loop keeps conversations in progress, without think time.
type loop struct {
	cluster *sim.Cluster
	block   int
	rng     *rand.Rand
	texts   []text
	tokens  func(at time.Duration, n int)
	ended   func(at time.Duration, s stats.Sample)
	err     error // of the cluster, which refused a request or lost one
}

// text is a part of a conversation: some tokens that no other part has.
type text struct {
	id     uint64
	tokens int
}

// talk is one conversation, and the observer of its turns.
type talk struct {
	loop    *loop
	history []text
	number  int // of the turn under way
	planned int
	last    time.Duration // when tokens came last in this turn; 0: none did
	gaps    []stats.Gap
}

var _ sim.Observer = (*talk)(nil)

// run lets a cluster serve a setting until a moment of its virtual time.
func run(s setting, until time.Duration, tokens func(time.Duration, int), ended func(time.Duration, stats.Sample)) error {
	o := sim.DefaultOptions(sim.H200())
	o.Mode, o.Seed = s.mode, s.seed
	if s.slower != 0 {
		slow(&o.Profile.Step, s.slower)
	}
	c, err := sim.New(o)
	if err != nil {
		return err
	}
	l := &loop{cluster: c, block: o.Profile.KV.BlockTokens, rng: rand.New(rand.NewPCG(s.seed, 7)), tokens: tokens, ended: ended}
	for range starters {
		l.texts = append(l.texts, l.text(3500+l.rng.Float64()*500))
	}
	for i := range s.concurrency {
		c.Advance(time.Duration(i) * time.Second / startRate)
		l.begin()
	}
	c.Advance(until)
	return l.err
}

// slow makes all iterations take longer.
func slow(c *sim.StepCost, factor float64) {
	c.Base *= factor
	c.PerSequence *= factor
	c.PerContextToken *= factor
	c.PerPrefillToken *= factor
	c.Floors = slices.Clone(c.Floors)
	for i := range c.Floors {
		c.Floors[i].Milliseconds *= factor
	}
}

func (l *loop) text(tokens float64) text {
	return text{id: l.rng.Uint64(), tokens: int(math.Round(tokens))}
}

// begin opens a conversation of three to five turns.
func (l *loop) begin() {
	c := &talk{loop: l, planned: 3 + l.rng.IntN(3), history: []text{l.texts[l.rng.IntN(len(l.texts))]}}
	c.ask()
}

func (c *talk) ask() {
	l := c.loop
	answer := l.text(max(answerMean*(1+answerCV*l.rng.NormFloat64()), answerMean/4))
	c.number++
	c.last, c.gaps = 0, c.gaps[:0]
	if _, err := l.cluster.Submit(request(l.block, c.history, answer), c); err != nil {
		l.err = err
	}
	c.history = append(c.history, answer)
}

// request asks for an answer to a prompt. A block is told by the text that it ends
// in, the place in it, and all texts before.
func request(blockTokens int, prompt []text, answer text) sim.Request {
	q := sim.Request{OutputTokens: answer.tokens, Reason: sim.FinishLength}
	hash, total := uint64(0), 0
	for i, part := range append(slices.Clone(prompt), answer) {
		if i == len(prompt) {
			q.PromptTokens = total
		}
		hash = mix(hash ^ part.id)
		for end := (total/blockTokens + 1) * blockTokens; end <= total+part.tokens; end += blockTokens {
			q.Blocks = append(q.Blocks, sim.BlockHash(mix(hash+uint64(end))))
		}
		total += part.tokens
	}
	return q
}

// mix is the finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Routed implements [sim.Observer].
func (*talk) Routed(*sim.Decision) {}

// FirstToken implements [sim.Observer].
func (*talk) FirstToken(sim.Report) {}

// Tokens implements [sim.Observer].
func (c *talk) Tokens(at time.Duration, n int) {
	c.loop.tokens(at, n)
	if c.last > 0 {
		c.gaps = append(c.gaps, stats.Gap{Seconds: (at - c.last).Seconds() / float64(n), Tokens: float64(n)})
	}
	c.last = at
}

// Finished implements [sim.Observer].
func (c *talk) Finished(r sim.Report) {
	l := c.loop
	if r.Err != nil {
		l.err = r.Err
	}
	ttft, latency := (r.FirstToken - r.Submitted).Seconds(), (r.Ended - r.Submitted).Seconds()
	l.ended(r.Ended, stats.Sample{
		Turn: c.number, Status: api.TurnOK, Counted: true,
		TTFT: ttft, TPOT: (latency - ttft) / float64(r.OutputTokens-1), Latency: latency, ITL: c.gaps,
		PromptTokens: r.PromptTokens, CachedTokens: r.CachedTokens, HasCached: true, OutputTokens: r.OutputTokens,
	})
	if c.number == c.planned {
		l.begin()
		return
	}
	c.history = append(c.history, l.text(max(150+50*l.rng.NormFloat64(), 10)))
	c.ask()
}
