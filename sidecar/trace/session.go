package trace

import (
	"fmt"
	"hash/fnv"
	"slices"

	"kvbooth/sidecar/api"
)

// sessions are the sessions in the lines of a trace.
type sessions struct {
	turns map[string]*conversation // by AIPerf's session_id
	// chats has the sessions of Bailian's chats by chat_id. Only the latest half million to a million chats are
	// kept.
	chats, oldChats map[string]uint64
	begun           int64
}

const (
	mostChats  = 1 << 19
	mostBlocks = 1 << 17 // of a prompt that is composed of turns
)

// conversation is a session whose lines contain only what each turn adds.
type conversation struct {
	last   *Record
	pieces []piece // of the latest turn's prompt
}

// piece is a run of a prompt's tokens. Pieces with the same id begin with the same tokens.
type piece struct {
	id     uint64
	tokens int
}

// join sets a record's session and adds earlier turns to its prompt.
func (s *sessions) join(r *Record, o *object) *api.FieldError {
	switch {
	case given(o.Session):
		return s.turn(r, string(o.Session))
	case isBailian(o):
		s.chat(r, string(o.Chat), o)
	}
	return nil
}

// chat assigns a chat to the session of its parent. Its prompt is complete.
func (s *sessions) chat(r *Record, id string, o *object) {
	if s.chats == nil {
		s.chats = map[string]uint64{}
	}
	parent := id
	if p := string(o.Parent); given(o.Parent) && p != "-1" && p != `"-1"` {
		parent = p
	}
	session, ok := s.chats[parent]
	if !ok {
		session, ok = s.oldChats[parent]
	}
	if !ok {
		session = mix(0, text(parent))
		s.begun++
	}
	if len(s.chats) >= mostChats {
		s.chats, s.oldChats = map[string]uint64{}, s.chats
	}
	s.chats[parent], s.chats[id] = session, session
	r.Session = session
}

// turn continues a session: it puts the prompts and answers of earlier turns in front of the prompt, unless the line
// contains them already.
func (s *sessions) turn(r *Record, id string) *api.FieldError {
	if s.turns == nil {
		s.turns = map[string]*conversation{}
	}
	c := s.turns[id]
	if c == nil {
		if r.follows {
			return refuse("timestamp", "", "a number, the time of the session's first request")
		}
		c = &conversation{}
		s.turns[id] = c
		s.begun++
	}
	r.Session = mix(0, text(id))
	pieces := r.pieces()
	if before := c.last; before != nil {
		if r.follows && before.given {
			return refuse("session_id", id, "a turn not that far behind the one before it")
		}
		full := before.Blocks[:min(len(before.Blocks), before.PromptTokens/before.BlockTokens)]
		if len(full) == 0 || len(r.Blocks) < len(full) || !slices.Equal(r.Blocks[:len(full)], full) {
			most := min(mostTokens, mostBlocks*r.BlockTokens)
			if r.PromptTokens+before.PromptTokens+before.OutputTokens > most {
				allowed := fmt.Sprintf("at most %d with the turns before it", most)
				return refuse("input_length", r.PromptTokens, allowed)
			}
			id := mix(r.Session, uint64(before.Line), uint64(before.OutputTokens))
			answer := piece{id, before.OutputTokens}
			pieces = slices.Concat(c.pieces, []piece{answer}, pieces)
			r.PromptTokens += before.PromptTokens + before.OutputTokens
			r.Blocks = hashes(pieces, r.BlockTokens)
		}
		if r.follows {
			before.Next = r
		}
	}
	c.last, c.pieces = r, pieces
	return nil
}

// pieces returns the pieces of a line's own prompt: its blocks, and the rest without a hash.
func (r *Record) pieces() (all []piece) {
	left := r.PromptTokens
	for _, id := range r.Blocks {
		all = append(all, piece{id, min(r.BlockTokens, left)})
		left -= all[len(all)-1].tokens
	}
	if left > 0 {
		all = append(all, piece{mix(r.Session, uint64(r.Line)), left})
	}
	return all
}

// hashes returns the hashes of the full blocks of a prompt. As long as the blocks are whole pieces, their hashes are
// the ids of the pieces, so that they match in other sessions.
func hashes(pieces []piece, blockTokens int) (blocks []uint64) {
	offset := 0   // in pieces[0]
	plain := true // all blocks so far are whole pieces
	for last := uint64(0); ; {
		if plain && len(pieces) > 0 && offset == 0 && pieces[0].tokens == blockTokens {
			last = pieces[0].id
			blocks, pieces = append(blocks, last), pieces[1:]
			continue
		}
		plain = false
		hash := last
		for left := blockTokens; left > 0; {
			if len(pieces) == 0 {
				return blocks
			}
			n := min(pieces[0].tokens-offset, left)
			if n > 0 {
				hash = mix(hash, pieces[0].id, uint64(offset), uint64(n))
			}
			offset, left = offset+n, left-n
			if offset == pieces[0].tokens {
				offset, pieces = 0, pieces[1:]
			}
		}
		last = hash
		blocks = append(blocks, last)
	}
}

func text(s string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s)) // never fails
	return h.Sum64()
}

// mix hashes numbers. The result is never 0.
func mix(numbers ...uint64) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for _, n := range numbers {
		h ^= n
		h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
		h = (h ^ h>>27) * 0x94d049bb133111eb
		h ^= h >> 31
	}
	return max(h, 1)
}
