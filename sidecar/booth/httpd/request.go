package httpd

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/httpd/answer"
	"kvbooth/sidecar/sim"
)

const (
	maxChatBody    = 4 << 20
	maxRequestID   = 128     // bytes of X-Request-Id
	maxAnswer      = 1 << 20 // requested tokens, as in Dynamo
	maxStop        = 32      // stop sequences, as in Dynamo
	maxChoices     = 128     // largest n that Dynamo accepts
	unlimitedReply = 4096    // maximum tokens of an answer without a limit
)

// chatRequest holds the fields of a chat request that the cluster honors or checks; [fields] lists the others. The
// fields have Dynamo's types, so that values out of range are refused alike.
type chatRequest struct {
	Model               string         `json:"model"`
	Messages            []wireMessage  `json:"messages"`
	Stream              bool           `json:"stream"`
	StreamOptions       *streamOptions `json:"stream_options"`
	MaxTokens           *uint32        `json:"max_tokens"`
	MaxCompletionTokens *uint32        `json:"max_completion_tokens"`
	MinTokens           *uint32        `json:"min_tokens"`
	IgnoreEOS           *bool          `json:"ignore_eos"`
	Stop                stop           `json:"stop"`
	KeepStop            bool           `json:"include_stop_str_in_output"`
	N                   *uint8         `json:"n"`
	NVExt               *nvext         `json:"nvext"`

	// Checked, but without effect: no distribution is sampled.
	Temperature       *float32 `json:"temperature"`
	TopP              *float32 `json:"top_p"`
	MinP              *float32 `json:"min_p"`
	TopK              *int32   `json:"top_k"`
	FrequencyPenalty  *float32 `json:"frequency_penalty"`
	PresencePenalty   *float32 `json:"presence_penalty"`
	RepetitionPenalty *float32 `json:"repetition_penalty"`
	TopLogprobs       *uint8   `json:"top_logprobs"`
	Seed              *int64   `json:"seed"`

	// prompt replaces Messages in a request for a completion; nil in one for a chat.
	prompt *prompt
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// stop is a list of texts or a single text.
type stop struct {
	texts []string
	given bool // not null
	list  bool
}

// UnmarshalJSON reads the text or texts.
func (s *stop) UnmarshalJSON(data []byte) error {
	switch data[0] {
	case 'n':
		return nil // null
	case '"':
		s.given, s.texts = true, make([]string, 1)
		return json.Unmarshal(data, &s.texts[0])
	}
	var texts []*string
	if err := json.Unmarshal(data, &texts); err != nil || slices.Contains(texts, nil) {
		return errors.New("stop is neither a string nor a list of strings")
	}
	s.given, s.list = true, true
	for _, text := range texts {
		s.texts = append(s.texts, *text)
	}
	return nil
}

// check refuses the stop sequences that Dynamo refuses, with the same messages.
func (s *stop) check() error {
	switch {
	case s.list && len(s.texts) == 0:
		return invalid("Validation: Stop sequences array cannot be empty")
	case len(s.texts) > maxStop:
		return invalid("Maximum of %d stop sequences allowed, got %d", maxStop, len(s.texts))
	case !s.list && s.given && s.texts[0] == "":
		return invalid("Validation: Stop sequence cannot be empty")
	}
	if i := slices.Index(s.texts, ""); i >= 0 {
		return invalid("Validation: Stop sequence at index %d cannot be empty", i)
	}
	return nil
}

// nvext is Dynamo's extension. Hints are accepted. Fields that would change the routing or serving of a request, and
// are not simulated, are refused like unknown fields.
type nvext struct {
	ExtraFields []string     `json:"extra_fields"`
	Annotations []string     `json:"annotations"`
	Instance    *instanceID  `json:"backend_instance_id"`
	AgentHints  *agentHints  `json:"agent_hints"`
	Greedy      *bool        `json:"greed_sampling"`
	Sent        *json.Number `json:"request_timestamp_ms"`

	// Dynamo 1.6.1 accepts these only beside nvext; before 1.3 it accepted ignore_eos here.
	MinTokens *uint32 `json:"min_tokens"`
	IgnoreEOS *bool   `json:"ignore_eos"`
}

// agentHints are accepted and have no effect.
type agentHints struct {
	Priority           json.RawMessage `json:"priority"`
	StrictPriority     json.RawMessage `json:"strict_priority"`
	OutputLength       json.RawMessage `json:"osl"`
	SpeculativePrefill json.RawMessage `json:"speculative_prefill"`
	LatencySensitivity json.RawMessage `json:"latency_sensitivity"`
}

// UnmarshalJSON refuses unknown fields, as Dynamo does in nvext.
func (n *nvext) UnmarshalJSON(data []byte) error {
	type plain nvext
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode((*plain)(n)); err != nil {
		return fmt.Errorf("nvext: %w", err)
	}
	return nil
}

type instanceID sim.WorkerID

// UnmarshalJSON reads the id, which is a number. No worker has the id 0.
func (i *instanceID) UnmarshalJSON(data []byte) error {
	id, err := strconv.ParseUint(string(data), 10, 64)
	if err != nil {
		return api.Refuse("backend_instance_id", string(data), "the ID of an instance listed by /health")
	}
	*i = instanceID(id)
	return nil
}

type wireMessage struct {
	Role    string  `json:"role"`
	Content content `json:"content"`
}

// content is the text of a message, given as a string or in parts.
type content struct {
	text  string
	given bool
	none  bool   // a list without parts
	media string // type of a part that is not text
}

// media are the types of parts that Dynamo accepts. The simulated model and its template support only text.
var media = []string{"image_url", "video_url", "audio_url", "input_audio"}

// UnmarshalJSON reads the text and joins its parts with line breaks.
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
		switch {
		case slices.Contains(media, part.Type):
			c.media = part.Type
		case part.Type != "text":
			return api.Refuse("content.type", fmt.Sprintf("%.40q", part.Type), "text")
		}
		texts = append(texts, part.Text)
	}
	c.none = len(parts) == 0
	c.text = strings.Join(texts, "\n")
	return nil
}

