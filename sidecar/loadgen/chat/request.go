package chat

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	openai "github.com/sashabaranov/go-openai"

	"kvbooth/sidecar/api"
)

// Extensions of a request that a server may refuse: usage at the end of the stream, and Dynamo's fields.
const (
	ExtStreamOptions = "stream_options"
	ExtNVExt         = "nvext"
	// ExtTokenIDs is Dynamo's annotation token_ids inside nvext, which requests the ids of the prompt's tokens. It is
	// sent with [Options].TokenIDs.
	ExtTokenIDs = "token_ids"
	// ExtContinuousUsage is a field of stream_options, of vLLM and SGLang, which requests usage in each chunk. It is used
	// where chunks hold several tokens.
	ExtContinuousUsage = "continuous_usage_stats"
)

// ExtExact is ignore_eos with min_tokens, of vLLM, SGLang, TensorRT-LLM and Dynamo: an answer is as long as its limit.
// It is sent with [Options].Planned.
const ExtExact = "ignore_eos"

// ExtMaxCompletionTokens replaces max_tokens if the server refuses it, as OpenAI does for its reasoning models.
const ExtMaxCompletionTokens = "max_completion_tokens"

// nvext is Dynamo's extension of the request.
type nvext struct {
	ExtraFields []string    `json:"extra_fields,omitempty"`
	Annotations []string    `json:"annotations,omitempty"`
	Instance    json.Number `json:"backend_instance_id,omitempty"`
	AgentHints  *agentHints `json:"agent_hints,omitempty"`
}

type agentHints struct {
	Priority json.Number `json:"priority"`
}

// wireRequest is the JSON of a request, without its messages.
type wireRequest struct {
	openai.ChatCompletionRequest
	StreamOptions map[string]any `json:"stream_options,omitempty"`

	Messages  [0]int `json:"messages"` // stands for them; see [appendMessages]
	MinTokens int    `json:"min_tokens,omitempty"`
	IgnoreEOS bool   `json:"ignore_eos,omitempty"`
	NVExt     *nvext `json:"nvext,omitempty"`
}

// extensions holds the server's model and the extensions that it accepts. It is safe for concurrent use.
type extensions struct {
	mu     sync.Mutex
	model  string
	used   map[string]bool // nil before the first probe
	length int             // max_tokens of a probe; 0 means 1
}

func (e *extensions) setModel(m string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.model = m
}

func (e *extensions) modelName() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.model
}

func (e *extensions) inUse() map[string]bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.used)
}

// add puts one more extension into use.
func (e *extensions) add(ext string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.used[ext] = true
}

func (e *extensions) set(used map[string]bool, length int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.used, e.length = used, length
}

// probeLength returns max_tokens of a probe.
func (e *extensions) probeLength() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return max(1, e.length)
}

// encode writes the request's JSON with the extensions in use and the fields of the options.
func (c *Client) encode(p *payload, req Request, used map[string]bool) error {
	to := p.buf
	w := wireRequest{
		ChatCompletionRequest: openai.ChatCompletionRequest{Model: cmp.Or(req.Model, c.Model()), Stream: true},
	}
	if used[ExtMaxCompletionTokens] {
		w.MaxCompletionTokens = req.MaxTokens
	} else {
		w.MaxTokens = req.MaxTokens //nolint:staticcheck // its successor is unknown to older servers
	}
	w.MinTokens = c.opts.MinTokens
	if req.MaxTokens > 0 {
		w.MinTokens = min(w.MinTokens, req.MaxTokens)
	}
	if req.Exact && used[ExtExact] {
		w.MinTokens, w.IgnoreEOS = req.MaxTokens, true
	}
	w.StreamOptions = c.streamOptions
	if used[ExtStreamOptions] {
		w.StreamOptions = maps.Clone(c.streamOptions)
		if w.StreamOptions == nil {
			w.StreamOptions = map[string]any{}
		}
		w.StreamOptions["include_usage"] = true
		if used[ExtContinuousUsage] {
			w.StreamOptions[ExtContinuousUsage] = true
		}
	}
	if used[ExtNVExt] {
		w.NVExt = &nvext{ExtraFields: []string{"worker_id", "timing"}, Instance: json.Number(req.Instance)}
		if used[ExtTokenIDs] && req.OnPrompt != nil {
			w.NVExt.Annotations = []string{promptEvent}
		}
		if c.opts.Priority != "" {
			w.NVExt.AgentHints = &agentHints{json.Number(c.opts.Priority)}
		}
	}
	var rest jsonText
	if err := rest.encode(w); err != nil {
		return err
	}
	at := bytes.LastIndex(rest.Bytes(), []byte(noMessages))
	to.Write(rest.Bytes()[:at])
	p.appendMessages(req)
	to.Write(rest.Bytes()[at+len(noMessages):])
	fields := c.fields
	if w.IgnoreEOS {
		fields = c.otherFields
	}
	addFields(to, fields)
	if c.opts.Session.Kind == SessionBody && req.Conversation != "" {
		field, err := json.Marshal(map[string]string{c.opts.Session.Name: req.Conversation})
		if err != nil {
			return err
		}
		addFields(to, field[1:len(field)-1])
	}
	return nil
}

