package chat

import (
	"context"
	"encoding/json"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

const (
	usageEvent  = `data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}` + "\n\n"
	workerEvent = `data: {"choices":[{"delta":{"content":"a"}}],"nvext":{"worker_id":{"decode_worker_id":9}}}` + "\n\n"
	idsEvent    = "event: token_ids\n: \"[1,2,3]\"\n\n"
	jsonType    = "Content-Type: application/json\r\n"
)

// As OpenAI's API writes it (400, invalid_request_error, unsupported_parameter).
const (
	refusesMaxTokens = `Unsupported parameter: 'max_tokens' is not supported with this model. ` +
		`Use 'max_completion_tokens' instead.`
	refusesNVExt = `Unrecognized request argument supplied: nvext`
)

// fieldsOf are the fields of a request's body.
func fieldsOf(body []byte) (fields map[string]any) {
	_ = json.Unmarshal(body, &fields)
	return fields
}

// asked lists the extensions that a request carries, and the fields that limit its answer.
func asked(body []byte) (all []string) {
	if strings.Contains(string(body), `"annotations":["token_ids"]`) {
		all = append(all, ExtTokenIDs)
	}
	for name := range fieldsOf(body) {
		if name == ExtNVExt || name == ExtStreamOptions || strings.HasPrefix(name, "max_") {
			all = append(all, name)
		}
	}
	return all
}

// refusal is the response to a request that asks for something; a number only below a limit, unless that is 0.
type refusal struct {
	to       string
	below    float64
	response string
}

// refuses is a refusal with 400 in these words.
func refuses(to, words string) refusal {
	body, _ := json.Marshal(map[string]any{"error": map[string]any{"message": words, "code": nil}})
	return refusal{to, 0, withLength(400, "", string(body))}
}

// probed is a server that refuses the first of these that a request asks for. Of what else is asked for, its answer
// shows what it knows.
type probed struct {
	refuses []refusal
	knows   []string
}

func (p probed) answer(c call) bool {
	fields := asked(c.body)
	for _, r := range p.refuses {
		if n, _ := fieldsOf(c.body)[r.to].(float64); slices.Contains(fields, r.to) && (r.below == 0 || n < r.below) {
			return always(r.response)(c)
		}
	}
	events := []string{event("a")}
	for _, name := range p.knows {
		if slices.Contains(fields, name) {
			shows := map[string]string{ExtNVExt: workerEvent, ExtStreamOptions: usageEvent, ExtTokenIDs: idsEvent}
			events = append(events, shows[name])
		}
	}
	return always(answerOf(append(events, doneEvent)...))(c)
}

// wantProbe probes a server. It checks the number of requests and that the extensions in use are those of later
// requests, which succeed.
func wantProbe(t *testing.T, p probed, tokenIDs bool, requests int32, used []string) {
	t.Helper()
	s := serve(t, p.answer)
	c := clientOf(t, s.url, func(o *Options) { o.TokenIDs = tokenIDs })
	require.Nil(t, c.Probe(t.Context()))
	assert.Equal(t, requests, s.requests.Load())
	assert.EqualValues(t, requests, c.Probes())
	found := c.Extensions()
	maps.DeleteFunc(found, func(_ string, is bool) bool { return !is })
	assert.ElementsMatch(t, used, slices.Collect(maps.Keys(found)), "in use")
	asks := func(to func([]uint32)) []string {
		p, err := c.newPayload(Request{Messages: hello(), MaxTokens: 7, OnPrompt: to}, c.Extensions())
		require.NoError(t, err)
		return asked(p.buf.Bytes())
	}
	want := slices.Clone(used)
	if !found[ExtMaxCompletionTokens] {
		want = append(want, "max_tokens")
	}
	assert.ElementsMatch(t, want, asks(func([]uint32) {}), "of later requests")
	want = slices.DeleteFunc(want, func(name string) bool { return name == ExtTokenIDs })
	assert.ElementsMatch(t, want, asks(nil), "of later requests without a callback for ids")
	assert.Nil(t, c.Probe(t.Context()), "once more")
	if len(p.refuses) == 1 && p.refuses[0].below > 0 {
		assert.EqualValues(t, requests+1, c.Probes(), "the second one begins with the length that the first one found")
	}
	r := c.Do(t.Context(), Request{Messages: hello(), MaxTokens: 100})
	assert.True(t, r.OK(), outcome(r))
}

// A probe finds out which extensions a server knows, drops what it refuses, one at a time, and asks a server that
// refuses max_tokens with max_completion_tokens. What it finds holds for later requests.
func TestProbe(t *testing.T) {
	const ids, nvext, options, limit = ExtTokenIDs, ExtNVExt, ExtStreamOptions, ExtMaxCompletionTokens
	all := []string{ids, nvext, options}
	tokensByName, nvextByName := refuses("max_tokens", refusesMaxTokens), refuses(nvext, refusesNVExt)
	reasoning := refuses(limit, "Could not finish the message because max_tokens or model output limit was reached.")
	few := refuses(limit, "too low")
	reasoning.below, few.below = 16, 16
	for name, row := range map[string]struct {
		refuses  []refusal
		knows    []string
		tokenIDs bool // they are asked for
		used     []string
		requests int32
	}{
		"knows all":                   {nil, all, false, []string{nvext, options}, 1},
		"ignores what is unknown":     {nil, []string{options}, false, []string{options}, 1},
		"ignores everything":          {nil, nil, false, nil, 1},
		"refuses nvext by name":       {[]refusal{nvextByName}, all, false, []string{options}, 2},
		"refuses nvext, unnamed":      {[]refusal{refuses(nvext, "bad request")}, all, false, []string{options}, 3},
		"refuses stream_options":      {[]refusal{refuses(options, "no stream_options")}, all, false, []string{nvext}, 2},
		"refuses both":                {[]refusal{refuses(nvext, "no"), refuses(options, "no")}, all, false, nil, 4},
		"refuses max_tokens":          {[]refusal{tokensByName}, all, false, []string{limit, nvext, options}, 2},
		"max_tokens, then nvext":      {[]refusal{tokensByName, nvextByName}, all, false, []string{limit, options}, 3},
		"nvext, then max_tokens":      {[]refusal{nvextByName, tokensByName}, all, false, []string{limit, options}, 3},
		"reasoning before the answer": {[]refusal{tokensByName, reasoning}, all, false, []string{limit, nvext, options}, 3},
		"reasoning, and no extension": {[]refusal{tokensByName, few, nvextByName}, all, false, []string{limit, options}, 4},
		"knows ids":                   {nil, all, true, []string{nvext, options, ids}, 1},
		"knows ids, shows no worker":  {nil, []string{ids, options}, true, []string{nvext, options, ids}, 1},
		"ignores ids":                 {nil, []string{nvext, options}, true, []string{nvext, options}, 1},
		"refuses ids by name":         {[]refusal{refuses(ids, "annotations")}, all, true, []string{nvext, options}, 2},
		"refuses ids, unnamed":        {[]refusal{refuses(ids, "bad request")}, all, true, []string{nvext, options}, 3},
		"refuses nvext with ids":      {[]refusal{nvextByName}, all, true, []string{options}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			wantProbe(t, probed{row.refuses, row.knows}, row.tokenIDs, row.requests, row.used)
		})
	}
}

