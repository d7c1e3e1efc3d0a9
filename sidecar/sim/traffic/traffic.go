// Package traffic plans conversations: what each of their turns sends, and how long its answer is, before any text is
// made of it. The live load makes texts of a plan, and the simulated cluster the hashes of blocks, so that both hold
// the same conversations, and hit rates can be computed before anything is sent.
package traffic

import "time"

// Segment is a run of prompt tokens. Segments of equal ID and length are the same tokens, wherever they stand; those of
// different IDs differ from their first token on.
type Segment struct {
	ID     uint64
	Tokens int // at least 1
}

// Message is a part of a prompt: a text, or segments of which one is made.
type Message struct {
	Role     string // system, user, assistant or tool
	Text     string // empty: that of the segments
	Segments []Segment
}

// Turn is one request.
type Turn struct {
	// Messages are appended to the messages and answers of earlier turns, or replace them if Whole is set.
	Messages []Message
	Whole    bool
	// MaxTokens limits the answer; 0: the limit of the settings. With Exact, the answer is to be exactly that long, where
	// the server can be told so.
	MaxTokens int
	Exact     bool
	// Think is the pause after the answer to the turn before; negative: that of the settings.
	Think time.Duration
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
