// Package draw computes the random properties of a conversation from seed and number. The workload for a target and
// the simulated workload share it, so that both hold the same conversations.
package draw

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"kvbooth/sidecar/api"
)

// Shape holds the settings that the draws of a conversation depend on, besides seed and number.
type Shape struct {
	Turns     api.Range
	Openings  int               // number of different openings; 0 means one for each conversation
	MaxTokens int               // limit of an answer
	Output    *api.Distribution // length of an answer, up to the limit; nil means always the limit
	// RampedStart is the number of conversations, from the first on, that start in their middle: with the turns
	// that remain of a conversation at a random moment. Otherwise, conversations that begin together end together,
	// and the load comes in waves for many times their length.
	RampedStart int64
	// Script returns the number of turns that an opening determines, 0 where it determines none; nil: none does.
	Script func(opening int64) int
}

// Conversation holds the random properties of a conversation.
type Conversation struct {
	Opening   int64      // number: below Shape.Openings, or from [api.MaxOpenings] on for an opening of its own
	Turns     int        // number of turns
	MaxTokens []int      // of each turn's answer, and possibly of further ones
	Questions *rand.Rand // for the follow-up questions; separate, so that answers change no draw
}

// leastLengths is the number of lengths that each conversation draws before what follows them, so that its number of
// turns changes no other draw.
const leastLengths = 50

// New returns the properties of conversation k. own is the number of its opening among those that are used once. All
// numbers are drawn whether or not they are used, so that a setting changes only the properties that it describes.
func New(seed uint64, k, own int64, s Shape) Conversation {
	r := Random(seed, uint64(k), 0)
	c := Conversation{Questions: Random(seed, uint64(k), 1)}
	c.Opening = int64(r.IntN(max(s.Openings, 1)))
	if s.Openings == 0 {
		c.Opening = api.MaxOpenings + own
	}
	c.Turns = s.Turns.Min + r.IntN(s.Turns.Max-s.Turns.Min+1)
	c.MaxTokens = make([]int, 0, max(c.Turns, leastLengths))
	for len(c.MaxTokens) < leastLengths {
		c.MaxTokens = append(c.MaxTokens, length(r.NormFloat64(), s.Output, s.MaxTokens))
	}
	if k < s.RampedStart {
		c.Turns = remaining(r, s.Turns)
	}
	if s.Script != nil {
		if n := s.Script(c.Opening); n > 0 && (k >= s.RampedStart || c.Turns > n) {
			c.Turns = n
		}
	}
	for len(c.MaxTokens) < c.Turns {
		c.MaxTokens = append(c.MaxTokens, length(r.NormFloat64(), s.Output, s.MaxTokens))
	}
	return c
}

// remaining draws the number of remaining turns, the current one included, of a conversation at a random moment. The
// probability of a conversation at that moment is proportional to its length, and all of its turns are equally likely.
// This is the distribution of the residual lifetime of a renewal process in equilibrium: Feller, "An Introduction to
// Probability Theory and Its Applications", volume 2, XI.4.
func remaining(r *rand.Rand, turns api.Range) int {
	for {
		n := turns.Min + r.IntN(turns.Max-turns.Min+1)
		at := r.IntN(turns.Max)
		if at < n {
			return n - at
		}
	}
}

// length converts a standard normal draw to a turn's max_tokens: the limit itself without a distribution, otherwise a
// normal value between a quarter of the mean and the limit.
func length(z float64, d *api.Distribution, limit int) int {
	if d == nil || d.Mean <= 0 {
		return limit
	}
	n := math.Round(d.Mean * (1 + d.CV*z))
	return int(min(max(n, math.Ceil(d.Mean/4), 1), float64(limit)))
}

// Random returns a generator for a list of at most four numbers, such as a seed and a purpose. Different lists give
// independent generators, even if they differ only in neighboring numbers. ChaCha8 needs no mixing of its seed for
// that, whereas PCG gives no guarantee for neighboring seeds.
func Random(numbers ...uint64) *rand.Rand {
	var seed [32]byte
	for i, n := range numbers {
		binary.LittleEndian.PutUint64(seed[8*i:], n)
	}
	return rand.New(rand.NewChaCha8(seed))
}
