package chat

import (
	"bytes"
	"cmp"
	"errors"
	"math"
	"strconv"

	"github.com/goccy/go-json"
)

// chunk is what one event of the stream says.
type chunk struct {
	text         string // content and reasoning
	content      bool   // there was a non-empty content, reasoning or tool-call delta
	finishReason string
	usage        *Usage // nil where none is told
	worker       uint64 // nvext.worker_id.decode_worker_id, or the prefill worker's
	timing       Timing
	isError      bool
	errMessage   string
	errType      string
}

var errJSON = errors.New("not a JSON chunk")

// chunkJSON is a chat completion chunk, or an error, as it is sent.
type chunkJSON struct {
	Choices []choiceJSON `json:"choices"`
	Usage   *usageJSON   `json:"usage"`
	NVExt   *nvextJSON   `json:"nvext"`

	Error   any    `json:"error"`   // an object or a string
	Message string `json:"message"` // Dynamo's form: an error's members stand at the top
	Type    string `json:"type"`
}

type choiceJSON struct {
	Delta struct {
		Reasoning        string `json:"reasoning"`
		ReasoningContent string `json:"reasoning_content"`
		Content          string `json:"content"`
		ToolCalls        []any  `json:"tool_calls"`
	} `json:"delta"`
	FinishReason string `json:"finish_reason"`
}

type usageJSON struct {
	Prompt     number `json:"prompt_tokens"`
	Completion number `json:"completion_tokens"`
	Details    struct {
		Cached number `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

type nvextJSON struct {
	WorkerID struct {
		Decode  id `json:"decode_worker_id"`
		Prefill id `json:"prefill_worker_id"`
	} `json:"worker_id"`
	Timing struct {
		TTFT       number `json:"ttft_ms"`
		HitRate    number `json:"kv_hit_rate"`
		QueueDepth number `json:"router_queue_depth"`
	} `json:"timing"`
}

// number is a number or null, and refuses its chunk where it is anything else.
type number struct {
	value float64
	told  bool
}

func (n *number) UnmarshalJSON(b []byte) (err error) {
	if string(b) != "null" {
		n.value, err = strconv.ParseFloat(string(b), 64)
		n.told = err == nil
	}
	return err
}

// count is a number of things: never below zero, nor beyond an int32, whatever the
// server says.
func (n number) count() int { return int(min(max(n.value, 0), math.MaxInt32)) }

// id has 64 bits, which a float64 cannot hold; it comes as a number or as a string,
// and is 0 where it is neither.
type id uint64

func (i *id) UnmarshalJSON(b []byte) error {
	if v, err := strconv.ParseUint(string(bytes.Trim(b, `"`)), 10, 64); err == nil {
		*i = id(v)
	}
	return nil
}

// decodeChunk reads one chat completion chunk. The error says that data is none. It
// takes 1.5 µs of the some 20 µs of CPU that a chunk costs in all. With encoding/json it
// would take five times as much; a decoder written for these members alone, 0.9 µs.
func decodeChunk(data []byte) (chunk, error) {
	var j chunkJSON
	err := json.Unmarshal(data, &j)
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && e.Field != "" && e.Field != "choices" && e.Field != "choices.delta" {
		err = nil // a member of the wrong type counts as absent; the others have been decoded
	}
	if err != nil || !bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) { // null is no error to it
		return chunk{}, errJSON
	}
	c := chunk{usage: j.Usage.told()}
	for i := range j.Choices {
		choice := &j.Choices[i]
		c.text += choice.Delta.Reasoning + choice.Delta.ReasoningContent + choice.Delta.Content
		c.content = c.content || c.text != "" || len(choice.Delta.ToolCalls) > 0
		c.finishReason = cmp.Or(choice.FinishReason, c.finishReason)
	}
	if n := j.NVExt; n != nil {
		c.worker = uint64(cmp.Or(n.WorkerID.Decode, n.WorkerID.Prefill))
		t := n.Timing
		c.timing = Timing{t.TTFT.value / 1000, t.HitRate.value, t.QueueDepth.count(), t.TTFT.told, t.HitRate.told, t.QueueDepth.told}
	}
	c.setError(&j)
	return c, nil
}

func (u *usageJSON) told() *Usage {
	if u == nil || !u.Prompt.told && !u.Completion.told {
		return nil
	}
	return &Usage{u.Prompt.count(), u.Completion.count(), u.Details.Cached.count(), u.Details.Cached.told}
}

func (c *chunk) setError(j *chunkJSON) {
	switch e := j.Error.(type) {
	case string:
		c.isError, c.errMessage = true, e
	case map[string]any:
		c.isError = true
		c.errMessage, _ = e["message"].(string)
		c.errType, _ = e["type"].(string)
	default:
		c.isError = j.Message != "" && j.Choices == nil && j.Usage == nil && j.NVExt == nil
		c.errMessage, c.errType = j.Message, j.Type
	}
}
