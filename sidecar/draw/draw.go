// Package draw decides what chance decides of a conversation, from seed and number
// alone: one piece of code for the workload that is sent to a target and for the one
// that is simulated, so that both hold the same conversations.
package draw

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"kvbooth/sidecar/api"
)

// Shape is what the draws of a conversation depend on besides seed and number.
type Shape struct {
	Turns     api.Range
	Openings  int               // different ones in circulation; 0: one for each conversation
	MaxTokens int               // cap of an answer
	Output    *api.Distribution // of an answer's length, up to the cap; nil: always the cap
	// Midway is how many conversations, from the first on, are held from their midst: of each, as
	// many turns as are left of one met at a random moment. Conversations that begin together
	// otherwise end together, and so on for many times their length: load comes in waves.
	Midway int64
}

// Conversation is what was drawn for one.
type Conversation struct {
	Opening   int64             // its number: below Shape.Openings, or from [api.MaxOpenings] on where each has its own
	Turns     int               // from its range
	MaxTokens [api.MaxTurns]int // of each turn's answer
	Questions *rand.Rand        // for the follow-up questions; separate, so that answers change no draw
}

// New decides conversation k. own numbers those that have an opening of their own.
// Every number is drawn whether or not it is used, so that a setting changes only what
// it is about.
func New(seed uint64, k, own int64, s Shape) Conversation {
	r := Random(seed, uint64(k), 0)
	c := Conversation{Questions: Random(seed, uint64(k), 1)}
	c.Opening = int64(r.IntN(max(s.Openings, 1)))
	if s.Openings == 0 {
		c.Opening = api.MaxOpenings + own
	}
	c.Turns = s.Turns.Min + r.IntN(s.Turns.Max-s.Turns.Min+1)
	for i := range c.MaxTokens {
		c.MaxTokens[i] = length(r.NormFloat64(), s.Output, s.MaxTokens)
	}
	if k < s.Midway {
		c.Turns = left(r, s.Turns)
	}
	return c
}

// left is how many turns are left, the present one among them, of a conversation met at a random
// moment: a long one is met more often, by so many times as it is longer, and as likely in any
// of its turns. That is the distribution of the residual life of a renewal process in equilibrium:
// Feller, "An Introduction to Probability Theory and Its Applications", volume 2, XI.4.
func left(r *rand.Rand, turns api.Range) int {
	for {
		if n, at := turns.Min+r.IntN(turns.Max-turns.Min+1), r.IntN(turns.Max); at < n {
			return n - at
		}
	}
}

// length turns a standard normal draw into a turn's max_tokens: the cap
// itself without a distribution, else the normal draw, never under a quarter of
// the mean and never over the cap.
func length(z float64, d *api.Distribution, limit int) int {
	if d == nil || d.Mean <= 0 {
		return limit
	}
	n := math.Round(d.Mean * (1 + d.CV*z))
	return int(min(max(n, math.Ceil(d.Mean/4), 1), float64(limit)))
}

// Random gives a generator of its own to every list of at most four numbers, such as
// a seed and what it is for. ChaCha8 needs no mixing of its seed: neighbouring numbers
// are all that tells conversations apart, and PCG promises nothing about neighbouring
// seeds.
func Random(numbers ...uint64) *rand.Rand {
	var seed [32]byte
	for i, n := range numbers {
		binary.LittleEndian.PutUint64(seed[8*i:], n)
	}
	return rand.New(rand.NewChaCha8(seed))
}