// roleTool is the role of a tool's result. SMG and sglang-router refuse one without the id of its call.
const roleTool = "tool"

// noMessages is the field messages of a [wireRequest].
const noMessages = `"messages":[]`

// appendMessages writes the field messages. It encodes long texts in pieces, so that package json needs no buffer for a
// whole history, and leaves out texts of segments, which are made when the body is read. Unlike the library, it writes
// an empty content, too; servers require one.
func (p *payload) appendMessages(req Request) {
	to := p.buf
	to.Grow(historyMemory(req.Messages))
	to.WriteString(`"messages":[`)
	var piece jsonText
	for i := range req.Messages {
		m := &req.Messages[i]
		if i > 0 {
			to.WriteByte(',')
		}
		to.WriteString(`{"role":`)
		piece.append(to, m.Role)
		to.WriteString(`,"content":`)
		if len(m.Segments) > 0 {
			to.WriteByte('"')
			p.gaps = append(p.gaps, gap{to.Len(), made{p.words, req.Salt, m.Segments, 0}})
			p.made += p.words.size(m.Segments)
			to.WriteByte('"')
		} else {
			piece.append(to, m.Text)
		}
		if m.Role == roleTool {
			fmt.Fprintf(to, `,"tool_call_id":"call%05d"`, i) // of nine characters, as some templates require
		}
		to.WriteByte('}')
	}
	to.WriteByte(']')
}

// historyMemory returns the memory of messages in a request in bytes, with room for escapes.
func historyMemory(messages []Message) (n int) {
	for i := range messages {
		n += len(messages[i].Text) + len(messages[i].Text)/8 + 64
	}
	return n
}

// jsonText is a buffer for JSON without escapes for HTML: it is shorter, and no server needs them.
type jsonText struct{ bytes.Buffer }

