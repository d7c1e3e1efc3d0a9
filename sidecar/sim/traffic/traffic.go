// Package traffic plans conversations: what each of their turns sends, and how long its answer is, before any text is
// made of it. The live load makes texts of a plan, and the simulated cluster the hashes of blocks, so that both hold
// the same conversations, and hit rates can be computed before anything is sent.
package traffic

import (
	"math"
	"slices"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim/arrival"
)

// Segment is a run of prompt tokens. Segments of equal ID and length are the same tokens, wherever they stand; those of
// different IDs differ from their first token on. Of two with the same ID, the shorter one begins the longer one.
type Segment struct {
	ID     uint64 `json:"id"`
	Tokens int    `json:"tokens"` // at least 1
}

// Tokens returns the length of segments.
func Tokens(segments []Segment) (n int) {
	for _, s := range segments {
		n += s.Tokens
	}
	return n
}

// Message is a part of a prompt: a text, or segments of which one is made.
type Message struct {
	Role     string    `json:"role"` // system, user, assistant or tool
	Text     string    `json:"text,omitempty"`
	Segments []Segment `json:"segments,omitempty"` // nil: those of a text
}

// Turn is one request.
type Turn struct {
	// Messages are appended to the messages and answers of earlier turns, or replace them if Whole is set.
	Messages []Message
	Whole    bool
	// Keep is the number of segments of the first message of the turn before that the first of Messages begins with, so
	// that long prompts are not held once for each turn. It is 0 without Whole, and in the first turn.
	Keep int
	// MaxTokens limits the answer; 0: the limit of the settings. With Exact, the answer is to be exactly that long, where
	// the server takes a request for it.
	MaxTokens int
	Exact     bool
	// Think is the pause after the answer to the turn before; negative: that of the settings.
	Think time.Duration
	// At is the intended start since that of the conversation, once the turn before has ended; 0: after Think.
	At time.Duration
}

// Prompt returns the messages of the turn's request. Before are those of the turn before, and answer is what it was
// answered; neither is changed, but their memory may be shared.
func (t *Turn) Prompt(before []Message, answer Message) []Message {
	if !t.Whole {
		if len(before) > 0 {
			before = append(slices.Clip(before), answer)
		}
		return append(before, t.Messages...)
	}
	if t.Keep == 0 {
		return t.Messages
	}
	all := slices.Clone(t.Messages)
	kept := before[0].Segments[:t.Keep]
	all[0].Segments = append(kept[:t.Keep:t.Keep], all[0].Segments...)
	return all
}

// Conversation is the plan of one conversation, which has at least one turn.
type Conversation struct {
	Name  string        // of what it shares with others, such as its group or its document; empty: nothing
	Model string        // model or adapter; empty: that of the target
	At    time.Duration // intended start since the beginning of the traffic; negative: when the load decides
	Turns []Turn
}

// Source plans conversations. It is safe for concurrent use.
type Source interface {
	// Conversation returns the plan of conversation k, counted from 0, always the same. ok is false after the last.
	Conversation(k int64) (c Conversation, ok bool)
}

// Timed is a source whose conversations may have times of their own.
type Timed struct {
	Source
	// Times are those at which conversations begin at a level that is a rate, and Rate is their mean rate per second. nil:
	// the load decides.
	Times arrival.Times
	Rate  float64
	Speed float64 // multiple of the recorded speed of pauses, and of Times unless the level is another rate; above 0
}

// Level returns the level that the traffic has at its speed; ok is false without times.
func (t *Timed) Level() (l api.Level, ok bool) {
	if t.Times == nil {
		return l, false
	}
	rate := t.Rate * t.Speed
	digits := math.Pow(10, 2-math.Floor(math.Log10(rate)))
	return api.AtRate(math.Round(rate*digits) / digits), true
}

// SpeedAt returns the multiple of the recorded speed at a level.
func (t *Timed) SpeedAt(l api.Level) float64 {
	if own, ok := t.Level(); ok && l.Kind == api.Rate && l != own {
		return l.Value / t.Rate
	}
	return t.Speed
}
