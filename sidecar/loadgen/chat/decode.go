package chat

import (
	"bytes"
	"cmp"
	"errors"
	"strconv"
	"sync"

	"github.com/goccy/go-json"

	"kvbooth/sidecar/loadgen/plausible"
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
		if errors.Is(err, strconv.ErrRange) {
			err = nil // it is infinite, and in no range
		}
		n.told = err == nil
	}
	return err
}

// in gives the number if it is told and lies in its range.
func (n number) in(r plausible.Range, name string) (v float64, told bool) {
	if n.told && r.Has(plausible.Target, name, n.value) {
		return n.value, true
	}
	return 0, false
}

// id has 64 bits, which a float64 cannot hold; it comes as a number or as a string,
// and is 0 where it is neither.
type id uint64

func (i *id) UnmarshalJSON(b []byte) error {
	if v, err := strconv.ParseUint(string(bytes.Trim(b, `"`)), 10, 64); err == nil {
		*i = id(v)
	}
	return nil
}

// chunks are decoded into again and again: what each stream would allocate for
// itself is half of all that the load generator allocates.
var chunks = sync.Pool{New: func() any { return new(chunkJSON) }}

// decodeChunk reads one chat completion chunk. The error says that data is none. It
// takes 1.2 µs of the some 40 that a chunk costs in all, a fifth of what encoding/json
// would take.
func decodeChunk(data []byte) (chunk, error) {
	j := chunks.Get().(*chunkJSON)
	defer chunks.Put(j)
	clear(j.Choices)
	*j = chunkJSON{Choices: j.Choices[:0]}
	err := json.Unmarshal(data, j)
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
		c.timing = n.timing()
	}
	c.setError(j, data)
	return c, nil
}

// told gives the usage, nil where it counts nothing, or a count cannot be true: what
// the chunks say is better than half of it.
func (u *usageJSON) told() *Usage {
	if u == nil {
		return nil
	}
	prompt, hasPrompt := u.Prompt.in(plausible.Tokens, "usage.prompt_tokens")
	completion, hasCompletion := u.Completion.in(plausible.Tokens, "usage.completion_tokens")
	if hasPrompt != u.Prompt.told || hasCompletion != u.Completion.told || !hasPrompt && !hasCompletion {
		return nil
	}
	cached, hasCached := u.Details.Cached.in(plausible.Range{Max: prompt, Whole: true}, "usage.prompt_tokens_details.cached_tokens")
	return &Usage{int(prompt), int(completion), int(cached), hasCached}
}

func (n *nvextJSON) timing() (t Timing) {
	seconds := number{n.Timing.TTFT.value / 1000, n.Timing.TTFT.told}
	t.TTFT, t.HasTTFT = seconds.in(plausible.Seconds, "nvext.timing.ttft_ms / 1000")
	t.PredictedHitRatio, t.HasPredicted = n.Timing.HitRate.in(plausible.Ratio, "nvext.timing.kv_hit_rate")
	depth, told := n.Timing.QueueDepth.in(plausible.Requests, "nvext.timing.router_queue_depth")
	t.QueueDepth, t.HasQueueDepth = int(depth), told
	return t
}

func (c *chunk) setError(j *chunkJSON, data []byte) {
	switch e := j.Error.(type) {
	case string:
		c.isError, c.errMessage = true, e
	case map[string]any:
		c.isError = true
		c.errMessage, _ = e["message"].(string)
		c.errType, _ = e["type"].(string)
	default:
		c.isError = j.Message != "" && j.Usage == nil && j.NVExt == nil && !bytes.Contains(data, []byte(`"choices"`))
		c.errMessage, c.errType = j.Message, j.Type
	}
}
