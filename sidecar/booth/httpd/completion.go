package httpd

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"kvbooth/sidecar/sim"
)

// defaultCompletion is the limit of a completion without one, as in the engines.
const defaultCompletion = 16

// prompt is the prompt of a completion: a text or the ids of its tokens, alone or in a list of one.
type prompt struct {
	text string
	ids  []uint32
}

// UnmarshalJSON reads the text or the ids.
func (p *prompt) UnmarshalJSON(data []byte) error {
	var list []json.RawMessage
	if json.Unmarshal(data, &list) == nil {
		if json.Unmarshal(data, &p.ids) == nil {
			return p.decode()
		}
		if len(list) != 1 {
			return errors.New("prompt: several prompts are not supported: send one request each")
		}
		data = list[0]
	}
	if json.Unmarshal(data, &p.text) == nil {
		p.ids = sim.Encode(p.text)
		return nil
	}
	if json.Unmarshal(data, &p.ids) != nil {
		return errors.New("prompt is neither a string nor a list of token ids")
	}
	return p.decode()
}

// decode sets the text of the ids.
func (p *prompt) decode() error {
	var text []byte
	for _, id := range p.ids {
		text = sim.AppendToken(text, id)
	}
	p.text = string(text)
	return nil
}

// readCompletion reads a request for a completion. Unknown fields are ignored.
func readCompletion(w http.ResponseWriter, r *http.Request) (*chatRequest, error) {
	var body struct {
		chatRequest
		Prompt *prompt `json:"prompt"`
	}
	given, err := readFields(w, r, &body)
	switch {
	case err != nil:
		return nil, err
	case body.Prompt == nil || len(body.Prompt.ids) == 0:
		return nil, invalid("prompt is required, and must not be empty")
	}
	q := &body.chatRequest
	q.prompt, q.Messages = body.Prompt, nil
	if _, ok := given["max_tokens"]; !ok {
		q.MaxTokens = new(uint32(defaultCompletion))
	}
	return q, nil
}

// readTokens reads a request whose prompt is given as messages or as a text, and returns the ids of its tokens.
func (s *Server) readTokens(w http.ResponseWriter, r *http.Request) ([]uint32, error) {
	var body struct {
		chatRequest
		Prompt *prompt `json:"prompt"`
	}
	if _, err := readFields(w, r, &body); err != nil {
		return nil, err
	}
	q := &body.chatRequest
	q.prompt = body.Prompt
	parts, _ := q.encode(s.prompts, q.conversation())
	return slices.Concat(parts...), nil
}
