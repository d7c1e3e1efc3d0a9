package chat

import (
	"bytes"
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/goccy/go-json"

	"kvbooth/sidecar/loadgen/chat/plausible"
)

// chunk is the content of one event of the stream.
type chunk struct {
	text         string // of the answer
	whole        string // the message of an answer that is not streamed
	reasoning    string // before the answer
	content      bool   // the event has a non-empty content, reasoning or tool-call delta
	answer       bool   // the event has a non-empty content or tool-call delta
	choices      bool   // the event has a choice, even an empty one
	unknown      bool   // no member identifies the event as a chunk
	finishReason string
	usage        *counts // nil where none is reported
	worker       uint64  // nvext.worker_id.decode_worker_id, or the prefill worker's
	timing       Timing

	isError    bool
	errMember  bool // a member identifies the event as an error
	errMessage string
	errType    string
	errCode    string // a status or a word
}

var errJSON = errors.New("not a JSON chunk")

// chunkJSON is a chat completion chunk, or an error, in JSON.
type chunkJSON struct {
	Choices []choiceJSON `json:"choices"`
	Usage   *usageJSON   `json:"usage"`
	NVExt   *nvextJSON   `json:"nvext"`
	Timings *timingsJSON `json:"timings"` // of llama.cpp
	Groq    struct {
		Usage *usageJSON `json:"usage"`
	} `json:"x_groq"`

	Object   string `json:"object"`  // "error" in that of vLLM up to 0.9
	Error    any    `json:"error"`   // of any type
	Errors   any    `json:"errors"`  // a list, mostly
	Message  string `json:"message"` // Dynamo's form: the error's members are at the top level
	Msg      string `json:"msg"`
	Detail   any    `json:"detail"` // FastAPI's form: a string, an object, or a list of faults
	Type     string `json:"type"`
	Code     any    `json:"code"`
	BaseResp any    `json:"base_resp"` // MiniMax's form: a status and its message
}

type choiceJSON struct {
	Delta        deltaJSON `json:"delta"`
	Message      deltaJSON `json:"message"` // of an answer that is not streamed
	Text         string    `json:"text"`    // of a completion that is no chat
	FinishReason string    `json:"finish_reason"`
	Error        any       `json:"error"`

	Usage *usageJSON `json:"usage"` // of servers that have it inside the choice
}

// deltaJSON is a message, or the next part of one. Servers use several names for the reasoning.
type deltaJSON struct {
	Reasoning        string `json:"reasoning"`
	ReasoningContent string `json:"reasoning_content"`
	ReasoningText    string `json:"reasoning_text"`
	Thinking         string `json:"thinking"`
	ReasoningDetails any    `json:"reasoning_details"` // parts
	ThinkingBlocks   any    `json:"thinking_blocks"`   // parts
	Content          string `json:"content"`
	Refusal          string `json:"refusal"`
	ToolCalls        []any  `json:"tool_calls"`
	FunctionCall     any    `json:"function_call"`
}

// reasoning returns the reasoning under the first of its names; a server that sends several repeats it.
func (d *deltaJSON) reasoning() string {
	r := cmp.Or(d.ReasoningContent, d.Reasoning, d.ReasoningText, d.Thinking)
	for _, parts := range []any{d.ReasoningDetails, d.ThinkingBlocks} {
		if r == "" && parts != nil {
			_, r = partsText(parts, true)
		}
	}
	return r
}