// What a refusal says of the request's fields, in members of its own or in words, changes these fields and no others.
func TestProbeChangesWhatIsRefused(t *testing.T) {
	const nvext, options, limit = ExtNVExt, ExtStreamOptions, "max_tokens"
	both, noNVExt, noOptions := []string{nvext, options}, []string{options}, []string{nvext}
	fastAPI := func(loc, msg string) string { return `{"detail":[{"loc":["body",` + loc + `],"msg":"` + msg + `"}]}` }
	serde := func(field, known string) string {
		return "unknown field `" + field + "`, expected one of `max_tokens`, `" + known + "`"
	}
	says := func(message string) string { return `{"error":{"message":"` + message + `"}}` }
	for name, row := range map[string]struct {
		to       string // the field that is refused: an extension, or the limit below a length
		below    float64
		status   int // 0: 200 in a stream
		body     string
		requests int32
		used     []string // by later requests
	}{
		"FastAPI":                           {nvext, 0, 422, fastAPI(`"nvext"`, "Extra inputs are not permitted"), 2, noNVExt},
		"FastAPI, the other one":            {options, 0, 422, fastAPI(`"stream_options","include_usage"`, "not a bool"), 2, noOptions},
		"FastAPI, with what was sent":       {options, 0, 422, `{"detail":[{"input":{"nvext":{}},"loc":["body","stream_options"],"msg":"no"}]}`, 2, noOptions},
		"FastAPI, two faults":               {nvext, 0, 422, `{"detail":[{"loc":["body","nvext"],"msg":"no"},{"loc":["body","stream_options"],"msg":"no"}]}`, 2, nil},
		"FastAPI, within a message":         {nvext, 0, 422, `{"object":"error","message":` + fastAPI(`"nvext"`, "no") + `}`, 2, noNVExt},
		"FastAPI, as text":                  {options, 0, 400, `{"message":"[{'loc': ('body', 'stream_options'), 'msg': 'no', 'input': {'nvext': 1}}]"}`, 2, noOptions},
		"pydantic":                          {nvext, 0, 400, "1 validation error\nnvext\n" + ` Extra inputs [type=extra_forbidden, input_value={'stream_options': 1}]`, 2, noNVExt},
		"OpenAI":                            {options, 0, 400, `{"error":{"message":"Unknown parameter.","param":"stream_options","code":"unknown_parameter"}}`, 2, noOptions},
		"OpenAI, a part of it":              {nvext, 0, 400, `{"error":{"message":"Bad.","param":"nvext.extra_fields[0]"}}`, 2, noNVExt},
		"OpenAI, the limit":                 {limit, 0, 400, `{"error":{"message":"Not supported with this model.","param":"max_tokens"}}`, 2, append(both, ExtMaxCompletionTokens)},
		"Google":                            {nvext, 0, 400, `{"error":{"details":[{"fieldViolations":[{"field":"nvext","description":"?"}]}],"message":"Bad."}}`, 2, noNVExt},
		"a problem's pointer":               {options, 0, 400, `{"title":"Invalid","errors":[{"pointer":"#/stream_options","detail":"?"}]}`, 2, noOptions},
		"a problem's members":               {options, 0, 400, `{"title":"Invalid","errors":{"StreamOptions":["?"]}}`, 2, noOptions},
		"a list of known fields":            {nvext, 0, 422, serde("nvext", "stream_options"), 2, noNVExt},
		"the same of another":               {options, 0, 422, serde("stream_options", "nvext"), 2, noOptions},
		"in a stream":                       {options, 0, 0, `{"error":{"message":"Bad.","param":"stream_options","code":"unknown_parameter"}}`, 2, noOptions},
		"in a stream, in no words":          {nvext, 0, 0, `{"error":{"message":"Invalid request","code":400}}`, 3, noNVExt},
		"200 and a number":                  {nvext, 0, 200, `{"error":{"message":"API error","code":"1210"}}`, 2, noNVExt},
		"200 and a word":                    {options, 0, 200, `{"code":"InvalidParameter","message":"?"}`, 3, nil},
		"200 and no error by name":          {nvext, 0, 200, `{"base_resp":{"status_code":2013,"status_msg":"invalid params"}}`, 2, noNVExt},
		"200 and a status":                  {nvext, 0, 200, `{"error":{"message":"Unknown parameter: nvext","code":400}}`, 2, noNVExt},
		"200 without a code":                {nvext, 0, 200, says("no"), 2, noNVExt},
		"415":                               {nvext, 0, 415, "", 3, noNVExt},
		"413, the other one":                {options, 0, 413, "no", 4, nil},
		"500":                               {nvext, 0, 500, says("Unknown field: nvext"), 2, noNVExt},
		"500 that names nothing":            {nvext, 0, 500, says("internal error"), 2, noNVExt},
		"500 in no words":                   {options, 0, 500, "", 3, nil},
		"502 by a gateway":                  {nvext, 0, 502, says("upstream: extra field nvext"), 2, noNVExt},
		"FastAPI, a length":                 {limit, 20, 422, fastAPI(`"max_tokens"`, "Input should be greater than 19"), 2, both},
		"OpenAI, a length":                  {limit, 16, 400, `Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got 1 instead.`, 2, both},
		"a length in a member":              {limit, 40, 400, `{"error":{"message":"Bad.","param":"max_tokens","minimum":40}}`, 2, both},
		"a range":                           {limit, 2, 400, "max_tokens must be in [2, 8192]", 2, both},
		"a least length":                    {limit, 64, 400, says("max_tokens must be at least 64"), 2, both},
		"a length in no words":              {limit, 10, 400, "Invalid value for max_tokens", 2, both},
		"a length in words for any request": {limit, 10, 400, says("bad request"), 2, both},
		"a length that grows":               {limit, 100, 400, "max_tokens is too small", 3, both},
	} {
		t.Run(name, func(t *testing.T) {
			response := withLength(row.status, jsonType, row.body)
			if row.status == 0 {
				response = answerOf("data: " + row.body + "\n\n")
			}
			wantProbe(t, probed{[]refusal{{row.to, row.below, response}}, both}, false, row.requests, row.used)
		})
	}
}

