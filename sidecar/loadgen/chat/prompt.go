package chat

import "math"

// promptEvent is the event in which Dynamo tells the ids of a prompt's tokens, where the
// request asks for them: a JSON string with a JSON list of numbers, in a comment line.
const promptEvent = "token_ids"

// promptIDs reads that comment line as it comes, so that its some 40 kB are never in
// memory as text.
type promptIDs struct {
	most   int // more ids than this are nobody's prompt
	ids    []uint32
	id     uint64 // whose digits are being read
	inside bool   // there was one
	broken bool   // it is no list of ids, or too long
}

// read takes the next bytes of the line.
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

// take gives the ids at the event's end, nil where there were none, or where what
// came was no list of ids. It may be read again then.
func (p *promptIDs) take() []uint32 {
	ids := p.ids
	if p.broken || p.inside || len(ids) == 0 {
		ids = nil
	}
	*p = promptIDs{most: p.most}
	return ids
}
