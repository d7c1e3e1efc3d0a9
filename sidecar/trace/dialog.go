package trace

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-json"
)

// Message is a message of a conversation. Role is "user", "assistant", "system", "tool" or another name.
type Message struct{ Role, Text string }

// Names of roles.
const (
	RoleUser      = "user"
	RoleAssistant = "assistant"
)

// roles are other names of roles in datasets.
var roles = map[string]string{
	"": RoleUser, "human": RoleUser, "prompter": RoleUser,
	"gpt": RoleAssistant, "chatgpt": RoleAssistant, "bot": RoleAssistant, "model": RoleAssistant,
}

// texts are the fields of objects with texts. Each has one message or a list of them: turns (MT-Bench, and AIPerf's
// conversations), conversations (ShareGPT), conversation (LMSYS, WildChat), messages (the OpenAI API and vLLM), prompt
// (vLLM), question, and text or texts (AIPerf's single turns). body is a request of OpenAI's batches, with messages.
type texts struct {
	Turns         json.RawMessage `json:"turns"`
	Conversations json.RawMessage `json:"conversations"`
	Conversation  json.RawMessage `json:"conversation"`
	Messages      json.RawMessage `json:"messages"`
	Prompt        json.RawMessage `json:"prompt"`
	Question      json.RawMessage `json:"question"`
	Single        json.RawMessage `json:"text"`
	Several       json.RawMessage `json:"texts"`
	Body          json.RawMessage `json:"body"`
	Topic         json.RawMessage `json:"topic"` // of a document, which is no prompt
}

// fields are the fields in the order in which they are preferred.
func (t *texts) fields() []json.RawMessage {
	var body struct {
		Messages json.RawMessage `json:"messages"`
	}
	if given(t.Body) {
		_ = json.Unmarshal(t.Body, &body) // of another type, it has no messages
	}
	return []json.RawMessage{
		t.Turns, t.Conversations, t.Conversation, t.Messages, t.Prompt, t.Question, t.Single, t.Several, body.Messages,
	}
}

// form returns the form of an object with texts, "" for an object without.
func (t *texts) form() Form {
	prompt := given(t.Single) && !given(t.Topic) || given(t.Several)
	switch {
	case given(t.Conversations):
		return ShareGPT
	case given(t.Messages) || given(t.Conversation) || given(t.Body):
		return Messages
	case given(t.Turns) || given(t.Prompt) || given(t.Question) || prompt:
		return Prompts
	}
	return ""
}

// isDataset reports whether the form has conversations as texts.
func (f Form) isDataset() bool { return f == ShareGPT || f == Messages || f == Prompts }

