package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
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

type wireRequest struct {
	openai.ChatCompletionRequest
	NVExt *nvext `json:"nvext,omitempty"`
}

// extensions are what is known of the server: its model, and what it accepts.
type extensions struct {
	mu    sync.Mutex
	model string
	used  map[string]bool // nil before the first probe
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

func (e *extensions) set(used map[string]bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.used = used
}

// encode writes the request's JSON with the extensions in use.
func encode(to *bytes.Buffer, req Request, model string, used map[string]bool) error {
	w := wireRequest{ChatCompletionRequest: openai.ChatCompletionRequest{Model: model, Messages: req.Messages, Stream: true}}
	if used[ExtMaxCompletionTokens] {
		w.MaxCompletionTokens = req.MaxTokens
	} else {
		w.MaxTokens = req.MaxTokens //nolint:staticcheck // its successor is unknown to older servers
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
	return e.Encode(w)
}

// Probe finds out whether the server can serve: it takes the first model where
// none was given, and asks for one token with every extension, dropping one at
// a time as long as the server answers 400. An extension that the server
// ignores is not in use. A server that refuses max_tokens by its name is asked with
// max_completion_tokens. What it finds holds for later requests.
func (c *Client) Probe(ctx context.Context) *Error {
	if err := c.findModel(ctx); err != nil {
		return err
	}
	used := map[string]bool{ExtStreamOptions: true, ExtNVExt: true}
	if c.opts.TokenIDs {
		used[ExtTokenIDs] = true
	}
	for {
		r, ids := c.probeWith(ctx, used)
		if r.Cancelled { // by the caller, or because one token took longer than every limit
			return &Error{Class: api.ErrorTimeout, Message: "the probe was cut short before its answer ended; the server ignores max_tokens, or the load generator is stopping"}
		}
		if r.Err == nil {
			used[ExtNVExt] = used[ExtNVExt] && (r.Worker != 0 || r.Timing.HasTTFT)
			used[ExtStreamOptions] = used[ExtStreamOptions] && r.Usage != nil
			if c.opts.TokenIDs {
				used[ExtTokenIDs] = ids
				used[ExtNVExt] = used[ExtNVExt] || ids
			}
			c.ext.set(used)
			return nil
		}
		change := refused(r.Err, used)
		if change == "" {
			return r.Err
		}
		used[change] = change == ExtMaxCompletionTokens
	}
}

// probeWith says with the result whether the ids of the prompt came.
func (c *Client) probeWith(ctx context.Context, used map[string]bool) (r Result, ids bool) {
	req := Request{
		ID: "kvbooth-probe", MaxTokens: 1,
		Messages: []openai.ChatCompletionMessage{{Role: openai.ChatMessageRoleUser, Content: "Hello."}},
	}
	if used[ExtTokenIDs] {
		req.OnPrompt = func([]uint32) { ids = true }
	}
	ctx, cancel := context.WithTimeout(ctx, c.opts.FirstTokenTimeout+time.Second)
	defer cancel()
	r = c.send(ctx, req, used)
	return r, ids
}

// refused says which extension to drop after an error: the one that the server
// names, else token_ids first and then nvext, since fewer servers know them. One is taken up instead, and
// only where the server names what it stands for: max_completion_tokens. "" means
// none is to blame.
func refused(e *Error, used map[string]bool) string {
	if e.Status != http.StatusBadRequest && e.Status != http.StatusUnprocessableEntity {
		return ""
	}
	if used[ExtTokenIDs] && (strings.Contains(e.Message, promptEvent) || strings.Contains(e.Message, "annotations")) {
		return ExtTokenIDs
	}
	for _, ext := range []string{ExtNVExt, ExtStreamOptions} {
		if used[ext] && strings.Contains(e.Message, ext) {
			return ext
		}
	}
	if !used[ExtMaxCompletionTokens] && maxTokensField.MatchString(e.Message) {
		return ExtMaxCompletionTokens
	}
	for _, ext := range []string{ExtTokenIDs, ExtNVExt, ExtStreamOptions} {
		if used[ext] {
			return ext
		}
	}
	return ""
}

// maxTokensField finds the field among a server's words, and not max_completion_tokens.
var maxTokensField = regexp.MustCompile(`\bmax_tokens\b`)

// findModel takes the server's first model where the options name none, anew
// on every probe, since a restarted server may serve another one.
func (c *Client) findModel(ctx context.Context) *Error {
	if c.opts.Model != "" {
		return nil
	}
	models, err := c.Models(ctx)
	if err != nil {
		return err
	}
	if len(models) == 0 {
		return &Error{Class: api.ErrorHTTP4xx, Message: "the server lists no model yet; wait until its workers are up, or set target.model"}
	}
	c.ext.setModel(models[0])
	return nil
}
