package chat

import "math"

// promptEvent is the name of the event in which Dynamo reports the token ids of a prompt, if the request asks for them:
// a JSON string that contains a JSON list of numbers, in a comment line.
const promptEvent = "token_ids"

// promptIDs parses the comment line of a [promptEvent] while it arrives. Its text, about 40 kB, is never kept.
type promptIDs struct {
	most   int // a longer list is invalid
	ids    []uint32
	id     uint64 // the digits of the current number so far
	inside bool   // the current number has a digit
	broken bool   // the line is not a list of ids, or too long
}

// read parses the next bytes of the line.
func (p *promptIDs) read(piece []byte) {
	if p.broken {
		return
	}
	if p.ids == nil {
		p.ids = make([]uint32, 0, min(p.most, 1+len(piece)))
	}
	for _, b := range piece {
		switch {
		case '0' <= b && b <= '9':
			p.id, p.inside = 10*p.id+uint64(b-'0'), true
			p.broken = p.id > math.MaxUint32
		case b == ',' || b == ']':
			p.end()
		case b != '"' && b != '[' && b != ' ':
			p.broken = true
		}
		if p.broken {
			p.ids = nil
			return
		}
	}
}

func (p *promptIDs) end() {
	if p.inside {
		p.ids, p.id, p.inside = append(p.ids, uint32(p.id)), 0, false
		p.broken = len(p.ids) > p.most
	}
}

// take returns the ids at the end of the event and resets the parser. It returns nil for an empty or invalid list.
func (p *promptIDs) take() []uint32 {
	ids := p.ids
	if p.broken || p.inside || len(ids) == 0 {
		ids = nil
	}
	*p = promptIDs{most: p.most}
	return ids
}