// readChat reads a chat request. A request that cannot be read gives a problem. If strict, so do unknown fields.
func readChat(w http.ResponseWriter, r *http.Request, strict bool) (*chatRequest, error) {
	q := new(chatRequest)
	given, err := readFields(w, r, q)
	if err != nil {
		return nil, err
	}
	return q, checkFields(given, strict)
}

// readFields reads a body of JSON into v, and returns its members.
func readFields(w http.ResponseWriter, r *http.Request, v any) (given map[string]json.RawMessage, err error) {
	t, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if t != "application/json" && !strings.HasSuffix(t, "+json") {
		return nil, newProblem(http.StatusUnsupportedMediaType, kindValidation,
			"Expected request with Content-Type application/json")
	}
	body, err := readBody(w, r, maxChatBody)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(body, v); err != nil {
		return nil, unreadable("%v", err)
	}
	if err := json.Unmarshal(body, &given); err != nil {
		return nil, unreadable("%v", err)
	}
	return given, nil
}

// unreadable returns the problem of a body that does not have the expected form. Only the beginning of the message is
// Dynamo's.
func unreadable(format string, args ...any) *problem {
	return invalid("Failed to deserialize the JSON body into the target type: "+format, args...)
}

// checkFields refuses a body with missing required fields, and if strict with unknown fields.
func checkFields(given map[string]json.RawMessage, strict bool) error {
	for _, name := range []string{"messages", "model"} {
		switch value, ok := given[name]; {
		case !ok:
			return unreadable("missing field `%s`", name)
		case string(value) == "null":
			return unreadable("%s: null is not allowed", name)
		}
	}
	var unknown []string
	for name := range given {
		if !slices.ContainsFunc(fields, func(f field) bool { return f.name == name }) {
			unknown = append(unknown, fmt.Sprintf("`%.100s`", name))
		}
	}
	if len(unknown) == 0 || !strict {
		return nil
	}
	slices.Sort(unknown)
	return invalid("Validation: Unsupported parameter(s): %s", strings.Join(unknown, ", "))
}