// encode replaces the text by the JSON of v and a line feed.
func (t *jsonText) encode(v any) error {
	t.Reset()
	e := json.NewEncoder(t)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// append writes a text as a JSON string, in pieces that end between characters.
func (t *jsonText) append(to *bytes.Buffer, text string) {
	const most = 8 << 10
	to.WriteByte('"')
	for text != "" {
		n := min(len(text), most)
		for n < len(text) && n > most-utf8.UTFMax && !utf8.RuneStart(text[n]) {
			n--
		}
		_ = t.encode(text[:n]) // a string always has a JSON form
		to.Write(t.Bytes()[1 : t.Len()-2])
		text = text[n:]
	}
	to.WriteByte('"')
}

// addFields appends fields, JSON without the braces, to the object in the buffer.
func addFields(to *bytes.Buffer, fields []byte) {
	if len(fields) == 0 {
		return
	}
	to.Truncate(bytes.LastIndexByte(to.Bytes(), '}'))
	to.WriteByte(',')
	to.Write(fields)
	to.WriteString("}\n")
}

// Probe checks whether the server can serve. It uses the first listed model if the options name none, and requests one
// token with every extension. If the server refuses, Probe changes the length, drops an extension, or names the limit
// max_completion_tokens; see [attempt.after]. An extension that the server ignores is not in use. The result applies to
// later requests. [Client.Probes] counts the requests of probes.
func (c *Client) Probe(ctx context.Context) *Error {
	if err := c.findModel(ctx); err != nil {
		return err
	}
	try := attempt{used: map[string]bool{ExtStreamOptions: true, ExtNVExt: true}, length: c.ext.probeLength()}
	try.used[ExtTokenIDs], try.used[ExtExact] = c.opts.TokenIDs, c.planned.Load()
	for tries := 1; ; tries++ {
		r, body, shown := c.probeWith(ctx, try)
		if r.Cancelled { // by the caller, or one token took longer than every limit
			return &Error{
				Class: api.ErrorTimeout,
				Message: "the probe was cut short before its answer ended; the server ignores max_tokens, or the " +
					"load generator " +
					"is stopping",
			}
		}
		if r.Err == nil || r.Err.Class == api.ErrorEmpty { // all tokens may be hidden
			used := try.used
			used[ExtNVExt] = used[ExtNVExt] && (shown.instance || r.Timing.HasTTFT)
			used[ExtStreamOptions] = used[ExtStreamOptions] && shown.usage != nil
			if c.opts.TokenIDs {
				used[ExtTokenIDs] = shown.ids
				used[ExtNVExt] = used[ExtNVExt] || shown.ids
			}
			c.recognize(ctx, shown)
			c.ext.set(used, try.length)
			c.bundled.Store(0)
			return nil
		}
		next, again := try.after(newObjection(r.Err, body))
		if !again || tries == mostAttempts {
			if r.Err.isRefusal() {
				return r.Err
			}
			return cmp.Or(try.reason, r.Err)
		}
		try = next
	}
}

// shown is what the answer to a probe has beside its result.
type shown struct {
	ids      bool   // of the prompt's tokens
	instance bool   // Dynamo's, in nvext
	worker   string // by what it is known, as in [Recognized]
	header   http.Header
	usage    *counts // nil: none
	eachHas  bool    // a content chunk had usage
}

// recognize identifies the server.
func (c *Client) recognize(ctx context.Context, s shown) {
	var found Recognized
	if c.opts.Recognize != nil {
		found = c.opts.Recognize(Evidence{
			Header: s.header, Instance: s.instance,
			Get: func(path string) (status int, body []byte) {
				status, _, body, _ = c.get(ctx, c.Root()+path)
				return status, body
			},
		})
	}
	found.Worker, found.Cached = s.worker, s.usage != nil && s.usage.hasCached
	found.ContextTokens = c.contextTokens(ctx)
	if c.planned.Load() {
		words := c.checkWords(ctx)
		c.words.Store(words)
		found.Tokenizer = words.confirmed
	}
	c.found.Store(&found)
}

// probeWith sends one request. It also returns the body of a failed answer.
func (c *Client) probeWith(ctx context.Context, try attempt) (r Result, body string, has shown) {
	req := Request{
		ID: "kvbooth-probe", MaxTokens: try.length,
		Messages: []Message{{Role: RoleUser, Text: "Hello."}}, Exact: true,
	}
	if try.used[ExtTokenIDs] {
		req.OnPrompt = func([]uint32) { has.ids = true }
	}
	ctx, cancel := context.WithTimeout(ctx, c.opts.FirstTokenTimeout+time.Second)
	defer cancel()
	if c.opts.Instance != nil {
		req.Instance = c.opts.Instance(ctx)
	}
	c.probes.Add(1)
	s := newStream(req)
	r = c.send(ctx, s, try.used)
	has.instance, has.worker, has.header = s.instance != 0, s.workerFrom, s.header
	has.usage, has.eachHas = s.usage, s.completion > 0
	return r, cmp.Or(string(s.errBody), string(s.stray)), has
}

// bundlesFrom is the number of answers with several tokens in a chunk from which usage is requested in each chunk.
const bundlesFrom = 3

// countChunks requests usage in each chunk from now on, if the answers' chunks hold several tokens and the server takes
// the request. It probes once, after the answer that shows the need.
func (c *Client) countChunks(ctx context.Context, r *Result) {
	used := c.ext.inUse()
	if _, given := c.streamOptions[ExtContinuousUsage]; given || !used[ExtStreamOptions] || used[ExtContinuousUsage] ||
		!r.bundled() || c.bundled.Add(1) != bundlesFrom {
		return
	}
	try := attempt{used: maps.Clone(used), length: c.ext.probeLength()}
	try.used[ExtContinuousUsage] = true
	answer, _, shown := c.probeWith(ctx, try)
	switch {
	case answer.OK() && shown.eachHas:
		c.ext.add(ExtContinuousUsage)
	case answer.Cancelled:
		c.bundled.Store(0) // a later answer makes the probe
	}
}

// attempt holds the parameters of one request of a probe.
type attempt struct {
	used   map[string]bool
	length int    // tokens
	reason *Error // the first failure whose cause may be an extension
}

// mostAttempts limits the requests of one probe: four extensions, the name of the limit, and lengths.
const mostAttempts = 13

// after returns the attempt that follows a failed one; again is false if no other attempt can help.
//
// It first changes the fields that the failure names: it drops an extension, raises the limit, or renames it. After a
// refusal without a field it raises the length, and then drops the extensions one by one, least supported first. After
// a failure that may be a refusal (500, or an error without a status in an answer 200) it drops Dynamo's extensions,
// and then the last one.
func (a attempt) after(r objection) (next attempt, again bool) {
	next = attempt{maps.Clone(a.used), a.length, a.reason}
	for _, f := range r.faults {
		if (r.listed || !again) && (f.field != fieldLimit || r.mayNameLimit()) {
			again = next.change(f) || again
		}
	}
	switch {
	case again:
		return next, true
	case r.isRefusal():
		return next, next.lengthen(r.words) || next.drop(ExtExact) || next.drop(ExtTokenIDs) ||
			next.drop(ExtNVExt) || next.drop(ExtStreamOptions)
	case r.mayBeRefusal():
		next.reason = cmp.Or(a.reason, r.Error)
		return next, next.drop(ExtExact) || next.drop(ExtNVExt) || next.drop(ExtStreamOptions)
	}
	return next, false
}

// change reacts to a fault. It reports false if it reacted to the same fault before.
func (a *attempt) change(f fault) bool {
	if f.field != fieldLimit {
		return a.drop(f.field)
	}
	renames := !a.used[ExtMaxCompletionTokens]
	switch least := leastLength(f.words, a.length); {
	case least > 0:
		a.length = least
	case renames && unsupported.MatchString(f.words):
		a.used[ExtMaxCompletionTokens] = true
	case a.length < commonLeast:
		a.length = commonLeast
	default:
		a.used[ExtMaxCompletionTokens] = true
		return renames
	}
	return true
}

// drop removes an extension, and with nvext its annotations. It reports false if the extension is not in use.
func (a *attempt) drop(ext string) bool {
	used := a.used[ext]
	a.used[ext] = false
	if ext == ExtNVExt {
		a.used[ExtTokenIDs] = false
	}
	return used
}

// lengthen raises the length to the minimum in a text, or to a common minimum. It reports whether the length changed.
func (a *attempt) lengthen(words string) bool {
	before := a.length
	a.length = max(a.length, commonLeast, leastLength(words, a.length))
	return a.length > before
}

// findModel sets the first listed model if the options name none. Every probe repeats it, since a restarted server may
// serve another model.
func (c *Client) findModel(ctx context.Context) *Error {
	if c.opts.Model != "" {
		return nil
	}
	models, err := c.Models(ctx)
	if err != nil && err.noList() && c.Model() != "" {
		return nil // another server listed the model
	}
	if err != nil {
		return err
	}
	if len(models) == 0 {
		return &Error{
			Class:   api.ErrorHTTP4xx,
			Message: "the server lists no model yet; wait until its workers are up, or set target.model",
		}
	}
	i := slices.IndexFunc(models, func(id string) bool { return id != "" && !strings.EqualFold(id, "unknown") })
	if i < 0 {
		return &Error{
			Class:   api.ErrorHTTP4xx,
			Message: "the server lists no model by its name; set target.model to the one that its workers serve",
		}
	}
	c.ext.setModel(models[i])
	return nil
}
