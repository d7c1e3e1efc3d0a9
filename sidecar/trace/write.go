package trace

import (
	"encoding/json"
	"io"
	"time"
)

// Writer writes requests in Mooncake's form with sessions and delays, without texts. Each line has its whole prompt.
type Writer struct {
	to          *json.Encoder
	blockTokens int
}

// NewWriter returns a writer of prompts in blocks of so many tokens.
func NewWriter(to io.Writer, blockTokens int) *Writer {
	return &Writer{to: json.NewEncoder(to), blockTokens: blockTokens}
}

// mooncakeLine is a line of a [Writer].
type mooncakeLine struct {
	Timestamp *int64   `json:"timestamp,omitempty"` // ms
	Session   string   `json:"session_id"`
	Delay     *int64   `json:"delay,omitempty"` // ms after the end of the turn before
	Input     int      `json:"input_length"`
	Output    int      `json:"output_length"`
	Hashes    []uint64 `json:"hash_ids"`
	Whole     bool     `json:"whole"`
}

// mostExact is the largest number that every reader of JSON reads exactly.
const mostExact = 1<<53 - 1

// Write writes a turn of a session: the first one, which starts at a time since the beginning of the trace, or one that
// starts after a delay.
func (w *Writer) Write(session string, first bool, at time.Duration, prompt []Piece, outputTokens int) error {
	line := mooncakeLine{Session: session, Output: outputTokens, Hashes: Hashes(prompt, w.blockTokens), Whole: true}
	for _, p := range prompt {
		line.Input += p.Tokens
	}
	for i := range line.Hashes {
		line.Hashes[i] &= mostExact
	}
	if ms := at.Milliseconds(); first {
		line.Timestamp = &ms
	} else {
		line.Delay = &ms
	}
	return w.to.Encode(line)
}