func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, newProblem(http.StatusRequestEntityTooLarge, kindValidation, "the body exceeds %d bytes", limit)
	case err != nil:
		return nil, invalid("cannot read the body: %v", err)
	}
	return body, nil
}

var roles = []string{"developer", "system", "user", "assistant", "tool", "function"}

// check refuses a request that the cluster cannot serve.
func (q *chatRequest) check(model string) error {
	if q.Model != model {
		return newProblem(http.StatusNotFound, kindNotFound, "Model not found")
	}
	if len(q.Messages) == 0 && !q.plain() {
		return invalid("Validation: The 'messages' field cannot be empty. At least one message is required.")
	}
	for i := range q.Messages {
		if err := q.Messages[i].check(fmt.Sprintf("messages[%d].", i)); err != nil {
			return err
		}
	}
	if q.StreamOptions != nil && !q.Stream {
		return invalid("Validation: The 'stream_options' field is only allowed when 'stream' is set to true.")
	}
	return cmp.Or(q.checkLengths(), q.Stop.check(), q.checkSampling(), q.checkChoices())
}

// check refuses a message that cannot be part of a prompt.
func (m *wireMessage) check(field string) error {
	const contentAllowed = "a string or a list of text parts"
	missing := api.Require(field+"content", contentAllowed)
	switch {
	case !slices.Contains(roles, m.Role):
		return unreadable("%v", api.Refuse(field+"role", fmt.Sprintf("%.40q", m.Role), strings.Join(roles, ", ")))
	case !m.Content.given && m.Role == "assistant": // Dynamo reads the content as null, and its template refuses it
		return unusable(missing)
	case !m.Content.given:
		return unreadable("%v", missing)
	case m.Content.none:
		return unusable(api.Refuse(field+"content", "an empty list", contentAllowed))
	case m.Content.media != "":
		return unusable(api.Refuse(field+"content.type", strconv.Quote(m.Content.media), "text"))
	}
	return nil
}

// unusable returns the problem of a valid request for which no prompt or no worker is found. In Dynamo, the message
// consists of the first two words only.
func unusable(err error) *problem { return invalid("Invalid request: %v", err) }

func (q *chatRequest) checkLengths() error {
	for _, n := range []struct {
		label string
		value *uint32
	}{{"Max tokens", q.MaxTokens}, {"Max completion tokens", q.MaxCompletionTokens}} {
		switch {
		case n.value == nil:
		case *n.value == 0:
			return invalid("Validation: %s must be greater than 0, got 0", n.label)
		case *n.value > maxAnswer:
			return invalid("Validation: %s must not exceed %d, got %d", n.label, maxAnswer, *n.value)
		}
	}
	return nil
}

func (q *chatRequest) checkSampling() error {
	for _, n := range []struct {
		label     string
		value     *float32
		low, high float32
		above     bool // low itself is not allowed
	}{
		{"Temperature", q.Temperature, 0, 2, false},
		{"Top_p", q.TopP, 0, 1, true},
		{"Min_p", q.MinP, 0, 1, false},
		{"Frequency penalty", q.FrequencyPenalty, -2, 2, false},
		{"Presence penalty", q.PresencePenalty, -2, 2, false},
		{"Repetition penalty", q.RepetitionPenalty, 0, 2, true},
	} {
		if n.value != nil && (*n.value < n.low || *n.value > n.high || n.above && *n.value == n.low) {
			value := strconv.FormatFloat(float64(*n.value), 'f', -1, 32)
			return invalid("Validation: %s must be between %v and %v, got %s", n.label, n.low, n.high, value)
		}
	}
	if q.TopK != nil && *q.TopK < -1 {
		return invalid("Validation: Top_k must be null or greater than or equal to -1")
	}
	if q.TopLogprobs != nil && *q.TopLogprobs > 20 {
		return invalid("Validation: Top_logprobs must be between 0 and 20, got %d", *q.TopLogprobs)
	}
	return nil
}