// list returns the messages of the first field that has a user's.
func (t *texts) list() ([]message, error) {
	for _, raw := range t.fields() {
		if !given(raw) {
			continue
		}
		var list messages
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(list, func(m message) bool { return m.Role == RoleUser }) {
			return list, nil
		}
	}
	return nil, nil
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

// message is a message with the times of AIPerf's turns, in ms.
type message struct {
	Message
	timestamp, delay optional
}

// optional is a number that datasets may have in another form, which is ignored. It is negative without one.
type optional float64

// UnmarshalJSON reads a number.
func (o *optional) UnmarshalJSON(data []byte) error {
	*o = -1
	var v float64
	if json.Unmarshal(data, &v) == nil && string(data) != "null" {
		*o = optional(v)
	}
	return nil
}

// UnmarshalJSON reads a string, or an object with a role and a text or the parts of one.
func (m *message) UnmarshalJSON(data []byte) error {
	m.Role, m.timestamp, m.delay = RoleUser, -1, -1
	if json.Unmarshal(data, &m.Text) == nil {
		return nil
	}
	o := struct {
		From      string          `json:"from"`
		Role      string          `json:"role"`
		Value     string          `json:"value"`
		Text      string          `json:"text"`
		Texts     json.RawMessage `json:"texts"`
		Content   json.RawMessage `json:"content"`
		Timestamp optional        `json:"timestamp"`
		Delay     optional        `json:"delay"`
	}{Timestamp: -1, Delay: -1}
	if err := json.Unmarshal(data, &o); err != nil {
		return err
	}
	role := strings.ToLower(o.From + o.Role)
	if m.Role = roles[role]; m.Role == "" {
		m.Role = role
	}
	m.timestamp, m.delay = o.Timestamp, o.Delay
	var several []string
	if given(o.Texts) {
		_ = json.Unmarshal(o.Texts, &several) // in another form, they are not texts
	}
	m.Text = o.Value + o.Text + strings.Join(several, "\n")
	if !given(o.Content) || json.Unmarshal(o.Content, &m.Text) == nil {
		return nil
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(o.Content, &parts); err != nil {
		return err
	}
	for _, p := range parts {
		m.Text += p.Text
	}
	return nil
}

// Dialog is a conversation of a dataset. Each of its turns is the Next of the one before.
type Dialog struct {
	ID, Topic string // empty if unknown
	Turns     []*Record
}

// ReadDialog reads a conversation from an object of a dataset: ShareGPT's, messages, or prompts. found is false for
// another object. The turns are those that the texts of a user begin, and those that a tool's answers begin. An answer
// that no turn precedes is ignored.
func ReadDialog(data []byte) (d *Dialog, found bool, err error) {
	o := struct {
		texts

		ID             name     `json:"id"`
		QuestionID     name     `json:"question_id"`
		ConversationID name     `json:"conversation_id"`
		Session        name     `json:"session_id"`
		CustomID       name     `json:"custom_id"`
		Category       name     `json:"category"`
		Model          name     `json:"model"`
		Timestamp      optional `json:"timestamp"`
		OutputTokens   optional `json:"output_tokens"`
	}{Timestamp: -1, OutputTokens: -1}
	if err := json.Unmarshal(data, &o); err != nil {
		return nil, false, nil //nolint:nilerr // an object that does not decode has another form, which the caller tries
	}
	form := o.form()
	if form == "" || given(o.Single) && o.ID != "" {
		return nil, false, nil
	}
	list, err := o.list()
	if err != nil {
		return nil, true, err
	}
	var topic name
	if given(o.Topic) {
		_ = json.Unmarshal(o.Topic, &topic) // never fails
	}
	d = &Dialog{
		ID: firstOf(o.ID, o.QuestionID, o.ConversationID, o.Session, o.CustomID), Topic: firstOf(topic, o.Category),
	}
	if len(list) > 0 && list[0].timestamp < 0 {
		list[0].timestamp = o.Timestamp
	}
	d.Turns = turnsOf(list, form)
	for i, turn := range d.Turns {
		turn.ID, turn.Model, turn.Turn = d.ID, string(o.Model), i+1
	}
	if len(d.Turns) == 1 && o.OutputTokens >= 0 && o.OutputTokens <= mostTokens {
		d.Turns[0].OutputTokens = int(o.OutputTokens)
	}
	return d, true, nil
}

func firstOf(names ...name) string {
	for _, n := range names {
		if text := strings.TrimSpace(string(n)); text != "" {
			return text
		}
	}
	return ""
}

// turnsOf divides messages into turns.
func turnsOf(list []message, form Form) (turns []*Record) {
	var before []Message // messages before a turn of which none is a user's
	open := false        // whether the last turn has no answer
	begin := func(delay, timestamp optional) *Record {
		turn := newRecord(form)
		turn.Messages, turn.untimed, before, open = before, true, nil, true
		if len(turns) > 0 {
			turns[len(turns)-1].Next = turn
			turn.follows, turn.untimed = true, false
		} else if timestamp >= 0 {
			turn.moment, turn.untimed = float64(timestamp), false
		}
		if delay >= 0 && delay <= longestTime {
			turn.Delay = milliseconds(float64(delay))
		}
		turns = append(turns, turn)
		return turn
	}
	for _, m := range list {
		switch {
		case m.Role == RoleUser:
			turn := begin(m.delay, m.timestamp)
			turn.Messages = append(turn.Messages, m.Message)
		case m.Role != RoleAssistant && open:
			last := turns[len(turns)-1]
			last.Messages = append(last.Messages, m.Message)
		case m.Role != RoleAssistant:
			before = append(before, m.Message)
		case len(turns) > 0:
			if len(before) > 0 && !open {
				begin(-1, -1)
			}
			turns[len(turns)-1].Answer += m.Text
			open = false
		}
	}
	return turns
}

// takeDialog uses a conversation of a dataset.
func (r *Reader) takeDialog(line []byte, form Form) {
	d, found, err := ReadDialog(line)
	switch {
	case err != nil:
		r.note(refuse(string(form), fmt.Sprintf("%.40q", line), fmt.Sprintf("a conversation: texts, or objects with a "+
			"role and a text (%v)", err)))
		return
	case !found || len(d.Turns) == 0:
		r.note(refuse(string(form), fieldsOf(line), "a conversation with a text of the user"))
		return
	}
	unit := Milliseconds
	if r.options.Unit != "" {
		unit = r.options.Unit
	}
	var c checks
	session := cmp.Or(sessionOf(d.ID), Mix(1, uint64(r.number), text(r.file)))
	for i, turn := range d.Turns {
		turn.Session = session
		turn.moment = c.number("timestamp", turn.moment, inMilliseconds[unit])
		if turn.Delay >= 0 {
			turn.Delay = milliseconds(c.number("delay", 1000*turn.Delay.Seconds(), inMilliseconds[unit]))
		}
		if isEmpty(turn.Messages) {
			c.refuse(string(form), fmt.Sprintf("turn %d without a text", i+1), "a text in each turn of the user")
		}
	}
	r.use(d.Turns[0], c.bad)
}

func isEmpty(list []Message) bool {
	for _, m := range list {
		if strings.TrimSpace(m.Text) != "" {
			return false
		}
	}
	return true
}

// tokenize computes the lengths and block hashes of a conversation's prompts from their texts.
func (r *Reader) tokenize(first *Record) {
	if r.options.Tokenize == nil || first.Messages == nil || first.BlockTokens > 0 {
		return
	}
	blockTokens := r.options.BlockTokens
	if blockTokens == 0 {
		blockTokens = TextBlockTokens
	}
	tokens, hash := 0, uint64(0)
	var blocks []uint64
	add := func(m Message) int {
		ids := r.options.Tokenize(m.Text)
		hash = Mix(hash, text(m.Role))
		for _, id := range ids {
			hash = Mix(hash, uint64(id))
			if tokens++; tokens%blockTokens == 0 {
				blocks = append(blocks, hash)
			}
		}
		return len(ids)
	}
	for turn := first; turn != nil; turn = turn.Next {
		for _, m := range turn.Messages {
			add(m)
		}
		turn.PromptTokens = max(tokens, 1)
		turn.Blocks, turn.BlockTokens = blocks[:len(blocks):len(blocks)], blockTokens
		if turn.Answer != "" {
			n := add(Message{RoleAssistant, turn.Answer})
			if turn.OutputTokens < 0 {
				turn.OutputTokens = n
			}
		}
	}
}

// promptOf returns the whole prompt of a request.
func promptOf(list []message) (all []Message) {
	for _, m := range list {
		all = append(all, m.Message)
	}
	return all
}
