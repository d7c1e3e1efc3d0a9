package chat

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// pattern decodes the chunks of one stream. Servers repeat all of a chunk but its text, so that a chunk with the
// beginning and the end of an earlier one needs no JSON decoder. The zero value is ready to use.
type pattern struct {
	before, after []byte // what precedes and follows the text; before is empty where no pattern is known
	rest          chunk  // without the text
	tries         int    // to learn a pattern
}

// mostTries limits the work for a server whose chunks have no pattern.
const mostTries = 16

// decode returns what [decodeChunk] returns.
func (p *pattern) decode(data []byte) (chunk, error) {
	if text, ok := p.text(data); ok {
		c := p.rest
		c.text = string(text)
		return c, nil
	}
	c, err := decodeChunk(data)
	if err == nil && p.tries < mostTries && c.text != "" && c.usage == nil {
		p.learn(data, c)
	}
	return c, err
}

// text returns the text of a chunk of the pattern. It must have a form that JSON strings need no escapes for.
func (p *pattern) text(data []byte) (text []byte, ok bool) {
	end := len(data) - len(p.after)
	if len(p.before) == 0 || end <= len(p.before) || !bytes.HasPrefix(data, p.before) ||
		!bytes.HasSuffix(data, p.after) {
		return nil, false
	}
	text = data[len(p.before):end]
	for _, c := range text {
		if c < ' ' || c == '"' || c == '\\' {
			return nil, false
		}
	}
	return text, utf8.Valid(text)
}

// learn takes the pattern from a chunk. The decoder confirms that another text in the same place is the chunk's text.
func (p *pattern) learn(data []byte, c chunk) {
	p.tries++
	at := bytes.LastIndex(data, []byte(`"`+c.text+`"`))
	if at < 0 {
		return // it has escapes
	}
	before, after := data[:at+1], data[at+1+len(c.text):]
	c.text = "another text"
	if other, err := decodeChunk(slices.Concat(before, []byte(c.text), after)); err == nil && other == c {
		c.text = ""
		p.before, p.after, p.rest = bytes.Clone(before), bytes.Clone(after), c
	}
}
