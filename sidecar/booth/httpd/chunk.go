package httpd

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
)

// detokenizer converts tokens to text. It holds back the bytes of incomplete characters.
type detokenizer struct{ held []byte }

// next returns the text of further tokens. The text is valid until the next call.
func (d *detokenizer) next(buffer []byte, tokens []uint32) (text []byte) {
	text = append(buffer[:0], d.held...)
	for _, id := range tokens {
		text = sim.AppendToken(text, id)
	}
	complete := completeCharacters(text)
	d.held = append(d.held[:0], text[complete:]...)
	return text[:complete]
}

// completeCharacters returns the length of a text without an incomplete character at its end.
func completeCharacters(text []byte) int {
	for i := len(text) - 1; i >= max(0, len(text)-utf8.UTFMax+1); i-- {
		if utf8.RuneStart(text[i]) {
			if utf8.FullRune(text[i:]) {
				break
			}
			return i
		}
	}
	return len(text)
}

// chunks writes the chunks of one stream. Their common parts are prepared once.
type chunks struct {
	head    []byte // beginning of a chunk, up to the first member of the delta, or to the text
	key     string // name of the member with the text
	role    string // member of the first delta; empty without deltas
	end     string // what follows a choice's text
	tail    []byte // rest of a chunk, with finish reason null
	common  []byte // members created, model and object
	worker  []byte // member nvext.worker_id, nil if not requested
	started bool   // a chunk was written
}

// newChunks returns the writer of a chat's chunks, or if plain, of those of a completion. worker is the member
// nvext.worker_id, nil if not requested.
func newChunks(id, model string, created int64, plain bool, worker []byte) *chunks {
	c := &chunks{
		head:   fmt.Appendf(nil, `data: {"id":%s,"choices":[{"index":0,`, quoted(id)),
		key:    `"text":`,
		worker: worker,
	}
	object := "text_completion"
	if !plain {
		object = "chat.completion.chunk"
		c.head = append(c.head, `"delta":{`...)
		c.key = `"content":`
		c.role = `,"role":"assistant"`
		c.end = "}"
	}
	c.common = fmt.Appendf(nil, `"created":%d,"model":%s,"object":"%s"`, created, quoted(model), object)
	c.tail = fmt.Appendf(nil, `%s,"finish_reason":null,"logprobs":null}],%s`, c.end, c.common)
	c.tail = append(appendNVExt(c.tail, c.worker, nil), "}\n\n"...)
	return c
}

// workerMember returns the member nvext.worker_id. The ids are JSON numbers that exceed a float64.
func workerMember(id sim.WorkerID) []byte {
	const member = `"worker_id":{"prefill_worker_id":%d,"prefill_dp_rank":0,` +
		`"decode_worker_id":%[1]d,"decode_dp_rank":0}`
	return fmt.Appendf(nil, member, id)
}

// appendNVExt appends the member nvext with those members that are not nil, or nothing if both are nil.
func appendNVExt(to, worker, timing []byte) []byte {
	if worker == nil && timing == nil {
		return to
	}
	to = append(append(to, `,"nvext":{`...), worker...)
	if worker != nil && timing != nil {
		to = append(to, ',')
	}
	return append(append(to, timing...), '}')
}

// text appends a chunk of text.
func (c *chunks) text(to, text []byte) []byte {
	to = append(append(to, c.head...), c.key...)
	to = appendString(to, text)
	if !c.started {
		to = append(to, c.role...)
		c.started = true
	}
	return append(to, c.tail...)
}

// finish appends the chunk with the finish reason, and with text that was held back for it. timing is the member
// nvext.timing, nil if not requested.
func (c *chunks) finish(to, text []byte, reason sim.FinishReason, timing []byte) []byte {
	to = append(to, c.head...)
	if c.end == "" || len(text) > 0 {
		to = appendString(append(to, c.key...), text)
	}
	to = fmt.Appendf(to, `%s,"finish_reason":%s,"logprobs":null}],%s`, c.end, quoted(string(reason)), c.common)
	to = appendNVExt(to, c.worker, timing)
	return append(to, "}\n\n"...)
}

// usage appends the chunk with the token counts. cached adds the number of cached tokens.
func (c *chunks) usage(to []byte, id string, r sim.Report, cached bool) []byte {
	to = fmt.Appendf(to, `data: {"id":%s,"choices":[],%s,"usage":`, quoted(id), c.common)
	to = appendUsage(to, r, cached)
	return append(to, "}\n\n"...)
}

func appendUsage(to []byte, r sim.Report, cached bool) []byte {
	to = fmt.Appendf(to, `{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d`,
		r.PromptTokens, r.OutputTokens, r.PromptTokens+r.OutputTokens)
	if cached {
		to = fmt.Appendf(to, `,"prompt_tokens_details":{"cached_tokens":%d}`, r.CachedTokens)
	}
	return append(to, '}')
}

// tokenIDs appends the event with the ids of a prompt: a JSON string in a comment.
func tokenIDs(to []byte, parts [][]uint32) []byte {
	to = append(to, "event: token_ids\n: \"["...)
	first := true
	for _, ids := range parts {
		for _, id := range ids {
			if !first {
				to = append(to, ',')
			}
			to, first = strconv.AppendUint(to, uint64(id), 10), false
		}
	}
	return append(to, "]\"\n\n"...)
}

func quoted(s string) []byte { return appendString(nil, []byte(s)) }

// appendString appends a text as a JSON string. Unlike encoding/json, which would take most of a chunk's time, it
// allocates no memory.
func appendString(to, text []byte) []byte {
	const hex = "0123456789abcdef"
	to = append(to, '"')
	for i := 0; i < len(text); {
		b := text[i]
		if b >= utf8.RuneSelf {
			r, size := utf8.DecodeRune(text[i:]) // U+FFFD for invalid UTF-8
			to, i = utf8.AppendRune(to, r), i+size
			continue
		}
		i++
		switch {
		case b == '"' || b == '\\':
			to = append(to, '\\', b)
		case b == '\n':
			to = append(to, `\n`...)
		case b < ' ':
			to = append(to, '\\', 'u', '0', '0', hex[b>>4], hex[b&15])
		default:
			to = append(to, b)
		}
	}
	return append(to, '"')
}

// timing is nvext.timing, in milliseconds of virtual time. The router's predictions are set under kv only.
type timing struct {
	Received    int64    `json:"request_received_ms"` // Unix time
	PrefillWait float64  `json:"prefill_wait_time_ms"`
	Prefill     float64  `json:"prefill_time_ms"`
	TTFT        float64  `json:"ttft_ms"`
	Total       float64  `json:"total_time_ms"`
	KVHitRate   *float64 `json:"kv_hit_rate,omitempty"`
	QueueDepth  *int     `json:"router_queue_depth,omitempty"`
}

func newTiming(received int64, r sim.Report, d *sim.Decision) timing {
	t := timing{
		Received:    received,
		PrefillWait: ms(r.Started - r.Submitted), Prefill: ms(r.FirstToken - r.Started),
		TTFT: ms(r.FirstToken - r.Submitted), Total: ms(r.Ended - r.Submitted),
	}
	if d.Mode == api.ModeKV {
		hit, depth := d.PredictedHit(), 0
		t.KVHitRate, t.QueueDepth = &hit, &depth
	}
	return t
}

// member returns the timing as a member of nvext.
func (t timing) member() []byte {
	data, err := json.Marshal(t)
	if err != nil {
		panic(err) // numbers only
	}
	return append([]byte(`"timing":`), data...)
}

// ms converts a duration to milliseconds.
func ms(span time.Duration) float64 { return float64(span) / float64(time.Millisecond) }
