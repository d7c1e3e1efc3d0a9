package source

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"kvbooth/sidecar/api"
)

// scripted is an object of a question set. Its fields cover several sets: turns (MT-Bench, and AIPerf's
// conversations), conversations (ShareGPT), conversation (LMSYS, WildChat) and messages (the OpenAI API) are
// a list of texts, or of objects with a role and a text; prompt and question are one text or a list, and so is text
// (AIPerf's single turns). body is a request of OpenAI's batches, which has messages.
type scripted struct {
	Turns         []message `json:"turns"`
	Conversations []message `json:"conversations"`
	Conversation  []message `json:"conversation"`
	Messages      []message `json:"messages"`
	Prompt        messages  `json:"prompt"`
	Question      messages  `json:"question"`
	Text          messages  `json:"text"`
	Body          struct {
		Messages []message `json:"messages"`
	} `json:"body"`

	ID             name   `json:"id"`
	QuestionID     name   `json:"question_id"`
	ConversationID name   `json:"conversation_id"`
	Session        name   `json:"session_id"`
	CustomID       name   `json:"custom_id"`
	Topic          string `json:"topic"`
	Category       string `json:"category"`
}

// name is an id, which may be a number.
type name string

// UnmarshalJSON reads a string or a number.
func (n *name) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*n = name(text)
	} else if string(data) != "null" {
		*n = name(data)
	}
	return nil
}

// messages are one message or a list of them.
type messages []message

// UnmarshalJSON reads one message or a list.
func (m *messages) UnmarshalJSON(data []byte) error {
	if strings.HasPrefix(strings.TrimSpace(string(data)), "[") {
		return json.Unmarshal(data, (*[]message)(m))
	}
	var one message
	err := json.Unmarshal(data, &one)
	*m = messages{one}
	return err
}

// message is a message of a conversation. role is empty where it is not given.
type message struct{ role, text string }

// users are the names of the user's role in question sets.
var users = map[string]bool{"": true, "human": true, "user": true, "prompter": true}

// UnmarshalJSON reads a string, or an object with a role and a text or the parts of one.
func (m *message) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &m.text) == nil {
		return nil
	}
	var o struct {
		From    string          `json:"from"`
		Role    string          `json:"role"`
		Value   string          `json:"value"`
		Text    string          `json:"text"`
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(data, &o); err != nil {
		return err
	}
	m.role = strings.ToLower(o.From + o.Role)
	m.text = o.Value + o.Text
	if len(o.Content) == 0 || json.Unmarshal(o.Content, &m.text) == nil {
		return nil
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(o.Content, &parts); err != nil {
		return err
	}
	for _, p := range parts {
		m.text += p.Text
	}
	return nil
}

// script makes an item of a question set's object, with the user's turns in order. found is false for
// another object. number is the position in the document.
func script(d document, data []byte, number int) (it item, found bool, err error) {
	var fields map[string]json.RawMessage
	err = json.Unmarshal(data, &fields)
	opening := fields["text"] != nil && (fields["id"] != nil || fields["topic"] != nil)
	if err != nil || opening {
		return it, false, nil //nolint:nilerr // the reader of texts reports the error
	}
	for _, field := range []string{
		"turns", "conversations", "conversation", "messages", "prompt", "question", "text", "body",
	} {
		found = found || fields[field] != nil
	}
	if !found {
		return it, false, nil
	}
	var s scripted
	if err := json.Unmarshal(data, &s); err != nil {
		return it, true, fmt.Errorf("not a question set's conversation: %w", err)
	}
	for _, list := range [][]message{
		s.Turns, s.Conversations, s.Conversation, s.Messages, s.Prompt, s.Question, s.Text, s.Body.Messages,
	} {
		for _, m := range list {
			if users[m.role] {
				it.script = append(it.script, strings.TrimSpace(m.text))
			}
		}
		if len(it.script) > 0 {
			break
		}
	}
	base := strings.TrimSuffix(d.name, path.Ext(d.name))
	it.Topic = firstOf(s.Topic, s.Category, topicOf(base))
	id := firstOf(string(s.ID), string(s.QuestionID), string(s.ConversationID), string(s.Session),
		string(s.CustomID), fmt.Sprintf("%s-%d", base, number))
	it.ID = strings.TrimLeft(notID.ReplaceAllString(id, "-"), "-._")
	it.ID = it.ID[:min(len(it.ID), 100)]
	return it, true, nil
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t = strings.TrimSpace(t); t != "" {
			return t
		}
	}
	return ""
}

// scriptProblem returns the reason why a script cannot be used, "" where there is none.
func scriptProblem(turns []string) string {
	for i, turn := range turns {
		switch {
		case turn == "":
			return fmt.Sprintf("turn %d of the user is empty", i+1)
		case len(turn) > maxBytes:
			return fmt.Sprintf("turn %d of the user has %d bytes; the limit is %d", i+1, len(turn), maxBytes)
		case !utf8.ValidString(turn):
			return "its text is not UTF-8"
		case strings.ContainsFunc(turn, isForbiddenControl):
			return "its text has control characters"
		}
	}
	if len(turns) > api.MaxTurns {
		return fmt.Sprintf("it has %d turns of the user; the limit is %d", len(turns), api.MaxTurns)
	}
	return ""
}

// isForbiddenControl reports whether a rune is a control character other than white space.
func isForbiddenControl(r rune) bool {
	return unicode.IsControl(r) && !strings.ContainsRune("\n\r\t", r)
}
