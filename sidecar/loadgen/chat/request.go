package chat

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"kvbooth/sidecar/api"
)

// The extensions of a request that a server may refuse: usage at the stream's
// end, and Dynamo's own fields.
const (
	ExtStreamOptions = "stream_options"
	ExtNVExt         = "nvext"
	// ExtTokenIDs is Dynamo's annotation of that name, inside nvext: it tells the ids of the
	// prompt's tokens. It is asked for where [Options].TokenIDs says so.
	ExtTokenIDs = "token_ids"
)

// ExtMaxCompletionTokens is in use where the server refuses max_tokens, as OpenAI does
// for its reasoning models: the limit of an answer is then sent under this name.
const ExtMaxCompletionTokens = "max_completion_tokens"

// nvext is Dynamo's extension of the request.
type nvext struct {
	ExtraFields []string    `json:"extra_fields,omitempty"`
	Annotations []string    `json:"annotations,omitempty"`
	Instance    json.Number `json:"backend_instance_id,omitempty"`
}

// wireRequest is a request as it is sent. Its messages stand in the place of the library's, which
// leaves out an empty content; servers require one.
type wireRequest struct {
	openai.ChatCompletionRequest
	Messages  []message `json:"messages"`
	MinTokens int       `json:"min_tokens,omitempty"`
	NVExt     *nvext    `json:"nvext,omitempty"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// extensions are what is known of the server: its model, and what it accepts.
type extensions struct {
	mu     sync.Mutex
	model  string
	used   map[string]bool // nil before the first probe
	length int             // tokens that a probe asks for; 0: one
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

func (e *extensions) set(used map[string]bool, length int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.used, e.length = used, length
}

// probeLength is how many tokens a probe asks for.
func (e *extensions) probeLength() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return max(1, e.length)
}

// encode writes the request's JSON with the extensions in use and the fields of the options.
func (c *Client) encode(to *bytes.Buffer, req Request, used map[string]bool) error {
	w := wireRequest{
		ChatCompletionRequest: openai.ChatCompletionRequest{Model: c.Model(), Stream: true},
		Messages:              make([]message, len(req.Messages)),
	}
	for i, m := range req.Messages {
		w.Messages[i] = message{m.Role, m.Content}
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
	if used[ExtStreamOptions] {
		w.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	}
	if used[ExtNVExt] {
		w.NVExt = &nvext{ExtraFields: []string{"worker_id", "timing"}, Instance: json.Number(req.Instance)}
		if used[ExtTokenIDs] && req.OnPrompt != nil {
			w.NVExt.Annotations = []string{promptEvent}
		}
	}
	e := json.NewEncoder(to)
	e.SetEscapeHTML(false) // shorter, and no server needs it
	if err := e.Encode(w); err != nil || len(c.fields) == 0 {
		return err
	}
	to.Truncate(bytes.LastIndexByte(to.Bytes(), '}'))
	to.WriteByte(',')
	to.Write(c.fields)
	to.WriteString("}\n")
	return nil
}

// Probe finds out whether the server can serve: it takes the first model where none was given,
// and asks for one token with every extension. As long as the server refuses that, it asks for
// another length, drops an extension, or names the limit max_completion_tokens; see
// [attempt.after]. An extension that the server ignores is not in use. What it finds holds for
// later requests. [Client.Probes] counts what it sends.
func (c *Client) Probe(ctx context.Context) *Error {
	if err := c.findModel(ctx); err != nil {
		return err
	}
	try := attempt{used: map[string]bool{ExtStreamOptions: true, ExtNVExt: true}, length: c.ext.probeLength()}
	if c.opts.TokenIDs {
		try.used[ExtTokenIDs] = true
	}
	for tries := 1; ; tries++ {
		r, body, ids := c.probeWith(ctx, try)
		if r.Cancelled { // by the caller, or because one token took longer than every limit
			return &Error{
				Class: api.ErrorTimeout,
				Message: "the probe was cut short before its answer ended; the server ignores max_tokens, or the load generator " +
					"is stopping",
			}
		}
		if r.Err == nil || r.Err.Class == api.ErrorEmpty { // the few tokens may all be hidden
			used := try.used
			used[ExtNVExt] = used[ExtNVExt] && (r.Worker != 0 || r.Timing.HasTTFT)
			used[ExtStreamOptions] = used[ExtStreamOptions] && r.Usage != nil
			if c.opts.TokenIDs {
				used[ExtTokenIDs] = ids
				used[ExtNVExt] = used[ExtNVExt] || ids
			}
			c.ext.set(used, try.length)
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

// probeWith returns with the result the body of a failed answer, and whether the ids of the prompt came.
func (c *Client) probeWith(ctx context.Context, try attempt) (r Result, body string, ids bool) {
	req := Request{
		ID: "kvbooth-probe", MaxTokens: try.length,
		Messages: []openai.ChatCompletionMessage{{Role: openai.ChatMessageRoleUser, Content: "Hello."}},
	}
	if try.used[ExtTokenIDs] {
		req.OnPrompt = func([]uint32) { ids = true }
	}
	ctx, cancel := context.WithTimeout(ctx, c.opts.FirstTokenTimeout+time.Second)
	defer cancel()
	c.probes.Add(1)
	s := newStream(req)
	r = c.send(ctx, s, try.used)
	return r, cmp.Or(string(s.errBody), string(s.stray)), ids
}

// attempt is what one request of a probe asks for.
type attempt struct {
	used   map[string]bool
	length int    // tokens
	reason *Error // the first failure that does not say whether an extension caused it
}

// mostAttempts bounds the requests of one probe: three extensions, the name of the limit, and lengths.
const mostAttempts = 12

// after gives the attempt after one that failed; again is false where another one cannot help.
//
// Fields that the failure names are changed first: an extension is dropped, the limit is raised or gets its other name.
// A refusal that names nothing raises the length first, and then drops the extensions one by one, those first that
// fewer servers know. A failure that may be a refusal (500, an answer 200 with an error without a status) drops
// Dynamo's extensions, and then the last one.
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
		return next, next.lengthen(r.words) || next.drop(ExtTokenIDs) || next.drop(ExtNVExt) || next.drop(ExtStreamOptions)
	case r.mayBeRefusal():
		next.reason = cmp.Or(a.reason, r.Error)
		return next, next.drop(ExtNVExt) || next.drop(ExtStreamOptions)
	}
	return next, false
}

// change answers a fault; false where it was answered before.
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

// drop takes an extension out of use, and with nvext what is inside it; false where it is not in use.
func (a *attempt) drop(ext string) bool {
	used := a.used[ext]
	a.used[ext] = false
	if ext == ExtNVExt {
		a.used[ExtTokenIDs] = false
	}
	return used
}

// lengthen raises the length to what words ask for, or to what many servers do; false where it is that long.
func (a *attempt) lengthen(words string) bool {
	before := a.length
	a.length = max(a.length, commonLeast, leastLength(words, a.length))
	return a.length > before
}

// findModel takes the server's first model where the options name none, anew
// on every probe, since a restarted server may serve another one.
func (c *Client) findModel(ctx context.Context) *Error {
	if c.opts.Model != "" {
		return nil
	}
	models, err := c.Models(ctx)
	if err != nil && err.noList() && c.Model() != "" {
		return nil // the model was found elsewhere
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