// usageJSON is a report of usage. Servers use several names for cached and reasoning tokens.
type usageJSON struct {
	Prompt     number `json:"prompt_tokens"`
	Completion number `json:"completion_tokens"`
	Total      number `json:"total_tokens"`
	Details    struct {
		Cached number `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning number `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	Reasoning    number `json:"reasoning_tokens"`
	Cached       number `json:"cached_tokens"`               // Moonshot's
	CacheHits    number `json:"prompt_cache_hit_tokens"`     // DeepSeek's
	CacheRead    number `json:"cache_read_input_tokens"`     // Anthropic's
	CacheWritten number `json:"cache_creation_input_tokens"` // Anthropic's, prompt tokens that were not cached before
}

// timingsJSON has llama.cpp's counts of tokens. Prompt is without Cached.
type timingsJSON struct {
	Cached     number `json:"cache_n"`
	Prompt     number `json:"prompt_n"`
	Completion number `json:"predicted_n"`
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

// number accepts a number, also in quotes. Any other value counts as not reported.
type number struct {
	value    float64
	reported bool
}

func (n *number) UnmarshalJSON(b []byte) error {
	if v, isCount := count(b); isCount {
		n.value, n.reported = float64(v), true
		return nil
	}
	v, err := strconv.ParseFloat(string(bytes.Trim(b, `"`)), 64)
	if err == nil || errors.Is(err, strconv.ErrRange) { // out of range gives infinity, which no range allows
		n.value, n.reported = v, true
	}
	return nil
}

// count returns the value of at most nine digits, which nearly all numbers of a stream are.
func count(digits []byte) (v int, ok bool) {
	if len(digits) == 0 || len(digits) > 9 {
		return 0, false
	}
	for _, d := range digits {
		if d < '0' || d > '9' {
			return 0, false
		}
		v = 10*v + int(d-'0')
	}
	return v, true
}

// in returns the number if it is reported and within the range.
func (n number) in(r plausible.Range, name string) (v float64, reported bool) {
	if n.reported && r.Has(plausible.Target, name, n.value) {
		return n.value, true
	}
	return 0, false
}

// tokens returns a count of tokens, 0 if it is not reported or implausible.
func (n number) tokens(name string) int {
	v, _ := n.in(plausible.Tokens, name)
	return int(v)
}

// id is a 64-bit id, which a float64 cannot hold. It accepts a number or a string; any other value gives 0.
type id uint64

func (i *id) UnmarshalJSON(b []byte) error {
	if v, err := strconv.ParseUint(string(bytes.Trim(b, `"`)), 10, 64); err == nil {
		*i = id(v)
	}
	return nil
}

// chunks are reused: without it, decoding would be half of the load generator's allocations.
var chunks = sync.Pool{New: func() any { return new(chunkJSON) }}

// decodeChunk decodes one chat completion chunk. The error is errJSON. It takes 1.2 µs, a fifth of the time of
// encoding/json.
func decodeChunk(data []byte) (chunk, error) {
	j := chunks.Get().(*chunkJSON)
	defer chunks.Put(j)
	clear(j.Choices)
	if j.Choices == nil {
		j.Choices = make([]choiceJSON, 0, 1) // so that nil shows a null
	}
	*j = chunkJSON{Choices: j.Choices[:0]}
	err := json.Unmarshal(data, j)
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && e.Field != "" && e.Field != "choices" &&
		e.Field != "choices.delta" {
		err = readParts(data, j) // a member of the wrong type counts as absent; the others are decoded
	}
	if err != nil || !bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) { // null decodes without an error
		return chunk{}, errJSON
	}
	c := chunk{choices: len(j.Choices) > 0}
	c.readChoices(j)
	if j.Usage != nil || j.Timings != nil {
		c.usage = j.counts()
	}
	if n := j.NVExt; n != nil {
		c.worker = uint64(cmp.Or(n.WorkerID.Decode, n.WorkerID.Prefill))
		c.timing = n.timing()
	}
	c.unknown = !(c.choices || j.Usage != nil || j.NVExt != nil || strings.HasPrefix(j.Object, "chat.completion") ||
		bytes.Contains(data, []byte(`"choices"`)))
	c.setError(j)
	if !c.isError && !c.choices && j.Usage == nil && j.NVExt == nil && j.Timings == nil {
		c.readDialect(data, j.Choices == nil)
	}
	return c, nil
}

// readChoices sets the text, the finish reason and the kind of content. It makes usage inside of a choice that of the
// chunk.
func (c *chunk) readChoices(j *chunkJSON) {
	for i := range j.Choices {
		choice := &j.Choices[i]
		delta := &choice.Delta
		c.text += cmp.Or(delta.Content+delta.Refusal, choice.Text)
		c.reasoning += delta.reasoning()
		c.whole += choice.Message.Content
		c.answer = c.answer || c.text != "" || len(delta.ToolCalls) > 0 || delta.FunctionCall != nil
		c.finishReason = cmp.Or(reasonOf(choice.FinishReason), c.finishReason)
		j.Usage = cmp.Or(j.Usage, choice.Usage)
	}
	j.Usage = cmp.Or(j.Usage, j.Groq.Usage)
	c.content = c.answer || c.reasoning != ""
}

// reasonOf returns a finish reason. Some servers write the absence of one as text.
func reasonOf(text string) string {
	if strings.EqualFold(text, "null") || strings.EqualFold(text, "none") {
		return ""
	}
	return text
}

// counts returns the counts of a chunk, or nil if it has no count of prompt, answer or cached tokens. An implausible
// count is 0, like a missing one, since no prompt is empty.
func (j *chunkJSON) counts() *counts {
	var c counts
	if u := j.Usage; u != nil {
		c.prompt = u.Prompt.tokens("usage.prompt_tokens")
		c.completion = u.Completion.tokens("usage.completion_tokens")
		c.total = u.Total.tokens("usage.total_tokens")
		c.reasoning = max(u.CompletionDetails.Reasoning.tokens("usage.completion_tokens_details.reasoning_tokens"),
			u.Reasoning.tokens("usage.reasoning_tokens"))
		c.cacheWritten = u.CacheWritten.tokens("usage.cache_creation_input_tokens")
		for _, n := range [...]number{u.Details.Cached, u.Cached, u.CacheHits, u.CacheRead} {
			c.addCached(n, "usage.prompt_tokens_details.cached_tokens")
		}
	}
	if t := j.Timings; t != nil {
		c.addCached(t.Cached, "timings.cache_n")
		if t.Cached.reported {
			c.prompt = cmp.Or(c.prompt, c.cached+t.Prompt.tokens("timings.prompt_n"))
		}
		c.completion = cmp.Or(c.completion, t.Completion.tokens("timings.predicted_n"))
	}
	if c.prompt == 0 && c.completion == 0 && c.cached == 0 {
		return nil
	}
	return &c
}

// addCached adds a count of cached tokens under one of its names.
func (c *counts) addCached(n number, name string) {
	v, reported := n.in(plausible.Tokens, name)
	if !reported {
		return
	}
	c.cachedUnclear = c.cachedUnclear || c.hasCached && c.cached != int(v)
	c.cached, c.hasCached = int(v), true
}

func (n *nvextJSON) timing() (t Timing) {
	seconds := number{n.Timing.TTFT.value / 1000, n.Timing.TTFT.reported}
	t.TTFT, t.HasTTFT = seconds.in(plausible.Seconds, "nvext.timing.ttft_ms / 1000")
	t.PredictedHitRatio, t.HasPredicted = n.Timing.HitRate.in(plausible.Ratio, "nvext.timing.kv_hit_rate")
	depth, reported := n.Timing.QueueDepth.in(plausible.Requests, "nvext.timing.router_queue_depth")
	t.QueueDepth, t.HasQueueDepth = int(depth), reported
	return t
}

// setError reads an error in any of the forms that servers use. A message alone is an error only in an event that
// nothing identifies as a chunk.
func (c *chunk) setError(j *chunkJSON) {
	c.errCode = word(j.Code)
	failed := firstFailure(j)
	if failed != nil {
		c.isError, c.errMember, c.unknown = true, true, false
		c.explain(failed)
		return
	}
	c.errMember = j.Object == "error" || j.Type == "error"
	c.errMessage, c.errType = cmp.Or(j.Message, j.Msg), j.Type
	if c.errMessage == "" && fails(j.Detail) {
		c.explain(j.Detail)
	}
	c.isError = c.errMember || c.unknown && (c.errMessage != "" || fails(j.Detail))
	c.unknown = c.unknown && !c.isError
}

// firstFailure returns the value of the first member that reports an error, or nil.
func firstFailure(j *chunkJSON) any {
	for i := range j.Choices {
		if fails(j.Choices[i].Error) {
			return j.Choices[i].Error
		}
	}
	if fails(j.Error) {
		return j.Error
	}
	if fails(j.Errors) {
		return j.Errors
	}
	if members, isObject := j.BaseResp.(map[string]any); isObject && failsByCode(members) {
		return members
	}
	return nil
}

// Names of an error's members in the dialects of servers: messages under names that only errors have, messages, and
// codes.
var (
	errorWords   = []string{"error_msg", "error_message", "err_msg", "errmsg", "error_description", "error_detail"}
	messageWords = []string{"message", "msg", "detail", "status_msg", "status_message", "reason", "description"}
	codeWords    = []string{
		"code", "status_code", "error_code", "err_code", "errcode", "ret_code", "retcode", "error_type", "status",
	}
)

// firstWord returns the first text or number that is not empty.
func firstWord(members map[string]any, names []string) string {
	for _, name := range names {
		if w := word(members[name]); w != "" {
			return w
		}
	}
	return ""
}

// failsByCode reports whether members have the message of an error, or a message beside a code that is no success.
func failsByCode(members map[string]any) bool {
	if firstWord(members, errorWords) != "" {
		return true
	}
	code := strings.ToLower(firstWord(members, codeWords))
	n, err := strconv.ParseFloat(code, 64)
	isSuccess := err == nil && (n == 0 || n >= 200 && n < 300) || err != nil && !failureCode(code)
	return !isSuccess && (firstWord(members, messageWords) != "" || members["status_code"] != nil)
}

// failureCode reports whether a word in place of a code names a failure, and not a state such as "ok" or "queued".
func failureCode(word string) bool {
	for _, part := range []string{
		"err", "fail", "invalid", "exce", "limit", "unavailable", "denied", "forbidden", "timeout", "overload",
		"unauthorized", "abort", "insufficient",
	} {
		if strings.Contains(word, part) {
			return true
		}
	}
	return false
}

// familiar are the members of a chunk that say nothing of an error.
var familiar = set("id", "object", "created", "model", "choices", "usage", "systemfingerprint", "servicetier",
	"provider", "requestid", "success", "type")

// readDialect looks for an error in an event without a choice and without usage: in its members, and in those of its
// objects. Where the choices are missing or null, further members make the event one that nothing identifies as a
// chunk, whatever its type.
func (c *chunk) readDialect(data []byte, isNull bool) {
	var members map[string]any
	if json.Unmarshal(data, &members) != nil {
		return
	}
	if failsByCode(members) {
		c.explain(members)
		c.isError, c.unknown = true, false
		return
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		inner, _ := members[name].(map[string]any)
		if failsByCode(inner) {
			c.explain(inner)
			c.isError, c.unknown = true, false
			return
		}
		isState := firstWord(inner, codeWords) != "" // of a success
		c.unknown = c.unknown || isNull && !isState && !familiar[plain(name)] && fails(members[name])
	}
	c.isError = c.unknown && c.errMessage != ""
	c.unknown = c.unknown && !c.isError
}

// fails reports whether the value of a member named error reports one.
func fails(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != ""
	case float64:
		return v != 0
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return true
}

// explain copies message, type and code of an error.
func (c *chunk) explain(v any) {
	switch v := v.(type) {
	case string:
		c.errMessage = v
	case float64:
		c.errCode = word(v)
	case []any:
		c.explain(v[0])
	case map[string]any:
		c.errMessage = cmp.Or(firstWord(v, messageWords), firstWord(v, errorWords))
		c.errType, _ = v["type"].(string)
		c.errCode = cmp.Or(firstWord(v, codeWords), c.errCode)
	}
}

// word returns a number or a string as text, else "".
func word(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

// partsJSON is a chunk in which texts of [chunkJSON] may be lists of parts, as Mistral sends them.
type partsJSON struct {
	Choices []struct {
		Delta struct {
			Content          any `json:"content"`
			Reasoning        any `json:"reasoning"`
			ReasoningContent any `json:"reasoning_content"`
			Thinking         any `json:"thinking"`
		} `json:"delta"`
		FinishReason any `json:"finish_reason"`
	} `json:"choices"`
}

// reasonIn returns the finish reason in a list or an object.
func reasonIn(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		if len(v) > 0 {
			return reasonIn(v[0])
		}
	case map[string]any:
		return cmp.Or(word(v["type"]), word(v["reason"]), word(v["name"]), word(v["finish_reason"]))
	}
	return ""
}

// readParts sets the text of deltas that are lists of parts.
func readParts(data []byte, j *chunkJSON) error {
	var parts partsJSON
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	for i := range min(len(parts.Choices), len(j.Choices)) {
		from, to := &parts.Choices[i].Delta, &j.Choices[i].Delta
		var thought string
		if _, isText := from.Content.(string); !isText {
			to.Content, thought = partsText(from.Content, false)
		}
		if _, isText := parts.Choices[i].FinishReason.(string); !isText {
			j.Choices[i].FinishReason = reasonIn(parts.Choices[i].FinishReason)
		}
		for _, v := range []any{from.ReasoningContent, from.Reasoning, from.Thinking} {
			if _, isText := v.(string); !isText && to.ReasoningContent == "" {
				_, to.ReasoningContent = partsText(v, true)
			}
		}
		to.ReasoningContent += thought
	}
	return nil
}

// partsText returns the answer and the reasoning in a part or a list of parts. Everything inside a part of a reasoning
// type is reasoning.
func partsText(v any, isReasoning bool) (answer, reasoning string) {
	switch v := v.(type) {
	case string:
		if isReasoning {
			return "", v
		}
		return v, ""
	case []any:
		for _, part := range v {
			a, r := partsText(part, isReasoning)
			answer, reasoning = answer+a, reasoning+r
		}
	case map[string]any:
		kind, _ := v["type"].(string)
		kind = strings.ToLower(kind)
		isReasoning = isReasoning || strings.Contains(kind, "think") || strings.Contains(kind,
			"reason") || strings.Contains(kind, "summary")
		answer, reasoning = partsText(cmp.Or(v["text"], v["content"]), isReasoning)
		for _, name := range []string{"thinking", "reasoning", "summary"} {
			_, r := partsText(v[name], true)
			reasoning += r
		}
	}
	return answer, reasoning
}
