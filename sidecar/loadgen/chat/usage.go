package chat

import "cmp"

// Usage is the server's count of tokens, as far as its parts agree with each other and with what was streamed. Prompt
// and Completion are 0 if they are not reported or unknown. Cached is valid only with HasCached.
type Usage struct {
	Prompt, Completion, Cached int
	HasCached                  bool
}

// counts are the counts of one or more reports of usage, as the server sent them; 0: not reported.
type counts struct {
	prompt, completion, total, reasoning int
	cached, cacheWritten                 int // cached is reported only with hasCached
	hasCached                            bool
	cachedUnclear                        bool // cached tokens are reported under two names with different values
}

// updated merges c into a later report and returns it. A count that the later report lacks keeps its earlier value.
func (c *counts) updated(later *counts) *counts {
	if c == nil {
		return later
	}
	if later.prompt == 0 && later.completion == 0 {
		later.total = c.total
	}
	later.prompt = cmp.Or(later.prompt, c.prompt)
	if !later.hasCached && c.hasCached && later.prompt == c.prompt {
		later.cached, later.hasCached, later.cachedUnclear = c.cached, true, c.cachedUnclear
	}
	later.cacheWritten = cmp.Or(later.cacheWritten, c.cacheWritten)
	later.completion = cmp.Or(later.completion, c.completion)
	later.reasoning = cmp.Or(later.reasoning, c.reasoning)
	return later
}

// Finding is what the counts of an answer show of the server, as a set of bits.
type Finding uint8

// The findings. An unclear count contradicts another one or the stream, and is unknown.
const (
	ReasoningAdded Finding = 1 << iota // reasoning tokens are outside of completion_tokens; total_tokens proves it
	CachedAdded                        // cached tokens are outside of prompt_tokens; total_tokens proves it
	OutputUnclear
	InputUnclear
	CachedUnclear
	Hidden // tokens were counted that were not streamed
	Split  // the answer has more content chunks than tokens
)

// mostTokenBytes limits the mean bytes of an answer's tokens. Those of natural languages and of code have 2 to 6.
const mostTokenBytes = 32

// streamed is the part of an answer that its counts are compared with.
type streamed struct {
	chunks    int  // content chunks
	text      int  // bytes of answer and reasoning
	reasoning int  // bytes of the reasoning
	textless  bool // a content chunk had no text, such as a tool call
	perChunk  bool // the counts are those of single chunks: from chunk to chunk they fell, or never grew
}

// agreed returns the counts that agree with each other and with the stream. hidden is as [Result].Hidden. The usage is
// nil without a count.
func (c *counts) agreed(s *streamed) (u *Usage, hidden int, found Finding) {
	if c == nil {
		return nil, 0, 0
	}
	fixed := *c
	found = fixed.correct(s)
	if fixed.completion > 0 && (fixed.reasoning > fixed.completion || s.perChunk || !s.holds(fixed.completion)) {
		fixed.completion, found = 0, found|OutputUnclear
	}
	if fixed.hasCached && fixed.prompt > 0 && (fixed.cached > fixed.prompt || fixed.cachedUnclear) {
		fixed.hasCached, found = false, found|CachedUnclear
	}
	switch {
	case found&OutputUnclear != 0:
		hidden = -1
	case fixed.completion > 0:
		if fixed.completion < s.chunks {
			found |= Split
		}
		if hidden = fixed.hidden(s); hidden != 0 {
			found |= Hidden
		}
	}
	if fixed.prompt == 0 || !fixed.hasCached {
		fixed.cached, fixed.hasCached = 0, false
	}
	usage := Usage{fixed.prompt, fixed.completion, fixed.cached, fixed.hasCached}
	if usage == (Usage{}) {
		return nil, hidden, found
	}
	return &usage, hidden, found
}

// correct compares the counts with their total. It adds what the total proves to be missing from one of them, and
// removes those that no known addition explains.
func (c *counts) correct(s *streamed) (found Finding) {
	missing := c.total - c.prompt - c.completion
	if c.total == 0 || c.completion == 0 || missing == 0 || c.prompt == 0 && missing != c.cached {
		return 0
	}
	reasoning := c.reasoning > 0 && missing == c.reasoning
	cached := c.cached > 0 && (missing == c.cached || missing == c.cached+c.cacheWritten)
	switch {
	case reasoning && !cached:
		c.completion += missing
		return ReasoningAdded
	case cached && !reasoning:
		c.prompt += missing
		return CachedAdded
	case c.reasoning > 0 && c.cached > 0 && missing == c.cached+c.reasoning:
		c.completion, c.prompt = c.completion+c.reasoning, c.prompt+c.cached
		return ReasoningAdded | CachedAdded
	}
	found = InputUnclear
	if c.hasCached {
		found |= CachedUnclear
	}
	if c.completion != s.chunks && c.completion != s.chunks+1 { // one token a chunk, and the end, confirm the count
		c.completion, found = 0, found|OutputUnclear
	}
	c.prompt, c.hasCached = 0, false
	return found
}

// hidden returns how many of the completion's tokens were not streamed; negative: some, in unknown number. Reasoning
// may be hidden, streamed under its own name, or streamed as a part of the answer.
func (c *counts) hidden(s *streamed) int {
	n, visible := c.completion, c.completion-c.reasoning
	allFit := s.fits(n)
	isOneEach := max(n-s.chunks, s.chunks-n) <= 1
	switch {
	case c.reasoning == 0 || s.reasoning > 0:
		if allFit && c.reasoning <= s.reasoning {
			return 0
		}
	case allFit && (isOneEach || !s.holds(visible)):
		return 0
	case s.fits(visible) && s.holds(visible) && (s.chunks <= visible+1 || !allFit):
		return c.reasoning
	}
	return -1
}

// fits reports whether the text has enough bytes for so many tokens, of which the last may be the end of sequence.
func (s *streamed) fits(tokens int) bool { return s.textless || s.text == 0 || tokens <= s.text+1 }

// holds reports whether so many tokens can have all bytes of the text.
func (s *streamed) holds(tokens int) bool { return s.textless || s.text <= mostTokenBytes*tokens }
