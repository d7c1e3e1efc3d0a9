package workload

import (
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/sim/draw"
)

// drawn holds the random choices for one conversation, and the text that opens it.
type drawn struct {
	draw.Conversation
	starter corpus.Starter
}

// newDraw draws conversation k. Its opening is one of those in circulation, or has the number own
// where every conversation has its own. rampedStart is the field RampedStart of [draw.Shape].
func newDraw(seed uint64, k, own, rampedStart int64, s Settings, c *corpus.Corpus) drawn {
	d := draw.New(seed, k, own, draw.Shape{
		Turns: s.Turns, Openings: s.Openings.Of(c), MaxTokens: s.MaxTokens, Output: s.Output, RampedStart: rampedStart,
	})
	text := c.Opening(seed, d.Opening)
	if n := len(text.Script); n > 0 && (k >= rampedStart || d.Turns > n) {
		d.Turns = n // the script determines the number of turns
	}
	return drawn{d, text}
}

// Opening returns the number of the text that opens conversation k, drawn with the settings and the
// corpus. own is the text's number where every conversation has its own.
func Opening(seed uint64, k, own int64, s Settings, c *corpus.Corpus) int64 {
	return draw.New(seed, k, own, draw.Shape{Turns: s.Turns, Openings: s.Openings.Of(c)}).Opening
}