// The least length of an answer is read from any words for it, and from none that mean something else.
func TestLeastLength(t *testing.T) {
	for words, want := range map[string]int{
		"max_tokens must be greater than 19":                       20,
		"must be greater than or equal to 20":                      20,
		"max_tokens should be > 19":                                20,
		"Value must be >= 24, got 1":                               24,
		"must be ≥24":                                              24,
		"max_tokens must be in [2, 8192]":                          2,
		"Range of max_tokens should be (1, 8192]":                  2,
		"max_tokens has to be between 16 and 4096":                 16,
		"must be in the range 16-4096":                             16,
		"must be within 16..4096":                                  16,
		"must be in [16, inf)":                                     16,
		"max_tokens: 1 is less than the minimum of 16":             16,
		"1 is below 16":                                            16,
		"must not be less than 32":                                 32,
		"can't be greater than 99":                                 0,
		"can't be smaller than 32":                                 32,
		"no fewer than 32 tokens":                                  32,
		"the minimum is 1,024":                                     1024,
		"min=48":                                                   48,
		"48 tokens or more":                                        48,
		"48 <= max_tokens <= 8192":                                 48,
		"must be greater than 19 and less than or equal to 4096":   20,
		"Field validation for 'MaxTokens': too small":              16,
		"must not be greater than 2048":                            0,
		"must be less than or equal to 2048":                       0,
		"at least 9999999":                                         0,
		"max_tokens is deprecated since version >= 2024-12-01":     0,
		"must be greater than 0":                                   0,
		"unsupported":                                              0,
		"Invalid request, 'input': {'max_tokens': 'at least 300'}": 0,
	} {
		assert.Equal(t, want, leastLength(words, 1), words)
	}
}