// checkChoices refuses several answers, which Dynamo passes to its engine.
func (q *chatRequest) checkChoices() error {
	switch {
	case q.N == nil || *q.N == 1:
		return nil
	case *q.N == 0 || *q.N > maxChoices:
		return invalid("Validation: n must be between 1 and %d, got %d", maxChoices, *q.N)
	}
	return api.Refuse("n", *q.N, "1, since the simulated cluster returns one answer per request")
}

// limit returns the maximum number of tokens of the answer.
func (q *chatRequest) limit() int {
	switch {
	case q.MaxCompletionTokens != nil:
		return int(*q.MaxCompletionTokens)
	case q.MaxTokens != nil:
		return int(*q.MaxTokens)
	}
	return unlimitedReply
}

// asked returns the requirements on an answer of at most room tokens. Fields beside nvext override the fields in
// nvext.
func (q *chatRequest) asked(room int) answer.Asked {
	least, ignore := q.MinTokens, q.IgnoreEOS
	if q.NVExt != nil {
		least, ignore = cmp.Or(least, q.NVExt.MinTokens), cmp.Or(ignore, q.NVExt.IgnoreEOS)
	}
	a := answer.Asked{
		Max: min(q.limit(), room), Stop: q.Stop.texts, KeepStop: q.KeepStop, IgnoreEnd: ignore != nil && *ignore,
	}
	if least != nil {
		a.Min = int(min(*least, maxAnswer))
	}
	return a
}

// seed returns the seed of the answer: the client's own, otherwise one derived from the request's id, so that two
// requests with one prompt get two answers. At temperature 0, the seed is constant, because a model does not sample
// then.
func (q *chatRequest) seed(requestID string) uint64 {
	switch {
	case q.Temperature != nil && *q.Temperature == 0:
		return 0
	case q.Seed != nil:
		return uint64(*q.Seed)
	}
	h := fnv.New64a()
	_, _ = io.WriteString(h, requestID)
	return h.Sum64()
}

// plain reports whether the request is one for a completion.
func (q *chatRequest) plain() bool { return q.prompt != nil }

// encode returns the ids of the prompt, in parts, and their number. The parts are shared and must not be changed.
func (q *chatRequest) encode(p *prompts, messages []sim.Message) (parts [][]uint32, total int) {
	if q.plain() {
		return [][]uint32{q.prompt.ids}, len(q.prompt.ids)
	}
	return p.encode(messages)
}

// conversation returns the messages to answer. A plain prompt is answered like a message.
func (q *chatRequest) conversation() []sim.Message {
	if q.plain() {
		return []sim.Message{{Role: "user", Content: q.prompt.text}}
	}
	messages := make([]sim.Message, 0, len(q.Messages)+1)
	for _, m := range q.Messages {
		messages = append(messages, sim.Message{Role: m.Role, Content: m.Content.text})
	}
	return messages
}

func (q *chatRequest) includeUsage() bool {
	return q.StreamOptions != nil && q.StreamOptions.IncludeUsage
}

// instance returns the worker that the request names, and whether it names one.
func (q *chatRequest) instance() (id sim.WorkerID, named bool) {
	if q.NVExt == nil || q.NVExt.Instance == nil {
		return 0, false
	}
	return sim.WorkerID(*q.NVExt.Instance), true
}

// wants reports whether nvext.extra_fields names a field.
func (q *chatRequest) wants(field string) bool {
	return q.NVExt != nil && slices.Contains(q.NVExt.ExtraFields, field)
}

// annotated reports whether nvext.annotations names an annotation.
func (q *chatRequest) annotated(name string) bool {
	return q.NVExt != nil && slices.Contains(q.NVExt.Annotations, name)
}
