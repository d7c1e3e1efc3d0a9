package chat

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
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
	for {
		r, ids := c.probeWith(ctx, try)
		if r.Cancelled { // by the caller, or because one token took longer than every limit
			return &Error{Class: api.ErrorTimeout, Message: "the probe was cut short before its answer ended; the server ignores max_tokens, or the load generator is stopping"}
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
		next, again := try.after(r.Err)
		if !again {
			return cmp.Or(try.reason, r.Err)
		}
		try = next
	}
}

// probeWith returns with the result whether the ids of the prompt came.
func (c *Client) probeWith(ctx context.Context, try attempt) (r Result, ids bool) {
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
	r = c.send(ctx, req, try.used)
	return r, ids
}

// attempt is what one request of a probe asks for.
type attempt struct {
	used   map[string]bool
	length int    // tokens
	reason *Error // the first failure that does not say whether an extension caused it
}

const (
	// commonLeast is the least length of an answer that OpenAI's API takes.
	commonLeast = 16
	// mostLeast bounds what a server may ask for as the least length.
	mostLeast = 4096
)

// after gives the attempt after one that failed; again is false where another one cannot help.
//
// A refusal (400, 422, or an answer 200 with such a code) that names an extension drops it, one
// that speaks of the length raises it, and one that names max_tokens uses
// max_completion_tokens. One that names nothing raises the length first, and then drops the
// extensions one by one, those first that fewer servers know. A failure that is no refusal (500, or an
// error without a code) is followed by one attempt without any extension.
func (a attempt) after(e *Error) (next attempt, again bool) {
	next = attempt{maps.Clone(a.used), a.length, a.reason}
	named := a.named(e.Message)
	switch {
	case a.reason != nil:
		return a, false
	case named != "" && (e.Status == http.StatusOK || e.Status >= http.StatusBadRequest):
		next.used[named] = false
		return next, true
	case e.isRefusal():
		return next, next.change(e.Message)
	case e.mayBeRefusal() && a.extended():
		next.reason = e
		for _, ext := range optional {
			next.used[ext] = false
		}
		return next, true
	}
	return a, false
}

// optional are the extensions that an attempt may drop, in this order.
var optional = []string{ExtTokenIDs, ExtNVExt, ExtStreamOptions}

func (a attempt) extended() bool {
	return slices.ContainsFunc(optional, func(ext string) bool { return a.used[ext] })
}

// named is the extension in use that a message names, "" where there is none.
func (a attempt) named(message string) string {
	if a.used[ExtTokenIDs] && (strings.Contains(message, promptEvent) || strings.Contains(message, "annotations")) {
		return ExtTokenIDs
	}
	for _, ext := range []string{ExtNVExt, ExtStreamOptions} {
		if a.used[ext] && strings.Contains(message, ext) {
			return ext
		}
	}
	return ""
}

// change makes one change after a refusal that names no extension; false where none is left.
func (a *attempt) change(message string) bool {
	limited := maxTokensField.MatchString(message) && !a.used[ExtMaxCompletionTokens]
	least := leastLength(message)
	switch {
	case limited && unsupported.MatchString(message):
		a.used[ExtMaxCompletionTokens] = true
	case least > a.length:
		a.length = least
	case limited:
		a.used[ExtMaxCompletionTokens] = true
	case a.length < commonLeast:
		a.length = commonLeast
	default:
		i := slices.IndexFunc(optional, func(ext string) bool { return a.used[ext] })
		if i < 0 {
			return false
		}
		a.used[optional[i]] = false
	}
	return true
}

// leastLength is the least length of an answer that a message speaks of; 0 where it does not.
func leastLength(message string) int {
	if !lengthWords.MatchString(message) {
		return 0
	}
	if m := leastNumber.FindStringSubmatch(message); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil && n <= mostLeast {
			return max(n, 1)
		}
	}
	return commonLeast
}

var (
	// lengthWords say that the least length is what a server refuses, or that the limit was
	// reached before an answer began.
	lengthWords = regexp.MustCompile(`(?i)minimum|at least|below|>=|greater than|too (small|short|low)|limit was reached`)
	leastNumber = regexp.MustCompile(`(?i)(?:>= *|at least |greater than or equal to |minimum(?: value)?(?: is| of|:)? *)(\d+)`)
	// unsupported says that a server does not know a field at all.
	unsupported = regexp.MustCompile(`(?i)max_completion_tokens|unsupported|not supported|unknown|unrecogni[sz]ed|not permitted|deprecated`)
)

// maxTokensField finds the field among a server's words, and not max_completion_tokens.
var maxTokensField = regexp.MustCompile(`\bmax_tokens\b`)

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
		return &Error{Class: api.ErrorHTTP4xx, Message: "the server lists no model yet; wait until its workers are up, or set target.model"}
	}
	i := slices.IndexFunc(models, func(id string) bool { return id != "" && !strings.EqualFold(id, "unknown") })
	if i < 0 {
		return &Error{Class: api.ErrorHTTP4xx, Message: "the server lists no model by its name; set target.model to the one that its workers serve"}
	}
	c.ext.setModel(models[i])
	return nil
}
