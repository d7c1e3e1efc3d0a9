package chat

import (
	"context"
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"kvbooth/sidecar/api"
)

const (
	usageEvent  = `data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}` + "\n\n"
	workerEvent = `data: {"choices":[{"delta":{"content":"a"}}],"nvext":{"worker_id":{"decode_worker_id":9}}}` + "\n\n"
)

// asked says which extensions a request carries.
func asked(body []byte) map[string]bool {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(body, &fields)
	return map[string]bool{ExtNVExt: fields[ExtNVExt] != nil, ExtStreamOptions: fields[ExtStreamOptions] != nil}
}

// As OpenAI's API says it (400, invalid_request_error, unsupported_parameter).
const (
	refusesMaxTokens = `{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. ` +
		`Use 'max_completion_tokens' instead.","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}`
	refusesNVExt = `{"error":{"message":"Unrecognized request argument supplied: nvext","type":"invalid_request_error","param":null,"code":null}}` //nolint:misspell // OpenAI's own words
)

// limits are the fields of a request that say how long the answer may be.
func limits(body []byte) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(body, &fields)
	maps.DeleteFunc(fields, func(name string, _ json.RawMessage) bool { return !strings.HasPrefix(name, "max_") })
	return fields
}

// A server that refuses max_tokens is asked with max_completion_tokens, in the probe and
// in every request after it; what it says of both fields and of nvext is dealt with one
// at a time.
func TestProbeMaxCompletionTokens(t *testing.T) {
	for name, row := range map[string]struct {
		first    string // what is refused first
		requests int32
	}{
		"max_tokens alone":       {requests: 2},
		"max_tokens, then nvext": {first: refusesMaxTokens, requests: 3},
		"nvext, then max_tokens": {first: refusesNVExt, requests: 3},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(c call) bool {
				tokens, nvext := limits(c.body)["max_tokens"] != nil, row.first != "" && asked(c.body)[ExtNVExt]
				switch {
				case nvext && (!tokens || row.first == refusesNVExt):
					return always(withLength(400, "", refusesNVExt))(c)
				case tokens:
					return always(withLength(400, "", refusesMaxTokens))(c)
				}
				return always(answerOf(event("a"), workerEvent, usageEvent, doneEvent))(c)
			})
			c := clientOf(t, s.url)
			if err := c.Probe(t.Context()); err != nil {
				t.Fatal(err)
			}
			want := map[string]bool{ExtNVExt: row.first == "", ExtStreamOptions: true, ExtMaxCompletionTokens: true}
			if !maps.Equal(c.Extensions(), want) {
				t.Errorf("in use %v, want %v", c.Extensions(), want)
			}
			if n := s.requests.Load(); n != row.requests {
				t.Errorf("%d requests, want %d", n, row.requests)
			}
			if r := c.Do(t.Context(), Request{Messages: hello(), MaxTokens: 7}); !r.OK() {
				t.Error(r.Err)
			}
			p, err := newPayload(Request{Messages: hello(), MaxTokens: 7}, c.Model(), c.Extensions())
			if err != nil {
				t.Fatal(err)
			}
			if got := limits(p.buf.Bytes()); len(got) != 1 || string(got["max_completion_tokens"]) != "7" {
				t.Errorf("later requests limit their answers by %s", got)
			}
		})
	}
}

// Who refuses both names gets no third request for them, and the error is the server's.
func TestProbeNeitherLimit(t *testing.T) {
	s := serve(t, func(c call) bool {
		if limits(c.body)["max_tokens"] != nil {
			return always(withLength(400, "", refusesMaxTokens))(c)
		}
		return always(withLength(400, "", `{"error":{"message":"unknown field max_completion_tokens"}}`))(c)
	})
	err := clientOf(t, s.url).Probe(t.Context())
	if wantError(t, err, api.ErrorHTTP4xx); err != nil && !strings.Contains(err.Message, "unknown field max_completion_tokens") {
		t.Error(err)
	}
	if n := s.requests.Load(); n != 4 { // both other extensions are dropped before it gives up
		t.Errorf("%d requests", n)
	}
}

// refusing answers 400 with these words as long as an extension among them is asked for.
func refusing(words string, extensions ...string) func(call) bool {
	return func(c call) bool {
		for _, ext := range extensions {
			if asked(c.body)[ext] {
				return always(withLength(400, "", `{"error":{"message":"`+words+`"}}`))(c)
			}
		}
		events := []string{event("a")}
		if asked(c.body)[ExtNVExt] {
			events = append(events, workerEvent)
		}
		if asked(c.body)[ExtStreamOptions] {
			events = append(events, usageEvent)
		}
		return always(answerOf(append(events, doneEvent)...))(c)
	}
}

func TestProbe(t *testing.T) {
	for _, row := range []struct {
		name          string
		answer        func(call) bool
		nvext, stream bool
		requests      int32
	}{
		{"Dynamo knows all", refusing(""), true, true, 1},
		{"a server that ignores what it does not know", always(answerOf(event("a"), usageEvent, doneEvent)), false, true, 1},
		{"a server that ignores everything", always(oneToken), false, false, 1},
		{"it refuses nvext by name", refusing("extra field nvext", ExtNVExt), false, true, 2},
		{"it refuses stream_options by name", refusing("unknown: stream_options", ExtStreamOptions), true, false, 2},
		{"it refuses nvext without naming it", refusing("bad request", ExtNVExt), false, true, 2},
		{"it refuses both, one after the other", refusing("bad request", ExtNVExt, ExtStreamOptions), false, false, 3},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := serve(t, row.answer)
			c := clientOf(t, s.url)
			if err := c.Probe(t.Context()); err != nil {
				t.Fatal(err)
			}
			if want := map[string]bool{ExtNVExt: row.nvext, ExtStreamOptions: row.stream}; !maps.Equal(c.Extensions(), want) {
				t.Errorf("in use %v, want %v", c.Extensions(), want)
			}
			if n := s.requests.Load(); n != row.requests {
				t.Errorf("%d requests, want %d", n, row.requests)
			}
			p, err := newPayload(Request{Messages: hello(), Instance: "7"}, c.Model(), c.Extensions())
			if err != nil {
				t.Fatal(err)
			}
			if want := c.Extensions(); !maps.Equal(asked(p.buf.Bytes()), want) {
				t.Errorf("later requests ask for %s, want %v", p.buf, want)
			}
		})
	}
}

