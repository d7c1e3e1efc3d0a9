package trace

import (
	"fmt"
	"hash/fnv"
	"slices"

	"kvbooth/sidecar/api"
)

// sessions are the sessions in the lines of a trace.
type sessions struct {
	// turns has the conversations by AIPerf's session_id. Only the latest ones are kept, by the words that their turns
	// take.
	turns, oldTurns map[string]*conversation
	kept            int
	delayed         bool // turns may have delays in place of times
	composed        bool // lines have only what their turns add
	// chats has Bailian's chats by chat_id. Only the latest half million to a million are kept.
	chats, oldChats map[string]chatTurn
}

// chatTurn is the session of a chat and its turn in there, 0 if unknown.
type chatTurn struct {
	session uint64
	turn    int
}

const (
	mostChats  = 1 << 19
	mostBlocks = 1 << 17 // of a prompt that is composed of turns
	mostKept   = 1 << 22 // words of conversations before the oldest are dropped
)

// conversation is a session whose lines contain only what each turn adds.
type conversation struct {
	last   *Record
	pieces []Piece // of the latest turn's prompt; nil if its line had all of it
}

// Piece is a run of a prompt's tokens. Pieces with the same id begin with the same tokens.
type Piece struct {
	ID     uint64
	Tokens int
}

// join sets a record's session and adds earlier turns to its prompt.
func (r *Reader) join(record *Record, o *object) *api.FieldError {
	turn := 0
	if o.Turn != nil {
		turn = int(min(max(*o.Turn, 0), mostTokens))
	}
	switch {
	case given(o.Session):
		return r.joinTurn(record, string(o.Session), turn)
	case given(o.Chat):
		return r.sessions.chat(record, string(o.Chat), turn, o)
	}
	return nil
}

// chat assigns a chat to the session of its parent. Its prompt is complete.
func (s *sessions) chat(r *Record, id string, turn int, o *object) *api.FieldError {
	if s.chats == nil {
		s.chats = map[string]chatTurn{}
	}
	parent := id
	if p := string(o.Parent); given(o.Parent) && p != "-1" && p != `"-1"` {
		parent = p
	}
	before, ok := s.chats[parent]
	if !ok {
		before, ok = s.oldChats[parent]
	}
	if !ok {
		before = chatTurn{session: Mix(0, text(parent))}
	}
	if turn > 0 && turn <= before.turn {
		return refuse("turn", turn, fmt.Sprintf("%d or more, after that of its parent, chat %s", before.turn+1, parent))
	}
	if len(s.chats) >= mostChats {
		s.chats, s.oldChats = map[string]chatTurn{}, s.chats
	}
	s.chats[parent], s.chats[id] = before, chatTurn{before.session, turn}
	r.Session, r.Turn = before.session, turn
	return nil
}

// conversation returns the conversation of a session, and whether the session is new.
func (s *sessions) conversation(id string, words int) (c *conversation, found bool) {
	if s.kept += words; s.turns == nil || s.kept > mostKept {
		s.turns, s.oldTurns, s.kept = map[string]*conversation{}, s.turns, 0
	}
	if c = s.turns[id]; c == nil {
		c = s.oldTurns[id]
	}
	found = c != nil
	if !found {
		c = &conversation{}
	}
	s.turns[id] = c
	return c, found
}

// joinTurn continues a session: it puts the prompts and answers of earlier turns in front of the prompt, unless the
// line contains them already.
func (r *Reader) joinTurn(record *Record, id string, turn int) *api.FieldError {
	record.Session, record.Turn = sessionOf(id), turn
	c, found := r.sessions.conversation(id, record.words())
	if !found {
		switch {
		case r.turns[record.Session] > 0 && (r.sessions.composed || record.follows):
			return refuse("session_id", id, "a turn not that far behind the one before it")
		case record.follows && r.scale.timed && r.turns[record.Session] == 0:
			delete(r.sessions.turns, id)
			return refuse("timestamp", "", "a number, the time of the session's first request")
		case record.follows:
			record.follows, record.untimed = false, true
		}
		c.last = record
		return nil
	}
	before := c.last
	switch {
	case record.follows && before.given:
		return refuse("session_id", id, "a turn not that far behind the one before it")
	case turn > 0 && turn <= before.Turn:
		return refuse("turn", turn, fmt.Sprintf("%d or more, after that of the session's turn in line %d", before.Turn+1,
			before.Line))
	case !record.follows && !before.follows && record.moment < before.moment:
		return refuse("timestamp", fmt.Sprintf("%.0f ms", record.moment),
			fmt.Sprintf("%.0f ms or more, the time of the session's turn in line %d", before.moment, before.Line))
	}
	if bad := r.compose(record, c); bad != nil {
		return bad
	}
	if record.follows {
		before.Next = record
	}
	c.last = record
	return nil
}

