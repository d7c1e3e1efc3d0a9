package workload

import (
	"kvbooth/sidecar/draw"
	"kvbooth/sidecar/loadgen/corpus"
)

// drawn is what chance decides for one conversation, with the text that opens it.
type drawn struct {
	draw.Conversation
	starter corpus.Starter
}

// newDraw decides conversation k, whose opening is drawn from those in circulation
// where it has none of its own; midway is that of [draw.Shape].
func newDraw(seed uint64, k, own, midway int64, s Settings, c *corpus.Corpus) drawn {
	d := draw.New(seed, k, own, draw.Shape{Turns: s.Turns, Openings: s.Openings.Of(c), MaxTokens: s.MaxTokens, Output: s.Output, Midway: midway})
	text := c.Opening(seed, d.Opening)
	if n := len(text.Script); n > 0 && (k >= midway || d.Turns > n) {
		d.Turns = n // as many as the user has
	}
	return drawn{d, text}
}

// Opening is the number of the text that opens conversation k, with the settings and the corpus that
// it is drawn with; own numbers those that have one of their own.
func Opening(seed uint64, k, own int64, s Settings, c *corpus.Corpus) int64 {
	return draw.New(seed, k, own, draw.Shape{Turns: s.Turns, Openings: s.Openings.Of(c)}).Opening
}
