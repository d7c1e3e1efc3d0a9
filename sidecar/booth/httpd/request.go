package httpd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
)

const (
	maxChatBody    = 4 << 20
	maxRequestID   = 128  // bytes of X-Request-Id
	unlimitedReply = 4096 // tokens of an answer whose request sets no limit, at most
)

// chatRequest is what a client asks for. What a simulation cannot honour, such as
// a temperature, is not in it and is ignored.
type chatRequest struct {
	Model               string         `json:"model"`
	Messages            []wireMessage  `json:"messages"`
	Stream              bool           `json:"stream"`
	StreamOptions       *streamOptions `json:"stream_options"`
	MaxTokens           *int           `json:"max_tokens"`
	MaxCompletionTokens *int           `json:"max_completion_tokens"`
	N                   *int           `json:"n"`
	NVExt               *nvext         `json:"nvext"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// nvext is Dynamo's extension. Hints are accepted; what would change where or how a
// request is served, and is not simulated, is refused as an unknown field is.
type nvext struct {
	ExtraFields []string        `json:"extra_fields"`
	Annotations []string        `json:"annotations"`
	Instance    instanceID      `json:"backend_instance_id"`
	AgentHints  json.RawMessage `json:"agent_hints"`
	Priority    json.RawMessage `json:"priority"`
}

// UnmarshalJSON refuses unknown fields, which Dynamo does here and nowhere else.
func (n *nvext) UnmarshalJSON(data []byte) error {
	type plain nvext
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode((*plain)(n)); err != nil {
		return fmt.Errorf("nvext: %w", err)
	}
	return nil
}

// instanceID is a worker's id, as a number or as a string of digits; 0 for none.
type instanceID sim.WorkerID

// UnmarshalJSON reads the id.
func (i *instanceID) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	id, err := parseID(strings.Trim(string(data), `"`))
	if err != nil {
		return &api.FieldError{Field: "backend_instance_id", Value: string(data), Allowed: "the number of an instance, as /health lists them"}
	}
	*i = instanceID(id)
	return nil
}

// parseID reads a worker's id, which is never 0.
func parseID(digits string) (sim.WorkerID, error) {
	id, err := strconv.ParseUint(digits, 10, 64)
	if err == nil && id == 0 {
		err = errors.New("0 is no id")
	}
	return sim.WorkerID(id), err
}

type wireMessage struct {
	Role    string  `json:"role"`
	Content content `json:"content"`
}

// content is the text of a message, which stands there as a string or in parts.
type content struct {
	text  string
	given bool
}

// UnmarshalJSON reads the text. Its parts are joined by line breaks.
func (c *content) UnmarshalJSON(data []byte) error {
	if data[0] == 'n' {
		return nil // null
	}
	c.given = true
	if data[0] == '"' {
		return json.Unmarshal(data, &c.text)
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	err := json.Unmarshal(data, &parts)
	if err != nil {
		return errors.New("content is neither a string nor a list of parts")
	}
	var texts []string
	for _, part := range parts {
		if part.Type != "text" {
			return &api.FieldError{Field: "content.type", Value: fmt.Sprintf("%.40q", part.Type), Allowed: "text"}
		}
		texts = append(texts, part.Text)
	}
	c.text = strings.Join(texts, "\n")
	return nil
}

// readChat reads a chat request; what it cannot read gives a problem.
func readChat(w http.ResponseWriter, r *http.Request) (*chatRequest, error) {
	body, err := readBody(w, r, maxChatBody)
	if err != nil {
		return nil, err
	}
	q := new(chatRequest)
	if err := json.Unmarshal(body, q); err != nil {
		return nil, invalid("Failed to deserialize the JSON body into the target type: %v", err)
	}
	return q, nil
}

func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, newProblem(http.StatusRequestEntityTooLarge, kindValidation, "the body has more than %d bytes", limit)
	case err != nil:
		return nil, invalid("the body cannot be read: %v", err)
	}
	return body, nil
}

var roles = []string{"system", "user", "assistant"}

// check holds the request against what the cluster serves.
func (q *chatRequest) check(model string) error {
	if q.Model != model {
		return newProblem(http.StatusNotFound, kindNotFound, "Model not found: %.200s; this cluster serves %s", q.Model, model)
	}
	if len(q.Messages) == 0 {
		return &api.FieldError{Field: "messages", Value: "an empty list", Allowed: "one message at least"}
	}
	for i, m := range q.Messages {
		field := fmt.Sprintf("messages[%d].", i)
		if !slices.Contains(roles, m.Role) {
			return &api.FieldError{Field: field + "role", Value: fmt.Sprintf("%.40q", m.Role), Allowed: strings.Join(roles, ", ")}
		}
		if !m.Content.given {
			return &api.FieldError{Field: field + "content", Value: "nothing", Allowed: "a string or a list of text parts"}
		}
	}
	for _, n := range []struct {
		field     string
		value     *int
		low, high int
	}{{"max_tokens", q.MaxTokens, 1, 1 << 31}, {"max_completion_tokens", q.MaxCompletionTokens, 1, 1 << 31}, {"n", q.N, 1, 1}} {
		if n.value != nil && (*n.value < n.low || *n.value > n.high) {
			return &api.FieldError{Field: n.field, Value: strconv.Itoa(*n.value), Allowed: fmt.Sprintf("%d to %d", n.low, n.high)}
		}
	}
	return nil
}

// limit is the most tokens that the answer may have.
func (q *chatRequest) limit() int {
	switch {
	case q.MaxCompletionTokens != nil:
		return *q.MaxCompletionTokens
	case q.MaxTokens != nil:
		return *q.MaxTokens
	}
	return unlimitedReply
}

func (q *chatRequest) conversation() []sim.Message {
	messages := make([]sim.Message, 0, len(q.Messages)+1)
	for _, m := range q.Messages {
		messages = append(messages, sim.Message{Role: m.Role, Content: m.Content.text})
	}
	return messages
}

func (q *chatRequest) includeUsage() bool {
	return q.StreamOptions != nil && q.StreamOptions.IncludeUsage
}

func (q *chatRequest) instance() sim.WorkerID {
	if q.NVExt == nil {
		return 0
	}
	return sim.WorkerID(q.NVExt.Instance)
}

// wants says whether nvext.extra_fields names a field.
func (q *chatRequest) wants(field string) bool {
	return q.NVExt != nil && slices.Contains(q.NVExt.ExtraFields, field)
}

// annotated says whether nvext.annotations names an annotation.
func (q *chatRequest) annotated(name string) bool {
	return q.NVExt != nil && slices.Contains(q.NVExt.Annotations, name)
}