// compose puts the earlier turns of a conversation in front of a prompt, unless the line contains them already.
func (r *Reader) compose(record *Record, c *conversation) *api.FieldError {
	before := c.last
	if record.BlockTokens == 0 {
		return nil
	}
	full := before.Blocks[:min(len(before.Blocks), before.PromptTokens/before.BlockTokens)]
	if record.whole || len(full) > 0 && len(record.Blocks) >= len(full) && slices.Equal(record.Blocks[:len(full)], full) {
		c.pieces = nil
		return nil
	}
	most := min(mostTokens, mostBlocks*record.BlockTokens)
	if record.PromptTokens+before.PromptTokens+max(before.OutputTokens, 0) > most {
		allowed := fmt.Sprintf("at most %d with the turns before it", most)
		return refuse("input_length", record.PromptTokens, allowed)
	}
	r.sessions.composed = true
	if c.pieces == nil {
		c.pieces = before.pieces()
	}
	id := Mix(record.Session, uint64(before.Line), uint64(before.OutputTokens))
	answer := Piece{id, max(before.OutputTokens, 0)}
	c.pieces = slices.Concat(c.pieces, []Piece{answer}, record.pieces())
	record.PromptTokens += before.PromptTokens + answer.Tokens
	record.Blocks = Hashes(c.pieces, record.BlockTokens)
	return nil
}

// pieces returns the pieces of a line's own prompt: its blocks, and the rest without a hash.
func (r *Record) pieces() (all []Piece) {
	left := r.PromptTokens
	for _, id := range r.Blocks {
		all = append(all, Piece{id, min(r.BlockTokens, left)})
		left -= all[len(all)-1].Tokens
	}
	if left > 0 {
		all = append(all, Piece{Mix(r.Session, uint64(r.Line)), left})
	}
	return all
}

// Hashes returns the hashes of the full blocks of a prompt. As long as the blocks are whole pieces, their hashes are
// the ids of the pieces, so that they match in other sessions.
func Hashes(pieces []Piece, blockTokens int) (blocks []uint64) {
	offset := 0   // in pieces[0]
	plain := true // all blocks so far are whole pieces
	for last := uint64(0); ; {
		if plain && len(pieces) > 0 && offset == 0 && pieces[0].Tokens == blockTokens {
			last = pieces[0].ID
			blocks, pieces = append(blocks, last), pieces[1:]
			continue
		}
		plain = false
		hash := last
		for left := blockTokens; left > 0; {
			if len(pieces) == 0 {
				return blocks
			}
			n := min(pieces[0].Tokens-offset, left)
			if n > 0 {
				hash = Mix(hash, pieces[0].ID, uint64(offset), uint64(n))
			}
			offset, left = offset+n, left-n
			if offset == pieces[0].Tokens {
				offset, pieces = 0, pieces[1:]
			}
		}
		last = hash
		blocks = append(blocks, last)
	}
}

// sessionOf returns the number of a session, 0 without an id.
func sessionOf(id string) uint64 {
	if id == "" {
		return 0
	}
	return Mix(0, text(id))
}

func text(s string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s)) // never fails
	return h.Sum64()
}

// Mix hashes numbers. The result is never 0.
func Mix(numbers ...uint64) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for _, n := range numbers {
		h = Finalize(h ^ n)
	}
	return max(h, 1)
}

// Finalize spreads each bit of a number over all bits of the result: the finalizer of SplitMix64 (Steele, Lea and
// Flood, OOPSLA 2014).
func Finalize(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