// A probe that fails says why, sends a bounded number of requests, and changes nothing.
func TestProbeFails(t *testing.T) {
	for _, row := range []struct {
		name     string
		answer   func(call) bool
		class    api.ErrorClass
		status   int
		requests int32
	}{
		{"400 whatever is asked", always(withLength(400, "", "no")), api.ErrorHTTP4xx, 400, 3},
		{"422 whatever is asked", always(withLength(422, "", "no")), api.ErrorHTTP4xx, 422, 3},
		{"401", always(withLength(401, "", "")), api.ErrorHTTP4xx, 401, 1},
		{"404", always(withLength(404, "", "")), api.ErrorHTTP4xx, 404, 1},
		{"429", always(withLength(429, "", "")), api.ErrorRateLimited, 429, 1},
		{"503", always(withLength(503, "", "")), api.ErrorHTTP5xx, 503, 1},
		{"no stream", always(withLength(200, "Content-Type: text/html\r\n", "<html>")), api.ErrorMalformed, 200, 1},
		{"silence", call.hold, api.ErrorTimeout, 0, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, row.answer)
			c := clientOf(t, s.url, func(o *Options) {
				if row.class == api.ErrorTimeout {
					o.FirstTokenTimeout = 100 * time.Millisecond
				}
			})
			before := map[string]bool{ExtNVExt: true}
			c.ext.set(before)
			err := c.Probe(t.Context())
			wantError(t, err, row.class)
			if err != nil && err.Status != row.status {
				t.Errorf("status %d", err.Status)
			}
			if n := s.requests.Load(); n != row.requests {
				t.Errorf("%d requests, want %d", n, row.requests)
			}
			if !maps.Equal(c.Extensions(), before) {
				t.Errorf("in use %v", c.Extensions())
			}
		})
	}
}

func TestProbeCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := serve(t, func(c call) bool { cancel(); return c.hold() })
	c := clientOf(t, s.url)
	if err := c.Probe(ctx); err == nil || !strings.Contains(err.Message, "cut short") || c.Extensions() != nil {
		t.Errorf("got %v, extensions %v; a cancelled probe proves nothing", err, c.Extensions())
	}
}

func TestProbeFindsTheModel(t *testing.T) {
	models := make(chan string, 9)
	served := func(c call) bool {
		if c.req.URL.Path == "/v1/models" {
			if c.req.Header.Get("Authorization") != "Bearer key" {
				c.write(withLength(401, "", ""))
			}
			c.write(withLength(200, "Content-Type: application/json\r\nConnection: close\r\n", <-models))
			return false
		}
		var body struct{ Model string }
		_ = json.Unmarshal(c.body, &body)
		return always(answerOf(event(body.Model), usageEvent, doneEvent))(c)
	}
	s := serve(t, served)
	c := clientOf(t, s.url, func(o *Options) { o.Model, o.APIKey = "", "key" })
	models <- `{"object":"list","data":[{"id":"llama","object":"model"},{"id":"qwen"}]}`
	if err := c.Probe(t.Context()); err != nil || c.Model() != "llama" {
		t.Fatalf("got %q, %v", c.Model(), err)
	}
	if r := do(t, c); r.Content != "llama" {
		t.Errorf("the model asked for is %q", r.Content)
	}
	models <- `{"data":[{"id":"qwen"}]}` // the server was restarted with another one
	if err := c.Probe(t.Context()); err != nil || c.Model() != "qwen" {
		t.Errorf("got %q, %v", c.Model(), err)
	}
	models <- `{"data":[]}`
	wantError(t, c.Probe(t.Context()), api.ErrorHTTP4xx, "lists no model yet")
	models <- `<html>`
	wantError(t, c.Probe(t.Context()), api.ErrorMalformed, "/v1/models is not a list of models")
	if c.Model() != "qwen" {
		t.Errorf("a failed probe left the model %q", c.Model())
	}
}

func TestModelsFails(t *testing.T) {
	for _, row := range []struct {
		name   string
		answer func(call) bool
		class  api.ErrorClass
		says   string
	}{
		{"401", always(withLength(401, "", "")), api.ErrorHTTP4xx, "LOADGEN_TARGET_API_KEY"},
		{"404", always(withLength(404, "", "")), api.ErrorHTTP4xx, "target.url"},
		{"302 is not followed", always(withLength(302, "Location: /\r\n", "")), api.ErrorMalformed, "answered 302"},
		{"503", always(withLength(503, "Retry-After: 3\r\n", "")), api.ErrorHTTP5xx, "retry after 3s"},
		{"silence", call.hold, api.ErrorTimeout, "accepts connections but does not answer"},
		{"closes", func(call) bool { return false }, api.ErrorConnect, "did not answer"},
		{"closes within the body", func(c call) bool { c.write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"); return false }, api.ErrorConnect, "did not answer"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, row.answer)
			c := clientOf(t, s.url, func(o *Options) {
				if row.class == api.ErrorTimeout {
					o.ConnectTimeout = 200 * time.Millisecond
				}
			})
			_, err := c.Models(t.Context())
			wantError(t, err, row.class, row.says)
		})
	}
}
