package trace

import (
	"fmt"
	"math"
	"time"

	"github.com/goccy/go-json"

	"kvbooth/sidecar/api"
)

// notJSON is the field of a line that is none of JSON.
const notJSON = "line"

// object is a line in either form. What may be missing is a pointer.
type object struct {
	Timestamp    *float64 `json:"timestamp"`
	InputLength  *int64   `json:"input_length"`
	OutputLength *int64   `json:"output_length"`
	HashIDs      []uint64 `json:"hash_ids"`

	Event *struct {
		EventType string `json:"event_type"`
		Request   *struct {
			ID           string   `json:"request_id"`
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
	} `json:"event"`
}

// decode is the request of a line; neither that nor an error for a line of Dynamo about
// something else.
func decode(line []byte, blockTokens int) (*Record, *api.FieldError) {
	var o object
	if err := json.Unmarshal(line, &o); err != nil {
		return nil, explain(line, err)
	}
	if o.Event != nil {
		return o.dynamo()
	}
	if blockTokens == 0 {
		blockTokens = MooncakeBlockTokens
	}
	return o.mooncake(blockTokens)
}

func (o *object) mooncake(blockTokens int) (*Record, *api.FieldError) {
	r := &Record{Cached: -1, BlockTokens: blockTokens, Blocks: o.HashIDs}
	var c checks
	r.moment = c.number("timestamp", o.Timestamp)
	r.PromptTokens = c.tokens("input_length", o.InputLength, 1)
	r.OutputTokens = c.tokens("output_length", o.OutputLength, 0)
	c.blocks("hash_ids", r)
	return r, c.bad
}

func (o *object) dynamo() (*Record, *api.FieldError) {
	if o.Event.EventType != "request_end" {
		return nil, nil
	}
	q := o.Event.Request
	if q == nil {
		return nil, refuse("event.request", "", "an object")
	}
	r := &Record{ID: q.ID, Timed: true, Cached: -1}
	var c checks
	r.moment = c.number("event.request.request_received_ms", q.Received)
	r.PromptTokens = c.tokens("event.request.input_tokens", q.InputTokens, 1)
	r.OutputTokens = c.tokens("event.request.output_tokens", q.OutputTokens, 0)
	total := c.number("event.request.total_time_ms", q.Total)
	first := total // of a request without a first token
	if q.TTFT != nil {
		first = c.number("event.request.ttft_ms", q.TTFT)
	}
	if c.bad == nil && first > total {
		c.bad = refuse("event.request.ttft_ms", first, fmt.Sprintf("at most total_time_ms, %v", total))
	}
	r.FirstToken, r.Ended = milliseconds(first), milliseconds(total)
	if q.CachedTokens != nil {
		r.Cached = c.tokens("event.request.cached_tokens", q.CachedTokens, 0)
		if c.bad == nil && r.Cached > r.PromptTokens {
			c.bad = refuse("event.request.cached_tokens", r.Cached, fmt.Sprintf("at most input_tokens, %d", r.PromptTokens))
		}
	}
	if q.Worker != nil {
		if r.Worker = q.Worker.Prefill; r.Worker == 0 {
			r.Worker = q.Worker.Decode
		}
	}
	if q.Replay == nil {
		return nil, refuse("event.request.replay", "", "an object with the prompt's block hashes")
	}
	r.Blocks = q.Replay.Hashes
	r.BlockTokens = c.tokens("event.request.replay.trace_block_size", q.Replay.BlockSize, 1)
	c.blocks("event.request.replay.input_sequence_hashes", r)
	return r, c.bad
}

func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// longestTime is the most of a time in ms: far enough for the time of day, and for virtual time.
const longestTime = 1e15

// checks keeps the first thing that is wrong with a line.
type checks struct{ bad *api.FieldError }

func (c *checks) refuse(field string, value any, allowed string) {
	if c.bad == nil {
		c.bad = refuse(field, value, allowed)
	}
}

func (c *checks) number(field string, v *float64) float64 {
	if v == nil {
		c.refuse(field, "", "a number of milliseconds")
		return 0
	}
	if math.IsNaN(*v) || *v < 0 || *v > longestTime {
		c.refuse(field, *v, fmt.Sprintf("0 to %v", float64(longestTime)))
		return 0
	}
	return *v
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

// blocks asks for the hashes of all full blocks, and at most one more.
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
		c.refuse(field, fmt.Sprintf("%d of them", n), fmt.Sprintf("%s, for %d tokens in blocks of %d", allowed, r.PromptTokens, r.BlockTokens))
	}
}

// explain says which field of a line has a wrong type; else that it is no JSON.
func explain(line []byte, err error) *api.FieldError {
	var fields map[string]json.RawMessage
	if json.Unmarshal(line, &fields) != nil {
		return refuse(notJSON, fmt.Sprintf("%.40q", line), "a JSON object")
	}
	for _, f := range []struct {
		name, allowed string
		as            any
	}{
		{"timestamp", "a number of milliseconds", new(float64)},
		{"input_length", "a whole number", new(int64)},
		{"output_length", "a whole number", new(int64)},
		{"hash_ids", "a list of whole numbers from 0", new([]uint64)},
		{"event", "an event of Dynamo's request trace (" + err.Error() + ")", new(struct{})},
	} {
		raw, ok := fields[f.name]
		if ok && (json.Unmarshal(raw, f.as) != nil || f.name == "event") {
			return refuse(f.name, string(raw), f.allowed)
		}
	}
	return refuse(notJSON, fmt.Sprintf("%.40q", line), "a JSON object with the fields of a trace")
}
