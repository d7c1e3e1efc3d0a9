package workload

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/corpus"
)

// draw is what chance decides for one conversation.
type draw struct {
	starter   corpus.Starter
	turns     int
	maxTokens [api.MaxTurns]int
	rng       *rand.Rand // for the questions; separate, so that answers change no draw
}

// newDraw decides conversation k. Every number is drawn whether or not it is
// used, so that a setting changes only what it is about.
func newDraw(seed uint64, k int64, s Settings, c *corpus.Corpus) draw {
	r := generator(seed, uint64(k), 0)
	d := draw{rng: generator(seed, uint64(k), 1)}
	d.starter = c.Pick(r)
	d.turns = s.Turns.Min + r.IntN(s.Turns.Max-s.Turns.Min+1)
	for i := range d.maxTokens {
		d.maxTokens[i] = answerLength(r.NormFloat64(), s.Output, s.MaxTokens)
	}
	return d
}

// generator gives every (seed, k) generators of its own. ChaCha8 needs no mixing of
// its seed: neighbouring numbers are all that tells conversations apart, and PCG
// promises nothing about neighbouring seeds.
func generator(numbers ...uint64) *rand.Rand {
	var seed [32]byte
	for i, n := range numbers {
		binary.LittleEndian.PutUint64(seed[8*i:], n)
	}
	return rand.New(rand.NewChaCha8(seed))
}

// answerLength turns a standard normal draw into a turn's max_tokens: the cap
// itself without a distribution, else the normal draw, never under a quarter of
// the mean and never over the cap.
func answerLength(z float64, d *api.Distribution, limit int) int {
	if d == nil || d.Mean <= 0 {
		return limit
	}
	n := math.Round(d.Mean * (1 + d.CV*z))
	return int(min(max(n, math.Ceil(d.Mean/4), 1), float64(limit)))
}
