package workload

import (
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

// newDraw decides conversation k, whose opening is drawn from those in circulation
// where it has none of its own. Every number is drawn whether or not it is used, so
// that a setting changes only what it is about.
func newDraw(seed uint64, k, own int64, s Settings, c *corpus.Corpus) draw {
	r := corpus.Random(seed, uint64(k), 0)
	d := draw{rng: corpus.Random(seed, uint64(k), 1)}
	opening := int64(r.IntN(max(s.Openings.Of(c), 1)))
	if s.Openings == OneEach {
		opening = api.MaxOpenings + own
	}
	d.starter = c.Opening(seed, opening)
	d.turns = s.Turns.Min + r.IntN(s.Turns.Max-s.Turns.Min+1)
	for i := range d.maxTokens {
		d.maxTokens[i] = answerLength(r.NormFloat64(), s.Output, s.MaxTokens)
	}
	return d
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
