package trace

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-json"

	"kvbooth/sidecar/api"
)

// notJSON is the field of the error for a line that is not JSON.
const notJSON = "line"

// object is a line in any form. Optional values are pointers or may be empty.
type object struct {
	Timestamp    *float64 `json:"timestamp"`
	InputLength  *int64   `json:"input_length"`
	OutputLength *int64   `json:"output_length"`
	HashIDs      []uint64 `json:"hash_ids"`
	Model        name     `json:"model"`
	Turn         *int64   `json:"turn"`

	// AIPerf's multi-turn form.
	Session json.RawMessage `json:"session_id"`
	Delay   *float64        `json:"delay"`
	Whole   bool            `json:"whole"` // of [Writer]: the line has the whole prompt
	Text    *string         `json:"text_input"`

	// Bailian's form.
	Chat   json.RawMessage `json:"chat_id"`
	Parent json.RawMessage `json:"parent_chat_id"`

	// WEKA's form: all requests of a session, with times in seconds.
	ID        json.RawMessage `json:"id"`
	BlockSize *int64          `json:"block_size"`
	Scope     string          `json:"hash_id_scope"` // global, or of the line
	Requests  []nested        `json:"requests"`

	// Dynamo's form: an event, or an object with one.
	Event *event `json:"event"`
	event

	texts
}

// form returns the form of an object, "" for none.
func (o *object) form() Form {
	trace := o.Timestamp != nil && o.texts.form() != Prompts || o.InputLength != nil || o.HashIDs != nil
	switch {
	case o.Event != nil || o.EventType != "":
		return Dynamo
	case given(o.Chat):
		return Bailian
	case o.Requests != nil:
		return Weka
	case trace || o.Text != nil:
		return Mooncake
	}
	return o.texts.form()
}

// knownForms lists the forms for the error of another one.
const knownForms = "lines of Dynamo's request trace or in the form of Mooncake, Bailian or WEKA, the CSV of BurstGPT " +
	"or Azure, or conversations as in ShareGPT, messages, or prompts as vLLM and AIPerf have them"

// fieldsOf returns the names of an object's first fields.
func fieldsOf(line []byte) string {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(line, &fields) // it was parsed before
	names := slices.Sorted(maps.Keys(fields))
	if len(names) == 0 {
		return "an object without fields"
	}
	return "an object with " + strings.Join(names[:min(len(names), 5)], ", ")
}

// nested is a request of a session, or an agent with requests of its own.
type nested struct {
	At       *float64 `json:"t"`
	In       *int64   `json:"in"`
	Out      *int64   `json:"out"`
	HashIDs  []uint64 `json:"hash_ids"`
	Model    name     `json:"model"`
	Requests []nested `json:"requests"`
}

// flat returns the requests of a session with those of its agents.
func flat(requests []nested) (all []nested) {
	for _, q := range requests {
		if q.Requests == nil {
			all = append(all, q)
		}
		all = append(all, flat(q.Requests)...)
	}
	return all
}

// weka returns a request of the session in a line.
func (o *object) weka(q nested) (*Record, *api.FieldError) {
	r := newRecord(Weka)
	r.Blocks, r.Model = q.HashIDs, string(q.Model)
	r.Session = Mix(0, text(string(o.ID)))
	var c checks
	if q.At == nil {
		c.refuse("requests.t", "", "a number, the time of the request")
	} else {
		r.moment = c.number("requests.t", *q.At, inMilliseconds[Seconds])
	}
	r.BlockTokens = c.tokens("block_size", o.BlockSize, 1)
	r.PromptTokens = c.tokens("requests.in", q.In, 1)
	r.OutputTokens = c.tokens("requests.out", q.Out, 0)
	c.blocks("requests.hash_ids", r)
	if o.Scope != "global" {
		for i, id := range r.Blocks {
			r.Blocks[i] = Mix(r.Session, id)
		}
	}
	return r, c.bad
}