// A list that names no model names none to ask for.
func TestProbeAsksForNoPlaceholder(t *testing.T) {
	s := serve(t, func(c call) bool {
		c.write(withLength(200, "Content-Type: application/json\r\nConnection: close\r\n", `{"data":[{"id":"unknown"},{"id":""}]}`))
		return false
	})
	c := clientOf(t, s.url, func(o *Options) { o.Model = "" })
	wantError(t, c.Probe(t.Context()), api.ErrorHTTP4xx, "lists no model by its name", "target.model")
	assert.Zero(t, c.Probes())
}

// A probe that fails says why, sends a bounded number of requests, and changes nothing.
func TestProbeFails(t *testing.T) {
	neither := probed{refuses: []refusal{
		refuses("max_tokens", refusesMaxTokens),
		refuses("max_completion_tokens", "unknown field max_completion_tokens"),
	}}
	page := withLength(200, "Content-Type: text/html\r\n", "<p>Hello")
	for name, row := range map[string]struct {
		answer   func(call) bool
		class    api.ErrorClass
		status   int
		requests int32
		says     string
	}{
		"neither limit":         {neither.answer, api.ErrorHTTP4xx, 400, 5, "unknown field max_completion_tokens"},
		"400 whatever is asked": {always(withLength(400, "", "no")), api.ErrorHTTP4xx, 400, 4, "no"},
		"422 whatever is asked": {always(withLength(422, "", "no")), api.ErrorHTTP4xx, 422, 4, "no"},
		"500 whatever is asked": {always(withLength(500, "", "out of memory")), api.ErrorHTTP5xx, 500, 3, "out of memory"},
		"402":                   {always(withLength(402, "", "not paid")), api.ErrorHTTP4xx, 402, 1, "not paid"},
		"a shop window":         {always(page), api.ErrorMalformed, 200, 1, "did not stream"},
		"401":                   {always(withLength(401, "", "")), api.ErrorHTTP4xx, 401, 1, ""},
		"429":                   {always(withLength(429, "", "")), api.ErrorRateLimited, 429, 1, ""},
		"503":                   {always(withLength(503, "", "")), api.ErrorHTTP5xx, 503, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, row.answer)
			c := clientOf(t, s.url)
			before := map[string]bool{ExtNVExt: true}
			c.ext.set(before, 1)
			err := c.Probe(t.Context())
			wantError(t, err, row.class, row.says)
			assert.True(t, err == nil || err.Status == row.status, "got %+v, want status %d", err, row.status)
			assert.Equal(t, row.requests, s.requests.Load())
			assert.Equal(t, before, c.Extensions())
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
	require.Nil(t, c.Probe(t.Context()))
	assert.Equal(t, "llama", c.Model())
	assert.Equal(t, "llama", do(t, c).Content, "the model asked for")
	models <- `{"data":[{"id":"qwen"}]}` // the server was restarted with another one
	assert.Nil(t, c.Probe(t.Context()))
	assert.Equal(t, "qwen", c.Model())
	models <- `{"data":[]}`
	wantError(t, c.Probe(t.Context()), api.ErrorHTTP4xx, "lists no model yet")
	models <- `<html>`
	wantError(t, c.Probe(t.Context()), api.ErrorMalformed, "/v1/models is not a list of models")
	assert.Equal(t, "qwen", c.Model(), "after a failed probe")
}

func TestModelsFails(t *testing.T) {
	cutOff := func(c call) bool { c.write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"); return false }
	for name, row := range map[string]struct {
		answer func(call) bool
		class  api.ErrorClass
		says   string
	}{
		"401":                    {always(withLength(401, "", "")), api.ErrorHTTP4xx, "LOADGEN_TARGET_API_KEY"},
		"404":                    {always(withLength(404, "", "")), api.ErrorHTTP4xx, "target.url"},
		"302 is not followed":    {always(withLength(302, "Location: /\r\n", "")), api.ErrorMalformed, "answered 302"},
		"503":                    {always(withLength(503, "Retry-After: 3\r\n", "")), api.ErrorHTTP5xx, "retry after 3s"},
		"closes":                 {func(call) bool { return false }, api.ErrorConnect, "did not answer"},
		"closes within the body": {cutOff, api.ErrorConnect, "did not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := clientOf(t, serve(t, row.answer).url).Models(t.Context())
			wantError(t, err, row.class, row.says)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		go func() {
			for takeRequest(far) == nil { // and silence
			}
		}()
		c := clientOf(t, "http://host", func(o *Options) {
			o.Dial = func(context.Context, string, string) (net.Conn, error) { return near, nil }
		})
		_, err := c.Models(t.Context())
		wantError(t, err, api.ErrorTimeout, "accepts connections but does not answer")
	})
}

// Where chunks hold several tokens, a server that counts them is asked for usage in each chunk.
func TestContinuousUsage(t *testing.T) {
	t.Parallel()
	const stopEvent = `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	const asks = `"continuous_usage_stats":true`
	wants := func(c call) bool { return strings.Contains(string(c.body), asks) }
	counts := func(c call) bool {
		if wants(c) {
			return always(answerOf(counted("abcd", 4), counted("efgh", 8), doneEvent))(c)
		}
		return always(answerOf(event("abcd"), event("efgh"), counted("", 8), doneEvent))(c)
	}
	for _, row := range []struct {
		name     string
		fields   map[string]any
		answer   func(call) bool
		used     bool
		probes   int64  // beside the first
		requests []bool // of five turns and of the probes between them: whether they ask for it
	}{
		{"the server takes it", nil, counts, true, 1, []bool{false, false, false, true, true, true}},
		{"the server refuses it", nil, func(c call) bool {
			if wants(c) {
				return always(withLength(400, "", "unknown field"))(c)
			}
			return counts(c)
		}, false, 1, []bool{false, false, false, true, false, false}},
		{
			"the server ignores it", nil, always(answerOf(event("abcd"), event("efgh"), counted("", 8), doneEvent)), false, 1,
			[]bool{false, false, false, true, false, false},
		},
		{
			"one token in each chunk", nil, always(answerOf(event("a"), event("b"), stopEvent, counted("", 3), doneEvent)),
			false, 0,
			[]bool{false, false, false, false, false},
		},
		{
			"request.body decides",
			map[string]any{ExtStreamOptions: map[string]any{ExtContinuousUsage: false}},
			counts,
			false, 0,
			[]bool{false, false, false, false, false},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			var asked []bool
			s := serve(t, func(c call) bool {
				asked = append(asked, wants(c))
				return row.answer(c)
			})
			c := clientOf(t, s.url, func(o *Options) { o.Fields = row.fields })
			require.Nil(t, c.Probe(t.Context()))
			asked = nil
			var last Result
			for range 5 {
				last = do(t, c)
			}
			assert.Equal(t, row.requests, asked)
			assert.Equal(t, row.used, c.Extensions()[ExtContinuousUsage])
			assert.Equal(t, row.probes+1, c.Probes())
			assert.Equal(t, row.used, last.Chunks[1].Tokens == 4, "the chunks are counted")
		})
	}
}

// Options of the stream in the fields of the configuration are added to those of the load generator.
func TestStreamOptions(t *testing.T) {
	for _, row := range []struct {
		given any
		used  bool
		want  string
	}{
		{nil, false, ``},
		{nil, true, `,"stream_options":{"include_usage":true}`},
		{map[string]any{"chunk_size": 4}, true, `,"stream_options":{"chunk_size":4,"include_usage":true}`},
		{map[string]any{"chunk_size": 4}, false, `,"stream_options":{"chunk_size":4}`},
	} {
		c := clientOf(t, "http://host", func(o *Options) {
			if row.given != nil {
				o.Fields = map[string]any{ExtStreamOptions: row.given, "x": 1}
			}
		})
		p, err := c.newPayload(Request{Messages: hello()}, map[string]bool{ExtStreamOptions: row.used})
		require.NoError(t, err)
		want := `{"model":"m","stream":true` + row.want + `,"messages":[{"role":"user","content":"Hello."}]`
		if row.given != nil {
			want += `,"x":1`
		}
		assert.Equal(t, want+"}", strings.TrimSpace(p.buf.String()))
	}
}