// event is a line of Dynamo's request trace.
type event struct {
	EventType string `json:"event_type"`
	Agent     struct {
		Session string `json:"session_id"`
	} `json:"agent_context"`
	Request *struct {
		ID           string   `json:"request_id"`
		Model        string   `json:"model"`
		InputTokens  *int64   `json:"input_tokens"`
		OutputTokens *int64   `json:"output_tokens"`
		CachedTokens *int64   `json:"cached_tokens"`
		Received     *float64 `json:"request_received_ms"`
		TTFT         *float64 `json:"ttft_ms"`
		Total        *float64 `json:"total_time_ms"`
		Worker       *struct {
			Prefill uint64 `json:"prefill_worker_id"`
			Decode  uint64 `json:"decode_worker_id"`
		} `json:"worker"`
		Replay *struct {
			BlockSize *int64   `json:"trace_block_size"`
			Length    *int64   `json:"input_length"`
			Hashes    []uint64 `json:"input_sequence_hashes"`
		} `json:"replay"`
	} `json:"request"`
}

// given reports whether an optional field of any type has a value.
func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

func parse(line []byte) (*object, *api.FieldError) {
	o := &object{}
	if err := json.Unmarshal(line, o); err != nil {
		return nil, explain(line, err)
	}
	return o, nil
}

// mooncake returns the request of a line in Mooncake's form or a derived one. A later turn of a session has a delay,
// or nothing, in place of a timestamp; its record has no moment.
func (o *object) mooncake(s scale) (*Record, *api.FieldError) {
	r := newRecord(Mooncake)
	if given(o.Chat) {
		r.form = Bailian
	}
	r.BlockTokens, r.Blocks, r.Model, r.whole = s.blockTokens, o.HashIDs, string(o.Model), o.Whole
	var c checks
	switch {
	case o.Timestamp != nil:
		r.moment = c.number("timestamp", *o.Timestamp, s.milliseconds)
	case given(o.Session):
		r.follows = true
		if o.Delay != nil {
			r.Delay = milliseconds(c.number("delay", *o.Delay, s.milliseconds))
		}
	case s.timed:
		c.refuse("timestamp", "", "a number, the time of the request")
	default:
		r.untimed = true
	}
	if o.Text != nil {
		r.Messages = []Message{{Role: RoleUser, Text: *o.Text}}
	} else if list, _ := o.list(); len(list) > 0 { // without texts, input_length is required
		r.Messages = promptOf(list)
	}
	if r.Messages == nil || o.InputLength != nil {
		r.PromptTokens = c.tokens("input_length", o.InputLength, 1)
	}
	if s.outputs || o.OutputLength != nil {
		r.OutputTokens = c.tokens("output_length", o.OutputLength, 0)
	}
	if s.blockTokens > 0 {
		c.blocks("hash_ids", r)
	}
	return r, c.bad
}

// dynamo returns the request of an event and the names of missing fields. It returns neither a request nor an error
// for an event other than a request's end.
func (e *event) dynamo() (r *Record, missing []string, bad *api.FieldError) {
	if e.EventType != "request_end" {
		return nil, nil, nil
	}
	q := e.Request
	if q == nil {
		return nil, nil, refuse("event.request", "", "an object")
	}
	if q.Replay == nil {
		return nil, nil, refuse("event.request.replay", "", "an object with the prompt's block hashes")
	}
	r = newRecord(Dynamo)
	r.ID, r.Model, r.Blocks = q.ID, q.Model, q.Replay.Hashes
	r.Session = sessionOf(e.Agent.Session)
	var c checks
	if q.Received == nil {
		c.refuse("event.request.request_received_ms", "", "a number of milliseconds")
	} else {
		r.moment = c.number("event.request.request_received_ms", *q.Received, 1)
	}
	if q.InputTokens != nil || q.Replay.Length == nil {
		r.PromptTokens = c.tokens("event.request.input_tokens", q.InputTokens, 1)
	} else {
		missing = append(missing, "input_tokens")
		r.PromptTokens = c.tokens("event.request.replay.input_length", q.Replay.Length, 1)
	}
	r.OutputTokens = c.tokens("event.request.output_tokens", q.OutputTokens, 0)
	if q.CachedTokens == nil {
		missing = append(missing, "cached_tokens")
	} else {
		r.Cached = c.tokens("event.request.cached_tokens", q.CachedTokens, 0)
		if c.bad == nil && r.Cached > r.PromptTokens {
			c.bad = refuse("event.request.cached_tokens", r.Cached, fmt.Sprintf("at most input_tokens, %d", r.PromptTokens))
		}
	}
	if q.Total == nil {
		missing = append(missing, "total_time_ms")
	} else {
		r.Ended = milliseconds(c.number("event.request.total_time_ms", *q.Total, 1))
	}
	switch {
	case q.TTFT != nil:
		r.FirstToken = milliseconds(c.number("event.request.ttft_ms", *q.TTFT, 1))
		if c.bad == nil && r.Ended >= 0 && r.FirstToken > r.Ended {
			c.bad = refuse("event.request.ttft_ms", *q.TTFT, fmt.Sprintf("at most total_time_ms, %v", *q.Total))
		}
	case r.OutputTokens > 0:
		missing = append(missing, "ttft_ms")
	}
	if q.Worker != nil {
		if r.Worker = q.Worker.Prefill; r.Worker == 0 {
			r.Worker = q.Worker.Decode
		}
	}
	if r.Worker == 0 {
		missing = append(missing, "worker")
	}
	r.BlockTokens = c.tokens("event.request.replay.trace_block_size", q.Replay.BlockSize, 1)
	c.blocks("event.request.replay.input_sequence_hashes", r)
	return r, missing, c.bad
}

func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// longestTime is the largest time in ms: enough for the time of day until 2255, and small enough for a
// [time.Duration].
const longestTime = 9e12

// checks stores the first error of a line.
type checks struct{ bad *api.FieldError }

func (c *checks) refuse(field string, value any, allowed string) {
	if c.bad == nil {
		c.bad = refuse(field, value, allowed)
	}
}

// number converts a time to ms; unit is the number of ms in its unit.
func (c *checks) number(field string, v, unit float64) float64 {
	if math.IsNaN(v) || v < 0 || v*unit > longestTime {
		c.refuse(field, v, fmt.Sprintf("0 to %v", longestTime/unit))
		return 0
	}
	return v * unit
}

func (c *checks) tokens(field string, v *int64, least int64) int {
	if v == nil {
		c.refuse(field, "", "a whole number")
		return 0
	}
	if *v < least || *v > mostTokens {
		c.refuse(field, *v, fmt.Sprintf("%d to %d", least, mostTokens))
		return 0
	}
	return int(*v)
}

// blocks requires the hashes of all full blocks, and allows one more.
func (c *checks) blocks(field string, r *Record) {
	if c.bad != nil {
		return
	}
	full := r.PromptTokens / r.BlockTokens
	most := (r.PromptTokens + r.BlockTokens - 1) / r.BlockTokens
	if n := len(r.Blocks); n < full || n > most {
		allowed := fmt.Sprintf("%d", full)
		if most > full {
			allowed += fmt.Sprintf(" or %d", most)
		}
		c.refuse(field, fmt.Sprintf("%d of them", n), fmt.Sprintf("%s, for %d tokens in blocks of %d", allowed,
			r.PromptTokens, r.BlockTokens))
	}
}

// explain returns an error for the first field with a wrong type, or for a line that is not JSON.
func explain(line []byte, err error) *api.FieldError {
	var fields map[string]json.RawMessage
	if json.Unmarshal(line, &fields) != nil {
		return refuse(notJSON, fmt.Sprintf("%.40q", line), "a JSON object")
	}
	for _, f := range []struct {
		name, allowed string
		as            any
	}{
		{"timestamp", "a number", new(float64)},
		{"delay", "a number", new(float64)},
		{"input_length", "a whole number", new(int64)},
		{"output_length", "a whole number", new(int64)},
		{"hash_ids", "a list of whole numbers from 0", new([]uint64)},
		{"requests", "a list of a session's requests", new([]nested)},
		{"event", "an event of Dynamo's request trace (" + err.Error() + ")", new(struct{})},
	} {
		raw, ok := fields[f.name]
		if ok && (json.Unmarshal(raw, f.as) != nil || f.name == "event") {
			return refuse(f.name, string(raw), f.allowed)
		}
	}
	return refuse(notJSON, fmt.Sprintf("%.40q", line), "a JSON object with the fields of a trace")
}
